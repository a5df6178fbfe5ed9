// Variables outside and inside traced functions.
#include <thread>

#include "frontend_support.hpp"

namespace tandem {
namespace {

TEST(Variable, HasNameTypeAndValue) {
  const Variable v(Tensor::of({1.f, 2.f}), {.name = "weights", .trainable = false});
  EXPECT_EQ(v.name(), "weights");
  EXPECT_EQ(v.dtype(), DType::F32);
  EXPECT_EQ(v.shape(), (Shape{2}));
  EXPECT_FALSE(v.trainable());
  EXPECT_EQ(Variable(1.5).dtype(), DType::F32);
  EXPECT_EQ(Variable(1).dtype(), DType::I32);
  EXPECT_EQ(Variable(true).dtype(), DType::Bool);
  EXPECT_EQ(Variable(1, {.dtype = DType::F64}).dtype(), DType::F64);
  const Variable same = v;
  same.assign_add(1);
  EXPECT_EQ(floats(v.value()), (F{2, 3}));
}

TEST(Variable, ATensorReadBeforeNeverChanges) {
  const Variable v(Tensor::of({1.f, 2.f}));
  const Tensor before = v.value();
  v.assign(before * 10);
  const Tensor between = v.value();
  Function twice([&](Tensor x) {
    v.assign(v * x);
    v.assign(v * x);
    return v.value();
  });
  const Tensor after = twice(Tensor::scalar(2.f));
  EXPECT_EQ(floats(before), (F{1, 2}));
  EXPECT_EQ(floats(between), (F{10, 20}));
  EXPECT_EQ(floats(after), (F{40, 80}));
  twice(Tensor::scalar(2.f));
  EXPECT_EQ(floats(after), (F{40, 80}));
  EXPECT_EQ(floats(v.value()), (F{160, 320}));
}

TEST(Variable, AssigningConvertsTheType) {
  const Variable v(Tensor::of({1.f, 2.f}));
  v.assign(Tensor::of({3, 4}));
  EXPECT_EQ(v.value().dtype(), DType::F32);
  EXPECT_EQ(floats(v.value()), (F{3, 4}));
  v.assign_sub(0.5);
  EXPECT_EQ(floats(v.value()), (F{2.5, 3.5}));
}

TEST(Variable, IsStateOfACompiledFunction) {
  const Variable count(0), total(0.0f);
  Function step([&](Tensor x) {
    count.assign_add(1);
    const Tensor before = total.value();
    total.assign(total + x);
    return std::tuple(before, total.value(), count.value());
  });
  const auto [before, now, n] = step(Tensor::scalar(2.f));
  EXPECT_EQ(before.item<float>(), 0);
  EXPECT_EQ(now.item<float>(), 2);
  EXPECT_EQ(n.item<int>(), 1);
  for (int i = 0; i < 9; ++i) step(Tensor::scalar(2.f));
  EXPECT_EQ(count.value().item<int>(), 10);
  EXPECT_EQ(total.value().item<float>(), 20);
  EXPECT_EQ(step.trace_count(), 1u);
}

TEST(Variable, IsUpdatedInPlaceWhenNobodyLooks) {
  const Variable v(Tensor::zeros({1000}));
  Function step([&] { v.assign_add(1); });
  step();
  const void* place = v.value().raw_data();
  step();
  EXPECT_EQ(v.value().raw_data(), place);
  const Tensor held = v.value();
  step();
  EXPECT_NE(v.value().raw_data(), place);
  EXPECT_EQ(held[0].item<float>(), 2);
  EXPECT_EQ(v.value()[0].item<float>(), 3);
}

TEST(Variable, TwoVariablesMayExchangeValues) {
  const Variable a(Tensor::of({1.f, 2.f})), b(Tensor::of({3.f, 4.f}));
  Function swap([&] {
    const Tensor old = a.value();
    a.assign(b);
    b.assign(old);
  });
  for (int i = 0; i < 3; ++i) swap();
  EXPECT_EQ(floats(a.value()), (F{3, 4}));
  EXPECT_EQ(floats(b.value()), (F{1, 2}));
}

TEST(Variable, SurvivesThreadsThatStepAndRead) {
  const Variable a(Tensor::zeros({64})), b(Tensor::zeros({64}));
  Function forth([&] {
    a.assign_add(1);
    return b.value();
  });
  Function back([&] {
    b.assign_add(a * 0 + 1);
    return a.value();
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 300; ++n) forth();
    });
    threads.emplace_back([&] {
      for (int n = 0; n < 300; ++n) back();
    });
  }
  for (int n = 0; n < 300; ++n) {
    // A value is never seen half written.
    const std::vector<float> seen = floats(a.value());
    for (const float x : seen) ASSERT_EQ(x, seen[0]);
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(a.value()[0].item<float>(), 600);
  EXPECT_EQ(b.value()[63].item<float>(), 600);
}

}  // namespace
}  // namespace tandem
