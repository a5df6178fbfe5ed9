// Whole trainings: the same as Keras from the same weights, and what fit promises besides.
#include <tandem/nn/training.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>

#include <tandem/nn/layers.hpp>
#include <tandem/ops.hpp>

#include "nn_training_support.hpp"
#include "temporary_folder.hpp"

namespace tandem::nn {
namespace {

Model two_layers(int64_t units, const ActivationFunction& activation, const Regularizer& regularizer = {}) {
  return Sequential(
      {InputLayer(Dims{6}), Dense(8, {.activation = "relu", .kernel_regularizer = regularizer}), Dense(units, {.activation = activation})});
}

void set_weights(const Model& model, const Config& stored) {
  const std::vector<Variable> weights = model.weights();
  ASSERT_EQ(weights.size(), stored.size());
  for (size_t i = 0; i < weights.size(); ++i) weights[i].assign(tensor(stored[i]));
}

// Keras numbers the names of metrics that were made several times ("auc_8"); here they are what they are.
std::string without_number(std::string name) {
  while (!name.empty() && (std::isdigit(name.back()) || name.back() == '_')) name.pop_back();
  return name;
}

Callback callback_of(const std::string& name) {
  if (name == "early stopping") return EarlyStopping({.patience = 2, .restore_best_weights = true});
  if (name == "plateau") return ReduceLROnPlateau({.factor = 0.5, .patience = 2, .cooldown = 1});
  if (name == "scheduler") return LearningRateScheduler([](int64_t, double rate) { return rate * 0.5; });
  return nullptr;
}

TEST(Training, IsKerass) {
  const Config& all = stored()["trainings"];
  const Tensor x = tensor(all["x"]);
  for (const Config& r : all["runs"]) {
    const std::string name = r["name"];
    SCOPED_TRACE(name);
    const Model model =
        two_layers(r["units"], r["activation"].is_null() ? ActivationFunction() : ActivationFunction(r["activation"].get<std::string>()),
                   r["regularizer"].is_null() ? Regularizer() : Regularizer(r["regularizer"].get<std::string>()));
    set_weights(model, r["start"]);
    model.compile_from_config(r["compile"]);
    const Tensor y = tensor(r["targets"]);
    FitOptions o{.shuffle = false, .verbose = 0};
    const Config& fit = r["fit"];
    o.batch_size = fit["batch_size"].get<int64_t>();
    o.epochs = fit["epochs"];
    if (fit.contains("validation_split")) o.validation_split = fit["validation_split"];
    if (fit.contains("steps_per_epoch")) o.steps_per_epoch = fit["steps_per_epoch"].get<int64_t>();
    if (fit.contains("sample_weight")) o.sample_weight = tensor(all["sample_weight"]);
    if (fit.contains("class_weight")) {
      WeightOfClass weights;
      for (const auto& [c, weight] : fit["class_weight"].items()) weights[std::stoll(c)] = weight;
      o.class_weight = weights;
    }
    if (r["validation"])
      o.validation_data = data::Dataset::from_slices({tensor(all["other_x"]), tensor(all["other_y"])}).batch(*o.batch_size);
    if (const Callback c = callback_of(name)) o.callbacks = {c};

    const History history = model.fit(x, y, o);
    EXPECT_EQ(history.epochs, r["epochs"].get<std::vector<int64_t>>());
    EXPECT_EQ(history.values.size(), r["history"].size());
    for (const auto& [key, values] : r["history"].items()) {
      const auto found = history.values.find(history.values.contains(key) ? key : without_number(key));
      ASSERT_NE(found, history.values.end()) << key;
      ASSERT_EQ(found->second.size(), values.size());
      for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(found->second[i], values[i].get<double>(), 2e-5) << key << " of epoch " << i;
    }
    const std::vector<Variable> weights = model.weights();
    for (size_t i = 0; i < weights.size(); ++i) expect_near(weights[i].value(), r["end"][i], 3e-5, "weight " + std::to_string(i));
    EXPECT_NEAR(model.optimizer().learning_rate(), r["rate"].get<double>(), 1e-7);
    std::map<std::string, double> evaluated;
    for (const auto& [key, value] : r["evaluate"].items()) evaluated[without_number(key)] = value;
    for (const auto& [key, value] : model.evaluate(x, y, {.batch_size = 16, .verbose = 0}))
      EXPECT_NEAR(value, evaluated.at(without_number(key)), 3e-5) << key;
    expect_near(model.predict(x, {.batch_size = 16, .verbose = 0}), r["predict"], 3e-5, "predictions");
  }
}

// --- data, in whatever form
// ---------------------------------------------------------------------------------------------------------------

struct Data {
  Tensor x = Tensor::arange(0, 60 * 6).reshape({60, 6}).cast(DType::F32) * 0.01f - 1.8f;
  Tensor y = sum(x, 1, true) * 0.3f;
};

Model regression() {
  set_random_seed(3);
  const Model model = two_layers(1, {});
  model.compile({.optimizer = SGD(0.01), .loss = {"mse"}, .metrics = {"mae"}});
  return model;
}
std::vector<float> numbers(const Model& model) {
  std::vector<float> all;
  for (const Variable& v : model.weights())
    for (const float f : v.value().to_vector<float>()) all.push_back(f);
  return all;
}

TEST(Training, ADatasetGivesTheSameBitsAsArrays) {
  const Data d;
  const Model arrays = regression(), dataset = regression();
  arrays.fit(d.x, d.y, {.batch_size = 16, .epochs = 3, .shuffle = false, .verbose = 0});
  dataset.fit(data::Dataset::from_slices({d.x, d.y}).batch(16).prefetch(2), {.epochs = 3, .verbose = 0});
  EXPECT_EQ(numbers(arrays), numbers(dataset));
  EXPECT_EQ(arrays.evaluate(d.x, d.y, {.verbose = 0}), dataset.evaluate(data::Dataset::from_slices({d.x, d.y}).batch(32), {.verbose = 0}));
  EXPECT_EQ(arrays.predict(d.x, {.verbose = 0}).to_vector<float>(),
            dataset.predict(data::Dataset::from_slices({d.x}).batch(7), {.verbose = 0}).front().to_vector<float>());
}

TEST(Training, TheSeedDecidesTheOrder) {
  const Data d;
  const auto trained = [&](bool shuffle, uint64_t seed) {
    const Model m = regression();
    m.fit(d.x, d.y, {.batch_size = 16, .epochs = 2, .shuffle = shuffle, .seed = seed, .verbose = 0});
    return numbers(m);
  };
  EXPECT_EQ(trained(true, 1), trained(true, 1));
  EXPECT_NE(trained(true, 1), trained(true, 2));
  EXPECT_NE(trained(true, 1), trained(false, 1));
}

// Rows that are a part of wider rows, and bytes instead of floats.
TEST(Training, ArraysMayHaveStridesAndOtherTypes) {
  const Data d;
  const Tensor wide = concatenate({d.x, d.x}, 1);
  const Model dense = regression(), strided = regression();
  dense.fit(d.x, d.y, {.epochs = 2, .verbose = 0});
  strided.fit(wide(Slice(), Slice(0, 6)), d.y, {.epochs = 2, .verbose = 0});
  EXPECT_EQ(numbers(dense), numbers(strided));
  const Tensor bytes = Tensor::arange(0, 60).reshape({10, 6}).cast(DType::U8);
  EXPECT_EQ(dense.predict(bytes, {.verbose = 0}).to_vector<float>(),
            dense.predict(bytes.cast(DType::F32), {.verbose = 0}).to_vector<float>());
}

TEST(Training, OneTraceServesTheSmallerLastBatch) {
  const Data d;
  const Model m = regression();
  int64_t steps = 0;
  m.fit(d.x, d.y,
        {.batch_size = 32, .epochs = 2, .callbacks = {LambdaCallback({.on_batch_end = [&](nn::Run&) { ++steps; }})}, .verbose = 0});
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(m.optimizer().iterations().value().item<int64_t>(), 4);
}

TEST(Training, SeveralOutputs) {
  const Data d;
  const Symbol input = Input({6});
  const Symbol hidden = Dense(4, {.activation = "tanh"})(input);
  const Model m({input}, {Dense(1, {.name = "left"})(hidden), Dense(1, {.activation = "sigmoid", .name = "right"})(hidden)});
  const Tensor yes = (d.y > 0).cast(DType::F32);
  m.compile({.optimizer = "adam",
             .loss = {"mse", "binary_crossentropy"},
             .metrics = {Metric("mae").on("left"), Metric("accuracy").on("right")},
             .loss_weights = {1.0, 0.5}});
  const History h = m.fit({d.x}, {d.y, yes}, {.epochs = 2, .verbose = 0});
  std::vector<std::string> names;
  for (const auto& [name, values] : h.values) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"left_loss", "left_mae", "loss", "right_accuracy", "right_loss"}));
  EXPECT_NEAR(h.values.at("loss")[1], h.values.at("left_loss")[1] + 0.5 * h.values.at("right_loss")[1], 1e-5);
}

