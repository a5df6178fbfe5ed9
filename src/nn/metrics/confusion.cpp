// Metrics that count right and wrong answers at thresholds: precision, recall, the four counts, area under a curve.
#include <algorithm>
#include <array>

#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "nn/metrics/kinds.hpp"
#include "nn/ranks.hpp"
#include "nn/saving/loading.hpp"

namespace tandem::nn {
namespace {

constexpr double kNegativeInfinity = -1e10;  // Keras's NEG_INF: below every prediction

enum Cell : size_t { kTruePositives, kFalsePositives, kTrueNegatives, kFalseNegatives, kCells };
constexpr std::array<const char*, kCells> kCellNames{"true_positives", "false_positives", "true_negatives", "false_negatives"};

std::vector<double> thresholds_of(const Config& config) {
  if (!config.contains("thresholds") || config["thresholds"].is_null())
    return {config.contains("top_k") && !config["top_k"].is_null() ? kNegativeInfinity : 0.5};
  const Config& given = config["thresholds"];
  std::vector<double> list = given.is_array() ? given.get<std::vector<double>>() : std::vector{given.get<double>()};
  for (const double t : list)
    if (!(t >= 0 && t <= 1)) user_error("metric: thresholds must be in [0, 1], got ", t);
  return list;
}

// Counts at each threshold, weighted.
class Confusion : public MetricBody {
 public:
  Confusion(const MetricKind& kind, Config config, std::vector<double> thresholds, const std::vector<Cell>& cells)
      : config_(std::move(config)), class_name_(kind.class_name), thresholds_(thresholds.begin(), thresholds.end()), cells_(cells) {
    if (!by_label()) make_state({count()});
  }
  void build(const Dims&, const Dims& y_pred) override {
    if (!by_label()) return;
    const Dim labels = y_pred.empty() ? Dim(0) : y_pred.back();
    const std::optional<int64_t> declared = option("num_labels");
    if (y_pred.size() != 2 || !labels.is_const())
      user_error("metric ", class_name_, ": multi_label needs predictions of two axes, the labels' known, they have ", y_pred.size());
    if (declared && *declared != labels.value())
      user_error("metric ", class_name_, ": predictions have ", labels.value(), " labels, num_labels is ", *declared);
    make_state({count(), labels.value()});
  }
  std::string class_name() const override { return class_name_; }
  Config config() const override { return config_; }

  void update(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) override {
    auto [p, y] = same_rank(y_pred.cast(DType::F32), y_true.cast(DType::F32));
    Tensor weight;
    if (sample_weight.defined()) weight = same_rank(y, sample_weight.cast(DType::F32).expand_dims(-1), Expand::No).second;
    if (option("top_k")) p = top_k_only(p, *option("top_k"));
    if (option("class_id")) {
      if (p.rank() < 2) user_error("metric ", class_name_, ": class_id needs predictions of at least two axes, they are ", p.type_str());
      const Slice one(*option("class_id"), *option("class_id") + 1);
      y = y(ellipsis, one);
      p = p(ellipsis, one);
    }
    if (weight.defined()) weight = padded_rank(weight, p.rank());
    if (const std::vector<float> own = label_weights(); !own.empty() && !by_label()) {
      const Tensor columns = Tensor::from(own);
      weight = weight.defined() ? weight * columns : columns;
    }
    // [threshold, prediction], or [threshold, prediction, label]
    const auto laid_out = [&](const Tensor& t) { return (by_label() ? t : t.flatten()).expand_dims(0); };
    if (weight.defined()) weight = laid_out(broadcast_to(weight, p.dims()));
    const Tensor limits = Tensor::from(thresholds_, by_label() ? Shape{count(), 1, 1} : Shape{count(), 1});
    const Tensor is_yes = laid_out(y != 0), says_yes = laid_out(p) > limits;
    const auto add = [&](Cell cell, const Tensor& hit) {
      if (!state_[cell].defined()) return;
      const Tensor value = hit.cast(DType::F32);
      state_[cell].assign_add(sum(weight.defined() ? value * weight : value, 1));
    };
    add(kTruePositives, logical_and(is_yes, says_yes));
    add(kFalsePositives, logical_and(!is_yes, says_yes));
    add(kTrueNegatives, logical_and(!is_yes, !says_yes));
    add(kFalseNegatives, logical_and(is_yes, !says_yes));
  }

