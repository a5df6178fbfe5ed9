// Functions with a gradient of their own, and functions that are computed again: at once, traced under a tape, and compiled for a tape
// that comes later.
#include "frontend/memory.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/tracer.hpp"
#include "frontend_support.hpp"

namespace tandem {
namespace {

// The value and the gradient of body at x, in the four ways in which a tape and a function can meet.
template <class Body> void check(Body body, const Tensor& x, const F& value, const F& gradient) {
  const auto differentiated = [&](Tensor t) {
    Tape tape;
    tape.watch(t);
    const Tensor y = body(t);
    return std::pair(y, tape.gradient(y, t, {.unconnected = Unconnected::Zero}));
  };
  Function whole(differentiated);
  Function inner(body);
  const auto around = [&](Tensor t) {
    Tape tape;
    tape.watch(t);
    const Tensor y = inner(t);
    return std::pair(y, tape.gradient(y, t, {.unconnected = Unconnected::Zero}));
  };
  const auto see = [&](const char* how, const std::pair<Tensor, Tensor>& found) {
    SCOPED_TRACE(how);
    expect_near(found.first, value);
    expect_near(found.second, gradient);
  };
  see("at once", differentiated(x));
  see("tape inside", whole(x));
  see("tape around", around(x));
  expect_near(body(x), value);
  expect_near(inner(x), value);
}

// log(1 + e^x), with a gradient that uses what it has computed.
auto softplus() {
  return custom_gradient([](Tensor x) {
    const Tensor e = exp(x);
    return std::pair(log(1 + e), [e](Tensor g) { return g * (1 - 1 / (1 + e)); });
  });
}

TEST(CustomGradient, ReplacesTheGradient) {
  auto f = custom_gradient([](Tensor x) { return std::pair(x * x, [x](Tensor g) { return g * 100 + x; }); });
  check([&](Tensor x) { return f(x); }, Tensor::of({2.f, 3.f}), {4, 9}, {102, 103});
}

TEST(CustomGradient, UsesWhatTheFunctionComputed) {
  auto f = softplus();
  check([&](Tensor x) { return f(x * 2) * 3; }, Tensor::of({0.f, 1.f}), {2.0794415f, 6.380784f}, {3, 5.2847824f});
}

TEST(CustomGradient, SecondDerivativesGoThroughWhatBackwardUses) {
  auto f = softplus();
  const auto second = [&](Tensor x) {
    Tape outer;
    outer.watch(x);
    Tape inner;
    inner.watch(x);
    const Tensor y = f(x);
    return outer.gradient(inner.gradient(y, x), x);
  };
  expect_near(second(Tensor::of({0.f, 1.f})), {0.25f, 0.19661193f});
  Function compiled(second);
  expect_near(compiled(Tensor::of({0.f, 1.f})), {0.25f, 0.19661193f});
}

TEST(CustomGradient, SeveralInputsAndOutputsAndSomeWithoutGradients) {
  auto f = custom_gradient([](Tensor x, Tensor y) {
    return std::pair(std::tuple(x * y, x + y, x - y),
                     [=](Tensor a, Tensor b, Tensor c) { return std::tuple(a * y + b + c * 0, Tensor()); });
  });
  const auto body = [&](Tensor x) {
    const auto [a, b, unused] = f(x, x * 10);
    return a + b;
  };
  check(body, Tensor::scalar(2.f), {62}, {21});
}

TEST(CustomGradient, GradientsOfTheVariablesThatItReads) {
  const Variable w(Tensor::of({2.f, 3.f})), fixed(5.f, {.trainable = false});
  auto f = custom_gradient([&](Tensor x) {
    return std::pair(x * w + fixed, [&, x](Tensor g, const std::vector<Variable>& variables) {
      EXPECT_EQ(variables.size(), 1u);
      return std::pair(g * w, std::vector<Tensor>{g * x * 10});
    });
  });
  const Tensor x = Tensor::of({7.f, 8.f});
  const auto both = [&](Tensor t) {
    Tape tape;
    tape.watch(t);
    const std::vector<Tensor> found = tape.gradients(sum(f(t) * 2), {t, w, fixed});
    EXPECT_FALSE(found[2].defined());
    return std::pair(found[0], found[1]);
  };
  Function compiled(both);
  Function inner([&](Tensor t) { return f(t); });
  for (const bool is_compiled : {false, true}) {
    const auto [dx, dw] = is_compiled ? compiled(x) : both(x);
    expect_near(dx, {4, 6});
    expect_near(dw, {140, 160});
  }
  Tape tape;
  const Tensor y = inner(x);
  expect_near(tape.gradient(y, w), {70, 80});
}

TEST(CustomGradient, SourcesOnTheWayAndUsesOnBothSides) {
  auto f = custom_gradient([](Tensor x) { return std::pair(x * 2, [](Tensor g) { return g * 7; }); });
  const Tensor x = Tensor::scalar(3.f);
  Tape tape({.persistent = true});
  tape.watch(x);
  const Tensor a = x * x;  // before
  const Tensor b = f(a);   // 7 instead of 2
  const Tensor c = b * a;  // uses what is before and behind
  const Tensor d = f(c) + a;
  const std::vector<Tensor> found = tape.gradients(d, {x, a, b, c, d});
  // dc = 7, db = 7 a = 63, da = 7 b + 7 db + 1 = 126 + 441 + 1, dx = 2 x da
  expect_near(found[4], {1});
  expect_near(found[3], {7});
  expect_near(found[2], {63});
  expect_near(found[1], {568});
  expect_near(found[0], {3408});
}

TEST(CustomGradient, InsideBranchesAndLoops) {
  auto f = custom_gradient([](Tensor x) { return std::pair(x * 2, [](Tensor g) { return g * 3; }); });
  check([&](Tensor x) { return cond(x > 0, [&] { return f(x); }, [&] { return x; }); }, Tensor::scalar(1.f), {2}, {3});
  check([&](Tensor x) { return scan([&](Tensor c, Tensor) { return std::pair(f(c), c); }, x, Tensor::zeros({4})).first; },
        Tensor::scalar(1.f), {16}, {81});
}

TEST(CustomGradient, IsCalledOnceWhereATapeRecordsAndNothingIsKeptWithoutOne) {
  int calls = 0, gradients = 0;
  auto f = custom_gradient([&](Tensor x) {
    ++calls;
    return std::pair(x * 2, [&](Tensor g) { return ++gradients, g; });
  });
  const Tensor x = Tensor::scalar(1.f);
  f(x);
  EXPECT_EQ(calls, 1);
  Function step([&](Tensor t) {
    Tape tape;
    tape.watch(t);
    return tape.gradient(f(t), t);
  });
  step(x);
  step(x);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(gradients, 1);
}

// --- remat -------------------------------------------------------------------------------------------------------------------------

TEST(Remat, GivesTheSameNumbers) {
  const Variable w(Tensor::of({2.f, 3.f}));
  const auto plain = [&](Tensor x) { return tanh(exp(x * 0.1f) * w); };
  auto again = remat(plain);
  Tape tape({.persistent = true});
  const Tensor x = Tensor::of({0.5f, -1.f});
  tape.watch(x);
  const Tensor y = plain(x), z = again(x);
  expect_near(z, floats(y));
  const F dx = floats(tape.gradient(y, x)), dw = floats(tape.gradient(y, w));
  expect_near(tape.gradient(z, x), dx);
  expect_near(tape.gradient(z, w), dw);
  check([&](Tensor t) { return again(t); }, x, floats(y), dx);
}

TEST(Remat, StateIsAssignedOnceAndItsOldValueIsUsedAgain) {
  const Variable count(1.f, {.trainable = false});
  auto f = remat([&](Tensor x) {
    count.assign_add(1);
    return x * x * count;
  });
  const auto gradient = [&](Tensor x) {
    Tape tape;
    tape.watch(x);
    return tape.gradient(f(x), x);
  };
  Function compiled(gradient);
  expect_near(gradient(Tensor::scalar(3.f)), {12});
  expect_near(compiled(Tensor::scalar(3.f)), {18});
  EXPECT_EQ(count.value().item<float>(), 3.f);
}

// The memory that one step of a deep network plans, and its gradient.
struct Planned {
  size_t bytes;
  F gradient;
};
template <class Wrap> Planned planned(Wrap wrap, bool in_loop) {
  using namespace frontend;
  constexpr int64_t kSize = 64;
  const Tensor w = Tensor::full({kSize, kSize}, 0.02f), x = Tensor::ones({kSize, kSize});
  auto block = wrap([](Tensor h, Tensor m) {
    for (int i = 0; i < 4; ++i) h = tanh(matmul(h, m));
    return h;
  });
  Tracer tracer("step");
  const Tensor px = tracer.parameter(type_of(x)), pw = tracer.parameter(type_of(w));
  ir::Graph graph;
  {
    const TraceScope scope(tracer);
    Tape tape;
    tape.watch(pw);
    Tensor h = px;
    if (in_loop)
      h = scan([&](Tensor c, Tensor) { return std::pair(block(c, pw), Tensor::zeros({1})); }, h, Tensor::zeros({6})).first;
    else
      for (int i = 0; i < 6; ++i) h = block(h, pw);
    graph = tracer.finish(std::vector{tape.gradient(sum(h), pw)});
  }
  const auto bound = engine::default_engine().compile(graph)->bind(std::array{concrete_ref(x), concrete_ref(w)});
  std::vector<engine::TensorRef> out;
  bound->run(std::array{concrete_ref(x), concrete_ref(w)}, out);
  return {bound->plan().arena_bytes(), floats(concrete(out[0]))};
}

TEST(Remat, NeedsLessMemory) {
  for (const bool in_loop : {false, true}) {
    SCOPED_TRACE(in_loop);
    const Planned kept = planned([](auto f) { return f; }, in_loop), again = planned([](auto f) { return remat(f); }, in_loop);
    EXPECT_LT(again.bytes, kept.bytes * 7 / 10) << "kept: " << kept.bytes;
    ASSERT_EQ(again.gradient.size(), kept.gradient.size());
    for (size_t i = 0; i < kept.gradient.size(); ++i) ASSERT_FLOAT_EQ(again.gradient[i], kept.gradient[i]);
  }
}

}  // namespace
}  // namespace tandem
