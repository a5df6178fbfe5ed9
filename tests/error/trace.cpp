// Mistakes with functions, tapes, variables and control flow.
#include "support.hpp"

namespace tandem {
namespace {

const Tensor& row() {
  static const Tensor t = Tensor::of({1.f, 2.f, 3.f});
  return t;
}

constexpr const char* kNoNumbers = "\n  hint: return it from the function and read the result; choose by numbers with cond() or where()";
constexpr const char* kKept = "\n  hint: return it from the function; what is kept from a trace has no numbers";
constexpr const char* kStateHint = "\n  hint: the state keeps its element types and shapes from step to step";

// --- functions -------------------------------------------------------------------------------------------------------------------

TEST(FunctionErrors, ReadingATracedTensor) {
  const int line = __LINE__ + 1;
  Function item([](Tensor x) { return Tensor::scalar(x[0].item<float>()); });
  const std::string place = "\n  at trace.cpp:" + std::to_string(line);
  EXPECT_USER_ERROR(item(row()), "item: a traced tensor float32[] has no numbers yet" + place + kNoNumbers);
}

TEST(FunctionErrors, AskingForAnExtentThatIsASymbol) {
  const int line = __LINE__ + 1;
  Function f([](Tensor x) { return x.reshape({x.shape()[0], 1}); }, {Spec{DType::F32, {Dim::symbol("b")}}});
  EXPECT_USER_ERROR(f(row()), "shape: the extents [b] are not all known\n  at trace.cpp:" + std::to_string(line) +
                                  "\n  hint: symbols get their values when the traced function is called");
}

TEST(FunctionErrors, TheLineInsideTheFunctionIsNamed) {
  const int line = __LINE__ + 1;
  Function f([](Tensor x) { return matmul(x, x); });
  const Tensor x = Tensor::ones({2, 3});
  EXPECT_USER_ERROR(f(x), "matmul: inner dimensions differ, lhs [2,3] x rhs [2,3] (3 != 2)\n  at trace.cpp:" + std::to_string(line));
}

TEST(FunctionErrors, TheLineInsideIsNamedWhenItRunsToo) {
  const int line = __LINE__ + 1;
  Function f([](Tensor x, Tensor i) { return take(x, i); });
  const Tensor i = Tensor::of({0, 9});
  EXPECT_USER_ERROR(f(row(), i),
                    "take: index 9 is out of range for axis 0 with size 3 (at position [1])\n  at trace.cpp:" + std::to_string(line));
}

TEST(FunctionErrors, ArgumentsThatDoNotFitTheSpecs) {
  const Dim b = Dim::symbol("b");
  Function f([](Tensor x, Tensor y) { return x + y; }, {Spec{DType::F32, {b, 2}}, Spec{DType::F32, {b, 2}}}, "both");
  const Tensor three = Tensor::ones({3, 2}), four = Tensor::ones({4, 2}), wide = Tensor::ones({3, 5}),
               whole = Tensor::ones({3, 2}, DType::I32);
  EXPECT_USER_ERROR(f(three, four), "both: argument 1: shape [4,2] does not fit [b,2] (b = 3 != 4 at axis 0)\n  @");
  EXPECT_USER_ERROR(f(wide, wide), "both: argument 0: shape [3,5] does not fit [b,2] (2 != 5 at axis 1)\n  @");
  EXPECT_USER_ERROR(f(row(), row()), "both: argument 0 is float32[3], its spec is float32[b,2]\n  @");
  EXPECT_USER_ERROR(f(whole, whole), "both: argument 0 is int32[3,2], its spec is float32[b,2]\n  @");
  EXPECT_EQ(f(three, three).shape(), (Shape{3, 2}));
}

TEST(FunctionErrors, SymbolsThatNeedNotBeEqual) {
  const int line = __LINE__ + 1;
  const auto add_both = [](Tensor x, Tensor y) { return x + y; };
  Function f(add_both, {Spec{DType::F32, {Dim::symbol("b")}}, Spec{DType::F32, {Dim::symbol("c")}}});
  EXPECT_USER_ERROR(
      f(row(), row()),
      "add: x is float32[b], y is float32[c]: shapes [b] and [c] do not fit, b and c at axis -1 need not be equal\n  at trace.cpp:" +
          std::to_string(line) + "\n  hint: use one symbol for extents that are the same");
}

TEST(FunctionErrors, KeepingATracedTensor) {
  Tensor kept;
  Function f([&](Tensor x) {
    kept = x * 2;
    return x;
  });
  f(row());
  const std::string what = ": a tensor float32[3] is used outside the function that it was traced in\n  @";
  EXPECT_USER_ERROR(kept + 1, "add" + what + kKept);
  EXPECT_USER_ERROR(kept.to_vector<float>(), "to_vector" + what + kKept);
  EXPECT_USER_ERROR(f(kept), "function: argument 0" + what + kKept);
  const int line = __LINE__ + 1;
  Function g([&](Tensor x) { return x + kept; }, FunctionOptions{.name = "g"});
  EXPECT_USER_ERROR(g(row()), "g: a tensor float32[3] is used outside the function that it was traced in\n  at trace.cpp:" +
                                  std::to_string(line) + kKept);
}

TEST(FunctionErrors, ReturningNothing) {
  Function f([](Tensor) { return Tensor(); }, FunctionOptions{.name = "empty"});
  EXPECT_USER_ERROR(f(row()),
                    "empty: result 0 holds nothing\n  @\n  hint: a default-made Tensor, or the gradient of something unconnected");
  const Function<Tensor(Tensor)> none;
  EXPECT_USER_ERROR(none(row()), "this function holds nothing\n  @\n  hint: it was made by its default constructor");
}

// --- variables -------------------------------------------------------------------------------------------------------------------

TEST(VariableErrors, AssigningAnotherShape) {
  const Variable w(row(), {.name = "w"});
  const Tensor wide = Tensor::ones({4});
  EXPECT_USER_ERROR(w.assign(wide), "assign: variable 'w' is float32[3], the value is float32[4]\n  @");
  EXPECT_USER_ERROR(w.assign_add(wide), "add: x is float32[3], y is float32[4]: shapes [3] and [4] do not fit (3 != 4 at axis -1)\n  @");
  EXPECT_EQ(w.value().to_vector<float>(), row().to_vector<float>());
}

TEST(VariableErrors, MakingOneFromATracedTensor) {
  const int line = __LINE__ + 1;
  Function f([](Tensor x) { return Variable(x).value(); });
  EXPECT_USER_ERROR(f(row()),
                    "Variable: the initial value is a traced tensor float32[3]\n  at trace.cpp:" + std::to_string(line) +
                        "\n  hint: make variables outside the function that is traced, or of values that do not depend on its arguments");
}

TEST(VariableErrors, OneThatHoldsNothing) {
  EXPECT_USER_ERROR(Variable().value(), "this variable holds nothing\n  @\n  hint: it was made by Variable(), without a value");
}

// --- tapes -----------------------------------------------------------------------------------------------------------------------

TEST(TapeErrors, AskingTwice) {
  Tape tape;
  tape.watch(row());
  const Tensor y = sum(row() * row());
  tape.gradient(y, row());
  EXPECT_USER_ERROR(tape.gradient(y, row()),
                    "gradient: this tape has already given its gradient\n  @\n  hint: ask for all gradients at once with "
                    "gradients(), or make the tape with TapeOptions{.persistent = true}");
}

TEST(TapeErrors, WhatHasNoGradient) {
  const Tensor whole = Tensor::of({1, 2});
  Tape tape({.persistent = true});
  EXPECT_USER_ERROR(tape.watch(whole), "watch: only floating tensors have gradients, this one is int32[2]\n  @");
  EXPECT_USER_ERROR(tape.gradient(whole, row()), "gradient: a target must be floating, this one is int32[2]\n  @");
  tape.watch(row());
  const Tensor key = Tensor::of({1u, 2u});
  const int line = __LINE__ + 1;
  const Tensor y = gamma(key, row(), {3});
  EXPECT_USER_ERROR(tape.gradient(y, row()), "gamma: has no gradient\n  at trace.cpp:" + std::to_string(line) +
                                                 "\n  hint: put stop_gradient in front of it when none is meant to flow");
}

TEST(TapeErrors, GradientsOfTheOutputsThatDoNotFit) {
  Tape tape({.persistent = true});
  tape.watch(row());
  const Tensor y = row() * 2, wide = Tensor::ones({4});
  EXPECT_USER_ERROR(tape.gradient(y, row(), {.output_gradients = {wide}}),
                    "gradient: output gradient 0 is float32[4], its target is float32[3]\n  @");
  EXPECT_USER_ERROR(tape.gradient(y, row(), {.output_gradients = {y, y}}), "gradient: 2 output gradients for 1 targets\n  @");
}

// --- control flow ------------------------------------------------------------------------------------------------------------------

TEST(ControlErrors, BranchesOfDifferentTypes) {
  const int line = __LINE__ + 1;
  Function f([](Tensor x) { return cond(sum(x) > 0, [&] { return x; }, [&] { return sum(x); }); });
  EXPECT_USER_ERROR(f(row()), "cond: result 0 is float32[3] in the 'then' branch and float32[] in the 'else' branch\n  at trace.cpp:" +
                                  std::to_string(line) +
                                  "\n  hint: both must have the same element type and shape; cast() or reshape() one of them");
}

TEST(ControlErrors, AConditionThatIsNoBool) {
  const std::string hint = "\n  @\n  hint: compare, and reduce with all() or any()";
  const auto same = [](Tensor x) { return x; };
  EXPECT_USER_ERROR(
      cond(row(), [&] { return row(); }, [&] { return row(); }), "cond: the condition must be bool[], it is float32[3]" + hint);
  EXPECT_USER_ERROR(while_loop(same, same, row()), "while_loop: the condition must be bool[], it is float32[3]" + hint);
}

TEST(ControlErrors, AStateThatChangesItsType) {
  const auto grows = [](Tensor x) { return concatenate({x, x}); };
  const auto more = [](Tensor x) { return sum(x) < 100; };
  const std::string text = "while_loop: part 0 of the state is float32[3], the body turns it into float32[6]";
  EXPECT_USER_ERROR(while_loop(more, grows, row()), text + "\n  @" + kStateHint);
  const int line = __LINE__ + 1;
  Function f([&](Tensor x) { return while_loop(more, grows, x); });
  EXPECT_USER_ERROR(f(row()), text + "\n  at trace.cpp:" + std::to_string(line) + kStateHint);
  const auto widens = [](Tensor c, Tensor x) { return std::pair(c.cast(DType::F64), x); };
  EXPECT_USER_ERROR(scan(widens, Tensor::scalar(1.f), row()),
                    std::string("scan: part 0 of the state is float32[], the body turns it into float64[]\n  @") + kStateHint);
}

TEST(ControlErrors, SequencesThatDoNotFit) {
  const auto step = [](Tensor c, std::tuple<Tensor, Tensor>) { return std::pair(c, c); };
  const Tensor one = Tensor::scalar(1.f), two = Tensor::of({1.f, 2.f});
  EXPECT_USER_ERROR(scan(step, one, std::tuple(row(), two)), "scan: sequence 1 has 2 steps, there are to be 3\n  @");
  EXPECT_USER_ERROR(scan(step, one, std::tuple(row(), one)), "scan: sequence 1 is float32[], it needs a first axis to walk along\n  @");
}

TEST(ControlErrors, AConditionThatAssigns) {
  const Variable n(0.0f, {.name = "n"});
  const auto test = [&](Tensor x) {
    n.assign_add(1);
    return sum(x) < 0;
  };
  const int line = __LINE__ + 1;
  Function f([&](Tensor x) { return while_loop(test, [](Tensor y) { return y; }, x); });
  EXPECT_USER_ERROR(f(row()), "while_loop: the condition assigns variable 'n'\n  at trace.cpp:" + std::to_string(line) +
                                  "\n  hint: only the body may assign");
}

// Looks at the gradient of f at once, and asks for it later, of a compiled function.
template <class F> void gradient_of(F& f) {
  Tape tape;
  const Tensor x = row();
  tape.watch(x);
  tape.gradient(f(x), x);
}

TEST(ControlErrors, ACustomGradientOfTheWrongShape) {
  const int line = __LINE__ + 1;
  auto two = custom_gradient([](Tensor x) { return std::pair(x * 2, [](Tensor g) { return std::vector<Tensor>{g, g}; }); });
  const std::string count = "custom_gradient: backward gives 2 gradients for 1 inputs\n  at trace.cpp:" + std::to_string(line);
  EXPECT_USER_ERROR(gradient_of(two), count);
  Function compiled([&](Tensor x) { return two(x); });
  EXPECT_USER_ERROR(compiled(row()), count);
  const int flat_line = __LINE__ + 1;
  auto flat = custom_gradient([](Tensor x) { return std::pair(x * 2, [](Tensor g) { return sum(g); }); });
  EXPECT_USER_ERROR(gradient_of(flat), "custom_gradient: the gradient of input 0 is float32[], the input is float32[3]\n  at trace.cpp:" +
                                           std::to_string(flat_line));
}

TEST(ControlErrors, ACustomGradientThatForgetsAVariable) {
  const Variable w(2.f, {.name = "w"});
  auto f = custom_gradient([&](Tensor x) { return std::pair(x * w, [](Tensor g) { return g; }); });
  EXPECT_USER_ERROR(
      gradient_of(f),
      "custom_gradient: backward gives 1 gradients for 1 inputs and 1 variables ('w')\n  at trace.cpp:" + std::to_string(__LINE__ - 3) +
          "\n  hint: the function reads these trainable variables; give a gradient for each behind those of the inputs");
}

TEST(ControlErrors, NothingToSwitchTo) {
  EXPECT_USER_ERROR(switch_case<Tensor>(1, {}), "switch_case: there must be at least one branch\n  @");
  EXPECT_USER_ERROR(switch_case<Tensor>(row(), {[] { return row(); }}),
                    "switch_case: the index must be an integer without axes, it is float32[3]\n  @");
}

}  // namespace
}  // namespace tandem
