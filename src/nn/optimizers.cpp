// Optimizer: the handle, and optimizers by name.
#include <tandem/nn/optimizers.hpp>

#include <cctype>

#include "base/text.hpp"
#include "nn/names.hpp"
#include "nn/optimizers/body.hpp"

namespace tandem::nn {
namespace {

bool same_without_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, [](unsigned char c) { return std::tolower(c); }, [](unsigned char c) { return std::tolower(c); });
}

const OptimizerKind& kind_of(const std::string& name) {
  std::vector<std::string> known;
  for (const OptimizerKind& k : optimizer_kinds()) {
    if (same_without_case(name, k.class_name)) return k;
    known.emplace_back(k.class_name);
  }
  unknown_name("optimizer", name, known);
}

OptimizerOptions default_options(const OptimizerKind& kind) {
  OptimizerOptions options;
  if (kind.class_name == std::string_view("AdamW")) options.weight_decay = 0.004;
  return options;
}

LearningRate rate_of(const Config& saved) {
  if (saved.is_number()) return saved.get<double>();
  if (saved.is_object() && saved.contains("class_name")) return Schedule::deserialize(saved);
  user_error("optimizer: learning_rate ", saved.dump(), " is neither a number nor a schedule");
}

template <class T> void read(std::optional<T>& to, const Config& value) { to = value.is_null() ? std::optional<T>() : value.get<T>(); }

Optimizer make(const char* class_name, const LearningRate& rate, const Config& own, const OptimizerOptions& options) {
  return Optimizer(kind_of(class_name).make(rate, own, options));
}

}  // namespace

Optimizer::Optimizer(const char* identifier) : Optimizer(std::string(identifier)) {}
Optimizer::Optimizer(const std::string& name) {
  const OptimizerKind& kind = kind_of(name);
  body_ = kind.make(kind.rate, kind.own, default_options(kind));
}

Optimizer Optimizer::from_config(const std::string& class_name, const Config& config) {
  const OptimizerKind& kind = kind_of(class_name);
  OptimizerOptions o = default_options(kind);
  Config own = kind.own;
  LearningRate rate = kind.rate;
  for (const auto& [key, value] : config.items()) {
    try {
      if (key == "learning_rate")
        rate = rate_of(value);
      else if (key == "name")
        o.name = value.is_null() ? "" : value.get<std::string>();
      else if (key == "weight_decay")
        read(o.weight_decay, value);
      else if (key == "clipnorm")
        read(o.clipnorm, value);
      else if (key == "clipvalue")
        read(o.clipvalue, value);
      else if (key == "global_clipnorm")
        read(o.global_clipnorm, value);
      else if (key == "use_ema")
        o.use_ema = value.get<bool>();
      else if (key == "ema_momentum")
        o.ema_momentum = value.get<double>();
      else if (key == "ema_overwrite_frequency")
        read(o.ema_overwrite_frequency, value);
      else if (key == "loss_scale_factor")
        read(o.loss_scale_factor, value);
      else if (key == "gradient_accumulation_steps")
        read(o.gradient_accumulation_steps, value);
      else if (own.contains(key) && own[key].is_boolean() == value.is_boolean() && own[key].is_number() == value.is_number())
        own[key] = value;
      else
        user_error("optimizer ", class_name, ": cannot be made with ", key, " = ", value.dump());
    } catch (const nlohmann::json::exception&) {
      user_error("optimizer ", class_name, ": cannot be made with ", key, " = ", value.dump());
    }
  }
  return Optimizer(kind.make(rate, own, o));
}

Optimizer Optimizer::deserialize(const Config& saved) {
  if (saved.is_string()) return saved.get<std::string>();
  if (saved.is_object() && saved.contains("class_name") && saved["class_name"].is_string())
    return from_config(saved["class_name"], saved.contains("config") ? saved["config"] : Config::object());
  user_error("optimizer: ", saved.dump(), " is neither a name nor a class with its config");
}

