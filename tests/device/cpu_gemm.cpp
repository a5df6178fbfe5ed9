// Products of matrices on the CPU: what register tiles and OpenBLAS take gives what the interpreter gives; what they do not take says why.
#include <gmock/gmock.h>

#include <cmath>

#include "base/text.hpp"
#include "product_support.hpp"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

ProductCall matmul(std::vector<HostTensor> in, bool transpose_x = false, bool transpose_y = false) {
  ir::Attrs attrs{{"transpose_x", transpose_x}, {"transpose_y", transpose_y}};
  if (size_of(in[0].layout.dtype) == 2) attrs.set("dtype", DType::F32);
  return product_call("matmul", attrs, std::move(in));
}

struct Sizes {
  int64_t m, k, n;
};

// Each kernel by itself, with each type that it takes.
struct Entry {
  const char* name;
  Make make;
  DType dtype = DType::F32;
};
class Gemm : public ::testing::TestWithParam<Entry> {
 protected:
  void check(std::vector<HostTensor> in, bool transpose_x = false, bool transpose_y = false) {
    SCOPED_TRACE(cat(in[0].layout.shape, " strides ", in[0].layout.strides, " x ", in[1].layout.shape, " strides ", in[1].layout.strides,
                     " ", transpose_x, transpose_y));
    check_entry(GetParam().make, matmul(std::move(in), transpose_x, transpose_y));
  }
  void check_end(std::vector<HostTensor> in, bool transpose_x = false, bool transpose_y = false) {
    SCOPED_TRACE(cat("end of ", in[0].layout.shape, " x ", in[1].layout.shape, " ", transpose_x, transpose_y));
    check_entry(GetParam().make, with_end(matmul(std::move(in), transpose_x, transpose_y), random_));
  }
  HostTensor f(const Shape& s) { return dense(GetParam().dtype, s, random_); }
  HostTensor left(const Sizes& s, bool transposed) { return f(transposed ? Shape{s.k, s.m} : Shape{s.m, s.k}); }
  HostTensor right(const Sizes& s, bool transposed) { return f(transposed ? Shape{s.n, s.k} : Shape{s.k, s.n}); }

  std::mt19937_64 random_{1};
};
INSTANTIATE_TEST_SUITE_P(Kernels, Gemm,
                         ::testing::Values(Entry{"tiles", cpu::make_gemm_tiles}, Entry{"tiles_float16", cpu::make_gemm_tiles, DType::F16},
                                           Entry{"tiles_bfloat16", cpu::make_gemm_tiles, DType::BF16},
                                           Entry{"openblas", cpu::make_gemm_openblas}),
                         [](const auto& entry) { return entry.param.name; });

TEST_P(Gemm, AllTransposes) {
  for (const Sizes s : {Sizes{17, 33, 40},
                        {200, 64, 300},
                        {1, 300, 70},
                        {300, 70, 1},
                        {400, 3, 400},
                        {33, 500, 2},
                        {5, 700, 11},
                        {3, 70, 130},
                        {64, 1, 64},
                        {13, 1031, 37},
                        {67, 2100, 65}})
    for (bool tx : {false, true})
      for (bool ty : {false, true}) check({left(s, tx), right(s, ty)}, tx, ty);
}

TEST_P(Gemm, Ends) {
  for (const Sizes s : {Sizes{17, 33, 40}, {200, 64, 300}, {1, 300, 70}, {300, 70, 1}, {70, 1300, 65}, {3, 70, 130}})
    for (bool tx : {false, true})
      for (bool ty : {false, true}) check_end({left(s, tx), right(s, ty)}, tx, ty);
  check_end({f({5, 20, 30}), f({5, 30, 10})});
  check_end({f({4, 20, 30}), f({30, 10})});
  check_end({f({4, 40, 150}), f({150})});
  check_end({f({4, 150, 40}), f({150})}, true);
  check_end({f({150}), f({4, 150, 40})});
  check_end({f({150}), f({4, 40, 150})}, false, true);
  check_end({f({300}), f({300, 40})});
  check_end({f({40, 300}), f({300})});
  check_end({f({2, 3, 90, 64}), f({3, 64, 1})});
}

TEST_P(Gemm, RandomSizes) {
  for (int round = 0; round < 40; ++round) {
    const auto size = [&](int64_t most) { return 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(most)); };
    Sizes s{size(90), size(600), size(150)};
    if (s.m * s.k * s.n < 4096 || (s.m == 1 && s.n == 1)) continue;
    const bool tx = round % 2, ty = round % 4 >= 2;
    check({left(s, tx), right(s, ty)}, tx, ty);
  }
}