 protected:
  Tensor cell(Cell c) const {
    if (!state_[c].defined()) user_error("metric ", class_name_, ": has no state before it has seen predictions");
    return state_[c].value();
  }
  bool by_label() const { return config_.contains("multi_label") && config_["multi_label"].get<bool>(); }
  std::vector<float> label_weights() const {
    if (!config_.contains("label_weights") || config_["label_weights"].is_null()) return {};
    return config_["label_weights"].get<std::vector<float>>();
  }
  // One number for one threshold.
  Tensor shaped(const Tensor& t) const { return thresholds_.size() == 1 ? t[0] : t; }
  const Config config_;

 private:
  int64_t count() const { return static_cast<int64_t>(thresholds_.size()); }
  void make_state(const Shape& shape) {
    for (const Cell cell : cells_) state_[cell] = add_variable(cells_.size() == 1 ? "accumulator" : kCellNames[cell], shape);
  }
  std::optional<int64_t> option(const char* key) const {
    if (!config_.contains(key) || config_[key].is_null()) return {};
    return config_[key].get<int64_t>();
  }
  static Tensor top_k_only(const Tensor& p, int64_t k) {
    const Tensor last = tandem::top_k(p, k)[0](ellipsis, Slice(k - 1, k));
    return where(p >= last, p, kNegativeInfinity);
  }

  const std::string class_name_;
  const std::vector<float> thresholds_;
  const std::vector<Cell> cells_;
  std::array<Variable, kCells> state_;
};

template <Cell counted> class Count final : public Confusion {
 public:
  Count(const MetricKind& kind, const Config& config) : Confusion(kind, config, thresholds_of(config), {counted}) {}
  Tensor result() const override { return shaped(cell(counted)); }
};

// true positives / (true positives + other)
template <Cell other> class Share final : public Confusion {
 public:
  Share(const MetricKind& kind, const Config& config) : Confusion(kind, config, thresholds_of(config), {kTruePositives, other}) {}
  Better better() const override { return Better::Higher; }
  Tensor result() const override { return shaped(divide_no_nan(cell(kTruePositives), cell(kTruePositives) + cell(other))); }
};

class Auc final : public Confusion {
 public:
  Auc(const MetricKind& kind, const Config& config)
      : Confusion(kind, config, spread_thresholds(config), {kTruePositives, kFalsePositives, kTrueNegatives, kFalseNegatives}) {
    for (const auto& [key, allowed] :
         {std::pair("curve", std::vector{"ROC", "PR"}), {"summation_method", {"interpolation", "minoring", "majoring"}}})
      if (std::ranges::find(allowed, config[key].get<std::string>()) == allowed.end())
        user_error("metric AUC: ", key, " ", config[key].dump(), " is none of ", Config(allowed).dump());
    if (!config["num_labels"].is_null() && !by_label()) user_error("metric AUC: num_labels goes with multi_label only");
    for (const float w : label_weights())
      if (!(w >= 0)) user_error("metric AUC: label_weights must not be negative, got ", w);
  }
  Better better() const override { return Better::Higher; }
  void update(const Tensor& y, const Tensor& p, const Tensor& weight) override {
    Confusion::update(y, config_["from_logits"].get<bool>() ? sigmoid(p) : p, weight);
  }

