// Initialisers: their distributions; names, custom ones, errors.
#include <nlohmann/json.hpp>

#include <tandem/nn/layers/core.hpp>

#include "frontend_support.hpp"

namespace tandem::nn {
namespace {

struct Moments {
  double mean, deviation, low, high;
};
Moments moments_of(const Initializer& f, const Shape& shape) {
  const Tensor t = f(shape, DType::F32);
  return {t.mean().item<double>(), std(t).item<double>(), t.min().item<double>(), t.max().item<double>()};
}

TEST(Initializer, HasItsDistribution) {
  const Shape shape{200, 300};  // 60000 numbers: deviations of the mean around 0.4 % of the spread
  const auto expect = [&](const Initializer& f, double mean, double deviation, double bound) {
    const Moments m = moments_of(f, shape);
    EXPECT_NEAR(m.mean, mean, 0.02 * deviation) << f.class_name();
    EXPECT_NEAR(m.deviation, deviation, 0.02 * deviation) << f.class_name();
    EXPECT_LE(m.high - mean, bound) << f.class_name();
    EXPECT_GE(m.low - mean, -bound) << f.class_name();
    EXPECT_GT(m.high - mean, 0.8 * std::min(bound, 3.5 * deviation)) << f.class_name();
  };
  const double everywhere = 1e9, cut = 2 / 0.87962566103423978;
  expect(initializers::RandomNormal(1.0, 0.5), 1, 0.5, everywhere);
  expect(initializers::RandomUniform(-2, 4), 1, 6 / std::sqrt(12.0), 3);
  expect(initializers::TruncatedNormal(0.5, 0.1), 0.5, 0.1 * 0.87962566103423978, 0.2);
  const double glorot = std::sqrt(2.0 / 500), he = std::sqrt(2.0 / 200), lecun = std::sqrt(1.0 / 200);
  expect("glorot_uniform", 0, glorot, glorot * std::sqrt(3.0) + 1e-6);
  expect("glorot_normal", 0, glorot, glorot * cut);
  expect("he_uniform", 0, he, he * std::sqrt(3.0) + 1e-6);
  expect("he_normal", 0, he, he * cut);
  expect("lecun_uniform", 0, lecun, lecun * std::sqrt(3.0) + 1e-6);
  expect("lecun_normal", 0, lecun, lecun * cut);
  expect(initializers::VarianceScaling({.scale = 3, .mode = "fan_out", .distribution = "untruncated_normal"}), 0, 0.1, everywhere);
  // Kernels of convolutions: the window counts.
  EXPECT_NEAR(moments_of("he_normal", {3, 3, 50, 40}).deviation, std::sqrt(2.0 / 450), 0.03 * std::sqrt(2.0 / 450));
}

TEST(Initializer, OrthogonalColumnsAreOrthogonal) {
  const Tensor tall = Initializer("orthogonal")(Shape{2, 5, 4}, DType::F32).reshape({10, 4});
  expect_near(matmul(tall, tall, true), floats(eye(4)));
  const Tensor wide = initializers::Orthogonal(2.0)(Shape{3, 7}, DType::F32);
  expect_near(matmul(wide, wide, false, true), floats(eye(3) * 4.0));
  EXPECT_EQ(error_of([] { Initializer("orthogonal")(Shape{3}, DType::F32); }), "Orthogonal: takes a shape with at least 2 axes, got [3]");
}

TEST(Initializer, ConstantsAndSeeds) {
  EXPECT_EQ(floats(initializers::Constant(2.5)(Shape{2}, DType::F32)), (F{2.5, 2.5}));
  EXPECT_EQ(floats(Initializer("identity")(Shape{2, 2}, DType::F32)), (F{1, 0, 0, 1}));
  const Initializer seeded = initializers::RandomNormal(0, 1, 7);
  EXPECT_EQ(floats(seeded(Shape{5}, DType::F32)), floats(seeded(Shape{5}, DType::F32)));
  const Initializer free = initializers::RandomNormal(0, 1);
  EXPECT_NE(floats(free(Shape{5}, DType::F32)), floats(free(Shape{5}, DType::F32)));
  set_random_seed(4);
  const F first = floats(free(Shape{5}, DType::F32));
  set_random_seed(4);
  EXPECT_EQ(floats(free(Shape{5}, DType::F32)), first);
}

TEST(Named, UnknownNamesGetHints) {
  EXPECT_EQ(error_of([] { Dense(3, {.activation = "rellu"}); }),
            "unknown activation 'rellu'\n  hint: did you mean relu, relu6, elu or celu?");
  EXPECT_EQ(error_of([] { Initializer("glorot"); }).substr(0, 28), "unknown initializer 'glorot'");
  EXPECT_EQ(error_of([] { Regularizer("l3"); }), "unknown regularizer 'l3'\n  hint: did you mean l1 or l2?");
  EXPECT_EQ(error_of([] { Constraint("maxnorm"); }), "unknown constraint 'maxnorm'\n  hint: did you mean max_norm?");
  EXPECT_EQ(error_of([] { regularizers::L2(-1); }), "L2: l2 is -1, expected a number that is not negative");
  EXPECT_EQ(error_of([] { layer_from_config("Dens", Config::object()); }).substr(0, 21), "unknown layer 'Dens'\n");
}

TEST(Named, OnesOwnFunctions) {
  const auto square = ActivationFunction::custom("square", [](const Tensor& x) { return x * x; });
  EXPECT_EQ(floats(square(Tensor::of({3.f}))), (F{9}));
  const Dense layer(1, {.activation = square, .use_bias = false, .kernel_initializer = "ones"});
  EXPECT_EQ(floats(layer(Tensor::of({{1.f, 2.f}}))), (F{9}));
  EXPECT_EQ(layer.config()["activation"], "square");
}

}  // namespace
}  // namespace tandem::nn