TEST_P(Gemm, Batches) {
  check({f({5, 20, 30}), f({5, 30, 10})});
  check({f({2, 3, 20, 30}), f({3, 30, 10})});
  check({f({2, 1, 20, 30}), f({1, 4, 30, 10})});
  check({f({20, 30}), f({4, 30, 10})});
  check({f({4, 20, 30}), f({30, 10})});
  check({f({4, 1, 30}), f({30, 200})});
  check({f({4, 3, 1, 30}), f({30, 200})});
  check({f({4, 30, 20}), f({30, 10})}, true, false);
  check({f({7, 20, 30}), f({7, 10, 30})}, false, true);
  check({f({300}), f({300, 40})});
  check({f({40, 300}), f({300})});
  check({f({6, 40, 300}), f({300})});
  check({f({300}), f({6, 300, 40})});
  check({f({64, 40, 20}), f({64, 20, 30})});
  check({f({3, 200, 64}), f({3, 150, 64})}, false, true);  // several blocks of each, below each other and side by side
}

TEST_P(Gemm, BlocksCoverEverything) {
  for (const Sizes s : {Sizes{513, 129, 257}, {64, 200, 1000}, {1000, 200, 64}, {1, 700, 1300}, {1300, 700, 1}})
    for (bool ty : {false, true}) check({left(s, false), right(s, ty)}, false, ty);
}

// Several parts of the sum; rows of x that collide in a cache; rows of x that lie together, far from those of the next k.
TEST_P(Gemm, WhatSeveralBlocksPackIsPackedOnce) {
  for (const Sizes s : {Sizes{150, 1100, 130}, {70, 1024, 130}, {530, 70, 130}})
    for (bool tx : {false, true})
      for (bool ty : {false, true}) check_end({left(s, tx), right(s, ty)}, tx, ty);
}

TEST_P(Gemm, FewRowsTimesALargeMatrix) {
  for (const Sizes s : {Sizes{32, 1000, 128}, {2, 700, 300}, {5, 4099, 33}, {64, 1024, 65}, {3, 20001, 8}})
    for (bool tx : {false, true}) {
      check({left(s, tx), right(s, false)}, tx);
      check_end({left(s, tx), right(s, false)}, tx);
    }
}

// Large ones are read where they lie and the result is transposed: in one or several blocks, sums of one or several parts, rows of the
// matrix that collide in a cache, and a batch that does not fill its last vector.
TEST_P(Gemm, LargeTransposedMatrices) {
  for (const Sizes s : {Sizes{32, 130, 700}, {48, 1024, 130}, {15, 1500, 65}, {80, 600, 517}, {256, 270, 512}}) {
    check({left(s, false), right(s, true)}, false, true);
    check_end({left(s, false), right(s, true)}, false, true);
  }
}

TEST_P(Gemm, RefusalsGiveTheirReason) {
  const auto refusal = [&](std::vector<HostTensor> in) {
    return refusal_of(GetParam().make, product_call("matmul", {}, std::move(in)).kernel);
  };
  const auto zeros = [](DType t, const Shape& s) { return dense(t, s); };
  EXPECT_THAT(refusal({zeros(DType::F32, {8, 8}), zeros(DType::F32, {8, 8})}), HasSubstr("too small"));
  EXPECT_THAT(refusal({zeros(DType::F16, {80, 80}), zeros(DType::F16, {80, 80})}), HasSubstr("float16"));
  EXPECT_THAT(refusal({zeros(DType::I32, {80, 80}), zeros(DType::I32, {80, 80})}), HasSubstr("int32"));
  EXPECT_THAT(refusal({zeros(DType::F32, {5000}), zeros(DType::F32, {5000})}), HasSubstr("two vectors"));
  // What is empty is left to generated code.
  EXPECT_THAT(refusal({zeros(DType::F32, {40, 0}), zeros(DType::F32, {0, 30})}), HasSubstr("too small"));
  EXPECT_THAT(refusal({zeros(DType::F32, {0, 40}), zeros(DType::F32, {40, 30})}), HasSubstr("too small"));
  EXPECT_THAT(refusal({zeros(DType::F32, {0, 20, 30}), zeros(DType::F32, {0, 30, 10})}), HasSubstr("too small"));
}

// So much that it is asked for while the sums go on, by tiles of every width and by those that pack y in passing.
TEST(GemmTiles, EndsThatStreamFromMemory) {
  std::mt19937_64 random{2};
  for (const Sizes s : {Sizes{3, 9, 400000}, {60, 9, 17003}, {250, 6, 4800}})
    check_entry(cpu::make_gemm_tiles,
                with_end(matmul({dense(DType::F32, {s.m, s.k}, random), dense(DType::F32, {s.k, s.n}, random)}), random));
}

