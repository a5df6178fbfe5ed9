// Learning-rate schedules: one row a kind, with Keras's formulas.
#include <tandem/nn/schedules.hpp>

#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>

#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "frontend/thread_state.hpp"
#include "nn/names.hpp"
#include "nn/own_kinds.hpp"

namespace tandem::nn {

struct Schedule::Impl {
  std::string class_name;  // "": a formula without a name
  Config config;
  Formula formula;
  bool is_own = false;
};

namespace {

double number(const Config& c, const char* key) { return c[key].get<double>(); }
float single(const Config& c, const char* key) { return static_cast<float>(number(c, key)); }

Tensor fraction(const Tensor& step, const Config& c) {
  const Tensor p = step / single(c, "decay_steps");
  return c["staircase"].get<bool>() ? floor(p) : p;
}

Tensor exponential(const Tensor& step, const Config& c) {
  return number(c, "initial_learning_rate") * power(Tensor::scalar(single(c, "decay_rate")), fraction(step, c));
}
Tensor inverse_time(const Tensor& step, const Config& c) {
  return number(c, "initial_learning_rate") / (1 + number(c, "decay_rate") * fraction(step, c));
}

Tensor piecewise(const Tensor& step, const Config& c) {
  const auto boundaries = c["boundaries"].get<std::vector<double>>(), values = c["values"].get<std::vector<double>>();
  Tensor rate = Tensor::scalar(static_cast<float>(values.back()));
  for (size_t i = boundaries.size(); i-- > 0;) rate = where(step <= boundaries[i], static_cast<float>(values[i]), rate);
  return rate;
}

Tensor polynomial(const Tensor& step, const Config& c) {
  const double start = number(c, "initial_learning_rate"), end = number(c, "end_learning_rate"), steps = number(c, "decay_steps");
  Tensor p;
  if (c["cycle"].get<bool>())
    p = step / (steps * where(step == 0, 1.0f, ceil(step / steps)));
  else
    p = minimum(step, steps) / steps;
  return (start - end) * power(1 - p, number(c, "power")) + end;
}

Tensor cosine_of(const Tensor& completed) { return 0.5 * (1 + cos(std::numbers::pi * completed)); }

Tensor cosine(const Tensor& step, const Config& c) {
  const double start = number(c, "initial_learning_rate"), steps = number(c, "decay_steps"), alpha = number(c, "alpha");
  const auto decayed = [&](const Tensor& s, double from) { return from * ((1 - alpha) * cosine_of(s / steps) + alpha); };
  if (c["warmup_target"].is_null()) return decayed(minimum(step, steps), start);
  const double target = number(c, "warmup_target"), warmup = number(c, "warmup_steps");
  const Tensor s = minimum(step, steps + warmup);
  if (warmup == 0) return decayed(s, target);
  return where(s < warmup, (target - start) * (s / warmup) + start, decayed(s - warmup, target));
}

// Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017.
Tensor cosine_restarts(const Tensor& step, const Config& c) {
  const double t_mul = number(c, "t_mul"), alpha = number(c, "alpha");
  Tensor completed = step / number(c, "first_decay_steps"), restart;
  if (t_mul == 1) {
    restart = floor(completed);
    completed = completed - restart;
  } else {
    restart = floor(log(1 - completed * (1 - t_mul)) / log(Tensor::scalar(static_cast<float>(t_mul))));
    const Tensor factor = power(Tensor::scalar(static_cast<float>(t_mul)), restart);
    completed = (completed - (1 - factor) / (1 - t_mul)) / factor;
  }
  const Tensor decayed = power(Tensor::scalar(single(c, "m_mul")), restart) * cosine_of(completed);
  return number(c, "initial_learning_rate") * ((1 - alpha) * decayed + alpha);
}

struct Kind {
  const char* class_name;
  Config defaults;       // null: must be given
  const char* positive;  // the key that must be above 0
  Tensor (*formula)(const Tensor& step, const Config& config);
};

const std::vector<Kind>& kinds() {
  static const auto& table = *new std::vector<Kind>{
      {"ExponentialDecay",
       Config{{"initial_learning_rate", nullptr},
              {"decay_steps", nullptr},
              {"decay_rate", nullptr},
              {"staircase", false},
              {"name", "ExponentialDecay"}},
       "decay_steps", exponential},
      {"PiecewiseConstantDecay", Config{{"boundaries", nullptr}, {"values", nullptr}, {"name", "PiecewiseConstant"}}, nullptr, piecewise},
      {"PolynomialDecay",
       Config{{"initial_learning_rate", nullptr},
              {"decay_steps", nullptr},
              {"end_learning_rate", 0.0001},
              {"power", 1.0},
              {"cycle", false},
              {"name", "PolynomialDecay"}},
       "decay_steps", polynomial},
      {"InverseTimeDecay",
       Config{{"initial_learning_rate", nullptr},
              {"decay_steps", nullptr},
              {"decay_rate", nullptr},
              {"staircase", false},
              {"name", "InverseTimeDecay"}},
       "decay_steps", inverse_time},
      {"CosineDecay",
       Config{{"initial_learning_rate", nullptr},
              {"decay_steps", nullptr},
              {"alpha", 0.0},
              {"name", "CosineDecay"},
              {"warmup_target", nullptr},
              {"warmup_steps", 0}},
       "decay_steps", cosine},
      {"CosineDecayRestarts",
       Config{{"initial_learning_rate", nullptr},
              {"first_decay_steps", nullptr},
              {"t_mul", 2.0},
              {"m_mul", 1.0},
              {"alpha", 0.0},
              {"name", "SGDRDecay"}},
       "first_decay_steps", cosine_restarts},
  };
  return table;
}

OwnKinds<ScheduleMaker>& own_schedules() {
  static auto& all = *new OwnKinds<ScheduleMaker>;
  return all;
}

const Kind& kind_of(const std::string& class_name) {
  std::vector<std::string> known = own_schedules().names();
  for (const Kind& k : kinds()) {
    if (class_name == k.class_name) return k;
    known.emplace_back(k.class_name);
  }
  unknown_name("learning-rate schedule", class_name, known, own_schedules().unknown_hint(class_name, "register_schedule"));
}

Config checked(const Kind& kind, const Config& given) {
  Config config = kind.defaults;
  for (const auto& [key, value] : given.items()) {
    if (!config.contains(key)) user_error("schedule ", kind.class_name, ": cannot be made with ", key, " = ", value.dump());
    config[key] = value;
  }
  for (const auto& [key, value] : config.items())
    if (value.is_null() && key != "warmup_target") user_error("schedule ", kind.class_name, ": needs ", key);
  if (kind.positive && !(number(config, kind.positive) > 0))
    user_error("schedule ", kind.class_name, ": ", kind.positive, " is ", number(config, kind.positive), ", it must be above 0");
  if (kind.formula == piecewise && config["boundaries"].size() + 1 != config["values"].size())
    user_error("schedule ", kind.class_name, ": ", config["boundaries"].size(), " boundaries go with ", config["boundaries"].size() + 1,
               " values, there are ", config["values"].size());
  return config;
}

}  // namespace

Schedule::Schedule(std::string class_name, const Config& config) {
  if (const ScheduleMaker maker = own_schedules().find(class_name)) {
    impl_ = maker(config).impl_;
    return;
  }
  const Kind& kind = kind_of(class_name);
  Config own = checked(kind, config);
  impl_ = std::make_shared<Impl>(Impl{std::move(class_name), own, [f = kind.formula, own](const Tensor& step) { return f(step, own); }});
}
Schedule::Schedule(Formula formula) : Schedule("", Config::object(), std::move(formula)) {}
Schedule::Schedule(std::string class_name, const Config& config, Formula formula)
    : impl_(std::make_shared<Impl>(Impl{std::move(class_name), config, std::move(formula), /*is_own=*/true})) {}

Schedule Schedule::deserialize(const Config& saved) {
  if (!saved.is_object() || !saved.contains("class_name") || !saved["class_name"].is_string())
    user_error("learning-rate schedule: ", saved.dump(), " is no class with its config");
  return {own_schedules().name_in(saved), saved.contains("config") ? saved["config"] : Config::object()};
}

Config Schedule::serialize() const {
  const Impl& i = *impl_;
  if (!i.is_own)
    return {{"module", "keras.optimizers.schedules"}, {"class_name", i.class_name}, {"config", i.config}, {"registered_name", nullptr}};
  if (i.class_name.empty())
    user_error(
        "learning-rate schedule: is a formula of the program's own, which a file cannot keep"
        "\n  hint: Schedule(\"Name\", config, formula), and register_schedule(\"Name\", …) says how it is made again");
  const Config registered = own_schedules().registered_name(i.class_name);
  if (registered.is_null())
    user_error("learning-rate schedule ", i.class_name, ": is of the program's own, which a file cannot keep\n  hint: register_schedule(\"",
               i.class_name, "\", …) says how it is made again");
  return own_class(i.class_name, registered, i.config);
}

void register_schedule(const std::string& class_name, ScheduleMaker maker) { own_schedules().add(class_name, maker); }

const std::string& Schedule::class_name() const { return impl_->class_name; }
const Config& Schedule::config() const { return impl_->config; }
Tensor Schedule::operator()(const Tensor& step) const {
  const Tensor number = step.cast(DType::F32);
  if (!impl_->is_own) return impl_->formula(number);
  const frontend::UserScope user;
  return impl_->formula(number);
}

Schedule ExponentialDecay(double rate, double steps, double decay_rate, bool staircase) {
  return {"ExponentialDecay",
          {{"initial_learning_rate", rate}, {"decay_steps", steps}, {"decay_rate", decay_rate}, {"staircase", staircase}}};
}
Schedule PiecewiseConstantDecay(const std::vector<double>& boundaries, const std::vector<double>& values) {
  return {"PiecewiseConstantDecay", {{"boundaries", boundaries}, {"values", values}}};
}
Schedule PolynomialDecay(double rate, double steps, const PolynomialDecayOptions& o) {
  return {"PolynomialDecay",
          {{"initial_learning_rate", rate},
           {"decay_steps", steps},
           {"end_learning_rate", o.end_learning_rate},
           {"power", o.power},
           {"cycle", o.cycle}}};
}
Schedule InverseTimeDecay(double rate, double steps, double decay_rate, bool staircase) {
  return {"InverseTimeDecay",
          {{"initial_learning_rate", rate}, {"decay_steps", steps}, {"decay_rate", decay_rate}, {"staircase", staircase}}};
}
Schedule CosineDecay(double rate, double steps, const CosineDecayOptions& o) {
  const Config target = o.warmup_target ? Config(*o.warmup_target) : Config();
  return {"CosineDecay",
          {{"initial_learning_rate", rate},
           {"decay_steps", steps},
           {"alpha", o.alpha},
           {"warmup_target", target},
           {"warmup_steps", o.warmup_steps}}};
}
Schedule CosineDecayRestarts(double rate, double first_steps, const CosineDecayRestartsOptions& o) {
  return {
      "CosineDecayRestarts",
      {{"initial_learning_rate", rate}, {"first_decay_steps", first_steps}, {"t_mul", o.t_mul}, {"m_mul", o.m_mul}, {"alpha", o.alpha}}};
}

}  // namespace tandem::nn
