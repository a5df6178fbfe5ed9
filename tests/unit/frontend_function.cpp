// Functions: tracing, signatures, symbols, captures, nesting, errors.
#include <thread>

#include "frontend_support.hpp"

namespace tandem {
namespace {

TEST(Function, PrepareTracesBeforeTheFirstCall) {
  const Function<Tensor(Tensor)> f([](const Tensor& x) { return x * 2.f; }, {{DType::F32, {Dim::symbol("b")}}});
  f.flat().prepare();
  EXPECT_EQ(f.trace_count(), 1u);
  EXPECT_EQ(floats(f(Tensor::of({1.f, 2.f}))), (std::vector<float>{2, 4}));
  f.flat().prepare();
  EXPECT_EQ(f.trace_count(), 1u);
  const Function<Tensor(Tensor)> open([](const Tensor& x) { return x * 2.f; });
  EXPECT_EQ(error_of([&] { open.flat().prepare(std::source_location()); }),
            "function: prepare: the function has no specs, so each call's arguments decide its types");
}

TEST(Function, GivesWhatTheCallableGives) {
  int runs = 0;
  Function f([&](Tensor x, Tensor y) {
    ++runs;
    return tanh(x * y) + x;
  });
  const Tensor x = Tensor::of({0.5f, -1.f}), y = Tensor::of({2.f, 3.f});
  expect_near(f(x, y), floats(tanh(x * y) + x));
  f(y, x);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(f.trace_count(), 1u);
  f(Tensor::of({1.f}), Tensor::of({1.f}));
  EXPECT_EQ(f.trace_count(), 2u);
  f(x, y);
  f(x.cast(DType::F64), y.cast(DType::F64));
  EXPECT_EQ(f.trace_count(), 3u);
}

TEST(Function, TakesAndGivesStructures) {
  Function f([](std::pair<Tensor, Tensor> p, std::vector<Tensor> rest) {
    Tensor sum = p.first - p.second;
    for (const Tensor& t : rest) sum += t;
    return std::tuple(sum, std::vector<Tensor>{p.second, p.first}, std::array<Tensor, 1>{sum * 2});
  });
  const Tensor one = Tensor::scalar(1.f), two = Tensor::scalar(2.f);
  const auto [sum, both, twice] = f({one, two}, {two, two, two});
  EXPECT_EQ(sum.item<float>(), 5);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].item<float>(), 2);
  EXPECT_EQ(twice[0].item<float>(), 10);
  f({one, two}, {});
  EXPECT_EQ(f.trace_count(), 2u);
  Function nothing([] {});
  nothing();
  Function two_results([](const Tensor& x) { return std::array<Tensor, 2>{x, x + 1}; });
  EXPECT_EQ(two_results(one)[1].item<float>(), 2);
}

TEST(Function, OneTraceServesEveryExtentOfASymbol) {
  const Dim b = Dim::symbol("b");
  Function f([](Tensor x, Tensor y) { return sum(x * y, 0) / Tensor::ones({x.dims()[0], 1}).sum(); },
             {Spec{DType::F32, {b, 3}}, Spec{DType::F32, {b, 1}}});
  for (const int64_t n : {1, 4, 7, 4}) {
    const Tensor x = Tensor::arange(0.f, 3.f * static_cast<float>(n), 1.f).reshape({n, 3}), y = Tensor::ones({n, 1});
    expect_near(f(x, y), floats(mean(x, 0)), 1e-4f);
  }
  EXPECT_EQ(f.trace_count(), 1u);
}

TEST(Function, InfersTypesWithUnknownExtents) {
  Function f([](Tensor x) { return std::tuple(x.reshape({-1}), sum(x, 0), concatenate({x, x}, 0)); });
  const std::vector<Spec> specs = f.result_specs({Spec{DType::F16, {Dim::symbol("b"), 3}}});
  ASSERT_EQ(specs.size(), 3u);
  EXPECT_EQ(specs[0].str(), "float16[b*3]");
  EXPECT_EQ(specs[1].str(), "float16[3]");
  EXPECT_EQ(specs[2].str(), "float16[b*2,3]");
  EXPECT_EQ(f.trace_count(), 0u);
}

