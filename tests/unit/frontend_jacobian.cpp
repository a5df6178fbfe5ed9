// Jacobians: vectorised and one by one, at once and compiled; variables that are made while a function is traced.
#include "base/file.hpp"
#include "frontend_support.hpp"

namespace tandem {
namespace {

template <class Body> void check_jacobian(Body body, const Tensor& x, const F& wanted, const Shape& shape) {
  const auto differentiated = [&](Tensor t) {
    Tape tape;
    tape.watch(t);
    return tape.jacobian(body(t), t);
  };
  Function compiled(differentiated);
  for (const bool is_compiled : {false, true}) {
    SCOPED_TRACE(is_compiled ? "compiled" : "at once");
    const Tensor j = is_compiled ? compiled(x) : differentiated(x);
    EXPECT_EQ(j.shape(), shape);
    expect_near(j, wanted);
  }
}

TEST(Jacobian, OfElementwiseOps) {
  check_jacobian([](Tensor x) { return x * x; }, Tensor::of({1.f, 2.f, 3.f}), {2, 0, 0, 0, 4, 0, 0, 0, 6}, {3, 3});
  check_jacobian([](Tensor x) { return sum(x * x); }, Tensor::of({1.f, 2.f}), {2, 4}, {2});
}

TEST(Jacobian, OfProducts) {
  const Tensor m = Tensor::of({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  check_jacobian([&](Tensor x) { return matmul(m, reshape(x, {2, 1})); }, Tensor::of({7.f, 8.f}), {1, 2, 3, 4, 5, 6}, {3, 1, 2});
}

TEST(Jacobian, OfWhatCannotBeVectorised) {
  const auto body = [](Tensor x) {
    return while_loop([](Tensor i, Tensor) { return i < 2; }, [](Tensor i, Tensor v) { return std::tuple(i + 1, v * v); },
                      std::tuple(Tensor::scalar(0), x));
  };
  check_jacobian([&](Tensor x) { return std::get<1>(body(x)); }, Tensor::of({1.f, 2.f}), {4, 0, 0, 32}, {2, 2});
  auto custom = custom_gradient([](Tensor x) { return std::pair(x, [](Tensor g) { return g * 3; }); });
  check_jacobian([&](Tensor x) { return custom(x); }, Tensor::of({1.f, 2.f}), {3, 0, 0, 3}, {2, 2});
}

TEST(Jacobian, OfABatch) {
  const auto differentiated = [](Tensor x) {
    Tape tape;
    tape.watch(x);
    const Tensor y = stack({x(Slice(), 0) * x(Slice(), 1), x(Slice(), 0)}, 1);
    return tape.batch_jacobian(y, x);
  };
  Function compiled(differentiated);
  const Tensor x = Tensor::of({{2.f, 3.f}, {4.f, 5.f}});
  for (const bool is_compiled : {false, true}) {
    const Tensor j = is_compiled ? compiled(x) : differentiated(x);
    EXPECT_EQ(j.shape(), (Shape{2, 2, 2}));
    expect_near(j, {3, 2, 1, 0, 5, 4, 1, 0});
  }
}

TEST(Jacobian, OfVariablesAndOfWhatIsNotConnected) {
  const Variable w(Tensor::of({1.f, 2.f})), other(1.f);
  Tape tape({.persistent = true});
  const Tensor y = w * 3;
  expect_near(tape.jacobian(y, w), {3, 0, 0, 3});
  EXPECT_FALSE(tape.jacobian(y, other).defined());
  const std::vector<Tensor> rows = tape.stacked_gradients(y, {w, other}, Tensor::of({{1.f, 1.f}, {0.f, 2.f}, {5.f, 0.f}}));
  expect_near(rows[0], {3, 3, 0, 6, 15, 0});
  EXPECT_FALSE(rows[1].defined());
}

TEST(VariablesWhileTracing, GetTheirValuesAtOnce) {
  Variable made, derived, number;
  const Tensor outside = Tensor::of({1.f, 2.f});
  Function f([&](Tensor x) {
    if (!made.defined()) {
      made = Variable(Tensor::full({2}, 3.f) + outside);  // traced, but known
      derived = Variable(made.value() * 2);
      number = Variable(7.f);
    }
    return x * made + number;
  });
  expect_near(f(Tensor::of({1.f, 1.f})), {11, 12});
  expect_near(derived.value(), {8, 10});
  made.assign(Tensor::of({0.f, 0.f}));
  expect_near(f(Tensor::of({1.f, 1.f})), {7, 7});
  Function wrong([](Tensor x) { return Variable(x * 2).value(); });
  EXPECT_NE(error_of<UserError>([&] { wrong(outside); }).find("Variable: the initial value is a traced tensor float32[2]"),
            std::string::npos);
}

TEST(ErrorCodes, SayWhatHappened) {
  const auto code_of = [](auto f) {
    try {
      f();
    } catch (const Error& e) {
      return e.code();
    }
    return ErrorCode::Unknown;
  };
  EXPECT_EQ(code_of([] { matmul(Tensor::ones({2, 3}), Tensor::ones({2, 3})); }), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of([] { Tensor::ones({3})[7]; }), ErrorCode::OutOfRange);
  EXPECT_EQ(code_of([] { open_regular("/no/such/file"); }), ErrorCode::NotFound);
  EXPECT_EQ(code_of([] { Tensor::ones({int64_t{1} << 50}).raw_data(); }), ErrorCode::ResourceExhausted);
}

TEST(Function, LetsGoOfItsTracesWhenItIsDropped) {
  const auto held = std::make_shared<int>(1);
  {
    Function f([held, c = Tensor::ones({4})](Tensor x) { return x + c; });
    f(Tensor::ones({4}));
    f(Tensor::ones({1}));
    EXPECT_EQ(f.trace_count(), 2u);
    EXPECT_GT(held.use_count(), 1);
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace tandem
