// A map in front of a batch gives the same bits for the whole batch as one element at a time, whatever its function does.
#include <tandem/ops.hpp>

#include "data_support.hpp"

namespace tandem::data {
namespace {

Tensor images() {
  std::vector<float> numbers;
  for (int i = 0; i < 7 * 4 * 5 * 3; ++i) numbers.push_back(static_cast<float>((i * 37) % 101) / 7.f - 3.f);
  return Tensor::from(numbers, {7, 4, 5, 3});
}

template <class F> void expect_same(const char* what, F f, bool is_batched = true, Vectorize how = Vectorize::WhereExact) {
  SCOPED_TRACE(what);
  const Dataset source = Dataset::from_slices({images(), Tensor::of({0, 2, 1, 3, 2, 1, 0})});
  const Dataset batched = source.map(f, {.vectorize = how}).batch(3), alone = source.map(f, {.vectorize = Vectorize::Never}).batch(3);
  EXPECT_EQ(batched.str().find("map_batched") != std::string::npos, is_batched) << batched.str();
  for (size_t c = 0; c < batched.specs().size(); ++c) EXPECT_EQ(batched.specs()[c].str(), alone.specs()[c].str());
  const std::vector<Element> a = all_of(batched), b = all_of(alone);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size());
    for (size_t c = 0; c < a[i].size(); ++c) {
      ASSERT_EQ(a[i][c].type_str(), b[i][c].type_str());
      if (how == Vectorize::Always) {
        const std::vector<double> x = a[i][c].to_vector<double>(), y = b[i][c].to_vector<double>();
        for (size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], y[k], 1e-5);
      } else {
        ASSERT_EQ(a[i][c].str(), b[i][c].str());
        ASSERT_EQ(a[i][c].to_vector<double>(), b[i][c].to_vector<double>());
      }
    }
  }
}

TEST(DataVmap, SameBits) {
  const Tensor scale = Tensor::of({0.5f, 2.f, 4.f});
  const Tensor table = counting(4, 6);
  Variable shift(Tensor::scalar(1.5f));
  expect_same("elementwise", [&](Tensor x, Tensor y) { return std::tuple(tanh(x * scale) + shift.value(), y * 2); });
  expect_same("broadcast by rank", [](Tensor x, Tensor y) { return x * y.cast(DType::F32) + x.max({0, 1}); });
  expect_same("movement",
              [](Tensor x, Tensor y) { return std::tuple(flip(x, 1).transpose({2, 0, 1}).reshape({3, -1}), y.expand_dims({0})); });
  expect_same("crop and pad", [](Tensor x, Tensor) { return x(Slice(1, 3), Slice(0, 5, 2)); });
  expect_same("join", [](Tensor x, Tensor) { return concatenate({x, x * 0 + 1}, -1); });
  expect_same("reductions", [](Tensor x, Tensor y) { return std::tuple(x.max({-1}), x.min(), x.argmax(), x.argmax(1), y + 1); });
  expect_same("one hot", [](Tensor, Tensor y) { return std::tuple(one_hot(y, 4), where(y > 1, 1.0, 0.0)); });
  expect_same("constants", [](Tensor x, Tensor) { return std::tuple(Tensor::ones({2}), x.cast(DType::I32)); });
  expect_same("sort", [](Tensor x, Tensor) { return sort(x, 1); });
  expect_same("identity", [](Tensor x, Tensor y) { return std::tuple(y, x); });
}

TEST(DataVmap, OneByOneWhereBitsWouldChange) {
  expect_same("mean", [](Tensor x, Tensor) { return x - x.mean(); }, false);
  expect_same("matmul", [](Tensor x, Tensor) { return matmul(x, Tensor::ones({3, 2})); }, false);
  expect_same("gather that may fail", [](Tensor, Tensor y) { return take(counting(4, 6), y); }, false);
}

TEST(DataVmap, AlwaysWhereAsked) {
  expect_same("standardised", [](Tensor x, Tensor) { return (x - x.mean()) / (x.sum({-1}, true) + 100.0); }, true, Vectorize::Always);
  expect_same("matmul", [](Tensor x, Tensor) { return matmul(x, Tensor::ones({3, 2})); }, true, Vectorize::Always);
  expect_same("softmax", [](Tensor x, Tensor) { return softmax(x); }, true, Vectorize::Always);
}

}  // namespace
}  // namespace tandem::data
