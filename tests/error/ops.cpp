// Wrong shapes, types, axes, numbers and indices.
#include <cstdlib>

#include "support.hpp"

namespace tandem {
namespace {

const Tensor& row() {
  static const Tensor t = Tensor::of({1.f, 2.f, 3.f});
  return t;
}
const Tensor& whole() {
  static const Tensor t = Tensor::of({1, 2, 3});
  return t;
}

TEST(OpErrors, InnerDimensions) {
  const Tensor a = Tensor::ones({32, 128}), b = Tensor::ones({64, 10});
  EXPECT_USER_ERROR(matmul(a, b), "matmul: inner dimensions differ, lhs [32,128] x rhs [64,10] (128 != 64)\n  @");
}

TEST(OpErrors, Recurrent) {
  const auto ones = [](const DimList& s) { return Tensor::ones(s); };
  EXPECT_USER_ERROR(lstm(ones({2, 12}), ones({3, 12}), ones({2, 3}), ones({2, 3})),
                    "lstm: inputs must be [time, batch, 4 * units], it is [2,12]\n  @");
  EXPECT_USER_ERROR(lstm(ones({5, 2, 12}), ones({3, 9}), ones({2, 3}), ones({2, 3})),
                    "lstm: recurrent_kernel must be [units, 4 * units], it is [3,9]\n  @");
  EXPECT_USER_ERROR(lstm(ones({5, 2, 8}), ones({3, 12}), ones({2, 3}), ones({2, 3})),
                    "lstm: inputs must be [time, batch, 4 * units] = [5,2,12], it is [5,2,8]\n  @");
  EXPECT_USER_ERROR(lstm(ones({5, 2, 12}), ones({3, 12}), ones({2, 3}), ones({7, 3})),
                    "lstm: c must be [batch, units] = [2,3], it is [7,3]\n  @");
  EXPECT_USER_ERROR(gru(ones({5, 2, 9}), ones({3, 9}), ones({2, 3}), ones({2, 9})),
                    "gru: recurrent_bias must be [3 * units] = [9], it is [2,9]\n  @");
  EXPECT_USER_ERROR(gru(ones({5, 2, 9}), ones({3, 9}), ones({2, 3}), ones({9}), Tensor::ones({2, 5}, DType::Bool)),
                    "gru: mask must be [time, batch] = [5,2], it is [2,5]\n  @");
  EXPECT_USER_ERROR(gru(ones({5, 2, 9}), ones({3, 9}), ones({2, 3}), ones({9}), {}, false, true),
                    "gru: keep is there for reset_after=true only\n  @");
}

TEST(OpErrors, Broadcasting) {
  const Tensor a = Tensor::ones({2, 3}), b = Tensor::ones({2, 4});
  EXPECT_USER_ERROR(a + b, "add: x is float32[2,3], y is float32[2,4]: shapes [2,3] and [2,4] do not fit (3 != 4 at axis -1)\n  @");
}

TEST(OpErrors, Axes) {
  EXPECT_USER_ERROR(sum(row(), 3), "sum: axis 3 is out of range for rank 1 (-1 to 0)\n  @");
  EXPECT_USER_ERROR(row().sum(-2), "sum: axis -2 is out of range for rank 1 (-1 to 0)\n  @");
  EXPECT_USER_ERROR(sum(row(), {0, 0}), "sum: axis 0 is there twice in axis = [0,0]\n  @");
  EXPECT_USER_ERROR(transpose(Tensor::ones({2, 3}), {0}), "transpose: perm [0] has 1 entries, [2,3] has 2 axes\n  @");
}

TEST(OpErrors, Reshaping) {
  EXPECT_USER_ERROR(row().reshape({2, 2}), "reshape: [3] has 3 elements, [2,2] has 4 (3 != 4)\n  @");
  EXPECT_USER_ERROR(row().reshape({2, -1}), "reshape: [3] with 3 elements does not fit into [2,-1]: 3 is not a multiple of 2\n  @");
  EXPECT_USER_ERROR(squeeze(row(), 0), "squeeze: axis 0 of [3] has size 3, not 1\n  @");
  EXPECT_USER_ERROR(split(row(), {1, 1}), "split: the sizes [1,1] make 2, the axis of [3] has 3 (2 != 3)\n  @");
}

TEST(OpErrors, Joining) {
  EXPECT_USER_ERROR(concatenate({row(), row().reshape({1, 3})}), "concatenate: operand 1 [1,3] has 2 axes, operand 0 [3] has 1\n  @");
}

TEST(OpErrors, ElementTypes) {
  EXPECT_USER_ERROR(
      left_shift(row(), 2),
      "left_shift: operand 'x' must be an integer type, got float32\n  @\n  hint: cast it first: floats are never made integers silently");
  EXPECT_USER_ERROR(one_hot(row(), 3), "one_hot: operand 'indices' must be an integer type (int32 or int64), got float32\n  @");
  EXPECT_USER_ERROR(random_uniform(row(), {3}), "random_uniform: operand 'key' must be a key (uint32), got float32\n  @");
}

TEST(OpErrors, NumbersThatDoNotFit) {
  const Tensor bytes = Tensor::of({uint8_t{1}});
  EXPECT_USER_ERROR(bytes + 300, "add: the number 300 does not fit into uint8\n  @");
  EXPECT_USER_ERROR(bytes * -1, "multiply: the number -1 does not fit into uint8\n  @");
}

TEST(OpErrors, MissingOperands) {
  const std::string hint = "\n  hint: a default-made Tensor, or the gradient of something that the target does not depend on";
  EXPECT_USER_ERROR(row() + Tensor(), "add: operand 'y' holds nothing\n  @" + hint);
  EXPECT_USER_ERROR(Tensor().dtype(), "this tensor holds nothing" + hint);
}

TEST(OpErrors, IndicesOutOfRange) {
  EXPECT_USER_ERROR(row()[3], "index: index 3 is out of range for axis 0 with size 3\n  @");
  EXPECT_USER_ERROR(row()[-4], "index: index -4 is out of range for axis 0 with size 3\n  @");
  EXPECT_USER_ERROR(row()(0, 0), "index: 2 indices for a tensor float32[3] with 1 axes\n  @");
  EXPECT_USER_ERROR(row()(ellipsis, ellipsis), "index: only one ellipsis is possible, there are 2\n  @");
  EXPECT_USER_ERROR(row()[Slice(0, 2, 0)], "index: a slice's step must not be 0\n  @");
  EXPECT_USER_ERROR(row()[row()], "index: a tensor of indices must be of an integer type, it is float32[3]\n  @");
  EXPECT_USER_ERROR(
      row()[row() > 1],
      "index: a tensor of indices must be of an integer type, it is bool[3]\n  @\n  hint: where() chooses by a mask and keeps the shape");
  EXPECT_USER_ERROR(take(row(), Tensor::of({0, 7})), "take: index 7 is out of range for axis 0 with size 3 (at position [1])\n  @");
  EXPECT_USER_ERROR(row()[whole()], "take: index 3 is out of range for axis 0 with size 3 (at position [2])\n  @");
}

TEST(OpErrors, Extents) {
  EXPECT_USER_ERROR(Tensor::zeros({-1}), "full: the result would have the negative extent -1: float32[-1]\n  @");
  EXPECT_USER_ERROR(Tensor::zeros({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}),
                    "full: the result would have 13 dimensions, at most 12 are supported\n  @");
  EXPECT_USER_ERROR(Tensor::zeros({int64_t{1} << 40, int64_t{1} << 40}),
                    "full: the result would be float32[1099511627776,1099511627776]: shape [1099511627776,1099511627776]: 1099511627776 x "
                    "1099511627776 elements do not fit in 64 bits (at most 9223372036854775807)\n  @");
}

TEST(OpErrors, MoreMemoryThanThereIs) {
  // 2^60 bytes. The message also has the machine's memory, which differs.
  try {
    Tensor::zeros({int64_t{1} << 58});
    ADD_FAILURE() << "no error";
  } catch (const ResourceError& e) {
    const std::string text = e.what();
    EXPECT_EQ(text.find("cpu: cannot allocate 1152921504606846976 bytes (1099511627776 MiB): the machine has "), 0u) << text;
    EXPECT_NE(text.find("\n  at ops.cpp:"), std::string::npos) << text;
    EXPECT_NE(text.find("\n  hint: "), std::string::npos) << text;
  }
  expect_works();
}

TEST(OpErrors, UnknownWords) {
  EXPECT_USER_ERROR(pad_mode(row(), 1, 1, "foo"),
                    "pad_mode: unknown mode 'foo'\n  @\n  hint: reflect, symmetric, edge or wrap; a constant is padded by pad");
}

TEST(TensorErrors, ReadingAsSomethingElse) {
  EXPECT_USER_ERROR(row().item<float>(), "item: the tensor float32[3] has 3 elements, not 1\n  @\n  hint: to_vector(), or index it first");
  EXPECT_USER_ERROR(row().data<int32_t>(), "data: the elements are float32, asked for as int32\n  @\n  hint: cast(), or to_vector()");
  const float memory[] = {1, 2, 3};
  const Tensor strided = Tensor::view(memory, DType::F32, {2}, Strides{2});
  EXPECT_USER_ERROR(strided.data<float>(),
                    "data: the tensor float32[2] is not contiguous, its strides are [2]\n  @\n  hint: contiguous().data()");
}

TEST(TensorErrors, MakingFromTheWrongNumberOfValues) {
  EXPECT_USER_ERROR(Tensor::from(std::vector<float>{1, 2}, {3}), "Tensor::from: 2 values for the shape [3] of 3");
  EXPECT_USER_ERROR(Tensor::of({{1, 2}, {3}}), "Tensor::of: rows have different lengths, 2 and 1");
  EXPECT_USER_ERROR(Tensor::view(nullptr, DType::F32, {3}), "Tensor::view: a null pointer for 3 elements");
  EXPECT_USER_ERROR(Tensor::arange(0, 10, 0), "arange: no numbers from 0 to 10 in steps of 0");
}

}  // namespace
}  // namespace tandem
