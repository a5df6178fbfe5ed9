// What nobody reads goes, out of branches and loops too.
#include "passes_loop_graphs.hpp"

namespace tandem::passes {
namespace {

TEST(Dce, UnreadResultsOfAScanVanishWithWhatComputesThem) {
  const auto step = part({kF4, kF4, kF4, kF4, kF4}, [](Builder&, std::vector<Expr> x) {
    // Carries: 0 is read, 1 feeds 0, 2 feeds only itself. x[3] is a sequence of output 1 only, x[4] a constant of carry 2 only.
    return std::vector{x[0] + x[1], x[1] * 0.5, x[2] * x[4], x[0] * 3.0, ir::exp(x[3])};
  });
  const Graph before = built({kF4, kF4, kF4, kF54, kF4}, [&](Builder& b, std::vector<Expr> in) {
    const auto out = scan(b, {in[0], in[1], in[2], in[3] * 2.0, ir::exp(in[4])}, step, 3, 1, 5);
    return std::vector{out[0], out[3]};
  });
  const Graph after = dce(table(), before);
  EXPECT_EQ(ir::print(after),
            "graph(%0: float32[4], %1: float32[4], %2: float32[4], %3: float32[5,4], %4: float32[4]) {\n"
            "  %5 = scan(%0, %1; functions=[\n"
            "    graph(%0: float32[4], %1: float32[4]) {\n"
            "      %2 = add(%0, %1) : float32[4]\n"
            "      %3 = constant(; value=float32[]{0.5}) : float32[]\n"
            "      %4 = multiply(%1, %3) : float32[4]\n"
            "      %5 = constant(; value=float32[]{3}) : float32[]\n"
            "      %6 = multiply(%0, %5) : float32[4]\n"
            "      return %2, %4, %6\n"
            "    }\n"
            "  ], carries=2, sequences=0, length=[5], reverse=false) : float32[4], float32[4], float32[5,4]\n"
            "  return %5, %5.2\n"
            "}\n");
  expect_same_bytes(before, after, "dce");
}

TEST(Dce, AWhileKeepsWhatItsConditionNeeds) {
  const auto body = part({kI, kF4, kF4}, [](Builder&, std::vector<Expr> x) { return std::vector{x[0] + 1.0, x[1] * 0.5, x[2] + x[2]}; });
  const auto condition = part({kI, kF4, kF4}, [](Builder&, std::vector<Expr> x) { return std::vector{x[0] < 3.0}; });
  const Graph before = built({kI, kF4, kF4}, [&](Builder& b, std::vector<Expr> in) {
    return std::vector{
        ir::call(b, "while", {in[0], in[1], in[2]}, {{"functions", ir::Graphs{condition, body}}, {"max_trips", int64_t{7}}})[1]};
  });
  const Graph after = dce(table(), before);
  EXPECT_EQ(only(after, "while").inputs.size(), 2u);
  expect_same_bytes(before, after, "dce");
}

TEST(Dce, ABranchLosesOutputsAndOperands) {
  const auto one = part({kF4, kF4}, [](Builder&, std::vector<Expr> x) { return std::vector{x[0] + x[0], ir::exp(x[1])}; });
  const auto two = part({kF4, kF4}, [](Builder&, std::vector<Expr> x) { return std::vector{x[0] * x[0], x[1]}; });
  const Graph before = built({kI, kF4, kF4}, [&](Builder& b, std::vector<Expr> in) {
    return std::vector{ir::call(b, "branch", {in[0], in[1], ir::exp(in[2])}, {{"branches", ir::Graphs{one, two}}})[0]};
  });
  const Graph after = dce(table(), before);
  EXPECT_EQ(only(after, "branch").inputs.size(), 2u);
  EXPECT_EQ(count_of(after, "exp"), 0u);
  expect_same_bytes(before, after, "dce");
}

TEST(Dce, NestedLoopsAreCutFromTheOutside) {
  const auto inner = part({kF4, kF4}, [](Builder&, std::vector<Expr> x) { return std::vector{x[0] * 0.5, x[1] + x[0]}; });
  const auto outer = part({kF4, kF4, kF4}, [&](Builder& b, std::vector<Expr> x) {
    const auto out = scan(b, {x[0], x[1]}, inner, 2, 0, 2);  // carry 1 is wanted for the outer carry 1 only
    return std::vector{out[0], out[1], x[2] + out[1]};
  });
  const Graph before = built(
      {kF4, kF4, kF4}, [&](Builder& b, std::vector<Expr> in) { return std::vector{scan(b, {in[0], in[1], in[2]}, outer, 3, 0, 3)[0]}; });
  const Graph after = dce(table(), before);
  const ir::Node& loop = only(after, "scan");
  EXPECT_EQ(loop.inputs.size(), 1u) << ir::print(after);
  EXPECT_EQ(only(*loop.attrs.get<ir::Graphs>("functions")[0], "scan").inputs.size(), 1u);
  expect_same_bytes(before, after, "dce");
}

}  // namespace
}  // namespace tandem::passes
