// Normalisation: numbers from Keras, texts of mistakes, and operands that are numbers.
#include "ops_calls.hpp"

namespace tandem {
namespace {
using namespace ir;
using namespace test::calls;
using test::Array;

TEST(OpsNormalization, NormalizationValues) {
  const double root = std::sqrt(1.5);
  const Array x = of({2, 3}, {1, 2, 3, 1e4 + 1, 1e4 + 2, 1e4 + 3});
  expect_near(run("layer_normalization", {x}).values(), {-root, 0, root, -root, 0, root}, 1e-5);
  expect_near(run("layer_normalization", {x, of({3}, {1, 2, 3}), of({3}, {10, 20, 30})}).values(),
              {10 - root, 20, 30 + 3 * root, 10 - root, 20, 30 + 3 * root}, 1e-5);
  expect_near(run("rms_normalization", {of({1, 2}, {3, 4})}, {{"epsilon", 0.0}}).values(), {3 / std::sqrt(12.5), 4 / std::sqrt(12.5)});
  expect_near(run("normalize", {of({2, 2}, {3, 4, 0, 0})}).values(), {0.6, 0.8, 0, 0});
  expect_near(run("normalize", {of({1, 2}, {3, -1})}, {{"order", 1}}).values(), {0.75, -0.25});
  expect_near(run("group_normalization", {of({1, 1, 4}, {1, 3, 10, 30})}, {{"groups", 2}, {"epsilon", 0.0}}).values(), {-1, 1, -1, 1});
  expect_near(
      run("batch_normalization", {x, of({3}, {1, 2, 3}), of({3}, {4, 4, 4}), of({3}, {0, 0, 7}), of({3}, {2, 2, 2})}, {{"epsilon", 0.0}})
          .values(),
      {0, 0, 7, 1e4, 1e4, 1e4 + 7}, 1e-6);
}

// "Only an offset" and "only a mask" are said with a number in the place before; the number costs nothing.
TEST(OpsNormalization, NumbersInPlaceOfOperandsCostNothing) {
  const auto ops_with = [](double value) {
    const OpDef& row = ops::table().at("layer_normalization");
    Builder builder(ops::table());
    const std::vector<Value> x = inputs_of(builder, {f32({b, 4}), f32({4})});
    const std::vector<Expr> in = exprs(builder, std::vector<Value>{x[0], builder.scalar(DType::F32, value), x[1]});
    const std::vector<TensorType> types{in[0].type(), in[1].type(), in[2].type()};
    const Attrs attrs = complete_attrs(row, {});
    return count_of(builder.finish(values(row.decompose(builder, OpCall{row, types, attrs}, in))), "multiply");
  };
  EXPECT_EQ(ops_with(1) + 1, ops_with(2));
}

TEST(OpsNormalization, NormalizationMistakes) {
  EXPECT_EQ(error_of("layer_normalization", {f32({b, 4}), f32({3})}),
            "layer_normalization: gamma [3] does not fit, input [b,4] is normalised over [4]");
  EXPECT_EQ(error_of("batch_normalization", {f32({b, 4}), f32({3}), f32({4})}),
            "batch_normalization: mean must be [4], one element a channel of [b,4], got [3]");
  EXPECT_EQ(error_of("group_normalization", {f32({b, 4})}, {{"groups", 3}}), "group_normalization: 4 channels do not divide into 3 groups");
  EXPECT_EQ(error_of("group_normalization", {f32({b, 4})}, {{"groups", 2}, {"axis", 0}}),
            "group_normalization: axis 0 is the batch, the channels must be another one");
  EXPECT_EQ(error_of("normalize", {f32({b, 4})}, {{"order", 0}}), "normalize: order must be at least 1, got 0");
}

}  // namespace
}  // namespace tandem