TEST(Training, OnBatch) {
  const Data d;
  const Model a = regression(), b = regression();
  const Logs trained = a.train_on_batch({d.x}, {d.y});
  EXPECT_EQ(trained, b.test_on_batch({d.x}, {d.y}));  // the loss before the step
  EXPECT_LT(a.test_on_batch({d.x}, {d.y})["loss"], trained["loss"]);
  EXPECT_EQ(a.predict_on_batch({d.x}).front().shape().str(), "[60,1]");
}

// --- between the steps
// --------------------------------------------------------------------------------------------------------------------

TEST(Training, ALoopCanBeDrivenFromOutside) {
  const Data d;
  const Model whole = regression(), driven = regression();
  whole.fit(d.x, d.y, {.batch_size = 8, .epochs = 2, .verbose = 0});
  TrainingLoop loop(driven, nn::Run::Kind::Train, {d.x}, {d.y}, {.batch_size = 8});
  for (int epoch = 0; epoch < 2; ++epoch) {
    loop.begin_epoch();
    EXPECT_EQ(loop.run(3), 3);
    EXPECT_EQ(loop.logs().begin()->first, "loss");
    EXPECT_EQ(loop.run(), 5);
    EXPECT_TRUE(loop.at_end());
  }
  EXPECT_EQ(numbers(whole), numbers(driven));
}

