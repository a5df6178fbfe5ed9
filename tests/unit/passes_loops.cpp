// Loops that cover each other.
#include "passes_loop_graphs.hpp"
#include "transform/grad.hpp"

namespace tandem::passes {
namespace {

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

}  // namespace
}  // namespace tandem::passes
