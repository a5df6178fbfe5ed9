// Equal nodes, loops that cover each other, and dead code, in graphs and in the bodies of branches and loops.
#include "passes_support.hpp"
#include "transform/grad.hpp"

namespace tandem::passes {
namespace {

using ir::Builder;
using ir::Expr;
using ir::TensorType;

// A graph of expressions over inputs of the given types.
Graph built(const std::vector<TensorType>& types, const std::function<std::vector<Expr>(Builder&, std::vector<Expr>)>& f) {
  Builder b(table());
  std::vector<Expr> in;
  for (const TensorType& t : types) in.emplace_back(b, b.input(t));
  const std::vector<ir::Value> out = ir::values(f(b, in));
  return b.finish(out);
}
ir::GraphRef part(const std::vector<TensorType>& types, const std::function<std::vector<Expr>(Builder&, std::vector<Expr>)>& f) {
  return std::make_shared<const Graph>(built(types, f));
}

const TensorType kF4{DType::F32, {4}};
const TensorType kF54{DType::F32, {5, 4}};
const TensorType kI{DType::I32, {}};

std::vector<Expr> scan(Builder& b, const std::vector<Expr>& in, ir::GraphRef body, int64_t carries, int64_t sequences, int64_t length) {
  return ir::call(b, "scan", in,
                  {{"functions", ir::Graphs{std::move(body)}}, {"carries", carries}, {"sequences", sequences}, {"length", Dims{length}}});
}

const ir::Node& only(const Graph& g, std::string_view op) {
  EXPECT_EQ(count_of(g, op), 1u) << ir::print(g);
  for (const ir::Node& n : g.nodes)
    if (n.op->name == op) return n;
  throw InternalError("there is none");
}

TEST(Cse, EqualNodesBecomeOne) {
  const Graph before = graph(
      "graph (%0: float32[4], %1: int32[4]) {\n"
      "  %2 = exp(%0) : float32[4]\n"
      "  %3 = exp(%0) : float32[4]\n"
      "  %4 = add(%2, %0) : float32[4]\n"
      "  %5 = add(%0, %3) : float32[4]\n"
      "  %6 = add(%3, %0) : float32[4]\n"
      "  %7 = negative(%1) : int32[4]\n"
      "  %8 = multiply(%1, %7) : int32[4]\n"
      "  %9 = multiply(%7, %1) : int32[4]\n"
      "  return %4, %5, %6, %8, %9\n"
      "}\n");
  const Graph after = cse(table(), before);
  EXPECT_EQ(ir::print(after),
            "graph(%0: float32[4], %1: int32[4]) {\n"
            "  %2 = exp(%0) : float32[4]\n"
            "  %3 = add(%2, %0) : float32[4]\n"
            "  %4 = add(%0, %2) : float32[4]\n"  // of two NaNs the left one is kept, so the sides count
            "  %5 = negative(%1) : int32[4]\n"
            "  %6 = multiply(%1, %5) : int32[4]\n"
            "  return %3, %4, %3, %6, %6\n"
            "}\n");
  expect_same_bytes(before, after, "cse");
}

TEST(Cse, AttributesConstantsAndSubgraphsCount) {
  const auto step = part({kF4}, [](Builder&, std::vector<Expr> in) { return std::vector{in[0] + in[0]}; });
  const auto same = part({kF4}, [](Builder&, std::vector<Expr> in) { return std::vector{in[0] + in[0]}; });
  const auto other = part({kF4}, [](Builder&, std::vector<Expr> in) { return std::vector{in[0] * in[0]}; });
  const Graph g = built({kF4}, [&](Builder& b, std::vector<Expr> in) {
    std::vector<Expr> out;
    for (const auto& body : {step, same, other}) out.push_back(scan(b, {in[0]}, body, 1, 0, 3)[0]);
    out.push_back(in[0].sum({0}, true));
    out.push_back(in[0].sum({0}, false));
    for (float v : {1.0f, 2.0f, 1.0f}) out.emplace_back(b, b.constant(Literal::of(DType::F32, {1}, &v)));
    // Equal random numbers: the key decides, nothing else.
    const uint32_t key[] = {1, 2};
    for (int i = 0; i < 2; ++i)
      out.push_back(Expr(b, b.constant(Literal::of(DType::U32, {2}, key))).op("random_unit", {{"shape", Dims{4}}}));
    return out;
  });
  const Graph after = cse(table(), g);
  EXPECT_EQ(count_of(after, "scan"), 2u);
  EXPECT_EQ(count_of(after, "sum"), 2u);
  EXPECT_EQ(count_of(after, "constant"), 3u);
  EXPECT_EQ(count_of(after, "random_unit"), 1u);
  expect_same_bytes(g, after, "cse");
}

// A recurrence with a per-step output, as a layer would have it; the gradient runs it again.
Graph recurrence() {
  return built({kF4, kF54}, [](Builder& b, std::vector<Expr> in) {
    const auto step = part({kF4, kF4}, [](Builder&, std::vector<Expr> x) {
      const Expr h = (x[0] * x[1]).op("tanh");
      return std::vector{h, h * 2.0};
    });
    const std::vector<Expr> out = scan(b, {in[0], in[1]}, step, 1, 1, 5);
    return std::vector{(out[0].sum({0}) + out[1].sum({0, 1}))};
  });
}

TEST(Loops, TheGradientOfALoopRunsItOnce) {
  const std::vector<int> wrt{0, 1};
  const Graph before = expand(table(), transform::grad_graph(table(), recurrence(), wrt));
  EXPECT_EQ(count_of(before, "scan"), 3u) << ir::print(before);  // forward, forward again with more kept, backward
  const Graph after = loops(table(), cse(table(), before));
  EXPECT_EQ(count_of(after, "scan"), 2u) << ir::print(after);
  expect_same_bytes(before, after, "loops");
}

TEST(Loops, ALoopThatNeedsTheOtherStays) {
  // The second loop covers the first one but begins with a further carry that the first one made.
  const auto narrow = part({kI, kF4}, [](Builder&, std::vector<Expr> x) { return std::vector{x[0] + 1.0, x[1] * 0.5}; });
  const auto wide = part({kI, kF4, kF4}, [](Builder&, std::vector<Expr> x) { return std::vector{x[0] + 1.0, x[1] * 0.5, x[2] + x[1]}; });
  const auto small = part({kI, kF4}, [](Builder&, std::vector<Expr> x) { return std::vector{x[0] < 3.0}; });
  const auto small_wide = part({kI, kF4, kF4}, [](Builder&, std::vector<Expr> x) { return std::vector{x[0] < 3.0}; });
  for (const bool is_needed : {false, true}) {
    const Graph g = built({kI, kF4}, [&](Builder& b, std::vector<Expr> in) {
      const auto first = ir::call(b, "while", {in[0], in[1]}, {{"functions", ir::Graphs{small, narrow}}});
      const auto second = ir::call(b, "while", {in[0], in[1], is_needed ? first[1] : in[1]}, {{"functions", ir::Graphs{small_wide, wide}}});
      return std::vector{first[1] + second[2], second[1]};
    });
    const Graph after = loops(table(), g);
    EXPECT_EQ(count_of(after, "while"), is_needed ? 2u : 1u);
    std::vector<Literal> in = special_inputs(g, 3);
    const int32_t zero = 0;
    in[0] = Literal::of(DType::I32, {}, &zero);
    ir::verify(table(), after, ir::Stage::Expanded);
    testing::expect_same_bits(results(g, "cpu", in), results(after, "cpu", in), "loops");
  }
}

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

TEST(Pipeline, AllStepsTogetherOnTheGradientOfALoop) {
  const std::vector<int> wrt{1};
  const Graph before = expand(table(), transform::grad_graph(table(), recurrence(), wrt));
  const Graph after = run_pipeline(table(), before);
  EXPECT_EQ(count_of(after, "scan"), 2u);
  EXPECT_LT(after.nodes.size(), before.nodes.size());
  expect_same_bytes(before, after, "pipeline");
}

TEST(Pipeline, StepsCanBeSwitchedOff) {
  const Graph g = graph("graph (%0: float32[4]) {\n  %1 = negative(%0) : float32[4]\n  %2 = negative(%1) : float32[4]\n  return %2\n}\n");
  EXPECT_EQ(run_pipeline(table(), g).nodes.size(), 1u);
  setenv("TANDEM_DISABLE_PASS", "cse,simplify,fuse", 1);
  EXPECT_EQ(run_pipeline(table(), g).nodes.size(), 3u);
  unsetenv("TANDEM_DISABLE_PASS");
}

}  // namespace
}  // namespace tandem::passes
