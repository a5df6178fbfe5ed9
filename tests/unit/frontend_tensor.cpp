// Tensors: made, read, printed, viewed; operators and promotion.
#include <cmath>
#include <sstream>
#include <thread>

#include "frontend_support.hpp"

namespace tandem {
namespace {

TEST(Tensor, IsMadeFromNumbers) {
  const Tensor t = Tensor::of({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  EXPECT_EQ(t.dtype(), DType::F32);
  EXPECT_EQ(t.shape(), (Shape{2, 3}));
  EXPECT_EQ(t.rank(), 2);
  EXPECT_EQ(t.size(), 6);
  EXPECT_EQ(t.type_str(), "float32[2,3]");
  EXPECT_EQ(floats(t), (F{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Tensor::of({{{1, 2}, {3, 4}}}).shape(), (Shape{1, 2, 2}));
  EXPECT_EQ(Tensor::from(std::vector<double>{1, 2, 3, 4}, {2, 2}).dtype(), DType::F64);
  EXPECT_EQ(Tensor::from(std::vector<bool>{true, false}, {2}).to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(Tensor::scalar(7).item<int>(), 7);
  EXPECT_EQ(floats(Tensor::zeros({2, 2})), (F{0, 0, 0, 0}));
  EXPECT_EQ(ints(Tensor::ones({3}, DType::I64)), (I{1, 1, 1}));
  EXPECT_EQ(Tensor::full({2}, 7).dtype(), DType::I32);
  EXPECT_EQ(Tensor::full({2}, 7, DType::U8).dtype(), DType::U8);
  EXPECT_EQ(floats(Tensor::full({2}, 1.5)), (F{1.5, 1.5}));
  EXPECT_EQ(ints(Tensor::arange(5)), (I{0, 1, 2, 3, 4}));
  EXPECT_EQ(ints(Tensor::arange(5, 0, -2)), (I{5, 3, 1}));
  EXPECT_EQ(floats(Tensor::arange(0.f, 1.f, 0.25f)), (F{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(Tensor::arange(0).size(), 0);
}

TEST(Tensor, IsAHandle) {
  const Tensor a = Tensor::of({1.f});
  Tensor b = a;
  b = b + 1;
  EXPECT_EQ(floats(a), (F{1}));
  EXPECT_EQ(floats(b), (F{2}));
  EXPECT_FALSE(Tensor().defined());
  EXPECT_EQ(Tensor().str(), "Tensor(undefined)");
}

TEST(Tensor, IsReadInAnyElementType) {
  const Tensor t = Tensor::of({-1.5f, 300.f, NAN, INFINITY});
  EXPECT_EQ(t.to_vector<int8_t>(), (std::vector<int8_t>{-1, 127, 0, 127}));
  EXPECT_EQ(t.to_vector<uint8_t>(), (std::vector<uint8_t>{0, 255, 0, 255}));
  EXPECT_EQ(Tensor::of({int64_t{1} << 62}).item<int64_t>(), int64_t{1} << 62);
  EXPECT_EQ(Tensor::of({-1}).item<uint32_t>(), 0u);
  EXPECT_EQ(floats(Tensor::of({1.5f, -2.f}).cast(DType::BF16)), (F{1.5, -2}));
  EXPECT_EQ(floats(Tensor::of({1.5f, 65504.f}).cast(DType::F16)), (F{1.5, 65504}));
  EXPECT_EQ(Tensor::of({1.f, 2.f}).data<float>()[1], 2.f);
}

TEST(Tensor, PrintsLikeNumPy) {
  EXPECT_EQ(Tensor::of({1.f, 2.5f, -3.f}).str(), "[ 1.   2.5 -3. ]");
  EXPECT_EQ(Tensor::of({{1, 20}, {300, 4}}).str(), "[[  1  20]\n [300   4]]");
  EXPECT_EQ(Tensor::of({true, false}).str(), "[ True False]");
  EXPECT_EQ(Tensor::scalar(1.f).str(), "1.0");
  EXPECT_EQ(Tensor::scalar(0.1f).str(), "0.1");
  EXPECT_EQ(Tensor::scalar(0.1).str(), "0.1");
  EXPECT_EQ(Tensor::of({1.f, NAN, -INFINITY}).str(), "[  1.  nan -inf]");
  EXPECT_EQ(Tensor::of({1e10f, 1.f}).str(), "[1.e+10 1.e+00]");
  EXPECT_EQ(Tensor::of({1.5e-7f}).str(), "[1.5e-07]");
  EXPECT_EQ(Tensor::of({1.0f / 3}).str(), "[0.33333334]");
  EXPECT_EQ(Tensor::arange(2000).str(), "[   0    1    2 ... 1997 1998 1999]");
  EXPECT_EQ(Tensor::zeros({0, 3}).str(), "[], shape=[0,3]");
  EXPECT_EQ(Tensor::zeros({2, 1, 2}).str(), "[[[0. 0.]]\n\n [[0. 0.]]]");
  std::ostringstream os;
  os << Tensor::of({1});
  EXPECT_EQ(os.str(), "[1]");
}

TEST(Tensor, OperatorsBroadcastAndPromote) {
  const Tensor x = Tensor::of({{1.f, 2.f}, {3.f, 4.f}}), y = Tensor::of({10.f, 20.f});
  EXPECT_EQ(floats(x + y), (F{11, 22, 13, 24}));
  EXPECT_EQ(floats(x - y), (F{-9, -18, -7, -16}));
  EXPECT_EQ(floats(y / x), (F{10, 10, 10.0f / 3, 5}));
  EXPECT_EQ(floats(2 * x), (F{2, 4, 6, 8}));
  EXPECT_EQ(floats(-x), (F{-1, -2, -3, -4}));
  EXPECT_EQ((x < 3).to_vector<bool>(), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ((x == 3).to_vector<bool>(), (std::vector<bool>{false, false, true, false}));
  EXPECT_EQ((x != 3).to_vector<bool>(), (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ((!(x >= 3)).to_vector<bool>(), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(ints(Tensor::of({-7, 7}) % 3), (I{2, 1}));
  EXPECT_EQ(ints(Tensor::of({6, 5}) & 3), (I{2, 1}));
  EXPECT_EQ(ints(Tensor::of({6, 5}) | Tensor::of({1, 2})), (I{7, 7}));
  EXPECT_EQ(ints(~Tensor::of({0})), (I{-1}));
  EXPECT_EQ(((x > 1) & (x < 4)).to_vector<bool>(), (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ((Tensor::of({1, 2}) / 2).dtype(), DType::F32);
  EXPECT_EQ((Tensor::of({1, 2}) + 1.5).dtype(), DType::F32);
  EXPECT_EQ((x.cast(DType::F16) * 2.5).dtype(), DType::F16);
  EXPECT_EQ((x.cast(DType::BF16) + x).dtype(), DType::F32);
  EXPECT_EQ((x > 1).dtype(), DType::Bool);
  EXPECT_EQ(((x > 1) + 1).dtype(), DType::I32);
  Tensor z = x;
  z += 1;
  z *= x;
  z -= y;
  z /= 2;
  EXPECT_EQ(floats(z), (F{-4, -7, 1, 0}));
}

TEST(Tensor, OpsAreFunctionsWithAttributes) {
  const Tensor x = Tensor::of({{1.f, 2.f}, {3.f, 4.f}});
  EXPECT_EQ(floats(sum(x)), (F{10}));
  EXPECT_EQ(floats(sum(x, 0)), (F{4, 6}));
  EXPECT_EQ(sum(x, {0, 1}, true).shape(), (Shape{1, 1}));
  EXPECT_EQ(sum(x, {}, true).shape(), (Shape{1, 1}));
  EXPECT_EQ(floats(x.sum(-1)), (F{3, 7}));
  EXPECT_EQ(floats(matmul(x, x)), (F{7, 10, 15, 22}));
  EXPECT_EQ(floats(matmul(x, x, true)), (F{10, 14, 14, 20}));
  EXPECT_EQ(floats(concatenate({x, x + 4}, 1)), (F{1, 2, 5, 6, 3, 4, 7, 8}));
  EXPECT_EQ(stack(std::vector<Tensor>{x, x, x}).shape(), (Shape{3, 2, 2}));
  const auto [values, indices] = top_k(Tensor::of({3.f, 1.f, 2.f}), 2);
  EXPECT_EQ(floats(values), (F{3, 2}));
  EXPECT_EQ(ints(indices), (I{0, 2}));
  const std::vector<Tensor> halves = split(x, {1, 1}, 0);
  ASSERT_EQ(halves.size(), 2u);
  EXPECT_EQ(floats(halves[1]), (F{3, 4}));
  EXPECT_EQ(floats(where(x > 2, x, 0)), (F{0, 0, 3, 4}));
  EXPECT_EQ(floats(clip(x, 2, 3)), (F{2, 2, 3, 3}));
  EXPECT_EQ(floats(reshape(x, {-1})), (F{1, 2, 3, 4}));
  EXPECT_EQ(x.transpose().shape(), (Shape{2, 2}));
  EXPECT_EQ(floats(x.transpose()), (F{1, 3, 2, 4}));
  EXPECT_EQ(floats(eye(2)), (F{1, 0, 0, 1}));
  EXPECT_EQ(ints(one_hot(Tensor::of({1, 0}), 2, -1, DType::I32)), (I{0, 1, 1, 0}));
  EXPECT_EQ(ints(x.argmax(1)), (I{1, 1}));
}

TEST(Tensor, ViewsCallersMemoryWithoutCopying) {
  std::vector<float> memory{1, 2, 3, 4, 5, 6, 7};
  int released = 0;
  {
    // Not aligned to more than one element, every second column, rows backwards.
    const Tensor t = Tensor::view(&memory[4], DType::F32, {2, 2}, Strides{-3, 2}, [&] { ++released; });
    EXPECT_EQ(t.raw_data(), &memory[4]);
    EXPECT_FALSE(t.is_contiguous());
    EXPECT_EQ(floats(t), (F{5, 7, 2, 4}));
    EXPECT_EQ(floats(t + 1), (F{6, 8, 3, 5}));
    EXPECT_EQ(floats(matmul(t, t)), (F{39, 63, 18, 30}));
    EXPECT_TRUE(t.contiguous().is_contiguous());
    EXPECT_EQ(t.contiguous().data<float>()[2], 2.f);
    const Variable v(t);  // a copy: it will be written to
    v.assign_add(1);
    EXPECT_EQ(memory[4], 5.f);
    const Tensor reshaped = t.contiguous().reshape({4});
    EXPECT_EQ(floats(reshaped), (F{5, 7, 2, 4}));
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(Tensor, FunctionsNeverWriteIntoCallersMemory) {
  std::vector<float> memory{1, 2, 3};
  const Variable v(Tensor::zeros({3}));
  v.assign(Tensor::view(memory.data(), DType::F32, {3}));
  Function step([&] { v.assign_add(1); });
  step();
  step();
  EXPECT_EQ(floats(v.value()), (F{3, 4, 5}));
  EXPECT_EQ(memory, (F{1, 2, 3}));
}

TEST(Tensor, IsSharedBetweenThreads) {
  const Tensor x = Tensor::arange(0.f, 100.f, 1.f);
  std::vector<std::thread> threads;
  std::vector<float> sums(4);
  for (size_t i = 0; i < sums.size(); ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; n < 200; ++n) sums[i] = sum(x * static_cast<int>(i) + n - n).item<float>();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(sums, (F{0, 4950, 9900, 14850}));
}

}  // namespace
}  // namespace tandem
