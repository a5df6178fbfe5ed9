// Metric: the handle, and metrics by name.
#include <tandem/nn/metrics.hpp>

#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "frontend/apply.hpp"
#include "nn/metrics/kinds.hpp"
#include "nn/names.hpp"
#include "nn/own_kinds.hpp"
#include "nn/ranks.hpp"
#include "nn/saving/loading.hpp"

namespace tandem::nn {
namespace {

const std::vector<MetricKind>& kinds() {
  static const auto& all = []() -> const std::vector<MetricKind>& {
    auto& list = *new std::vector<MetricKind>;  // never destroyed: models may end after it
    for (auto part : {mean_metric_kinds(), confusion_metric_kinds(), other_metric_kinds()})
      list.insert(list.end(), part.begin(), part.end());
    return list;
  }();
  return all;
}

OwnKinds<MetricMaker>& own_metrics() {
  static auto& all = *new OwnKinds<MetricMaker>;
  return all;
}

const MetricKind& kind_of(const std::string& name) {
  for (const MetricKind& k : kinds()) {
    if (name == k.class_name || name == k.name || name == snake_case(k.class_name)) return k;
    for (const char* alias : k.aliases)
      if (name == alias) return k;
  }
  std::vector<std::string> known = own_metrics().names();
  for (const MetricKind& k : kinds()) known.insert(known.end(), {k.name, k.class_name});
  unknown_name("metric", name, known, own_metrics().unknown_hint(name, "register_metric"));
}

bool depends_on_shapes(const std::string& name) { return name == "accuracy" || name == "acc"; }

// Numbers of a config that are none, from a file, show when they are used.
template <class F> auto with_config(const std::string& name, const Config& config, F f) {
  try {
    return f();
  } catch (const nlohmann::json::exception&) {
    user_error("metric ", name, ": cannot be computed with ", config.dump());
  }
}

bool is_given(const Config& config, const char* key) { return config.contains(key) && !config[key].is_null(); }

}  // namespace

const MetricKind* find_metric_kind(std::string_view class_name) {
  for (const MetricKind& k : kinds())
    if (class_name == k.class_name) return &k;
  return nullptr;
}

Config MetricBody::config() const { return Config::object(); }
void MetricBody::build(const Dims&, const Dims&) {}
Variable MetricBody::add_variable(const std::string& name, const Shape& shape, DType dtype) {
  LoadingScope::take_constant(cat("'", name, "' of a metric"), element_count(shape));
  return variables_.emplace_back(Tensor::zeros(shape, dtype), VariableOptions{.name = name, .trainable = false});
}

Metric::Metric(const char* identifier) : Metric(std::string(identifier)) {}

Metric::Metric(const std::string& name) : name_(name), identifier_(name) {
  if (const MetricMaker maker = own_metrics().find(name)) {
    *this = maker(Config::object());
    return;
  }
  if (depends_on_shapes(name)) return;
  const MetricKind& kind = kind_of(name);
  body_ = kind.make(kind, kind.defaults);
}

Metric::Metric(std::shared_ptr<MetricBody> body, std::string name) : name_(std::move(name)), body_(std::move(body)) {
  if (name_.empty()) name_ = snake_case(body_->class_name());
}

Metric::Metric(std::string name, Formula formula) : name_(std::move(name)), formula_(std::move(formula)), body_(mean_of(formula_)) {}

Metric Metric::from_config(const std::string& class_name, const Config& config) {
  if (const MetricMaker maker = own_metrics().find(class_name)) {
    Metric made = maker(config);
    if (is_given(config, "name") && config["name"].is_string()) made.name_ = config["name"];
    return made;
  }
  const MetricKind& kind = kind_of(class_name);
  Config own = kind.defaults;
  for (const auto& [key, value] : config.items()) {
    if (key == "name" || key == "dtype") continue;
    if (!own.contains(key) && key != "thresholds") user_error("metric ", class_name, ": cannot be made with ", key, " = ", value.dump());
    own[key] = value;
  }
  const bool has_name = is_given(config, "name") && config["name"].is_string();
  return with_config(class_name, own,
                     [&] { return Metric(kind.make(kind, own), has_name ? config["name"].get<std::string>() : kind.name); });
}

Metric Metric::deserialize(const Config& saved) {
  if (saved.is_string()) return Metric(saved.get<std::string>());
  if (saved.is_object() && is_given(saved, "class_name")) {
    if (saved["class_name"] == "function" && saved["config"].is_string()) return Metric(saved["config"].get<std::string>());
    return from_config(own_metrics().name_in(saved), saved.contains("config") ? saved["config"] : Config::object());
  }
  user_error("metric: ", saved.dump(), " is neither a name nor a class with its config");
}

const std::shared_ptr<MetricBody>& Metric::body() const {
  if (!body_)
    user_error("metric ", name_, ": what it means depends on the shapes of targets and predictions\n  hint: resolved(y_true, y_pred)");
  return body_;
}

std::string Metric::class_name() const { return body()->class_name(); }
Config Metric::config() const {
  Config c{{"name", name_}, {"dtype", "float32"}};
  c.update(body()->config());
  return c;
}
Config Metric::serialize() const {
  if (!identifier_.empty()) return identifier_;
  if (formula_) {
    const Config registered = own_metrics().registered_name(name_);
    if (registered.is_null())
      user_error("metric ", name_, ": is a formula of the program's own, which a file cannot keep\n  hint: register_metric(\"", name_,
                 "\", …) says how it is made again");
    return own_function(registered);
  }
  const Config registered = own_metrics().registered_name(class_name());
  if (!registered.is_null() || !find_metric_kind(class_name()))
    return own_class(class_name(), registered.is_null() ? Config(class_name()) : registered, config());
  return {{"module", "keras.metrics"}, {"class_name", class_name()}, {"config", config()}, {"registered_name", nullptr}};
}

Metric Metric::again() const {
  if (formula_) return {name_, formula_};
  if (identifier_.empty() && !find_metric_kind(class_name()) && own_metrics().registered_name(class_name()).is_null())
    user_error("metric ", name_, ": is of a kind of the program's own, and each output needs one\n  hint: register_metric(\"", class_name(),
               "\", …) says how another is made; Metric(…).on(\"output\") is for one output only");
  return deserialize(serialize());
}

Metric Metric::on(const std::string& output) const {
  Metric m = *this;
  m.output_ = output;
  return m;
}

Metric Metric::resolved(const Dims& y_true, const Dims& y_pred) const {
  Metric m = *this;
  if (!body_) {
    const Labels labels = labels_of(y_true, y_pred);
    m = Metric(labels == Labels::Binary   ? "BinaryAccuracy"
               : labels == Labels::Sparse ? "SparseCategoricalAccuracy"
                                          : "CategoricalAccuracy");
    m.name_ = name_;
    m.identifier_ = identifier_;
    m.output_ = output_;
  }
  if (m.variables().empty()) m.body_->build(y_true, y_pred);
  return m;
}

void Metric::update(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight, Where where) const {
  frontend::for_caller(where, [&] {
    MetricBody& b = *body();
    std::optional<frontend::UserScope> own;
    if (!formula_ && !find_metric_kind(b.class_name())) own.emplace();
    with_config(name_, b.config(), [&] { b.update(y_true, y_pred, sample_weight); });
  });
}
Tensor Metric::result() const { return body()->result(); }
double Metric::value() const {
  const Tensor r = result();
  return (r.size() == 1 ? r.flatten()[0] : mean(r.cast(DType::F64))).item<double>();
}
void Metric::reset() const {
  for (const Variable& v : variables()) v.assign(Tensor::zeros(v.shape(), v.dtype()));
}
std::vector<Variable> Metric::variables() const { return body()->variables(); }
MetricBody::Better Metric::better() const { return body()->better(); }
bool Metric::takes_mask() const { return body()->takes_mask(); }

void register_metric(const std::string& name, MetricMaker maker) { own_metrics().add(name, maker); }

// --- made with options -----------------------------------------------------------------------------------------------------------------

namespace metrics {
namespace {
Metric make(const char* class_name, Config config, const std::string& name) {
  if (!name.empty()) config["name"] = name;
  return Metric::from_config(class_name, config);
}
template <class T> Config optional(const std::optional<T>& value) { return value ? Config(*value) : Config(); }

Metric make(const char* class_name, const ConfusionOptions& o, bool is_count) {
  Config config{{"thresholds", o.thresholds.empty() ? Config() : Config(o.thresholds)}};
  if (!is_count) {
    config["top_k"] = optional(o.top_k);
    config["class_id"] = optional(o.class_id);
  } else if (o.top_k || o.class_id) {
    user_error("metric ", class_name, ": counts take thresholds only, not top_k or class_id");
  }
  return make(class_name, config, o.name);
}
Config config_of(const FBetaOptions& o) {
  return {{"average", o.average.empty() ? Config() : Config(o.average)}, {"threshold", optional(o.threshold)}};
}
Config config_of(int64_t num_classes, const IoUOptions& o) {
  return {{"num_classes", num_classes},
          {"ignore_class", optional(o.ignore_class)},
          {"sparse_y_true", o.sparse_y_true},
          {"sparse_y_pred", o.sparse_y_pred}};
}
}  // namespace

Metric Mean(const std::string& name) { return make("Mean", {}, name); }
Metric Sum(const std::string& name) { return make("Sum", {}, name); }
Metric Accuracy(const std::string& name) { return make("Accuracy", {}, name); }
Metric BinaryAccuracy(double threshold, const std::string& name) { return make("BinaryAccuracy", {{"threshold", threshold}}, name); }
Metric CategoricalAccuracy(const std::string& name) { return make("CategoricalAccuracy", {}, name); }
Metric SparseCategoricalAccuracy(const std::string& name) { return make("SparseCategoricalAccuracy", {}, name); }
Metric TopKCategoricalAccuracy(int64_t k, const std::string& name) { return make("TopKCategoricalAccuracy", {{"k", k}}, name); }
Metric SparseTopKCategoricalAccuracy(int64_t k, const std::string& name) { return make("SparseTopKCategoricalAccuracy", {{"k", k}}, name); }
Metric Precision(const ConfusionOptions& o) { return make("Precision", o, false); }
Metric Recall(const ConfusionOptions& o) { return make("Recall", o, false); }
Metric TruePositives(const ConfusionOptions& o) { return make("TruePositives", o, true); }
Metric TrueNegatives(const ConfusionOptions& o) { return make("TrueNegatives", o, true); }
Metric FalsePositives(const ConfusionOptions& o) { return make("FalsePositives", o, true); }
Metric FalseNegatives(const ConfusionOptions& o) { return make("FalseNegatives", o, true); }
Metric AUC(const AucOptions& o) {
  Config c{{"num_thresholds", o.num_thresholds},
           {"curve", o.curve},
           {"summation_method", o.summation_method},
           {"multi_label", o.multi_label},
           {"num_labels", optional(o.num_labels)},
           {"label_weights", o.label_weights.empty() ? Config() : Config(o.label_weights)},
           {"from_logits", o.from_logits}};
  if (!o.thresholds.empty()) c["thresholds"] = o.thresholds;
  return make("AUC", c, o.name);
}
Metric FBetaScore(const FBetaOptions& o) {
  Config c = config_of(o);
  c["beta"] = o.beta;
  return make("FBetaScore", c, o.name);
}
Metric F1Score(const FBetaOptions& o) {
  if (o.beta != 1) user_error("metric F1Score: beta is ", o.beta, "\n  hint: FBetaScore takes another than 1");
  return make("F1Score", config_of(o), o.name);
}
Metric IoU(int64_t num_classes, const std::vector<int64_t>& target_class_ids, const IoUOptions& o) {
  Config c = config_of(num_classes, o);
  c["target_class_ids"] = target_class_ids;
  return make("IoU", c, o.name);
}
Metric MeanIoU(int64_t num_classes, const IoUOptions& o) { return make("MeanIoU", config_of(num_classes, o), o.name); }
Metric R2Score(const std::string& class_aggregation, const std::string& name) {
  return make("R2Score", {{"class_aggregation", class_aggregation.empty() ? Config() : Config(class_aggregation)}}, name);
}
Metric RootMeanSquaredError(const std::string& name) { return make("RootMeanSquaredError", {}, name); }

}  // namespace metrics
}  // namespace tandem::nn
