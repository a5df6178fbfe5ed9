// Control flow: the same results and gradients at once and compiled; variables and tensors from outside.
#include <cmath>

#include "frontend_support.hpp"

namespace tandem {
namespace {

// Runs f(x) at once and compiled; both must give what is wanted, and so must the gradients.
template <class Body> void check(Body body, const Tensor& x, const F& value, const F& gradient) {
  for (const bool is_compiled : {false, true}) {
    SCOPED_TRACE(is_compiled ? "compiled" : "at once");
    Function f(body);
    const auto differentiated = [&](Tensor t) {
      Tape tape;
      tape.watch(t);
      const Tensor y = body(t);
      return std::pair(y, tape.gradient(y, t, {.unconnected = Unconnected::Zero}));
    };
    Function g(differentiated);
    const auto [y, dx] = is_compiled ? g(x) : differentiated(x);
    expect_near(y, value);
    expect_near(dx, gradient);
    // A tape around the compiled function.
    Tape tape;
    tape.watch(x);
    const Tensor outside = is_compiled ? f(x) : body(x);
    expect_near(outside, value);
    expect_near(tape.gradient(outside, x, {.unconnected = Unconnected::Zero}), gradient);
  }
}

TEST(Cond, TakesOneBranch) {
  const auto body = [](Tensor x) { return cond(sum(x) > 0, [&] { return x * 2; }, [&] { return x * x; }); };
  check(body, Tensor::of({1.f, 2.f}), {2, 4}, {2, 2});
  check(body, Tensor::of({-1.f, -2.f}), {1, 4}, {-2, -4});
}

TEST(Cond, BranchesMayAssignVariables) {
  for (const bool is_compiled : {false, true}) {
    SCOPED_TRACE(is_compiled);
    const Variable positive(0), negative(0), scale(10.0f);
    const auto body = [&](Tensor x) {
      const Tensor outside = x + 1;
      cond(
          x > 0,
          [&] {
            positive.assign_add(1);
            scale.assign(scale * outside);
          },
          [&] { negative.assign_add(1); });
      return scale.value();
    };
    Function f(body);
    const auto run = [&](float x) { return (is_compiled ? f(Tensor::scalar(x)) : body(Tensor::scalar(x))).item<float>(); };
    EXPECT_EQ(run(1), 20);
    EXPECT_EQ(run(-1), 20);
    EXPECT_EQ(run(-2), 20);
    EXPECT_EQ(run(2), 60);
    EXPECT_EQ(positive.value().item<int>(), 2);
    EXPECT_EQ(negative.value().item<int>(), 2);
  }
}

TEST(Cond, Nests) {
  const auto body = [](Tensor x) {
    return cond(x > 0, [&] { return cond(x > 1, [&] { return x * 3; }, [&] { return x * 2; }); }, [&] { return -x; });
  };
  check(body, Tensor::scalar(2.f), {6}, {3});
  check(body, Tensor::scalar(0.5f), {1}, {2});
  check(body, Tensor::scalar(-2.f), {2}, {-1});
}

TEST(Cond, GradientsReachVariablesReadInABranch) {
  const Variable w(3.0f), u(5.0f);
  Function f([&](Tensor x) {
    Tape tape;
    const Tensor y = cond(x > 0, [&] { return x * w * w; }, [&] { return x * u; });
    const std::vector<Tensor> g = tape.gradients(y, {w, u}, {.unconnected = Unconnected::Zero});
    return std::pair(g[0], g[1]);
  });
  const auto [gw, gu] = f(Tensor::scalar(2.f));
  EXPECT_EQ(gw.item<float>(), 12);
  EXPECT_EQ(gu.item<float>(), 0);
  EXPECT_EQ(f(Tensor::scalar(-2.f)).second.item<float>(), -2);
}

TEST(SwitchCase, ClampsItsIndex) {
  const auto body = [](Tensor i) {
    return switch_case<Tensor>(i, {[] { return Tensor::full({2}, 10); }, [] { return Tensor::full({2}, 20); },
                                   [&] { return i + Tensor::zeros({2}, DType::I32); }});
  };
  Function f(body);
  for (const auto& [index, wanted] : std::vector<std::pair<int, int>>{{0, 10}, {1, 20}, {2, 2}, {7, 7}, {-3, 10}}) {
    EXPECT_EQ(ints(body(Tensor::scalar(index))), (I{wanted, wanted}));
    EXPECT_EQ(ints(f(Tensor::scalar(index))), (I{wanted, wanted}));
  }
  EXPECT_EQ(f.trace_count(), 1u);
}

TEST(WhileLoop, RunsUntilTheConditionFails) {
  // x^(2^3) while below 100.
  const auto body = [](Tensor x) { return while_loop([](Tensor y) { return max(y) < 100; }, [](Tensor y) { return y * y; }, x); };
  check(body, Tensor::scalar(2.f), {256}, {8 * 128});
  check(body, Tensor::scalar(200.f), {200}, {1});
}

TEST(WhileLoop, CarriesTuplesAndUsesTensorsFromOutside) {
  const auto body = [](Tensor x) {
    const Tensor outside = x + 1;
    const auto [i, y] = while_loop([](Tensor n, Tensor) { return n < 3; },
                                   [&](Tensor n, Tensor v) { return std::tuple(n + 1, v * outside); }, std::tuple(Tensor::scalar(0), x));
    return y;  // x (x+1)^3
  };
  check(body, Tensor::of({1.f, 2.f}), {8, 54}, {8 + 12, 27 + 54});
}

TEST(WhileLoop, AssignsVariablesAndStopsAtMaxTrips) {
  for (const bool is_compiled : {false, true}) {
    SCOPED_TRACE(is_compiled);
    const Variable total(0.0f), trips(0);
    const auto body = [&](Tensor x) {
      return while_loop([](Tensor y) { return y > 0; },
                        [&](Tensor y) {
                          total.assign_add(y);
                          trips.assign_add(1);
                          return y - 1;
                        },
                        x, 3);
    };
    Function f(body);
    const Tensor x = Tensor::scalar(5.f);
    EXPECT_EQ((is_compiled ? f(x) : body(x)).item<float>(), 2);
    EXPECT_EQ(total.value().item<float>(), 12);
    EXPECT_EQ(trips.value().item<int>(), 3);
  }
}

TEST(Scan, CarriesAndStacks) {
  const auto body = [](Tensor x) {
    const auto [last, all] = scan(
        [](Tensor c, Tensor v) {
          const Tensor next = c * v;
          return std::pair(next, next + 1);
        },
        Tensor::scalar(1.f), x);
    return concatenate({last.reshape({1}), all});
  };
  // last = abc; all = a+1, ab+1, abc+1; the gradient of the sum is d(a + ab + 2abc).
  check(body, Tensor::of({2.f, 3.f, 4.f}), {24, 3, 7, 25}, {1 + 3 + 24, 2 + 16, 12});
}

TEST(Scan, GoesBackwardsWithStructuresAndVariables) {
  for (const bool is_compiled : {false, true}) {
    SCOPED_TRACE(is_compiled);
    const Variable seen(0.0f);
    const Tensor scale = Tensor::scalar(10.f);
    const auto body = [&](Tensor x, Tensor y) {
      const auto [carry, outputs] = scan(
          [&](std::pair<Tensor, Tensor> c, std::tuple<Tensor, Tensor> in) {
            const auto& [a, b] = in;
            seen.assign(seen * scale + a);
            return std::pair(std::pair(c.first + a, c.second * b), std::tuple(a - b, seen.value()));
          },
          std::pair(Tensor::scalar(0.f), Tensor::scalar(1.f)), std::tuple(x, y), true);
      return std::tuple(carry.first, carry.second, std::get<0>(outputs), std::get<1>(outputs));
    };
    Function f(body);
    const Tensor x = Tensor::of({1.f, 2.f, 3.f}), y = Tensor::of({4.f, 5.f, 6.f});
    const auto [sum, product, difference, states] = is_compiled ? f(x, y) : body(x, y);
    EXPECT_EQ(sum.item<float>(), 6);
    EXPECT_EQ(product.item<float>(), 120);
    EXPECT_EQ(floats(difference), (F{-3, -3, -3}));
    EXPECT_EQ(floats(states), (F{321, 32, 3}));
    EXPECT_EQ(seen.value().item<float>(), 321);
  }
}

TEST(Scan, OverNothingGivesEmptyOutputs) {
  const auto body = [](Tensor x) { return scan([](Tensor c, Tensor v) { return std::pair(c + sum(v), v * 2); }, Tensor::scalar(5.f), x); };
  Function f(body);
  const Tensor empty = Tensor::zeros({0, 3});
  for (const bool is_compiled : {false, true}) {
    const auto [carry, outputs] = is_compiled ? f(empty) : body(empty);
    EXPECT_EQ(carry.item<float>(), 5);
    EXPECT_EQ(outputs.shape(), (Shape{0, 3}));
  }
}

TEST(Scan, LengthMayBeASymbol) {
  Function f(
      [](Tensor x) {
        Tape tape;
        tape.watch(x);
        const auto [last, all] = scan([](Tensor c, Tensor v) { return std::pair(c * v, c); }, Tensor::scalar(1.f), x);
        return std::pair(last, tape.gradient(last, x));
      },
      {Spec{DType::F32, {Dim::symbol("t")}}});
  EXPECT_EQ(floats(f(Tensor::of({2.f, 3.f})).second), (F{3, 2}));
  EXPECT_EQ(floats(f(Tensor::of({2.f, 3.f, 4.f})).second), (F{12, 8, 6}));
  EXPECT_EQ(f.trace_count(), 1u);
}

TEST(ForiLoop, CountsWithNumbersOrTensors) {
  const auto fixed = [](Tensor x) { return fori_loop(1, 4, [](Tensor i, Tensor y) { return y * i; }, x); };
  check(fixed, Tensor::scalar(2.f), {12}, {6});
  const auto dynamic = [](Tensor x) {
    return fori_loop(Tensor::scalar(1), Tensor::scalar(4), [](Tensor i, Tensor y) { return y * i; }, x);
  };
  check(dynamic, Tensor::scalar(2.f), {12}, {6});
  EXPECT_EQ(fori_loop(3, 3, [](Tensor, Tensor y) { return y * 0; }, Tensor::scalar(2.f)).item<float>(), 2);
}

TEST(Map, StacksResults) {
  const auto body = [](Tensor x) { return tandem::map([](Tensor row) { return sum(row * row); }, x); };
  check(body, Tensor::of({{1.f, 2.f}, {3.f, 4.f}}), {5, 25}, {2, 4, 6, 8});
}

TEST(Control, TapesInsideABodyAreItsOwn) {
  // Newton's method: the gradient is taken inside the loop.
  const auto body = [](Tensor x) {
    return fori_loop(
        0, 8,
        [](Tensor, Tensor y) {
          Tape tape;
          tape.watch(y);
          const Tensor value = y * y - 2;
          return y - value / tape.gradient(value, y);
        },
        x);
  };
  Function f(body);
  EXPECT_NEAR(f(Tensor::scalar(1.f)).item<float>(), std::sqrt(2.f), 1e-6);
  EXPECT_NEAR(body(Tensor::scalar(1.f)).item<float>(), std::sqrt(2.f), 1e-6);
}

// So many conditions, one inside the other.
Tensor nested(int depth, const Tensor& x) {
  if (depth == 0) return x;
  return cond(sum(x) > 0.f, [&] { return nested(depth - 1, x + 1.f); }, [&] { return x; });
}

TEST(Control, NestingIsLimitedByAnErrorAndNotByTheStack) {
  Function deep([](Tensor x) { return nested(150, x); });
  EXPECT_EQ(deep(Tensor::scalar(1.f)).item<float>(), 151);
  Function too_deep([](Tensor x) { return nested(5000, x); });
  const std::string text = error_of([&] { too_deep(Tensor::scalar(1.f)); });
  EXPECT_TRUE(text.starts_with("the 'else' branch: branches and loops are nested 201 deep, the most is 200")) << text;
}

}  // namespace
}  // namespace tandem