TEST(Function, BindsTensorsFromOutsideWithoutCopyingThem) {
  std::vector<float> memory{1, 2, 3};
  const Tensor outside = Tensor::view(memory.data(), DType::F32, {3});
  Function f([&](Tensor x) { return std::pair(x + outside, outside); });
  const auto [sum, same] = f(Tensor::scalar(1.f));
  EXPECT_EQ(floats(sum), (F{2, 3, 4}));
  EXPECT_EQ(same.raw_data(), memory.data());
  EXPECT_NE(f.graph_str().find("input"), 0u);
  EXPECT_EQ(f.graph_str().find("constant"), std::string::npos) << f.graph_str();
}

TEST(Function, ReturnsItsArgumentsAndConstants) {
  Function f([](Tensor x) { return std::tuple(x, x, Tensor::full({2}, 7), Tensor::scalar(1.f)); });
  const auto [a, b, c, d] = f(Tensor::of({1.f, 2.f}));
  EXPECT_EQ(floats(a), (F{1, 2}));
  EXPECT_EQ(floats(b), (F{1, 2}));
  EXPECT_EQ(ints(c), (I{7, 7}));
  EXPECT_EQ(d.item<float>(), 1);
}

TEST(Function, BecomesPartOfTheOneThatCallsIt) {
  const Variable calls(0);
  Function inner([&](Tensor x) {
    calls.assign_add(1);
    return x * 2;
  });
  Function outer([&](Tensor x) { return inner(inner(x)) + inner(x); });
  EXPECT_EQ(outer(Tensor::scalar(1.f)).item<float>(), 6);
  EXPECT_EQ(calls.value().item<int>(), 3);
  EXPECT_EQ(inner.trace_count(), 0u);
  EXPECT_EQ(inner(Tensor::scalar(1.f)).item<float>(), 2);
  EXPECT_EQ(inner.trace_count(), 1u);
}

TEST(Function, ThrowingWhileTracingLeavesEverythingAsBefore) {
  const Variable v(Tensor::of({1.f, 2.f}));
  Function f([&](Tensor x) {
    v.assign(v * 0);
    return matmul(x, x);
  });
  EXPECT_NE(error_of([&] { f(Tensor::ones({2, 3})); }), "no error");
  EXPECT_EQ(floats(v.value()), (F{1, 2}));
  EXPECT_EQ(floats(v + 1), (F{2, 3}));  // not tracing any more
  EXPECT_EQ(floats(f(Tensor::ones({1, 1}))), (F{1}));
  EXPECT_EQ(floats(v.value()), (F{0, 0}));
}

TEST(Function, AnErrorOfTheRunLeavesVariablesReadable) {
  const Variable v(Tensor::of({1.f, 2.f}));
  Function f([&](Tensor i) { v.assign(take(v, i)); });
  EXPECT_NE(error_of([&] { f(Tensor::of({0, 7})); }), "no error");
  EXPECT_EQ(v.value().shape(), (Shape{2}));
  f(Tensor::of({1, 0}));
  v.assign(Tensor::of({5.f, 6.f}));
  EXPECT_EQ(floats(v.value()), (F{5, 6}));
}

TEST(Function, IsCalledFromSeveralThreads) {
  const Variable scale(3.0f);
  Function f([&](Tensor x) { return x * scale; });
  std::vector<std::thread> threads;
  std::vector<float> results(4);
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; n < 200; ++n) results[i] = f(Tensor::full({static_cast<int64_t>(i) + 1}, static_cast<float>(i)))[0].item<float>();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(results, (F{0, 3, 6, 9}));
  EXPECT_EQ(f.trace_count(), 4u);
}

TEST(Function, ListsTheVariablesItUses) {
  const Variable a(1.0f, {.name = "a"}), b(2.0f, {.name = "b"});
  Function f([&] { b.assign(a + b); });
  f();
  const std::vector<Variable> used = f.flat().variables();
  ASSERT_EQ(used.size(), 2u);
  EXPECT_EQ(used[0].name(), "a");
  EXPECT_EQ(used[1].name(), "b");
}

}  // namespace
}  // namespace tandem