TEST(Training, AnInterruptEndsTheEpochAndTheModelIsUsable) {
  const Data d;
  const Model m = regression();
  struct sigaction before{}, after{};
  sigaction(SIGINT, nullptr, &before);
  const History h = m.fit(d.x, d.y,
                          {.batch_size = 8,
                           .epochs = 50,
                           .callbacks = {LambdaCallback({.on_batch_end =
                                                             [](nn::Run& run) {
                                                               if (run.epoch == 1 && run.step == 2) std::raise(SIGINT);
                                                             }})},
                           .verbose = 0});
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(h.epochs, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  EXPECT_EQ(m.optimizer().iterations().value().item<int64_t>(), 10);
  EXPECT_EQ(m.fit(d.x, d.y, {.verbose = 0}).epochs.size(), 1u);
}

TEST(Training, NaNEndsIt) {
  const Data d;
  const Model m = regression();
  std::vector<float> bad = d.y.to_vector<float>();
  bad[20] = std::numeric_limits<float>::quiet_NaN();
  const History h = m.fit(d.x, Tensor::from(bad, {60, 1}),
                          {.batch_size = 8, .epochs = 3, .shuffle = false, .callbacks = {TerminateOnNaN()}, .verbose = 0});
  EXPECT_EQ(h.epochs.size(), 1u);
  EXPECT_EQ(m.optimizer().iterations().value().item<int64_t>(), 3);
}

TEST(Training, CsvAndCheckpoints) {
  const TemporaryFolder folder;
  const Data d;
  const Model m = regression();
  const History h =
      m.fit(d.x, d.y,
            {.epochs = 2,
             .validation_split = 0.2,
             .callbacks = {CSVLogger(folder / "log.csv"), ModelCheckpoint((folder / "m-{epoch:02d}-{val_loss:.1f}.keras").string()),
                           ModelCheckpoint((folder / "best.weights.h5").string(), {.save_best_only = true, .save_weights_only = true})},
             .verbose = 0});
  std::ifstream in(folder / "log.csv");
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "epoch,loss,mae,val_loss,val_mae\r");
  char name[64];
  std::snprintf(name, sizeof name, "m-02-%.1f.keras", h.values.at("val_loss")[1]);
  const Model loaded = Model::load(folder / name);
  EXPECT_EQ(numbers(loaded), numbers(m));
  EXPECT_TRUE(std::filesystem::exists(folder / "best.weights.h5"));
}

