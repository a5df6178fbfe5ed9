// Models in mixed precision: how their steps compute, when the loss is scaled, and what files and backups keep of it.
#include <cmath>

#include <tandem/nn/layers.hpp>
#include <tandem/ops.hpp>

#include "nn_saving_support.hpp"

namespace tandem::nn {
namespace {

using tandem::Precision;
using Numbers = std::vector<float>;
constexpr Precision kMixed[] = {Precision::MixedFloat16, Precision::MixedBFloat16};

struct Data {
  Tensor x = sin(Tensor::arange(0, 64 * 6).reshape({64, 6}).cast(DType::F32) * 0.7f);
  Tensor y = sum(x, 1, true) * 0.3f;
};

Model small(const CompileOptions& options) {
  const Model model = Sequential({Input({6}), Dense(16, {.activation = "tanh", .kernel_initializer = initializers::GlorotUniform(1)}),
                                  BatchNormalization(), Dense(1, {.kernel_initializer = initializers::GlorotUniform(2)})},
                                 "small");
  model.compile(options);
  return model;
}
Model small(Precision p) { return small({.optimizer = Adam(0.01), .loss = {"mse"}, .precision = p}); }

Numbers numbers(const std::vector<Variable>& variables) {
  Numbers all;
  for (const Variable& v : variables)
    for (const float f : v.value().cast(DType::F32).to_vector<float>()) all.push_back(f);
  return all;
}
// All that a step of training may change: weights, the optimizer's state and the scale.
Numbers state(const Model& model) {
  Numbers all = numbers(model.weights());
  const auto add = [&](const Numbers& more) { all.insert(all.end(), more.begin(), more.end()); };
  add(numbers(model.optimizer().variables()));
  if (model.loss_scale()) add(numbers(model.loss_scale()->variables()));
  return all;
}
float scale_of(const Model& model) { return model.loss_scale()->value().item<float>(); }
int64_t steps_of(const Model& model) { return model.optimizer().iterations().value().item<int64_t>(); }

double step(const Model& model, const Tensor& x, const Tensor& y) { return model.train_on_batch({x}, {y})["loss"]; }

std::string policy(const Layer& layer) { return layer.config()["dtype"]["config"]["name"]; }

TEST(MixedModel, TrainsLikeFloat32) {
  const Data d;
  const auto losses = [&](Precision p) {
    const Model model = small(p);
    const History h = model.fit(d.x, d.y, {.batch_size = 16, .epochs = 8, .verbose = 0});
    for (const Variable& v : model.weights()) EXPECT_EQ(v.dtype(), DType::F32) << v.name();
    for (const Variable& v : model.optimizer().variables()) EXPECT_NE(v.dtype(), DType::F16) << v.name();
    return h.values.at("loss");
  };
  const std::vector<double> exact = losses(Precision::Float32);
  EXPECT_LT(exact.back(), exact.front() / 2);
  for (const Precision p : kMixed) {
    const std::vector<double> mixed = losses(p);
    for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(mixed[i], exact[i], 0.03 * exact.front()) << name(p) << ", epoch " << i;
    EXPECT_NE(mixed, exact) << name(p);
  }
}

TEST(MixedModel, AllStepsComputeInIt) {
  const Data d;
  const Model exact = small(Precision::Float32);
  const Numbers outputs = exact.predict(d.x, {.verbose = 0}).to_vector<float>();
  const double loss = exact.evaluate(d.x, d.y, {.verbose = 0})["loss"];
  for (const Precision p : kMixed) {
    const Model model = small(p);
    const Tensor y = model.predict(d.x, {.verbose = 0});
    EXPECT_EQ(y.dtype(), DType::F32);
    const Numbers rounded = y.to_vector<float>();
    EXPECT_NE(rounded, outputs) << name(p);
    for (size_t i = 0; i < outputs.size(); ++i) ASSERT_NEAR(rounded[i], outputs[i], 0.02) << name(p);
    const double measured = model.evaluate(d.x, d.y, {.verbose = 0})["loss"];
    EXPECT_NE(measured, loss) << name(p);
    EXPECT_NEAR(measured, loss, 0.02 * loss) << name(p);
  }
}

TEST(MixedModel, OnlyFloat16BringsALossScale) {
  EXPECT_FALSE(small(Precision::Float32).loss_scale());
  EXPECT_FALSE(small(Precision::MixedBFloat16).loss_scale());
  EXPECT_EQ(scale_of(small(Precision::MixedFloat16)), 32768);
  EXPECT_FALSE(small({.loss = {"mse"}}).loss_scale());
  EXPECT_EQ(scale_of(small({.loss = {"mse"}, .precision = Precision::MixedFloat16, .loss_scale = LossScaleOptions{.initial = 64}})), 64);
  EXPECT_EQ(scale_of(small({.loss = {"mse"}, .loss_scale = LossScaleOptions{.initial = 64}})), 64);
}

// Also with a constraint, averages and gradients that are collected over steps.
TEST(MixedModel, AStepThatOverflowsChangesNoWeight) {
  const Data d;
  for (const OptimizerOptions& o :
       {OptimizerOptions{}, OptimizerOptions{.weight_decay = 0.1, .use_ema = true, .gradient_accumulation_steps = 2}}) {
    const Model model = Sequential(
        {Input({6}),
         Dense(8, {.activation = "tanh", .kernel_initializer = initializers::GlorotUniform(1), .kernel_constraint = constraints::NonNeg()}),
         Dense(1, {.kernel_initializer = initializers::GlorotUniform(2)})});
    model.compile({.optimizer = Adam(0.01, {}, o),
                   .loss = {"mse"},
                   .precision = Precision::MixedFloat16,
                   .loss_scale = LossScaleOptions{.initial = 0x1p30}});
    const double loss = model.test_on_batch({d.x}, {d.y})["loss"];
    model.optimizer().build(model.trainable_weights());
    const Numbers weights = numbers(model.weights()), slots = numbers(model.optimizer().variables());
    EXPECT_NEAR(step(model, d.x, d.y), loss, 1e-3 * loss);  // not the scaled one
    EXPECT_EQ(scale_of(model), 0x1p29f);
    EXPECT_EQ(numbers(model.weights()), weights);
    EXPECT_EQ(numbers(model.optimizer().variables()), slots);
    while (scale_of(model) > 0x1p8f && steps_of(model) < 2) step(model, d.x, d.y);
    EXPECT_EQ(steps_of(model), 2);
    EXPECT_NE(numbers(model.weights()), weights);
    for (const float w : model.weights()[0].value().to_vector<float>()) EXPECT_GE(w, 0);
  }
}

TEST(MixedModel, CompileSetsThePolicyOfAllThatIsFloat32) {
  const Model model = Sequential(
      {Input({4}), Dense(4), layer_from_config("Dense", {{"units", 3}, {"dtype", "float16"}}), Sequential({Dense(3), Dense(2)}, "inner")},
      "outer");
  model.compile({.loss = {"mse"}, .precision = Precision::MixedBFloat16});
  const std::vector<Layer> layers = model.layers();
  EXPECT_EQ(policy(model), "mixed_bfloat16");
  EXPECT_EQ(policy(layers[0]), "mixed_bfloat16");
  EXPECT_EQ(policy(layers[1]), "float16");
  EXPECT_EQ(policy(layers[2]), "mixed_bfloat16");
  EXPECT_EQ(policy(Model(layers[2]).layers()[1]), "mixed_bfloat16");
  EXPECT_EQ(model.config()["layers"][0]["config"]["dtype"], "float32");  // the InputLayer's
  EXPECT_EQ(layers[0].body().dtype(), DType::F32);
  model.compile({.loss = {"mse"}});  // the layers say it now
  EXPECT_EQ(model.precision(), Precision::MixedBFloat16);
  model.compile({.loss = {"mse"}, .precision = Precision::Float32});
  EXPECT_EQ(policy(model), "float32");
  EXPECT_EQ(policy(layers[2]), "float32");
}

Layer dense(const std::string& name, const char* dtype) {
  return layer_from_config("Dense", {{"name", name}, {"units", 4}, {"dtype", {{"config", {{"name", dtype}}}}}});
}

TEST(MixedModel, TheFirstMixedLayerDecides) {
  const Model model = Sequential({Input({4}), dense("a", "float32"), dense("b", "mixed_float16"), dense("c", "mixed_float16")});
  EXPECT_EQ(model.precision(), Precision::MixedFloat16);
  EXPECT_EQ(policy(model), "float32");
  model.compile({.loss = {"mse"}});
  EXPECT_TRUE(model.loss_scale());
  EXPECT_EQ(policy(model.layers()[0]), "float32");  // only a compile that names one sets it
}

TEST(MixedModel, Mistakes) {
  const Model two = Sequential({Input({4}), dense("a", "mixed_float16"), dense("b", "mixed_bfloat16")}, "two");
  const std::string error =
      "model 'two': one step cannot compute in two precisions: 'a' (Dense) is mixed_float16, 'b' (Dense) is mixed_bfloat16";
  const std::string hint = "\n  hint: compile({.precision = …}) sets one for all layers";
  EXPECT_EQ(error_of([&] { two.compile({.loss = {"mse"}}); }), error + hint);
  EXPECT_EQ(error_of([&] { two.predict(Tensor::ones({1, 4}), {.verbose = 0}); }),
            error + "\n  at nn_precision.cpp:" + std::to_string(__LINE__ - 1) + hint);
  two.compile({.loss = {"mse"}, .precision = Precision::MixedBFloat16});
  EXPECT_EQ(policy(two.layers()[0]), "mixed_bfloat16");
  EXPECT_EQ(error_of([] { dense("a", "mixed_float8"); }),
            "Dense: unknown dtype \"mixed_float8\"\n  hint: a type, mixed_float16 or mixed_bfloat16");
  EXPECT_EQ(error_of([&] { two.compile({.loss = {"mse"}, .precision = static_cast<Precision>(7)}); }),
            "there is no precision number 7; known are 0 to 2");

  Config config = small({.loss = {"mse"}, .loss_scale = LossScaleOptions{}}).compile_config();
  const auto error_with = [&](const Config& c) {
    config["optimizer"]["config"] = c;
    return error_of([&] { two.compile_from_config(config); });
  };
  EXPECT_EQ(error_with({}), "compile_config: LossScaleOptimizer has no inner_optimizer");
  EXPECT_EQ(error_with({{"inner_optimizer", "sgd"}, {"initial_scale", "much"}}),
            "compile_config: LossScaleOptimizer: cannot be made with initial_scale = \"much\"");
  EXPECT_EQ(error_with({{"inner_optimizer", "sgd"}, {"dynamic_growth_steps", 1.5}}),
            "compile_config: LossScaleOptimizer: cannot be made with dynamic_growth_steps = 1.5");
  EXPECT_EQ(error_with({{"inner_optimizer", "sgd"}, {"initial_scale", 0.5}}),
            "loss scale: the initial scale must lie between 1 and 2^127, got 0.5");
}

// --- files -------------------------------------------------------------------------------------------------------------------------------

CompileOptions scaled(const std::optional<LossScaleOptions>& scale, Precision p = Precision::MixedFloat16) {
  return {.optimizer = Adam(0.01), .loss = {"mse"}, .precision = p, .loss_scale = scale};
}
const LossScaleOptions kGrowing{.initial = 256, .growth_steps = 3};

TEST(MixedModel, AFileKeepsPrecisionScaleAndOptimizer) {
  const TemporaryFolder folder;
  const Data d;
  const auto file = folder / "a.keras";
  for (const bool given : {false, true}) {
    const Model model = small(scaled(given ? std::optional(kGrowing) : std::nullopt));
    for (int i = 0; i < 4; ++i) step(model, d.x, d.y);
    model.save(file);
    const Config optimizer = config_in(file)["compile_config"]["optimizer"];
    EXPECT_EQ(optimizer["class_name"], given ? "LossScaleOptimizer" : "Adam");
    EXPECT_EQ((given ? optimizer["config"]["inner_optimizer"] : optimizer)["class_name"], "Adam");

    const Model loaded = Model::load(file);
    EXPECT_EQ(loaded.precision(), Precision::MixedFloat16);
    EXPECT_EQ(scale_of(loaded), given ? 512 : 32768);
    EXPECT_EQ(loaded.loss_scale()->variables()[1].value().item<int32_t>(), given ? 1 : 4);
    EXPECT_EQ(loaded.compile_options().loss_scale.has_value(), given);
    EXPECT_EQ(state(loaded), state(model));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(step(loaded, d.x, d.y), step(model, d.x, d.y));
    EXPECT_EQ(state(loaded), state(model));
    EXPECT_EQ(scale_of(loaded), given ? 1024 : 32768);
  }
}

TEST(MixedModel, AFixedScaleStaysFixed) {
  const TemporaryFolder folder;
  const Data d;
  small(scaled(LossScaleOptions{.initial = 128, .dynamic = false, .growth_steps = 1})).save(folder / "a.keras");
  const Model loaded = Model::load(folder / "a.keras");
  step(loaded, d.x, d.y);
  EXPECT_EQ(scale_of(loaded), 128);
}

// As Keras does, whose optimizers have two variables before they are built.
TEST(MixedModel, AFileOfOneThatWasNeverTrained) {
  const TemporaryFolder folder;
  const auto file = folder / "a.keras";
  for (const Optimizer& optimizer : {Adam(0.25), SGD(0.25)}) {
    small({.optimizer = optimizer, .loss = {"mse"}, .precision = Precision::MixedFloat16}).save(file);
    const io::Hdf5Group weights = read_keras_file(file).weights;
    EXPECT_EQ(weights.find("optimizer/vars")->datasets.size(), 4u);
    EXPECT_EQ(weights.find("optimizer/inner_optimizer/vars")->datasets.size(), 2u);
    const Model loaded = Model::load(file);
    EXPECT_EQ(scale_of(loaded), 32768);
    EXPECT_FLOAT_EQ(static_cast<float>(loaded.optimizer().learning_rate()), 0.25f);
  }
}

TEST(MixedModel, WeightsOfModelsWithAndWithoutAScale) {
  const TemporaryFolder folder;
  const Data d;
  const auto file = folder / "a.weights.h5";
  const auto trained = [&](const CompileOptions& options, int steps) {
    const Model model = small(options);
    for (int i = 0; i < steps; ++i) step(model, d.x, d.y);
    return model;
  };
  const Model with = trained(scaled(kGrowing), 4), without = trained(scaled({}, Precision::Float32), 4);
  with.save_weights(file);
  const Model takes_inner = trained(scaled({}, Precision::Float32), 1);
  takes_inner.load_weights(file);
  EXPECT_EQ(numbers(takes_inner.optimizer().variables()), numbers(with.optimizer().variables()));
  const Model takes_all = trained(scaled({}), 1);
  takes_all.load_weights(file);
  EXPECT_EQ(state(takes_all), state(with));

  without.save_weights(file);
  const Model keeps_scale = small(scaled(kGrowing));
  keeps_scale.optimizer().build(keeps_scale.trainable_weights());
  keeps_scale.load_weights(file);
  EXPECT_EQ(numbers(keeps_scale.optimizer().variables()), numbers(without.optimizer().variables()));
  EXPECT_EQ(scale_of(keeps_scale), 256);

  // One without slots has all its variables before its first step.
  const CompileOptions plain{.optimizer = SGD(0.01), .loss = {"mse"}, .precision = Precision::MixedFloat16, .loss_scale = kGrowing};
  trained(plain, 4).save_weights(file);
  const Model fresh = small({.optimizer = SGD(0.01), .loss = {"mse"}, .precision = Precision::MixedFloat16});
  fresh.load_weights(file);
  EXPECT_EQ(steps_of(fresh), 4);
  EXPECT_EQ(scale_of(fresh), 512);
}

TEST(MixedModel, BackupsResumeExactly) {
  const TemporaryFolder folder;
  const Data d;
  const auto options = [&](std::vector<Callback> callbacks) {
    return FitOptions{.batch_size = 8, .epochs = 3, .callbacks = std::move(callbacks), .verbose = 0};
  };
  const Model whole = small(scaled(kGrowing));
  whole.fit(d.x, d.y, options({}));
  EXPECT_GT(scale_of(whole), 256);

  struct Cut {};
  const auto cut = LambdaCallback({.on_batch_end = [](nn::Run& run) {
    if (run.epoch == 1 && run.step == 5) throw Cut();
  }});
  const auto backup = [&] { return BackupAndRestore(folder / "backup", {.save_every_steps = 2}); };
  EXPECT_THROW(small(scaled(kGrowing)).fit(d.x, d.y, options({backup(), cut})), Cut);
  const Model second = small(scaled(kGrowing));
  EXPECT_EQ(second.fit(d.x, d.y, options({backup()})).epochs, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(state(second), state(whole));
}

}  // namespace
}  // namespace tandem::nn
