// Mixed precision as a user meets it: an option of a Function, and the scale of the loss that float16 needs.
#include <cmath>

#include "frontend_support.hpp"

namespace tandem {
namespace {

constexpr Precision kMixed[] = {Precision::MixedFloat16, Precision::MixedBFloat16};

TEST(Precision, HasKerassNames) {
  for (Precision p : {Precision::Float32, Precision::MixedFloat16, Precision::MixedBFloat16}) EXPECT_EQ(parse_precision(name(p)), p);
  EXPECT_EQ(name(Precision::MixedBFloat16), "mixed_bfloat16");
  EXPECT_EQ(error_of([] { parse_precision("float8"); }),
            "there is no precision 'float8'; known are float32, mixed_float16, mixed_bfloat16");
  EXPECT_EQ(error_of([] { Function([](const Tensor& x) { return x; }, FunctionOptions{.precision = static_cast<Precision>(7)}); }),
            "there is no precision number 7; known are 0 to 2");
}

TEST(Precision, OperandsOfProductsAreRoundedAndNothingElse) {
  const Tensor x = Tensor::of<float>({1.0009765625f, 3}).reshape({1, 2}), w = Tensor::of<float>({1, 0}).reshape({2, 1});
  const auto f = [](const Tensor& a, const Tensor& b) { return std::pair(matmul(a, b), a + 0.0f); };
  const auto [exact, own] = Function(f)(x, w);
  EXPECT_EQ(floats(exact), F{1.0009765625f});
  const auto [rounded, same] = Function(f, FunctionOptions{.precision = Precision::MixedBFloat16})(x, w);
  EXPECT_EQ(floats(rounded), F{1});  // 8 bits of precision
  EXPECT_EQ(floats(same), floats(x));
  EXPECT_EQ(rounded.dtype(), DType::F32);
}

// A convolution may widen its result, and its gradients come back in the type of its operands.
TEST(Precision, AWideningConvolutionHasGradients) {
  const Tensor x = Tensor::full({1, 5, 2}, 0.5f).cast(DType::F16), w = Tensor::full({3, 2, 1}, 0.25f).cast(DType::F16);
  Tape tape;
  tape.watch(x);
  tape.watch(w);
  const Tensor y = general_conv(x, w, {1}, {0}, {0}, {1}, {1}, 1, DType::F32);
  EXPECT_EQ(y.dtype(), DType::F32);
  const std::vector<Tensor> g = tape.gradients(y, {x, w});
  EXPECT_EQ(g[0].dtype(), DType::F16);
  EXPECT_EQ(floats(y), F(3, 0.75f));
  EXPECT_EQ(floats(g[0]), (F{0.25f, 0.25f, 0.5f, 0.5f, 0.75f, 0.75f, 0.5f, 0.5f, 0.25f, 0.25f}));
  EXPECT_EQ(floats(g[1]), F(6, 1.5f));
}

TEST(Precision, OfAnInnerFunctionMustBeTheOuters) {
  const Function inner([](const Tensor& x) { return matmul(x, x); },
                       FunctionOptions{.name = "inner", .precision = Precision::MixedFloat16});
  const Tensor x = Tensor::full({2, 2}, 0.1f);
  const Function plain([&](const Tensor& y) { return inner(y); }, FunctionOptions{.name = "outer"});
  const std::string error = error_of([&] { plain(x); });
  EXPECT_TRUE(error.starts_with("inner: asks for mixed_float16, but becomes part of outer, which computes in float32\n")) << error;
  EXPECT_NE(error.find("hint: give the outer function the precision"), std::string::npos) << error;
  const Function mixed([&](const Tensor& y) { return inner(y); }, FunctionOptions{.name = "outer", .precision = Precision::MixedFloat16});
  EXPECT_EQ(floats(mixed(x)), floats(inner(x)));
}

// One layer and a linear loss; the gradient of w1 goes through a product of gradients in 16 bits.
struct Small {
  Variable w1{Tensor::full({4, 4}, 0.5f)}, w2{Tensor::full({4, 1}, 0.5f)};
  std::vector<Variable> weights() const { return {w1, w2}; }
  Tensor loss(const Tensor& x, float size) const { return sum(matmul(relu(matmul(x, w1)), w2)) * size; }
};

TEST(LossScale, SmallGradientsVanishWithoutAndNotWithIt) {
  const Tensor x = Tensor::full({2, 4}, 1.0f);
  const float tiny = 1e-9f;  // below float16's smallest number
  const auto gradient = [&](bool scaled) {
    const Small model;
    const LossScale scale;
    const Function step(
        [&](const Tensor& in) {
          Tape tape;
          const Tensor loss = model.loss(in, tiny);
          const std::vector<Tensor> g = tape.gradients(scaled ? scale.scale(loss) : loss, model.weights());
          return scaled ? scale.unscale(g).gradients[0] : g[0];
        },
        FunctionOptions{.precision = Precision::MixedFloat16});
    return floats(step(x));
  };
  EXPECT_EQ(gradient(false), F(16, 0.0f));
  for (float g : gradient(true)) EXPECT_NEAR(g, 2 * 0.5f * tiny, 0.01f * tiny);
}

TEST(LossScale, SkipsAStepThatOverflowsHalvesAndGrowsAgain) {
  const Small model;
  const Tensor x = Tensor::full({2, 4}, 1.0f);
  const LossScale scale({.initial = 0x1p18, .growth_steps = 3});
  const Variable steps(0.0f, {.trainable = false});
  const Function step(
      [&](const Tensor& in) {
        Tape tape;
        const Tensor loss = model.loss(in, 1);
        scale.apply(tape.gradients(scale.scale(loss), model.weights()), [&](const std::vector<Tensor>& g) {
          for (size_t i = 0; i < g.size(); ++i) model.weights()[i].assign_sub(1e-3f * g[i]);
          steps.assign_add(1);
        });
        return loss;
      },
      FunctionOptions{.precision = Precision::MixedFloat16});
  const F before = floats(model.w1.value());
  const auto scale_now = [&] { return scale.value().item<float>(); };
  // The gradient of the last product is the scale itself: infinite in float16 from 2^16 on.
  for (const float expected : {0x1p17f, 0x1p16f, 0x1p15f}) {
    step(x);
    EXPECT_EQ(scale_now(), expected);
    EXPECT_EQ(floats(model.w1.value()), before);
    EXPECT_EQ(steps.value().item<float>(), 0);
  }
  for (int i = 1; i <= 3; ++i) {
    step(x);
    EXPECT_EQ(steps.value().item<float>(), static_cast<float>(i));
    EXPECT_EQ(scale_now(), i < 3 ? 0x1p15f : 0x1p16f);
  }
  EXPECT_LT(floats(model.w1.value())[0], before[0]);
  EXPECT_TRUE(std::isfinite(floats(model.w1.value())[0]));
}

TEST(LossScale, WorksAlikeOutsideAFunction) {
  const auto run = [](bool traced, float bad) {
    const Variable w(2.0f);
    const LossScale scale({.initial = 8, .growth_steps = 1});
    const auto body = [&](const Tensor& x) {
      Tape tape;
      const Tensor loss = w * x;
      scale.apply(tape.gradients(scale.scale(loss), {w}), [&](const std::vector<Tensor>& g) { w.assign_sub(g[0]); });
      return loss;
    };
    const Function function(body);
    for (const float x : {0.25f, bad, 0.5f}) traced ? function(Tensor::scalar(x)) : body(Tensor::scalar(x));
    return F{w.value().item<float>(), scale.value().item<float>()};
  };
  EXPECT_EQ(run(false, INFINITY), (F{1.25f, 16}));  // doubled, halved, doubled
  EXPECT_EQ(run(true, INFINITY), (F{1.25f, 16}));
  EXPECT_EQ(run(true, NAN), (F{1.25f, 16}));
}

TEST(LossScale, AFixedOneStays) {
  const LossScale scale({.initial = 128, .dynamic = false, .growth_steps = 1});
  const Variable w(1.0f);
  for (const float x : {1.0f, INFINITY}) scale.apply({Tensor::scalar(x)}, [&](const std::vector<Tensor>& g) { w.assign_sub(g[0]); });
  EXPECT_EQ(w.value().item<float>(), 1 - 1.0f / 128);
  EXPECT_EQ(scale.value().item<float>(), 128);
}

TEST(LossScale, NeverLeavesItsRange) {
  const LossScale smallest({.initial = 1.5});
  for (int i = 0; i < 3; ++i) smallest.apply({Tensor::scalar(NAN)}, [](const auto&) {});
  EXPECT_EQ(smallest.value().item<float>(), 1);
  const LossScale largest({.initial = 0x1p127, .growth_steps = 1});
  largest.apply({Tensor::scalar(1.0f)}, [](const auto&) {});
  EXPECT_EQ(largest.value().item<float>(), 0x1p127f);
}

TEST(LossScale, Errors) {
  EXPECT_EQ(error_of([] { LossScale({.initial = 0}); }), "loss scale: the initial scale must lie between 1 and 2^127, got 0");
  EXPECT_EQ(error_of([] { LossScale({.initial = NAN}); }), "loss scale: the initial scale must lie between 1 and 2^127, got nan");
  EXPECT_EQ(error_of([] { LossScale({.growth_steps = 0}); }), "loss scale: growth_steps must be at least 1, got 0");
  EXPECT_EQ(error_of([] { LossScale().unscale({Tensor(), Tensor()}); }), "loss scale: none of the 2 gradients is defined");
}

TEST(LossScale, ItsStateIsVariables) {
  const LossScale scale;
  ASSERT_EQ(scale.variables().size(), 2u);
  EXPECT_EQ(scale.variables()[0].name(), "loss_scale/scale");
  EXPECT_EQ(scale.variables()[0].value().item<float>(), 32768);
  EXPECT_FALSE(scale.variables()[0].trainable());
  scale.variables()[0].assign(4.0f);  // as loading a model does
  EXPECT_EQ(scale.scale(Tensor::scalar(3.0f)).item<float>(), 12);
}

TEST(Precision, AClassifierLearnsInEach) {
  for (Precision p : {Precision::Float32, kMixed[0], kMixed[1]}) {
    Generator random(3);
    const Tensor x = random.normal({64, 8}), y = (sum(x, {1}) > 0).cast(DType::F32).reshape({64, 1});
    const Variable w1(0.5f * random.normal({8, 16})), b1(Tensor::zeros({16})), w2(0.5f * random.normal({16, 1}));
    const std::vector<Variable> weights{w1, b1, w2};
    const LossScale scale;
    const Function step(
        [&](const Tensor& in, const Tensor& target) {
          Tape tape;
          const Tensor loss = mean(square(matmul(tanh(matmul(in, w1) + b1), w2) - target));
          scale.apply(tape.gradients(scale.scale(loss), weights), [&](const std::vector<Tensor>& g) {
            for (size_t i = 0; i < g.size(); ++i) weights[i].assign_sub(0.1f * g[i]);
          });
          return loss;
        },
        FunctionOptions{.precision = p});
    Tensor loss;
    for (int i = 0; i < 300; ++i) loss = step(x, y);
    EXPECT_LT(loss.item<float>(), 0.06f) << name(p);
  }
}

}  // namespace
}  // namespace tandem
