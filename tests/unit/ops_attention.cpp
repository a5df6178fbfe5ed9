// Attention: shapes with symbols, what a target may see, groups of heads.
#include "ops_calls.hpp"

namespace tandem {
namespace {
using namespace ir;
using namespace test::calls;
using test::Array;

TEST(OpsAttention, AttentionShapes) {
  EXPECT_EQ(types_of("dot_product_attention", {f32({b, n, 8, 64}), f32({b, 9, 2, 64}), f32({b, 9, 2, 32})}), "float32[b,n,8,32]");
  EXPECT_EQ(
      types_of("dot_product_attention", {f32({b, n, 8, 64}), f32({b, n, 8, 64}), f32({b, n, 8, 64}), f32({}), {DType::Bool, {b, n, n}}}),
      "float32[b,n,8,64]");
  EXPECT_EQ(error_of("dot_product_attention", {f32({2, 3, 4, 8}), f32({2, 5, 4, 7}), f32({2, 5, 4, 8})}),
            "dot_product_attention: query and key differ in depth, query [2,3,4,8], key [2,5,4,7] and value [2,5,4,8] (8 != 7)");
  EXPECT_EQ(error_of("dot_product_attention", {f32({2, 3, 4, 8}), f32({2, 5, 3, 8}), f32({2, 5, 3, 8})}),
            "dot_product_attention: 4 query heads do not divide into groups for 3 key heads, query [2,3,4,8], key [2,5,3,8] and value "
            "[2,5,3,8]");
  EXPECT_EQ(error_of("dot_product_attention", {f32({2, 3, 4, 8}), f32({2, 5, 4, 8}), f32({2, 5, 4, 8}), f32({3, 4})}),
            "dot_product_attention: bias [3,4] does not broadcast to [batch, heads, targets, sources] = [2,4,3,5]");
  EXPECT_EQ(error_of("dot_product_attention", {f32({2, 3, 4, n}), f32({2, 5, 4, n}), f32({2, 5, 4, n})}),
            "dot_product_attention: the depth is the symbol n\n  hint: give scale, or trace with a fixed depth");
}

TEST(OpsAttention, AttentionSeesWhatItMay) {
  const Array q = counted({1, 3, 2, 4}, DType::F32), k = counted({1, 3, 2, 4}, DType::F32, 5), v = counted({1, 3, 2, 2}, DType::F32, 3);
  const Doubles causal = run("dot_product_attention", {q, k, v}, {{"is_causal", true}}).values();
  // The first target sees the first source only.
  expect_near({causal.begin(), causal.begin() + 4}, {v.at(0), v.at(1), v.at(2), v.at(3)});
  const Array mask = of({3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1}, DType::Bool), none = of({}, {0});
  EXPECT_EQ(run("dot_product_attention", {q, k, v, none, mask}).values(), causal);
  // Nothing to be seen: all sources alike, no NaN.
  const Doubles blind = run("dot_product_attention", {q, k, v, none, of({1, 1, 1, 3}, {0, 0, 0}, DType::Bool)}).values();
  EXPECT_NEAR(blind[0], (v.at(0) + v.at(4) + v.at(8)) / 3, 1e-5);
}

TEST(OpsAttention, AttentionGroupsAreRepeatedHeads) {
  const Array q = counted({2, 3, 4, 4}), k = counted({2, 5, 2, 4}, DType::F64, 5), v = counted({2, 5, 2, 3}, DType::F64, 3);
  const Array bias = counted({2, 4, 3, 5}, DType::F64, 11);
  const Attrs twice{{"repeats", 2}, {"axis", 2}};
  expect_near(run("dot_product_attention", {q, k, v, bias}).values(),
              run("dot_product_attention", {q, run("repeat", {k}, twice), run("repeat", {v}, twice), bias}).values(), 1e-12);
}

}  // namespace
}  // namespace tandem
