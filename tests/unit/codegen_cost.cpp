// What the cost model counts of rows that have no loops: nothing that is worth a thought may look free.
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/cost.hpp"
#include "ops/table.hpp"

namespace tandem::codegen {
namespace {

double flops(std::string_view op, std::vector<Shape> in, std::vector<Shape> out, ir::Attrs attrs = {}) {
  Kernel k;
  k.op = &ops::table().at(op);
  k.attrs = std::move(attrs);
  for (const Shape& s : in) k.in.push_back(Layout::dense(DType::F32, s));
  for (const Shape& s : out) k.out.push_back(Layout::dense(DType::F32, s));
  return cost_of(k).flops;
}

TEST(Cost, RoutinesCountTheirArithmetic) {
  EXPECT_DOUBLE_EQ(flops("sort", {{8, 1024}}, {{8, 1024}}), 8 * 1024 * 10);
  EXPECT_DOUBLE_EQ(flops("sort", {{16, 1024}}, {{16, 1024}}, {{"axis", int64_t{0}}}), 16 * 1024 * 4);
  EXPECT_DOUBLE_EQ(flops("top_k", {{4, 1000}}, {{4, 8}, {4, 8}}), 4 * 1000 * 3);
  EXPECT_DOUBLE_EQ(flops("searchsorted", {{256}, {10}}, {{10}}), 10 * 8);
  EXPECT_DOUBLE_EQ(flops("fft", {{2, 64}, {2, 64}}, {{2, 64}, {2, 64}}, {{"axis", int64_t{-1}}}), 5 * 2 * 64 * 6);
  EXPECT_DOUBLE_EQ(flops("cholesky", {{3, 30, 30}}, {{3, 30, 30}}), 3 * 30 * 30 * 30 / 3.0);
  EXPECT_DOUBLE_EQ(flops("qr", {{20, 10}}, {{20, 10}, {10, 10}}), 4.0 * 10 * 10 * 20);
  EXPECT_DOUBLE_EQ(flops("triangular_solve", {{10, 10}, {10, 3}}, {{10, 3}}), 30 * 10);
  EXPECT_DOUBLE_EQ(flops("bincount", {{100}}, {{7}}), 107) << "one for each element";
  EXPECT_EQ(flops("svd", {{0, 5}}, {{0, 0}, {0}, {0, 5}}), 0);
}

TEST(Cost, CompositesThatAreKeptCountTheirProducts) {
  // 2 batches of 4 heads, 16 queries and 32 keys of 8 features: scores and sums of values.
  EXPECT_DOUBLE_EQ(flops("attention_parts", {{2, 16, 4, 8}, {2, 32, 4, 8}, {2, 32, 4, 8}}, {{2, 16, 4, 8}}), 2 * 2.0 * 2 * 4 * 16 * 32 * 8);
  // 5 steps of 3 rows and 6 units.
  EXPECT_DOUBLE_EQ(flops("lstm", {{5, 3, 24}, {6, 24}, {3, 6}, {3, 6}}, {{5, 3, 6}}), 2.0 * 5 * 3 * 24 * 6);
  EXPECT_DOUBLE_EQ(flops("gru", {{5, 3, 18}, {6, 18}, {3, 6}, {2, 18}}, {{5, 3, 6}}), 2.0 * 5 * 3 * 18 * 6);
}

}  // namespace
}  // namespace tandem::codegen