const std::string& Optimizer::name() const { return body_->name(); }
std::string Optimizer::class_name() const { return body_->class_name(); }
Config Optimizer::config() const { return body_->config(); }
Config Optimizer::serialize() const {
  return {{"module", "keras.optimizers"}, {"class_name", class_name()}, {"config", config()}, {"registered_name", nullptr}};
}
bool Optimizer::built() const { return body_->built(); }
void Optimizer::build(const std::vector<Variable>& variables) const { body_->build(variables); }
const std::vector<Variable>& Optimizer::variables() const { return body_->variables(); }
const Variable& Optimizer::iterations() const { return body_->iterations(); }
void Optimizer::apply(const std::vector<Tensor>& gradients) const { body_->apply(gradients); }
Tensor Optimizer::scaled(const Tensor& loss) const {
  const auto& factor = body_->options().loss_scale_factor;
  return factor ? loss * *factor : loss;
}
Tensor Optimizer::unscaled(const Tensor& gradient) const {
  const auto& factor = body_->options().loss_scale_factor;
  return factor ? gradient / *factor : gradient;
}
void Optimizer::finalize_variable_values() const { body_->finalize(); }
void Optimizer::exclude_from_weight_decay(const std::vector<std::string>& parts) const { body_->exclude_from_weight_decay(parts); }
double Optimizer::learning_rate() const { return body_->learning_rate(); }
void Optimizer::set_learning_rate(double rate) const { body_->set_learning_rate(rate); }

// --- made with options -----------------------------------------------------------------------------------------------------------------

Optimizer SGD(const LearningRate& rate, const SgdOptions& o, const OptimizerOptions& options) {
  return make("SGD", rate, {{"momentum", o.momentum}, {"nesterov", o.nesterov}}, options);
}
Optimizer RMSprop(const LearningRate& rate, const RmspropOptions& o, const OptimizerOptions& options) {
  return make("RMSprop", rate, {{"rho", o.rho}, {"momentum", o.momentum}, {"epsilon", o.epsilon}, {"centered", o.centered}}, options);
}
Optimizer Adagrad(const LearningRate& rate, const AdagradOptions& o, const OptimizerOptions& options) {
  return make("Adagrad", rate, {{"initial_accumulator_value", o.initial_accumulator_value}, {"epsilon", o.epsilon}}, options);
}
Optimizer Adadelta(const LearningRate& rate, const AdadeltaOptions& o, const OptimizerOptions& options) {
  return make("Adadelta", rate, {{"rho", o.rho}, {"epsilon", o.epsilon}}, options);
}
namespace {
Config config_of(const AdamOptions& o) {
  return {{"beta_1", o.beta_1}, {"beta_2", o.beta_2}, {"epsilon", o.epsilon}, {"amsgrad", o.amsgrad}};
}
Config config_of(const AdamaxOptions& o) { return {{"beta_1", o.beta_1}, {"beta_2", o.beta_2}, {"epsilon", o.epsilon}}; }
}  // namespace
Optimizer Adam(const LearningRate& rate, const AdamOptions& o, const OptimizerOptions& options) {
  return make("Adam", rate, config_of(o), options);
}
Optimizer AdamW(const LearningRate& rate, const AdamOptions& o, const OptimizerOptions& options) {
  return make("AdamW", rate, config_of(o), options);
}
Optimizer Adamax(const LearningRate& rate, const AdamaxOptions& o, const OptimizerOptions& options) {
  return make("Adamax", rate, config_of(o), options);
}
Optimizer Nadam(const LearningRate& rate, const AdamaxOptions& o, const OptimizerOptions& options) {
  return make("Nadam", rate, config_of(o), options);
}
Optimizer Lion(const LearningRate& rate, const LionOptions& o, const OptimizerOptions& options) {
  return make("Lion", rate, {{"beta_1", o.beta_1}, {"beta_2", o.beta_2}}, options);
}
Optimizer Adafactor(const LearningRate& rate, const AdafactorOptions& o, const OptimizerOptions& options) {
  return make("Adafactor", rate,
              {{"beta_2_decay", o.beta_2_decay},
               {"epsilon_1", o.epsilon_1},
               {"epsilon_2", o.epsilon_2},
               {"clip_threshold", o.clip_threshold},
               {"relative_step", o.relative_step}},
              options);
}
Optimizer Ftrl(const LearningRate& rate, const FtrlOptions& o, const OptimizerOptions& options) {
  return make("Ftrl", rate,
              {{"learning_rate_power", o.learning_rate_power},
               {"initial_accumulator_value", o.initial_accumulator_value},
               {"l1_regularization_strength", o.l1_regularization_strength},
               {"l2_regularization_strength", o.l2_regularization_strength},
               {"l2_shrinkage_regularization_strength", o.l2_shrinkage_regularization_strength},
               {"beta", o.beta}},
              options);
}

}  // namespace tandem::nn