TEST(GemmTiles, OperandsThatLieAnyhow) {
  std::mt19937_64 random(3);
  const auto check = [](ProductCall call) { check_entry(cpu::make_gemm_tiles, std::move(call)); };
  for (DType t : {DType::F32, DType::F16, DType::BF16})
    for (int round = 0; round < 60; ++round) {
      const bool tx = round % 2, ty = round % 4 >= 2;
      check(
          matmul({scattered(t, tx ? Shape{3, 25, 20} : Shape{3, 20, 25}, random), scattered(t, ty ? Shape{18, 25} : Shape{25, 18}, random)},
                 tx, ty));
      check(matmul({scattered(t, {25}, random), scattered(t, {25, 300}, random)}));
      check(matmul({scattered(t, {300, 25}, random), scattered(t, {25}, random)}));
    }
}

// One chain of multiplications and additions an element, whatever the registers' width and wherever the product is cut; two chains where
// few rows meet a large matrix.
TEST(GemmTiles, AnElementDependsOnItsRowAndColumnAlone) {
  std::mt19937_64 random(4);
  HostTensor x = dense(DType::F32, {300, 1100}, random), y = dense(DType::F32, {1100, 200}, random);
  ProductCall whole = matmul({x, y});
  const std::vector<std::byte> all = run_entry(cpu::make_gemm_tiles, whole, "avx2", 2)[0].bytes;
  for (const std::string& isa : instruction_sets()) {
    EXPECT_EQ(run_entry(cpu::make_gemm_tiles, whole, isa, 1)[0].bytes, all) << isa;
    const auto rows_from_100 = [&](int64_t rows) {
      HostTensor some = x;
      some.layout.shape = {rows, 1100};
      some.first = 100 * 1100;
      ProductCall part = matmul({some, y});
      return run_entry(cpu::make_gemm_tiles, part, isa, 1)[0].bytes;
    };
    const std::vector<std::byte> many = rows_from_100(77), few = rows_from_100(37), fewer = rows_from_100(3);
    EXPECT_TRUE(std::equal(many.begin(), many.end(), all.begin() + 100 * 200 * 4)) << isa;
    EXPECT_FALSE(std::equal(few.begin(), few.end(), all.begin() + 100 * 200 * 4)) << isa;
    EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), few.begin())) << isa;
  }
}

void check_openblas(std::vector<HostTensor> in, bool transpose_x = false, bool transpose_y = false) {
  ProductCall call = matmul(std::move(in), transpose_x, transpose_y);
  const auto got = launched(device::get("cpu"), call.kernel, call.in);
  EXPECT_EQ(refusal_of(cpu::make_gemm_openblas, call.kernel), "");
  EXPECT_TRUE(near(got[0], call.expected[0], sum_tolerance(DType::F64, call.terms + 10)));
}

TEST(GemmOpenblas, Float64) {
  std::mt19937_64 random(5);
  const auto d = [&](const Shape& s) { return dense(DType::F64, s, random); };
  for (const Sizes s : {Sizes{17, 33, 40}, {200, 64, 300}, {1, 300, 70}, {300, 70, 1}})
    for (bool tx : {false, true})
      for (bool ty : {false, true})
        check_openblas({d(tx ? Shape{s.k, s.m} : Shape{s.m, s.k}), d(ty ? Shape{s.n, s.k} : Shape{s.k, s.n})}, tx, ty);
}

TEST(GemmOpenblas, NansAndInfinitiesGoThrough) {
  std::mt19937_64 random(6);
  HostTensor x = dense(DType::F64, {40, 40}, random);
  ir::store_number(DType::F64, x.bytes.data() + 8 * 41, std::nan(""));
  ir::store_number(DType::F64, x.bytes.data() + 8 * 401, std::numeric_limits<double>::infinity());
  check_openblas({x, dense(DType::F64, {40, 40}, random)});
}

TEST(GemmOpenblas, TakesOnlyWhatIsContiguous) {
  HostTensor spread = dense(DType::F32, {80, 80});
  spread.bytes.resize(spread.bytes.size() * 2);
  spread.layout.strides = Strides{160, 2};
  EXPECT_THAT(refusal_of(cpu::make_gemm_openblas, matmul({spread, dense(DType::F32, {80, 80})}).kernel), HasSubstr("contiguous"));
}

}  // namespace
}  // namespace tandem::testing
