// Calls of the program from inside compiled functions: order, number, branches and loops, errors, and what they may touch.
#include <stdexcept>
#include <thread>

#include "frontend_support.hpp"

namespace tandem {
namespace {

using Log = std::vector<float>;

// Writes down what passes by.
Tensor noted(Log& log, const Tensor& t) {
  return host_call(
      [&log](const std::vector<Tensor>& in) {
        log.push_back(in[0].item<float>());
        return in;
      },
      {t}, {{t.dtype(), t.dims()}})[0];
}
void note(Log& log, const Tensor& t) {
  host_call([&log](const std::vector<Tensor>& in) { return log.push_back(in[0].item<float>()), std::vector<Tensor>(); }, {t});
}

TEST(HostCall, ComputesAtOnceAndCompiled) {
  const auto body = [](Tensor x) {
    return host_call([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2, sum(in[0])}; }, {x + 1},
                     {{DType::F32, x.dims()}, {DType::F32, {}}});
  };
  Function f([&](Tensor x) {
    const auto r = body(x);
    return std::pair(r[0] + 0.5f, r[1]);
  });
  expect_near(body(Tensor::of({1.f, 2.f}))[0], {4, 6});
  const auto [twice, total] = f(Tensor::of({1.f, 2.f}));
  expect_near(twice, {4.5f, 6.5f});
  expect_near(total, {5});
}

TEST(HostCall, AllAreMadeInOrderThoughNobodyReadsTheirResults) {
  Log log;
  Function f([&](Tensor x) {
    note(log, x * 3);
    note(log, x);
    note(log, x);  // the same again is another call
    return x + 1;
  });
  f(Tensor::scalar(2.f));
  EXPECT_EQ(log, (Log{6, 2, 2}));
  f(Tensor::scalar(5.f));
  EXPECT_EQ(log, (Log{6, 2, 2, 15, 5, 5}));
}

TEST(HostCall, InsideBranchesAndLoops) {
  Log log;
  Function f([&](Tensor x) {
    cond(x > 0, [&] { return note(log, x), x; }, [&] { return x; });
    note(log, Tensor::scalar(-1.f));
    const auto [i, y] = while_loop([](Tensor n, Tensor) { return n < 3; },
                                   [&](Tensor n, Tensor v) {
                                     note(log, v);
                                     return std::tuple(n + 1, v * 2);
                                   },
                                   std::tuple(Tensor::scalar(0), x));
    scan([&](Tensor c, Tensor s) { return note(log, s), std::pair(c, s); }, x, Tensor::of({7.f, 8.f}));
    return y;
  });
  f(Tensor::scalar(1.f));
  EXPECT_EQ(log, (Log{1, -1, 1, 2, 4, 7, 8}));
  log.clear();
  f(Tensor::scalar(-1.f));
  EXPECT_EQ(log, (Log{-1, -1, -2, -4, 7, 8}));
}

TEST(HostCall, InTheConditionOfALoop) {
  Log log;
  Function f([&](Tensor x) { return while_loop([&](Tensor v) { return note(log, v), v < 5; }, [](Tensor v) { return v * 2; }, x); });
  EXPECT_EQ(f(Tensor::scalar(1.f)).item<float>(), 8.f);
  EXPECT_EQ(log, (Log{1, 2, 4, 8}));
}

TEST(HostCall, IsMadeOnceUnderATapeAndNoGradientFlowsThrough) {
  Log log;
  Function step([&](Tensor x) {
    Tape tape;
    tape.watch(x);
    const Tensor y = x * x + noted(log, x);
    return tape.gradient(y, x);
  });
  expect_near(step(Tensor::scalar(3.f)), {6});
  EXPECT_EQ(log, (Log{3}));
  log.clear();
  Function in_loop([&](Tensor x) {
    Tape tape;
    tape.watch(x);
    return tape.gradient(scan([&](Tensor c, Tensor s) { return std::pair(c * noted(log, s), c); }, x, Tensor::of({2.f, 3.f})).first, x);
  });
  expect_near(in_loop(Tensor::scalar(3.f)), {6});
  EXPECT_EQ(log, (Log{2, 3}));
}

// Outside of a tape a custom gradient is a row with two graphs, and the calls of both are made where they belong.
TEST(HostCall, InsideACustomGradient) {
  Log forward, backward;
  const auto doubled = [&](const Tensor& t) {
    return flat::custom_gradient(
        [&](const std::vector<Tensor>& in) {
          note(forward, in[0]);
          return flat::Differentiable{{in[0] * 2}, [&](const std::vector<Tensor>& g, const std::vector<Variable>&) {
                                        return std::vector<Tensor>{noted(backward, g[0] * 3)};
                                      }};
        },
        {t}, std::source_location::current())[0];
  };
  Function f([&](Tensor x) { return doubled(doubled(x)); });
  expect_near(f(Tensor::scalar(1.f)), {4});
  EXPECT_EQ(forward, (Log{1, 2}));
  EXPECT_EQ(backward, Log());
  const Tensor x = Tensor::scalar(1.f);
  Tape tape;
  tape.watch(x);
  expect_near(tape.gradient(f(x), x), {9});
  EXPECT_EQ(backward, (Log{3, 9}));
}

TEST(HostCall, KeepsItsFunctionAsLongAsItIsNeeded) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = held;
  {
    Function f([held](Tensor x) {
      host_call([held](const std::vector<Tensor>&) { return std::vector<Tensor>(); }, {x});
      return x;
    });
    held.reset();
    f(Tensor::scalar(1.f));
    EXPECT_FALSE(seen.expired());
  }
  EXPECT_TRUE(seen.expired());
}

