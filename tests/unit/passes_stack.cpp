// Products of several matrices with the same one become one product, which gives what they gave.
#include "passes_support.hpp"

namespace tandem::passes {
namespace {

// Two products of matrices with `rows` rows, over a sum of so many terms. The second one is %5; `second` says what it multiplies.
std::string two_products(int64_t rows, int64_t terms, std::string_view second = "%1, %3") {
  const std::string left = cat("float32[", terms, ",", rows, "]"), right = cat("float32[", terms, ",256]");
  const std::string attrs = "transpose_x=true, transpose_y=false, dtype=none", result = cat("float32[", rows, ",256]");
  return cat("graph (%0: ", left, ", %1: ", left, ", %2: ", right, ", %3: ", right, ") {\n  %4 = matmul(%0, %3; ", attrs, ") : ", result,
             "\n  %5 = matmul(", second, "; ", attrs, ") : ", result, "\n  return %4, %5\n}\n");
}

size_t products_after(const std::string& text) {
  const Graph before = graph(text), after = stack(table(), before);
  ir::verify(table(), after, ir::Stage::Expanded);
  EXPECT_EQ(before.output_types(), after.output_types());
  return count_of(after, "matmul");
}

TEST(Stack, ProductsWithTheSameMatrixBecomeOne) { EXPECT_EQ(products_after(two_products(5, 4096)), 1u); }

TEST(Stack, BitsStayTheSame) {
  const Graph before = graph(two_products(5, 4096)), after = stack(table(), before);
  const std::vector<Literal> in = random_inputs(before);
  for (const char* device : {"cpu", "ref"}) testing::expect_same_bits(results(before, device, in), results(after, device, in), device);
}

TEST(Stack, ProductsWithOtherMatricesStay) { EXPECT_EQ(products_after(two_products(5, 4096, "%1, %2")), 2u); }

TEST(Stack, OnlyLongSumsOverALargeMatrix) {
  EXPECT_EQ(products_after(two_products(5, 4000)), 2u);    // caches hold the matrix
  EXPECT_EQ(products_after(two_products(129, 8192)), 2u);  // more would be copied than is saved
  EXPECT_EQ(products_after(two_products(128, 4096)), 1u);  // the most that is stacked …
  EXPECT_EQ(products_after(two_products(128, 4095)), 2u);  // … and a sum that is too short for it
}

// The second left operand is made of the first product.
TEST(Stack, AProductThatIsWantedEarlyStays) {
  EXPECT_EQ(products_after("graph (%0: float32[4096,3], %1: float32[4096,3], %2: float32[4096,256]) {\n"
                           "  %3 = matmul(%0, %2; transpose_x=true, transpose_y=false, dtype=none) : float32[3,256]\n"
                           "  %4 = sum(%3; axis=[0,1], keepdims=false) : float32[]\n"
                           "  %5 = multiply(%1, %4) : float32[4096,3]\n"
                           "  %6 = matmul(%5, %2; transpose_x=true, transpose_y=false, dtype=none) : float32[3,256]\n"
                           "  return %3, %6\n}\n"),
            2u);
}

TEST(Stack, ThreeInAnyOrderOfResults) {
  const Graph before = graph(
      "graph (%0: float32[4096,3], %1: float32[4096,5], %2: float32[4096,7], %3: float32[4096,256]) {\n"
      "  %4 = matmul(%0, %3; transpose_x=true, transpose_y=false, dtype=none) : float32[3,256]\n"
      "  %5 = matmul(%1, %3; transpose_x=true, transpose_y=false, dtype=none) : float32[5,256]\n"
      "  %6 = matmul(%2, %3; transpose_x=true, transpose_y=false, dtype=none) : float32[7,256]\n"
      "  return %6, %4, %5\n}\n");
  const Graph after = stack(table(), before);
  EXPECT_EQ(count_of(after, "matmul"), 1u) << ir::print(after);
  const std::vector<Literal> in = random_inputs(before);
  testing::expect_close(results(after, "cpu", in), results(before, "cpu", in), table().at("matmul"), "three");
}

}  // namespace
}  // namespace tandem::passes
