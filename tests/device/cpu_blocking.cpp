// How products are cut into blocks: within the caches, with work for all threads, and with sums that no machine changes.
#include <gtest/gtest.h>

#include "cpu/kernels/gemm_blocking.hpp"

namespace tandem::cpu {
namespace {

constexpr Caches kSmallCaches{.l2_bytes = 256 << 10}, kUsualCaches{.l2_bytes = 1 << 20}, kLargeCaches{.l2_bytes = 4 << 20};

codegen::Product dense(int64_t m, int64_t k, int64_t n) {
  codegen::Product p;
  p.m = m, p.k = k, p.n = n;
  p.x = {.row_step = k, .column_step = 1, .batch_steps = {}};
  p.y = {.row_step = n, .column_step = 1, .batch_steps = {}};
  return p;
}

HalfPack floats() { return {DType::F32, Target{}, Pairs::Never}; }

TEST(Blocking, BlocksCoverTheProduct) {
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 784, 10}, {32, 784, 128}, {256, 1024, 2048}, {1000, 37, 1001}, {8192, 8192, 64}})
    for (const int threads : {1, 2, 64}) {
      const Blocking b = blocking(dense(m, k, n), floats(), kUsualCaches, threads);
      EXPECT_GE(b.rows * b.row_count, m);
      EXPECT_LT(b.rows * (b.row_count - 1), m) << "the last block has rows";
      EXPECT_GE(b.columns * b.column_count, n);
      EXPECT_LT(b.columns * (b.column_count - 1), n) << "the last block has columns";
      EXPECT_GE(b.inner, 1);
      EXPECT_LE(b.rows, 256);
      EXPECT_LE(b.columns, 512);
    }
}

TEST(Blocking, APackedBlockStaysInL2) {
  for (const Caches& caches : {kUsualCaches, kLargeCaches}) {
    const Blocking b = blocking(dense(1024, 4096, 256), floats(), caches, 1);
    ASSERT_TRUE(b.pack_y);
    EXPECT_LE(b.inner * b.columns * 4, caches.l2_bytes / 2 + 4 * b.columns * 4);
  }
}

TEST(Blocking, LargeProductsHaveWorkForAllThreads) {
  const Blocking b = blocking(dense(512, 512, 512), floats(), kUsualCaches, 8);
  EXPECT_GE(b.row_count * b.column_count, 8);
}

TEST(Blocking, WhatIsSummedInPartsFollowsFromTheShapesAlone) {
  for (const auto& p : {dense(32, 4096, 1024), dense(64, 1024, 512), dense(65, 4096, 1024), dense(256, 1024, 2048)}) {
    const int64_t terms = blocking(p, floats(), kUsualCaches, 2).terms;
    for (const Caches& caches : {kSmallCaches, kLargeCaches})
      for (const int threads : {1, 3, 64}) EXPECT_EQ(blocking(p, floats(), caches, threads).terms, terms);
  }
  EXPECT_LT(blocking(dense(32, 4096, 1024), floats(), kUsualCaches, 2).terms, 4096);
  EXPECT_EQ(blocking(dense(65, 4096, 1024), floats(), kUsualCaches, 2).terms, 4096);
}

TEST(Blocking, OnlyLargeTransposedMatricesHaveATransposedResult) {
  codegen::Product p = dense(64, 1024, 1024);
  EXPECT_FALSE(transposes_result(p, 8));
  p.y = {.row_step = 1, .column_step = 1024, .batch_steps = {}};
  EXPECT_TRUE(transposes_result(p, 8));
  p.m = 65;  // most of a vector would be empty
  EXPECT_FALSE(transposes_result(p, 8));
  p = dense(8, 64, 64);
  p.y = {.row_step = 1, .column_step = 64, .batch_steps = {}};
  EXPECT_FALSE(transposes_result(p, 8));
}

}  // namespace
}  // namespace tandem::cpu
