// Tapes: gradients outside and inside functions, of higher order, through functions, with several tapes.
#include <cmath>

#include "frontend_support.hpp"

namespace tandem {
namespace {

TEST(Tape, DifferentiatesWhatItWatches) {
  const Tensor x = Tensor::of({1.f, 2.f, 3.f});
  Tape tape;
  tape.watch(x);
  const Tensor y = sum(x * x * x);
  EXPECT_EQ(floats(tape.gradient(y, x)), (F{3, 12, 27}));
}

TEST(Tape, WatchesTrainableVariables) {
  const Variable w(2.0f), fixed(3.0f, {.trainable = false});
  Tape tape;
  const Tensor y = w * w * fixed;
  const std::vector<Tensor> g = tape.gradients(y, {w, fixed});
  EXPECT_EQ(g[0].item<float>(), 12);
  EXPECT_FALSE(g[1].defined());
  Tape deaf({.watch_variables = false});
  const Tensor z = w * w;
  EXPECT_FALSE(deaf.gradient(z, w).defined());
  Tape told({.watch_variables = false});
  told.watch(fixed);
  const Tensor u = fixed * fixed;
  EXPECT_EQ(told.gradient(u, fixed).item<float>(), 6);
}

TEST(Tape, DescendsToTheMinimum) {
  const Variable x(0.0f);
  for (int step = 0; step < 50; ++step) {
    Tape tape;
    const Tensor loss = square(x - 3.0f);
    x.assign(x - 0.1f * tape.gradient(loss, x));
  }
  EXPECT_NEAR(x.value().item<float>(), 3, 1e-3);
}

TEST(Tape, ReadsOfOneVariableAddUp) {
  const Variable x(3.0f);
  Tape tape;
  const Tensor first = x * x;
  x.assign(10.0f);
  const Tensor second = x * 2;
  EXPECT_EQ(tape.gradient(first + second, x).item<float>(), 8);  // 2*3 from the first value, 2 from the second
}

TEST(Tape, GivesGradientsOfIntermediateValuesToo) {
  const Tensor x = Tensor::scalar(2.f);
  Tape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x;
  const Tensor z = y * y;
  EXPECT_EQ(tape.gradient(z, y).item<float>(), 8);
  EXPECT_EQ(tape.gradient(z, x).item<float>(), 32);
  EXPECT_EQ(tape.gradient(y, x).item<float>(), 4);
  EXPECT_EQ(tape.gradient(x, x).item<float>(), 1);
}

TEST(Tape, WhatIsNotConnectedIsUndefinedOrZero) {
  const Tensor x = Tensor::of({1.f, 2.f}), y = Tensor::of({1.f});
  Tape tape({.persistent = true});
  tape.watch(x);
  tape.watch(y);
  const Tensor z = sum(x);
  EXPECT_FALSE(tape.gradient(z, y).defined());
  EXPECT_EQ(floats(tape.gradient(z, y, {.unconnected = Unconnected::Zero})), (F{0}));
  EXPECT_FALSE(tape.gradient(stop_gradient(x) * 2, x).defined());
  EXPECT_FALSE(tape.gradient(z, Tensor::of({5.f})).defined());
}

TEST(Tape, TakesGradientsOfTheOutputs) {
  const Tensor x = Tensor::of({1.f, 2.f});
  Tape tape;
  tape.watch(x);
  const Tensor y = x * x;
  EXPECT_EQ(floats(tape.gradient(y, x, {.output_gradients = {Tensor::of({10.f, 100.f})}})), (F{20, 400}));
}

TEST(Tape, RecordsNothingWhilePaused) {
  const Tensor x = Tensor::scalar(3.f);
  Tape tape;
  tape.watch(x);
  Tensor y = x * x;
  {
    const Tape::Pause pause(tape);
    y = y + x * 100;
  }
  const Tensor z = x + stop_gradient(y);
  EXPECT_EQ(tape.gradient(z, x).item<float>(), 1);
}

TEST(Tape, NestedTapesGiveHigherOrders) {
  const Tensor x = Tensor::scalar(2.f);
  Tape third;
  third.watch(x);
  Tensor second_derivative;
  {
    Tape second;
    second.watch(x);
    Tensor first_derivative;
    {
      Tape first;
      first.watch(x);
      const Tensor y = x * x * x * x;
      first_derivative = first.gradient(y, x);
    }
    EXPECT_EQ(first_derivative.item<float>(), 32);
    second_derivative = second.gradient(first_derivative, x);
  }
  EXPECT_EQ(second_derivative.item<float>(), 48);
  EXPECT_EQ(third.gradient(second_derivative, x).item<float>(), 48);
}

TEST(Tape, APersistentOneDifferentiatesItsOwnGradients) {
  const Variable x(2.0f);
  Tape tape({.persistent = true});
  const Tensor y = exp(x * 0.5f);
  const Tensor first = tape.gradient(y, x);
  const Tensor second = tape.gradient(first, x);
  EXPECT_NEAR(first.item<float>(), 0.5f * std::exp(1.f), 1e-5);
  EXPECT_NEAR(second.item<float>(), 0.25f * std::exp(1.f), 1e-5);
}

TEST(Tape, WorksInsideAFunction) {
  const Variable w(Tensor::of({1.f, 2.f}));
  Function step([&](Tensor x) {
    Tape tape;
    const Tensor loss = sum(square(w * x));
    const Tensor g = tape.gradient(loss, w);
    w.assign(w - 0.1f * g);
    return std::pair(loss, g);
  });
  const auto [loss, g] = step(Tensor::of({1.f, 3.f}));
  EXPECT_EQ(loss.item<float>(), 37);
  EXPECT_EQ(floats(g), (F{2, 36}));
  expect_near(w.value(), {0.8f, -1.6f});
}

TEST(Tape, NestsInsideAFunctionOfAnyBatch) {
  Function f(
      [](Tensor x) {
        Tape outer;
        outer.watch(x);
        Tape inner;
        inner.watch(x);
        const Tensor y = sum(x * x * x);
        const Tensor g = inner.gradient(y, x);
        return std::pair(g, outer.gradient(g, x));
      },
      {Spec{DType::F32, {Dim::symbol("b")}}});
  const auto [g, h] = f(Tensor::of({1.f, 2.f}));
  EXPECT_EQ(floats(g), (F{3, 12}));
  EXPECT_EQ(floats(h), (F{6, 12}));
  EXPECT_EQ(floats(f(Tensor::of({5.f})).second), (F{30}));
  EXPECT_EQ(f.trace_count(), 1u);
}

TEST(Tape, DifferentiatesACalledFunction) {
  const Variable w(3.0f);
  Function f([&](Tensor x) {
    const Tensor y = x * w;
    return std::pair(y * y, y);
  });
  const Tensor x = Tensor::scalar(2.f);
  Tape outer;
  outer.watch(x);
  Tape tape;
  tape.watch(x);
  const auto [square_of, y] = f(x);
  const std::vector<Tensor> g = tape.gradients(square_of * y, {x, w});
  EXPECT_EQ(g[0].item<float>(), 3 * 4 * 27);
  EXPECT_EQ(g[1].item<float>(), 3 * 8 * 9);
  EXPECT_EQ(outer.gradient(g[0], x).item<float>(), 6 * 2 * 27);
}

TEST(Tape, SeesTheSameInsideAndOutsideOfAFunction) {
  // What was computed before watching is a constant, in both worlds.
  const auto body = [](Tensor x) {
    const Tensor before = x * x;
    Tape tape;
    tape.watch(x);
    const Tensor y = before * x;
    return tape.gradient(y, x);
  };
  Function f(body);
  EXPECT_EQ(body(Tensor::scalar(3.f)).item<float>(), 9);
  EXPECT_EQ(f(Tensor::scalar(3.f)).item<float>(), 9);
}

TEST(Tape, LetsTheFunctionTraceAroundIt) {
  const Tensor x = Tensor::scalar(2.f);
  Tape tape;
  tape.watch(x);
  Function f([&](Tensor y) { return y * x * x; });  // x comes from outside
  EXPECT_EQ(tape.gradient(f(Tensor::scalar(5.f)), x).item<float>(), 20);
}

TEST(Tape, FollowsThroughConversions) {
  const Tensor x = Tensor::of({1.5f, 2.5f});
  Tape tape;
  tape.watch(x);
  const Tensor y = sum(x.cast(DType::F64) * Tensor::of({2.0, 4.0}));
  const Tensor g = tape.gradient(y, x);
  EXPECT_EQ(g.dtype(), DType::F32);
  EXPECT_EQ(floats(g), (F{2, 4}));
}

TEST(Tape, TrainsAnXor) {
  Generator random(1);
  const Variable w1(random.normal({2, 8})), b1(Tensor::zeros({8})), w2(random.normal({8, 1})), b2(Tensor::zeros({1}));
  const Tensor x = Tensor::of({{0.f, 0.f}, {0.f, 1.f}, {1.f, 0.f}, {1.f, 1.f}}), y = Tensor::of({{0.f}, {1.f}, {1.f}, {0.f}});
  const auto loss_of = [&](Tensor in, Tensor out) { return mean(square(sigmoid(matmul(tanh(matmul(in, w1) + b1), w2) + b2) - out)); };
  const std::vector<Variable> all{w1, b1, w2, b2};
  Function step([&](Tensor in, Tensor out) {
    Tape tape;
    const Tensor loss = loss_of(in, out);
    const std::vector<Tensor> g = tape.gradients(loss, all);
    for (size_t i = 0; i < all.size(); ++i) all[i].assign_sub(g[i] * 2.0f);
    return loss;
  });
  const float eager = loss_of(x, y).item<float>();
  EXPECT_NEAR(step(x, y).item<float>(), eager, 1e-6);
  for (int i = 0; i < 1000; ++i) step(x, y);
  EXPECT_LT(loss_of(x, y).item<float>(), 0.01f);
}

}  // namespace
}  // namespace tandem