  Tensor result() const override {
    const Tensor tp = cell(kTruePositives), fp = cell(kFalsePositives), tn = cell(kTrueNegatives), fn = cell(kFalseNegatives);
    const bool is_roc = config_["curve"] == "ROC";
    const std::string method = config_["summation_method"];
    if (!is_roc && method == "interpolation") return total(interpolated_precision(tp, fp, fn));
    const Tensor recall = divide_no_nan(tp, tp + fn);
    const Tensor x = is_roc ? divide_no_nan(fp, fp + tn) : recall, y = is_roc ? recall : divide_no_nan(tp, tp + fp);
    const Tensor left = but_last(y), right = but_first(y);
    const Tensor heights = method == "interpolation" ? (left + right) / 2
                           : method == "minoring"    ? minimum(left, right)
                                                     : maximum(left, right);
    return total((but_last(x) - but_first(x)) * heights);
  }

 private:
  // Of the areas between thresholds; of several labels their mean.
  Tensor total(const Tensor& areas) const {
    if (!by_label()) return sum(areas);
    const Tensor each = sum(areas, 0);
    const std::vector<float> own = label_weights();
    if (own.empty()) return mean(each);
    const Tensor weights = Tensor::from(own);
    return divide_no_nan(sum(each * weights), sum(weights));
  }
  static std::vector<double> spread_thresholds(const Config& config) {
    std::vector<double> inner;
    if (config.contains("thresholds") && !config["thresholds"].is_null()) {
      inner = thresholds_of(config);
      std::ranges::sort(inner);
    } else {
      const int64_t n = config["num_thresholds"];
      if (n <= 1) user_error("metric AUC: num_thresholds is ", n, ", it must be at least 2");
      LoadingScope::take_constant("metric AUC: num_thresholds", n);
      for (int64_t i = 1; i < n - 1; ++i) inner.push_back(static_cast<double>(i) / static_cast<double>(n - 1));
    }
    inner.insert(inner.begin(), -kEpsilon);
    inner.push_back(1 + kEpsilon);
    return inner;
  }
  static Tensor but_last(const Tensor& t) { return t[Slice(_, -1)]; }
  static Tensor but_first(const Tensor& t) { return t[Slice(1, _)]; }

  // Davis and Goadrich, "The relationship between precision-recall and ROC curves", 2006.
  static Tensor interpolated_precision(const Tensor& tp, const Tensor& fp, const Tensor& fn) {
    const Tensor p = tp + fp, p_left = but_last(p), p_right = but_first(p), tp_right = but_first(tp);
    const Tensor dtp = but_last(tp) - tp_right;
    const Tensor slope = divide_no_nan(dtp, maximum(p_left - p_right, 0)), intercept = tp_right - slope * p_right;
    const Tensor ratio = where(logical_and(p_left > 0, p_right > 0), divide_no_nan(p_left, maximum(p_right, 0)), 1.0f);
    return divide_no_nan(slope * (dtp + intercept * log(ratio)), maximum(tp_right + but_first(fn), 0));
  }
};

template <class Body> std::shared_ptr<MetricBody> make(const MetricKind& kind, const Config& config) {
  return std::make_shared<Body>(kind, config);
}

}  // namespace

std::vector<MetricKind> confusion_metric_kinds() {
  const Config thresholds{{"thresholds", nullptr}};
  const Config share{{"thresholds", nullptr}, {"top_k", nullptr}, {"class_id", nullptr}};
  const Config auc{{"num_thresholds", 200}, {"curve", "ROC"},        {"summation_method", "interpolation"},
                   {"multi_label", false},  {"num_labels", nullptr}, {"label_weights", nullptr},
                   {"from_logits", false}};
  return {{"TruePositives", "true_positives", {}, thresholds, make<Count<kTruePositives>>},
          {"TrueNegatives", "true_negatives", {}, thresholds, make<Count<kTrueNegatives>>},
          {"FalsePositives", "false_positives", {}, thresholds, make<Count<kFalsePositives>>},
          {"FalseNegatives", "false_negatives", {}, thresholds, make<Count<kFalseNegatives>>},
          {"Precision", "precision", {}, share, make<Share<kFalsePositives>>},
          {"Recall", "recall", {}, share, make<Share<kFalseNegatives>>},
          {"AUC", "auc", {}, auc, make<Auc>}};
}

}  // namespace tandem::nn
