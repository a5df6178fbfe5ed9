// Whole trainings: the same as Keras from the same weights, and what fit promises besides.
#include <tandem/nn/training.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>

#include <tandem/nn/layers/core.hpp>
#include <tandem/ops.hpp>

#include "nn_training_support.hpp"

namespace tandem::nn {
namespace {

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return std::string(e.what());
  }
  return "nothing was thrown";
}
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

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
    o.batch_size = fit["batch_size"];
    o.epochs = fit["epochs"];
    if (fit.contains("validation_split")) o.validation_split = fit["validation_split"];
    if (fit.contains("steps_per_epoch")) o.steps_per_epoch = fit["steps_per_epoch"].get<int64_t>();
    if (fit.contains("sample_weight")) o.sample_weight = tensor(all["sample_weight"]);
    if (fit.contains("class_weight"))
      for (const auto& [c, weight] : fit["class_weight"].items()) o.class_weight[std::stoll(c)] = weight;
    if (r["validation"])
      o.validation_data = data::Dataset::from_slices({tensor(all["other_x"]), tensor(all["other_y"])}).batch(o.batch_size);
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

}  // namespace
}  // namespace tandem::nn
