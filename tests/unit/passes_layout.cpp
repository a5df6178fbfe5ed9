// Transposes are moved only where fewer are left, and never change a byte.
#include "passes_support.hpp"

namespace tandem::passes {
namespace {

size_t transposes_after(const char* body, size_t before_count) {
  const Graph before = graph(cat("graph (%0: float32[2,3,5], %1: float32[2,3,5], %2: float32[3], %3: float32[5,3,2]) {\n", body, "\n}\n"));
  EXPECT_EQ(count_of(before, "transpose"), before_count);
  const Graph after = layout(table(), before);
  expect_same_bytes(before, after, body);
  return count_of(after, "transpose");
}

TEST(Layout, UpToTheOneThatIsUndone) {
  EXPECT_EQ(transposes_after("  %4 = transpose(%0; perm=[0,2,1]) : float32[2,5,3]\n"
                             "  %5 = exp(%4) : float32[2,5,3]\n"
                             "  %6 = add(%5, %2) : float32[2,5,3]\n"  // a bias: [3] becomes [3,1]
                             "  %7 = transpose(%6; perm=[0,2,1]) : float32[2,3,5]\n"
                             "  return %7",
                             2),
            0u);
}

TEST(Layout, DownBehindTheOp) {
  EXPECT_EQ(transposes_after("  %4 = transpose(%0; perm=[2,0,1]) : float32[5,2,3]\n"
                             "  %5 = transpose(%1; perm=[2,0,1]) : float32[5,2,3]\n"
                             "  %6 = multiply(%4, %5) : float32[5,2,3]\n"
                             "  return %6",
                             2),
            1u);
}

TEST(Layout, BothInTurn) {
  EXPECT_EQ(transposes_after("  %4 = transpose(%0; perm=[2,0,1]) : float32[5,2,3]\n"
                             "  %5 = transpose(%1; perm=[2,0,1]) : float32[5,2,3]\n"
                             "  %6 = multiply(%4, %5) : float32[5,2,3]\n"
                             "  %7 = transpose(%6; perm=[1,2,0]) : float32[2,3,5]\n"
                             "  return %7",
                             3),
            0u);
}

TEST(Layout, NotWhereItWouldNotHelp) {
  // One operand would need a transpose instead.
  EXPECT_EQ(transposes_after("  %4 = add(%0, %1) : float32[2,3,5]\n"
                             "  %5 = transpose(%4; perm=[2,1,0]) : float32[5,3,2]\n"
                             "  return %5",
                             1),
            1u);
  // Somebody else wants the value as it is.
  EXPECT_EQ(transposes_after("  %4 = transpose(%0; perm=[2,1,0]) : float32[5,3,2]\n"
                             "  %5 = exp(%4) : float32[5,3,2]\n"
                             "  %6 = transpose(%5; perm=[2,1,0]) : float32[2,3,5]\n"
                             "  return %6, %5",
                             2),
            2u);
  // A reduction in between.
  EXPECT_EQ(transposes_after("  %4 = transpose(%0; perm=[2,1,0]) : float32[5,3,2]\n"
                             "  %5 = sum(%4; axis=[0], keepdims=true) : float32[1,3,2]\n"
                             "  %6 = transpose(%5; perm=[2,1,0]) : float32[2,3,1]\n"
                             "  return %6",
                             2),
            2u);
}

TEST(Layout, ReadsWell) {
  const Graph before = graph(
      "graph (%0: float32[b,3,4], %1: float32[3]) {\n"
      "  %2 = transpose(%0; perm=[0,2,1]) : float32[b,4,3]\n"
      "  %3 = add(%2, %1) : float32[b,4,3]\n"
      "  %4 = tanh(%3) : float32[b,4,3]\n"
      "  %5 = transpose(%4; perm=[0,2,1]) : float32[b,3,4]\n"
      "  return %5\n"
      "}\n");
  EXPECT_EQ(ir::print(layout(table(), before)),
            "graph(%0: float32[b,3,4], %1: float32[3]) {\n"
            "  %2 = reshape(%1; shape=[1,3,1]) : float32[1,3,1]\n"
            "  %3 = add(%0, %2) : float32[b,3,4]\n"
            "  %4 = tanh(%3) : float32[b,3,4]\n"
            "  return %4\n"
            "}\n");
}

}  // namespace
}  // namespace tandem::passes