TEST(HostCall, MayComputeAndCallFunctions) {
  Log log;
  const Variable w(2.f);
  Function inner([&](Tensor x) {
    note(log, x);
    return x * w;
  });
  Function outer([&](Tensor x) {
    return host_call([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{inner(in[0]) + w}; }, {x}, {{DType::F32, {}}})[0];
  });
  EXPECT_EQ(outer(Tensor::scalar(3.f)).item<float>(), 8.f);
  EXPECT_EQ(log, (Log{3}));
}

TEST(HostCall, AVariableThatTheStepAssignsIsAnErrorAndNoDeadlock) {
  const Variable w(2.f, {.name = "w"});
  Function uses([&](Tensor x) { return x * w; });
  const auto step = [&](const std::function<Tensor(Tensor)>& call) {
    Function f([&, call](Tensor x) {
      w.assign_add(1);
      return host_call([call](const std::vector<Tensor>& in) { return std::vector<Tensor>{call(in[0])}; }, {x}, {{DType::F32, {}}})[0];
    });
    return error_of<UserError>([&] { f(Tensor::scalar(1.f)); });
  };
  const std::string wanted = "variable 'w': a host call asks for it, but the compiled function that makes the call assigns it";
  EXPECT_NE(step([&](Tensor) { return w.value(); }).find(wanted), std::string::npos);
  EXPECT_NE(step([&](Tensor x) { return w.assign(x), x; }).find(wanted), std::string::npos);
  EXPECT_NE(step([&](Tensor x) { return uses(x); }).find(wanted), std::string::npos);
  w.assign(10);  // the lock is free again
  EXPECT_EQ(w.value().item<float>(), 10.f);
}

struct Mine : std::exception {};

TEST(HostCall, WhatItThrowsArrivesAsItIs) {
  bool throws = true;
  Function f([&](Tensor x) {
    host_call([&](const std::vector<Tensor>&) -> std::vector<Tensor> { return throws ? throw Mine() : std::vector<Tensor>(); }, {x});
    return x;
  });
  EXPECT_THROW(f(Tensor::scalar(1.f)), Mine);
  throws = false;
  EXPECT_EQ(f(Tensor::scalar(1.f)).item<float>(), 1.f);
}

TEST(HostCall, ResultsAreAsDeclared) {
  const auto body = [](Tensor x) {
    return host_call([](const std::vector<Tensor>& in) { return in; }, {x}, {{DType::F32, {2}}}, "mine")[0];
  };
  Function f(body);
  EXPECT_NE(error_of<UserError>([&] { f(Tensor::of({1.f, 2.f, 3.f})); }).find("mine: result 0 is float32[3], declared is float32[2]"),
            std::string::npos);
  EXPECT_NE(error_of<UserError>([&] { body(Tensor::of({1.f, 2.f, 3.f})); }).find("mine: result 0"), std::string::npos);
}

TEST(HostCall, FromSeveralThreadsAtOnce) {
  std::atomic<int> calls{0};
  Function f(
      [&](Tensor x) { return host_call([&](const std::vector<Tensor>& in) { return ++calls, in; }, {x}, {{DType::F32, {}}})[0] + 1; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) EXPECT_EQ(f(Tensor::scalar(static_cast<float>(t))).item<float>(), static_cast<float>(t + 1));
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(calls, 80);
}

}  // namespace
}  // namespace tandem
