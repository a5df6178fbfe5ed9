// Pools: shapes, special values, and where gradients go.
#include "ops_calls.hpp"

namespace tandem {
namespace {
using namespace ir;
using namespace test::calls;
using test::Array;

Attrs pool(Ints size, Ints strides, std::string padding) {
  return {{"pool_size", std::move(size)}, {"strides", std::move(strides)}, {"padding", std::move(padding)}};
}

TEST(OpsPooling, PoolShapes) {
  EXPECT_EQ(types_of("max_pool", {f32({b, 28, 28, 8})}, {{"pool_size", Ints{2}}}), "float32[b,14,14,8]");
  EXPECT_EQ(types_of("max_pool_index", {f32({b, 28, 28, 8})}, {{"pool_size", Ints{2, 4}}}), "int32[b,14,7,8]");
  EXPECT_EQ(types_of("average_pool", {f32({b, 7, 8})}, pool({3}, {2}, "same")), "float32[b,4,8]");
  EXPECT_EQ(types_of("global_average_pool", {f32({b, n, n, 8})}), "float32[b,8]");
  EXPECT_EQ(types_of("global_max_pool", {f32({b, 7, 8})}, {{"keepdims", true}}), "float32[b,1,8]");
  EXPECT_EQ(error_of("max_pool", {f32({1, 2, 2, 3})}, {{"pool_size", Ints{3}}}),
            "max_pool: a window of 3 does not fit into an axis of 2\n  hint: padding='same' pads the input");
  EXPECT_EQ(error_of("max_pool", {f32({1, 8, 3})}, pool({2}, {2}, "causal")), "max_pool: padding must be 'valid' or 'same', got 'causal'");
  EXPECT_EQ(error_of("max_pool_grad", {f32({1, 3, 2}), i32({1, 3, 2})}, {{"pool_size", Ints{2}}, {"extents", Dims{8}}}),
            "max_pool_grad: pooling [8] gives [1,4,2], the operand is [1,3,2]");
}

TEST(OpsPooling, MaxPoolGradientGoesToTheFirstMaximum) {
  const Array x = series({1, 1, 2, 2, 2, 0, 0});
  EXPECT_EQ(gradients("max_pool", {x}, series({1, 10, 100, 1e3, 1e4, 1e5, 1e6}), pool({3}, {1}, "same"))[0].values(),
            (Doubles{1, 0, 1110, 1e4, 1e5, 1e6, 0}));
  EXPECT_EQ(gradients("max_pool", {x}, series({1, 10, 100}), pool({2}, {2}, "valid"))[0].values(), (Doubles{1, 0, 10, 0, 100, 0, 0}));
  EXPECT_EQ(gradients("max_pool", {x}, series({1, 10, 100, 1e3}), pool({3}, {2}, "same"))[0].values(), (Doubles{1, 0, 10, 100, 0, 1e3, 0}));
}

TEST(OpsPooling, MaxPoolOfSpecialValues) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Attrs windows = pool({2}, {2}, "same");
  const Array x = series({1, nan, nan, 3, -inf, -inf, -inf});
  expect_near(run("max_pool", {x}, windows).values(), {nan, nan, -inf, -inf});
  EXPECT_EQ(run("max_pool_index", {x}, windows).values(), (Doubles{1, 0, 0, 0})) << "padding never wins, not even against -inf";
  EXPECT_EQ(run("max_pool_index", {of({1, 2, 2, 1}, {-5, -3, -3, -9}, DType::I8)}, {{"pool_size", Ints{2}}}).values(), (Doubles{1}));
}

TEST(OpsPooling, MaxPoolPickIgnoresAnIndexThatNamesNothing) {
  const Array index = of({1, 4, 1}, {0, -1, 7, 2147483647}, DType::I32);
  EXPECT_EQ(run("max_pool_pick", {series({1, 2, 3, 4, 5, 6, 7, 8}), index}, {{"pool_size", Ints{2}}}).values(), (Doubles{1, 0, 0, 0}));
}

TEST(OpsPooling, AveragePoolLeavesPaddingOut) {
  const Array x = series({2, 4, 6, 8, 10});
  EXPECT_EQ(run("average_pool", {x}, pool({3}, {2}, "same")).values(), (Doubles{3, 6, 9}));
  EXPECT_EQ(run("average_pool", {x}, pool({2}, {2}, "same")).values(), (Doubles{3, 7, 10}));
  EXPECT_EQ(gradients("average_pool", {x}, series({6, 12, 24}), pool({3}, {2}, "same"))[0].values(), (Doubles{3, 7, 4, 16, 12}));
}

}  // namespace
}  // namespace tandem
