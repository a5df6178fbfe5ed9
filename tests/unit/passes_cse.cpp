// Equal nodes become one; what only looks equal stays.
#include "passes_loop_graphs.hpp"

namespace tandem::passes {
namespace {

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

}  // namespace
}  // namespace tandem::passes