// A fit that was cut in the middle of an epoch, in another process as it were, ends with the same bits as one that was not.
TEST(Training, BackupsResumeExactly) {
  const TemporaryFolder folder;
  const Data d;
  const auto options = [&](std::vector<Callback> callbacks) {
    return FitOptions{.batch_size = 8, .epochs = 3, .callbacks = std::move(callbacks), .verbose = 0};
  };
  const Model whole = regression();
  const History all = whole.fit(d.x, d.y, options({}));

  struct Cut {};
  const Model first = regression();
  const auto cut = LambdaCallback({.on_batch_end = [](nn::Run& run) {
    if (run.epoch == 1 && run.step == 5) throw Cut();
  }});
  EXPECT_THROW(first.fit(d.x, d.y, options({BackupAndRestore(folder / "backup", {.save_every_steps = 2}), cut})), Cut);
  const Model second = regression();
  const History rest = second.fit(d.x, d.y, options({BackupAndRestore(folder / "backup", {.save_every_steps = 2})}));
  EXPECT_EQ(rest.epochs, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(numbers(second), numbers(whole));
  EXPECT_DOUBLE_EQ(rest.values.at("loss")[0], all.values.at("loss")[1]);
  EXPECT_FALSE(std::filesystem::exists(folder / "backup"));
}

// The same with layers that draw random numbers, after whole epochs.
TEST(Training, BackupsKeepRandomNumbers) {
  const TemporaryFolder folder;
  const Data d;
  const auto model = [] {
    Model m = Sequential({InputLayer(Dims{6}), Reshape({2, 3, 1}), RandomFlip("horizontal", {.seed = 3}), Flatten(),
                          Sequential({Dense(8, {.activation = "relu", .kernel_initializer = initializers::GlorotUniform(1)}),
                                      Dropout(0.5, {.seed = 4}), GaussianNoise(0.1, {.seed = 5})}),
                          Dense(1, {.kernel_initializer = initializers::GlorotUniform(2)})});
    m.compile({.optimizer = SGD(0.05), .loss = {"mse"}});
    return m;
  };
  const auto options = [&](std::vector<Callback> callbacks) {
    return FitOptions{.batch_size = 8, .epochs = 4, .callbacks = std::move(callbacks), .verbose = 0};
  };
  const Model whole = model();
  const History all = whole.fit(d.x, d.y, options({}));
  struct Cut {};
  const auto cut = LambdaCallback({.on_epoch_begin = [](nn::Run&, int64_t epoch) {
    if (epoch == 2) throw Cut();
  }});
  const auto backup = [&] { return BackupAndRestore(folder / "backup"); };
  EXPECT_THROW(model().fit(d.x, d.y, options({backup(), cut})), Cut);
  const Model second = model();
  const History rest = second.fit(d.x, d.y, options({backup()}));
  EXPECT_EQ(rest.epochs, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(rest.values.at("loss"), std::vector<double>(all.values.at("loss").begin() + 2, all.values.at("loss").end()));
  EXPECT_EQ(numbers(second), numbers(whole));

  // What does not fit, or is damaged, is said.
  EXPECT_THROW(model().fit(d.x, d.y, options({backup(), cut})), Cut);
  const auto metadata = folder / "backup" / "training_metadata.json";
  const Config good = Config::parse(std::ifstream(metadata));
  EXPECT_EQ(good["random"].size(), 3u);
  const auto error_with = [&](const Config& states) {
    Config bad = good;
    bad["random"] = states;
    std::ofstream(metadata) << bad;
    try {
      model().fit(d.x, d.y, options({backup()}));
    } catch (const ResourceError& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_NE(error_with({{"layers/other", {1, 2}}}).find("has the random states of 1 layers, the model has 0 of them"), std::string::npos);
  EXPECT_NE(error_with({{"layers/random_flip", {1, -2}}}).find("'layers/random_flip' is not two words of 32 bits"), std::string::npos);
  EXPECT_NE(error_with(7).find("has the random states of 1 layers"), std::string::npos);
}

// --- mistakes
// -----------------------------------------------------------------------------------------------------------------------------

TEST(Training, Mistakes) {
  const Data d;
  const Model m = regression();
  const FitOptions quiet{.verbose = 0};
  EXPECT_EQ(first_line(message([&] { two_layers(1, {}).fit(d.x, d.y, quiet); })).substr(0, 17), "model 'sequential");
  EXPECT_EQ(message([&] { m.fit(d.x, d.y[Slice(0, 50)], quiet); }), "fit: x has 60 rows, y has 50");
  EXPECT_EQ(message([&] { m.fit(Tensor::zeros({0, 6}), Tensor::zeros({0, 1}), quiet); }), "fit: there is no data, x has 0 rows");
  EXPECT_EQ(message([&] { m.fit(d.x, d.y, {.batch_size = 0, .verbose = 0}); }), "fit: batch_size is 0, it must be at least 1");
  EXPECT_EQ(message([&] { m.fit(d.x, d.y, {.validation_split = 1.5, .verbose = 0}); }),
            "fit: validation_split is 1.5, it must be in [0, 1)");
  EXPECT_EQ(message([&] { m.fit({d.x}, {d.y, d.y}, quiet); }).substr(0, 7), "model '");
  EXPECT_EQ(message([&] { m.fit(Tensor(), d.y, quiet); }), "fit: x holds nothing");
  EXPECT_EQ(
      message([&] { m.fit(data::Dataset::from_slices({d.x}).batch(8), quiet); }),
      "fit: elements of the dataset have 1 components, the model takes 1 inputs and 1 targets, and sample weights if there are any: one "
      "for all outputs or one for each");
  EXPECT_EQ(message([&] { m.fit(data::Dataset::from_slices({d.x, d.y}).batch(8).repeat(), quiet); }),
            "fit: the dataset has no end\n  hint: steps_per_epoch says how long an epoch is");
  EXPECT_EQ(message([&] { m.fit(d.x, d.y, {.class_weight = {{0, 1.0}}, .sample_weight = d.y, .verbose = 0}); }),
            "fit: class_weight and sample_weight cannot both be given");
  EXPECT_NE(message([&] { m.fit(Tensor::zeros({60, 5}), d.y, quiet); }), "nothing was thrown");
  EXPECT_EQ(message([&] { m.fit(d.x, d.y, {.callbacks = {EarlyStopping({.monitor = "x", .mode = Mode::Min}), nullptr}, .verbose = 0}); }),
            "callbacks: one of them holds nothing");
  EXPECT_EQ(message([] { ModelCheckpoint("model.h5"); }), "ModelCheckpoint: 'model.h5' must end in .keras");
  EXPECT_EQ(m.fit(d.x, d.y, quiet).epochs.size(), 1u);  // and it still works
}

}  // namespace
}  // namespace tandem::nn
