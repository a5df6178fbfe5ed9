#include "nn/training/compile_config.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/names.hpp"

namespace tandem::nn {
namespace {

using Names = std::vector<std::string>;

Config metrics_config(const std::vector<Metric>& metrics, const Names& outputs) {
  if (metrics.empty()) return {};
  if (outputs.size() == 1) {
    Config list = Config::array();
    for (const Metric& m : metrics) list.push_back(m.serialize());
    return list;
  }
  Config lists = Config::array();
  for (const std::string& output : outputs) {
    Config list = Config::array();
    for (const Metric& m : metrics)
      if (m.output().empty() || m.output() == output) list.push_back(m.serialize());
    lists.push_back(std::move(list));
  }
  return lists;
}

// One entry an output: Keras takes one for all, a list, or an object with the outputs' names. Null where there is none.
std::vector<Config> for_each_output(const Config& given, const Names& outputs, const char* key) {
  if (given.is_object() && !given.contains("class_name")) {
    std::vector<Config> each(outputs.size());
    for (const auto& [name, value] : given.items()) {
      const auto found = std::find(outputs.begin(), outputs.end(), name);
      if (found == outputs.end()) user_error("compile_config: ", key, " names the output '", name, "'; the outputs are ", joined(outputs));
      each[static_cast<size_t>(found - outputs.begin())] = value;
    }
    return each;
  }
  if (!given.is_array()) return std::vector<Config>(outputs.size(), given);
  if (given.size() != outputs.size())
    user_error("compile_config: ", key, " has ", given.size(), " entries, the model ", outputs.size(), " outputs");
  return {given.begin(), given.end()};
}

std::vector<Loss> losses_from(const Config& given, const Names& outputs) {
  std::vector<Loss> losses;
  for (const Config& c : for_each_output(given, outputs, "loss")) losses.push_back(c.is_null() ? Loss() : Loss::deserialize(c));
  return losses;
}

std::vector<double> weights_from(const Config& given, const Names& outputs) {
  if (given.is_null()) return {};
  std::vector<double> weights;
  for (const Config& c : for_each_output(given, outputs, "loss_weights")) {
    if (!c.is_number() && !c.is_null()) user_error("compile_config: a loss weight is ", c.dump(), ", expected a number");
    weights.push_back(c.is_null() ? 1 : c.get<double>());
  }
  return weights;
}

std::vector<Metric> metrics_from(const Config& given, const Names& outputs) {
  std::vector<Metric> metrics;
  const auto add = [&](const Config& c, const std::string& output, const auto& again) -> void {
    if (c.is_array()) {
      for (const Config& e : c) again(e, output, again);
    } else if (!c.is_null()) {
      metrics.push_back(output.empty() ? Metric::deserialize(c) : Metric::deserialize(c).on(output));
    }
  };
  if (outputs.size() == 1 && given.is_array()) {
    add(given, "", add);
  } else {
    const std::vector<Config> each = for_each_output(given, outputs, "metrics");
    for (size_t i = 0; i < each.size(); ++i) add(each[i], outputs.size() == 1 ? "" : outputs[i], add);
  }
  return metrics;
}

// Keras wraps the optimizer in another one when its user asked for a scale; the scale that mixed_float16 brings along is not written.
constexpr char kLossScale[] = "LossScaleOptimizer";

Config optimizer_config(const CompileOptions& options) {
  Config optimizer = options.optimizer.serialize();
  if (!options.loss_scale) return optimizer;
  Config config = {{"name", "loss_scale_optimizer"},
                   {"inner_optimizer", std::move(optimizer)},
                   {"initial_scale", options.loss_scale->initial},
                   {"dynamic_growth_steps", options.loss_scale->growth_steps}};
  if (!options.loss_scale->dynamic) config["dynamic"] = false;  // Keras had it once, and says so when it meets it
  return {{"module", "keras.optimizers"}, {"class_name", kLossScale}, {"config", std::move(config)}, {"registered_name", nullptr}};
}

void read_optimizer(const Config& given, CompileOptions& options) {
  if (!given.is_object() || !given.contains("class_name") || given["class_name"] != kLossScale) {
    options.optimizer = Optimizer::deserialize(given);
    return;
  }
  const Config config = given.contains("config") ? given["config"] : Config();
  if (!config.is_object() || !config.contains("inner_optimizer")) user_error("compile_config: ", kLossScale, " has no inner_optimizer");
  options.optimizer = Optimizer::deserialize(config["inner_optimizer"]);
  LossScaleOptions& scale = options.loss_scale.emplace();
  const auto read = [&](const char* key, bool (Config::*is_kind)() const noexcept, auto& to) {
    if (!config.contains(key)) return;
    if (!(config[key].*is_kind)()) user_error("compile_config: ", kLossScale, ": cannot be made with ", key, " = ", config[key].dump());
    config[key].get_to(to);
  };
  read("initial_scale", &Config::is_number, scale.initial);
  read("dynamic_growth_steps", &Config::is_number_integer, scale.growth_steps);
  read("dynamic", &Config::is_boolean, scale.dynamic);
}

}  // namespace

Config compile_config(const CompileOptions& options, const Names& outputs) {
  Config loss;
  if (options.loss.size() == 1) {
    loss = options.loss[0] ? options.loss[0].serialize() : Config();
  } else {
    loss = Config::array();
    for (const Loss& l : options.loss) loss.push_back(l ? l.serialize() : Config());
  }
  return {{"optimizer", optimizer_config(options)},
          {"loss", loss},
          {"loss_weights", options.loss_weights.empty() ? Config() : Config(options.loss_weights)},
          {"metrics", metrics_config(options.metrics, outputs)},
          {"weighted_metrics", metrics_config(options.weighted_metrics, outputs)},
          {"run_eagerly", false},
          {"steps_per_execution", 1},
          {"jit_compile", "auto"}};
}

CompileOptions compile_options_from(const Config& config, const Names& outputs) {
  if (!config.is_object()) user_error("compile_config is ", config.type_name(), ", expected an object");
  const auto member = [&](const char* key) { return config.contains(key) ? config[key] : Config(); };
  CompileOptions options;
  const Config optimizer = member("optimizer");
  if (!optimizer.is_null()) read_optimizer(optimizer, options);
  options.loss = losses_from(member("loss"), outputs);
  options.loss_weights = weights_from(member("loss_weights"), outputs);
  options.metrics = metrics_from(member("metrics"), outputs);
  options.weighted_metrics = metrics_from(member("weighted_metrics"), outputs);
  return options;
}

}  // namespace tandem::nn
