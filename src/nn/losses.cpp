// Losses: one row a kind, with Keras's formulas.
#include <tandem/nn/losses.hpp>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "frontend/apply.hpp"
#include "nn/labels.hpp"
#include "nn/losses_table.hpp"
#include "nn/names.hpp"
#include "nn/own_kinds.hpp"
#include "nn/ranks.hpp"

namespace tandem::nn {
namespace {

// 0 and 1 become -1 and 1 when there is nothing else in the batch.
Tensor hinge_labels(const Tensor& y) {
  const Tensor is_binary = all(logical_or(y == 0, y == 1));
  return where(is_binary, 2 * y - 1, y);
}

Tensor smoothed(const Tensor& y, const Config& c, bool by_class) {
  const double smoothing = c["label_smoothing"];
  if (smoothing == 0) return y;
  if (!by_class) return y * (1 - smoothing) + 0.5 * smoothing;
  return y * (1 - smoothing) + smoothing / extent(y.dims().back(), DType::F32);
}

Tensor mean_last(const Tensor& x) { return mean(x, -1); }

Tensor squared_error(const Tensor& y, const Tensor& p, const Config&) { return mean_last(square(y - p)); }
Tensor absolute_error(const Tensor& y, const Tensor& p, const Config&) { return mean_last(absolute(y - p)); }
Tensor percentage_error(const Tensor& y, const Tensor& p, const Config&) {
  return 100 * mean_last(absolute((y - p) / maximum(absolute(y), kEpsilon)));
}
Tensor logarithmic_error(const Tensor& y, const Tensor& p, const Config&) {
  return mean_last(square(log(maximum(p, kEpsilon) + 1) - log(maximum(y, kEpsilon) + 1)));
}
Tensor cosine_similarity(const Tensor& y, const Tensor& p, const Config& c) {
  const int64_t axis = c["axis"];
  return -sum(normalize(y, axis) * normalize(p, axis), axis);
}
Tensor huber(const Tensor& y, const Tensor& p, const Config& c) {
  const double delta = c["delta"];
  const Tensor error = p - y, size = absolute(error);
  return mean_last(where(size <= delta, 0.5 * square(error), delta * size - 0.5 * delta * delta));
}
Tensor log_cosh(const Tensor& y, const Tensor& p, const Config&) {
  const Tensor x = p - y;
  return mean_last(x + softplus(x * -2) - std::log(2.0));
}
Tensor hinge(const Tensor& y, const Tensor& p, const Config&) { return mean_last(maximum(1 - hinge_labels(y) * p, 0)); }
Tensor squared_hinge(const Tensor& y, const Tensor& p, const Config&) { return mean_last(square(maximum(1 - hinge_labels(y) * p, 0))); }
Tensor categorical_hinge(const Tensor& y, const Tensor& p, const Config&) { return maximum(max((1 - y) * p, -1) - sum(y * p, -1) + 1, 0); }
Tensor kl_divergence(const Tensor& y, const Tensor& p, const Config&) {
  const Tensor a = clip(y, kEpsilon, 1), b = clip(p, kEpsilon, 1);
  return sum(a * log(a / b), -1);
}
Tensor poisson(const Tensor& y, const Tensor& p, const Config&) { return mean_last(p - y * log(p + kEpsilon)); }

Tensor binary_crossentropy(const Tensor& y, const Tensor& p, const Config& c) {
  return mean(tandem::binary_crossentropy(smoothed(y, c, false), p, c["from_logits"].get<bool>()), c["axis"].get<int64_t>());
}
Tensor categorical_crossentropy(const Tensor& y, const Tensor& p, const Config& c) {
  return tandem::categorical_crossentropy(smoothed(y, c, true), p, c["from_logits"].get<bool>(), c["axis"].get<int64_t>());
}
Tensor sparse_categorical_crossentropy(const Tensor& y, const Tensor& p, const Config& c) {
  const bool from_logits = c["from_logits"];
  const Tensor classes = is_float(y.dtype()) ? y.cast(DType::I32) : y;
  if (c["ignore_class"].is_null()) return tandem::sparse_categorical_crossentropy(classes, p, from_logits);
  const Tensor counts = classes != c["ignore_class"].get<int64_t>();
  const Tensor values =
      tandem::sparse_categorical_crossentropy(where(counts, classes, 0), where(counts.expand_dims(-1), p, 0), from_logits);
  return where(counts, values, 0);
}
Tensor binary_focal_crossentropy(const Tensor& y, const Tensor& p, const Config& c) {
  const double gamma = c["gamma"], alpha = c["alpha"];
  const Tensor t = smoothed(y, c, false), q = c["from_logits"].get<bool>() ? sigmoid(p) : p;
  Tensor value = power(1 - (t * q + (1 - t) * (1 - q)), gamma) * tandem::binary_crossentropy(t, q);
  if (c["apply_class_balancing"].get<bool>()) value = (t * alpha + (1 - t) * (1 - alpha)) * value;
  return mean(value, c["axis"].get<int64_t>());
}
Tensor categorical_focal_crossentropy(const Tensor& y, const Tensor& p, const Config& c) {
  const double gamma = c["gamma"], alpha = c["alpha"];
  const int64_t axis = c["axis"];
  const Tensor t = smoothed(y, c, true), q = c["from_logits"].get<bool>() ? softmax(p, axis) : p;
  const Tensor share = clip(q / sum(q, axis, true), kEpsilon, 1 - kEpsilon);
  return sum(power(1 - share, gamma) * alpha * (-t * log(share)), axis);
}
Tensor dice(const Tensor& y, const Tensor& p, const Config& c) {
  const IntList axis = c["axis"].is_null() ? IntList() : IntList(c["axis"].get<std::vector<int64_t>>());
  return 1 - 2 * sum(y * p, axis) / (sum(y, axis) + sum(p, axis) + kEpsilon);
}
Tensor tversky(const Tensor& y, const Tensor& p, const Config& c) {
  const IntList axis = c["axis"].is_null() ? IntList() : IntList(c["axis"].get<std::vector<int64_t>>());
  const Tensor both = sum(y * p, axis);
  return 1 -
         both / (both + sum((1 - p) * y, axis) * c["alpha"].get<double>() + sum(p * (1 - y), axis) * c["beta"].get<double>() + kEpsilon);
}

std::vector<LossKind> make_kinds() {
  const Config none = Config::object(), axis{{"axis", -1}}, no_axis{{"axis", nullptr}};
  const Config crossentropy{{"from_logits", false}, {"label_smoothing", 0.0}, {"axis", -1}};
  const Config sparse{{"from_logits", false}, {"ignore_class", nullptr}};
  const Config focal{{"from_logits", false}, {"label_smoothing", 0.0}, {"axis", -1}, {"alpha", 0.25}, {"gamma", 2.0}};
  const Config binary_focal = [&] {
    Config c = focal;
    c["apply_class_balancing"] = false;
    return c;
  }();
  return {
      {"MeanSquaredError", "mean_squared_error", {"mse", "MSE"}, none, squared_error},
      {"MeanAbsoluteError", "mean_absolute_error", {"mae", "MAE"}, none, absolute_error},
      {"MeanAbsolutePercentageError", "mean_absolute_percentage_error", {"mape", "MAPE"}, none, percentage_error},
      {"MeanSquaredLogarithmicError", "mean_squared_logarithmic_error", {"msle", "MSLE"}, none, logarithmic_error},
      {"CosineSimilarity", "cosine_similarity", {}, axis, cosine_similarity},
      {"Huber", "huber", {}, Config{{"delta", 1.0}}, huber},
      {"LogCosh", "log_cosh", {}, none, log_cosh},
      {"Hinge", "hinge", {}, none, hinge},
      {"SquaredHinge", "squared_hinge", {}, none, squared_hinge},
      {"CategoricalHinge", "categorical_hinge", {}, none, categorical_hinge, Targets::Shares},
      {"KLDivergence", "kl_divergence", {"kld", "KLD"}, none, kl_divergence, Targets::Shares},
      {"Poisson", "poisson", {}, none, poisson},
      {"BinaryCrossentropy", "binary_crossentropy", {"bce", "BCE"}, crossentropy, binary_crossentropy, Targets::YesOrNo},
      {"CategoricalCrossentropy", "categorical_crossentropy", {}, crossentropy, categorical_crossentropy, Targets::Shares},
      {"SparseCategoricalCrossentropy", "sparse_categorical_crossentropy", {}, sparse, sparse_categorical_crossentropy, Targets::Classes},
      {"BinaryFocalCrossentropy", "binary_focal_crossentropy", {}, binary_focal, binary_focal_crossentropy, Targets::YesOrNo},
      {"CategoricalFocalCrossentropy", "categorical_focal_crossentropy", {}, focal, categorical_focal_crossentropy, Targets::Shares},
      {"Dice", "dice", {}, no_axis, dice},
      {"Tversky", "tversky", {}, Config{{"alpha", 0.5}, {"beta", 0.5}, {"axis", nullptr}}, tversky},
      {"CTC", "ctc", {}, none, ctc_loss, Targets::ClassSequences},
      {"Circle",
       "circle",
       {},
       Config{{"gamma", 80.0}, {"margin", 0.4}, {"remove_diagonal", true}},
       circle_loss,
       Targets::Own,
       /*counts_zeros=*/false},
  };
}

const std::vector<LossKind>& kinds() {
  static const auto& all = *new std::vector<LossKind>(make_kinds());  // never destroyed: models may end after it
  return all;
}

constexpr std::pair<Reduction, const char*> kReductions[] = {{Reduction::SumOverBatchSize, "sum_over_batch_size"},
                                                             {Reduction::Sum, "sum"},
                                                             {Reduction::None, "none"},
                                                             {Reduction::MeanWithSampleWeight, "mean_with_sample_weight"}};

const char* name_of(Reduction reduction) {
  for (const auto& [r, text] : kReductions)
    if (r == reduction) return text;
  internal_error("a reduction without a name");
}

Reduction reduction_of(const Config& text) {
  if (text.is_null()) return Reduction::None;
  if (text == "mean") return Reduction::SumOverBatchSize;
  for (const auto& [r, known] : kReductions)
    if (text == known) return r;
  user_error("loss: reduction ", text.dump(),
             " is none of \"sum_over_batch_size\", \"mean\", \"sum\", \"none\", \"mean_with_sample_weight\"");
}

bool is_crossentropy(const std::string& name) { return name == "crossentropy" || name == "ce"; }

OwnKinds<LossMaker>& own_losses() {
  static auto& all = *new OwnKinds<LossMaker>;
  return all;
}

}  // namespace

const LossKind* find_loss_kind(std::string_view name) {
  for (const LossKind& k : kinds()) {
    if (name == k.class_name || name == k.name) return &k;
    for (const char* alias : k.aliases)
      if (name == alias) return &k;
  }
  return nullptr;
}

const char* LossKind::made_name() const { return values == huber ? "huber_loss" : name; }

void expect_one_shape(const Tensor& y, const Tensor& p, const std::string& what, bool broadcasts) {
  const Dims targets = y.dims(), predictions = p.dims();
  bool fits = targets.size() == predictions.size();
  for (size_t i = 0; fits && i < targets.size(); ++i) {
    const Dim &a = targets[i], &b = predictions[i];
    fits = !a.is_const() || !b.is_const() || a == b || (broadcasts && (a.is(1) || b.is(1)));
  }
  if (fits) return;
  const bool is_a_row = targets.size() + 1 == predictions.size() || (targets.size() == predictions.size() && targets.back().is(1));
  std::string hint =
      cat("each prediction needs a target of its own; the targets have ", targets.size(), " axes, the predictions ", predictions.size());
  if (is_a_row && (is_int(y.dtype()) || !broadcasts))
    hint = "class numbers go with the sparse ones, such as sparse_categorical_crossentropy";
  else if (targets.size() == predictions.size() && targets.back().is_const() && !(targets.back() == predictions.back()))
    hint = cat("to have ", targets.back(), " predictions an example, the last layer needs ", targets.back(), " units");
  user_error(what, ": targets are ", y.type_str(), ", predictions are ", p.type_str(), "\n  hint: ", hint);
}

Tensor loss_values(const LossKind& kind, const Config& config, const Tensor& y_true, const Tensor& y_pred, std::string_view what) {
  const std::string name = cat(what, " ", kind.name);
  const Tensor wide = y_pred.cast(DType::F32);
  if (kind.targets == Targets::Own || kind.targets == Targets::ClassSequences) return kind.values(y_true, wide, config);
  auto [y, p] = same_rank(y_true, wide);
  if (kind.targets == Targets::Classes) {
    const auto ignored = config.find("ignore_class");
    return kind.values(class_rows(y, p, name, ignored->is_null() ? std::vector<int64_t>() : std::vector<int64_t>{ignored->get<int64_t>()}),
                       p, config);
  }
  expect_one_shape(y, p, name, /*broadcasts=*/kind.targets != Targets::Shares);
  if (kind.targets == Targets::YesOrNo && is_int(y.dtype())) y = checked_classes(y, 2, name);
  return kind.values(y.cast(DType::F32), p, config);
}

// --- Loss ------------------------------------------------------------------------------------------------------------------------------

struct Loss::Impl {
  std::string name;
  const LossKind* kind = nullptr;
  Config config;          // of the kind, or of an own class
  Formula formula;        // when there is no kind
  std::string own_class;  // of a formula that has a config
  Reduction reduction = Reduction::SumOverBatchSize;
  std::string identifier;  // when it was asked for by name
};

Loss::Loss(const char* identifier) : Loss(std::string(identifier)) {}

Loss::Loss(const std::string& name) {
  if (const LossMaker maker = own_losses().find(name)) {
    impl_ = maker(Config::object()).impl_;
    return;
  }
  if (is_crossentropy(name)) {
    impl_ = std::make_shared<Impl>(Impl{.name = name, .identifier = name});
    return;
  }
  const LossKind* kind = find_loss_kind(name);
  if (!kind) {
    std::vector<std::string> known = own_losses().names();
    for (const LossKind& k : kinds()) known.insert(known.end(), {k.name, k.class_name});
    known.emplace_back("crossentropy");
    unknown_name("loss", name, known, own_losses().unknown_hint(name, "register_loss"));
  }
  impl_ = std::make_shared<Impl>(
      Impl{.name = name == kind->class_name ? kind->made_name() : name, .kind = kind, .config = kind->defaults, .identifier = name});
}

Loss::Loss(std::string name, Formula formula, Reduction reduction)
    : impl_(std::make_shared<Impl>(Impl{.name = std::move(name), .formula = std::move(formula), .reduction = reduction})) {}

Loss::Loss(std::string class_name, const Config& config, Formula formula, Reduction reduction)
    : impl_(std::make_shared<Impl>(Impl{.name = snake_case(class_name),
                                        .config = config,
                                        .formula = std::move(formula),
                                        .own_class = std::move(class_name),
                                        .reduction = reduction})) {}

Loss Loss::from_config(const std::string& class_name, const Config& config) {
  if (const LossMaker maker = own_losses().find(class_name)) {
    const Loss made = maker(config);
    if (!made) user_error("loss ", class_name, ": the maker that was registered gave none");
    Impl own = *made.impl_;
    if (const auto name = config.find("name"); name != config.end() && name->is_string()) own.name = *name;
    if (const auto reduction = config.find("reduction"); reduction != config.end()) own.reduction = reduction_of(*reduction);
    return Loss(std::make_shared<const Impl>(std::move(own)));
  }
  Impl impl = *Loss(class_name).impl_;
  if (!impl.kind) user_error("loss ", class_name, ": has no config\n  hint: ask for it by its name alone");
  impl.identifier.clear();
  impl.name = impl.kind->made_name();
  for (const auto& [key, value] : config.items()) {
    if (key == "name" && value.is_string())
      impl.name = value;
    else if (key == "reduction")
      impl.reduction = reduction_of(value);
    else if (key == "fn" || key == "dtype" || key == "name")
      continue;
    else if (impl.config.contains(key) &&
             (impl.config[key].is_null() || value.is_null() || impl.config[key].is_number() == value.is_number()))
      impl.config[key] = value;
    else
      user_error("loss ", class_name, ": cannot be made with ", key, " = ", value.dump());
  }
  return Loss(std::make_shared<const Impl>(std::move(impl)));
}

Loss Loss::deserialize(const Config& saved) {
  if (saved.is_null()) return {};
  if (saved.is_string()) return Loss(saved.get<std::string>());
  if (saved.is_object() && saved.contains("class_name") && saved["class_name"].is_string()) {
    const Config& config = saved.contains("config") ? saved["config"] : Config();
    if (saved["class_name"] == "function" && config.is_string()) return Loss(config.get<std::string>());
    return from_config(own_losses().name_in(saved), config.is_object() ? config : Config::object());
  }
  user_error("loss: ", saved.dump(), " is neither a name nor a class with its config");
}

const std::string& Loss::name() const {
  static const std::string none = "none";
  return impl_ ? impl_->name : none;
}
std::string Loss::class_name() const { return !impl_ ? "" : impl_->kind ? impl_->kind->class_name : impl_->own_class; }

Config Loss::config() const {
  Config c{{"name", name()}, {"reduction", impl_ ? name_of(impl_->reduction) : "none"}};
  if (impl_ && impl_->config.is_object()) c.update(impl_->config);
  return c;
}

Config Loss::serialize() const {
  if (!impl_) return nullptr;
  if (impl_->formula) {
    const std::string& known_as = impl_->own_class.empty() ? impl_->name : impl_->own_class;
    const Config registered = own_losses().registered_name(known_as);
    if (registered.is_null())
      user_error("loss ", known_as, ": is a formula of the program's own, which a file cannot keep\n  hint: register_loss(\"", known_as,
                 "\", …) says how it is made again");
    return impl_->own_class.empty() ? own_function(registered) : own_class(known_as, registered, config());
  }
  if (!impl_->identifier.empty()) return impl_->identifier;
  return {{"module", "keras.losses"}, {"class_name", class_name()}, {"config", config()}, {"registered_name", nullptr}};
}

Loss Loss::resolved(const Dims& y_true, const Dims& y_pred) const {
  if (!impl_ || impl_->kind || impl_->formula) return *this;
  switch (labels_of(y_true, y_pred)) {
    case Labels::Binary: return "binary_crossentropy";
    case Labels::Sparse: return "sparse_categorical_crossentropy";
    case Labels::Categorical: return "categorical_crossentropy";
  }
  internal_error("labels of no kind");
}

Tensor Loss::values(const Tensor& y_true, const Tensor& y_pred, Where where) const {
  return frontend::for_caller(where, [&] { return raw_values(y_true, y_pred); });
}

Tensor Loss::raw_values(const Tensor& y_true, const Tensor& y_pred) const {
  if (!impl_) user_error("loss: this one is none");
  if (impl_->formula) {
    const frontend::UserScope user;
    return impl_->formula(y_true, y_pred);
  }
  if (!impl_->kind) return resolved(y_true.dims(), y_pred.dims()).raw_values(y_true, y_pred);
  try {
    return loss_values(*impl_->kind, impl_->config, y_true, y_pred, "loss");
  } catch (const nlohmann::json::exception&) {  // a number that is none, from a file
    user_error("loss ", impl_->name, ": cannot be computed with ", impl_->config.dump());
  }
}

Tensor Loss::operator()(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight, const Tensor& mask, Where where) const {
  return frontend::for_caller(where, [&] { return reduced(raw_values(y_true, y_pred), y_true, y_pred, sample_weight, mask); });
}

Tensor Loss::reduced(Tensor v, const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight, const Tensor& mask) const {
  const Reduction reduction = impl_->reduction;
  Tensor counts = mask;
  const auto keep = [&](const Tensor& kept) { counts = counts.defined() ? logical_and(counts, kept) : kept; };
  if (impl_->kind && impl_->config.contains("ignore_class") && !impl_->config["ignore_class"].is_null()) {
    keep(class_numbers(y_true, y_pred) != impl_->config["ignore_class"].get<int64_t>());
  }
  if (impl_->kind && !impl_->kind->counts_zeros) keep(v > 0);
  const Tensor weight = masked_weight(sample_weight, counts, reduction == Reduction::SumOverBatchSize ? MaskScale::Mean : MaskScale::None);
  Tensor w;
  if (weight.defined()) {
    std::tie(v, w) = same_rank(v, weight.cast(DType::F32));
    w = padded_rank(w, v.rank());  // one weight an example, several values
    v = v * w;
  }
  if (reduction == Reduction::None || v.rank() == 0) return v;
  if (reduction == Reduction::Sum) return sum(v);
  if (reduction == Reduction::MeanWithSampleWeight && w.defined()) return divide_no_nan(sum(v), sum(w));
  return mean(v);
}

void register_loss(const std::string& name, LossMaker maker) { own_losses().add(name, maker); }

// --- made with options -----------------------------------------------------------------------------------------------------------------

namespace losses {
namespace {
Loss make(const char* class_name, Config config, const Options& options) {
  config["reduction"] = name_of(options.reduction);
  if (!options.name.empty()) config["name"] = options.name;
  return Loss::from_config(class_name, config);
}
Config config_of(const Crossentropy& o) {
  return {{"from_logits", o.from_logits}, {"label_smoothing", o.label_smoothing}, {"axis", o.axis}};
}
Config config_of(const Focal& o) {
  return {{"from_logits", o.from_logits}, {"label_smoothing", o.label_smoothing}, {"axis", o.axis}, {"alpha", o.alpha}, {"gamma", o.gamma}};
}
}  // namespace

Loss BinaryCrossentropy(const Crossentropy& own, const Options& o) { return make("BinaryCrossentropy", config_of(own), o); }
Loss CategoricalCrossentropy(const Crossentropy& own, const Options& o) { return make("CategoricalCrossentropy", config_of(own), o); }
Loss SparseCategoricalCrossentropy(const SparseCrossentropy& own, const Options& o) {
  const Config ignored = own.ignore_class ? Config(*own.ignore_class) : Config();
  return make("SparseCategoricalCrossentropy", {{"from_logits", own.from_logits}, {"ignore_class", ignored}}, o);
}
Loss BinaryFocalCrossentropy(const Focal& own, const Options& o) {
  Config c = config_of(own);
  c["apply_class_balancing"] = own.apply_class_balancing;
  return make("BinaryFocalCrossentropy", c, o);
}
Loss CategoricalFocalCrossentropy(const Focal& own, const Options& o) { return make("CategoricalFocalCrossentropy", config_of(own), o); }
Loss MeanSquaredError(const Options& o) { return make("MeanSquaredError", {}, o); }
Loss MeanAbsoluteError(const Options& o) { return make("MeanAbsoluteError", {}, o); }
Loss MeanAbsolutePercentageError(const Options& o) { return make("MeanAbsolutePercentageError", {}, o); }
Loss MeanSquaredLogarithmicError(const Options& o) { return make("MeanSquaredLogarithmicError", {}, o); }
Loss Huber(double delta, const Options& o) { return make("Huber", {{"delta", delta}}, o); }
Loss LogCosh(const Options& o) { return make("LogCosh", {}, o); }
Loss Hinge(const Options& o) { return make("Hinge", {}, o); }
Loss SquaredHinge(const Options& o) { return make("SquaredHinge", {}, o); }
Loss CategoricalHinge(const Options& o) { return make("CategoricalHinge", {}, o); }
Loss KLDivergence(const Options& o) { return make("KLDivergence", {}, o); }
Loss Poisson(const Options& o) { return make("Poisson", {}, o); }
Loss CosineSimilarity(int64_t axis, const Options& o) { return make("CosineSimilarity", {{"axis", axis}}, o); }
Loss Dice(const Options& o) { return make("Dice", {}, o); }
Loss Tversky(double alpha, double beta, const Options& o) { return make("Tversky", {{"alpha", alpha}, {"beta", beta}}, o); }

Loss CTC(const Options& o) { return make("CTC", {}, o); }
Loss Circle(const CircleOptions& own, const Options& o) {
  return make("Circle", {{"gamma", own.gamma}, {"margin", own.margin}, {"remove_diagonal", own.remove_diagonal}}, o);
}

}  // namespace losses
}  // namespace tandem::nn
