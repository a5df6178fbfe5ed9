// Metrics with a state of their own kind: sum, root of the mean square, F scores, intersection over union, coefficient of determination.
#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "nn/labels.hpp"
#include "nn/metrics/kinds.hpp"
#include "nn/ranks.hpp"

namespace tandem::nn {
namespace {

class Named : public MetricBody {
 public:
  Named(const MetricKind& kind, Config config) : config_(std::move(config)), class_name_(kind.class_name) {}
  std::string class_name() const override { return class_name_; }
  Config config() const override { return config_; }

 protected:
  // The number of columns, for metrics over [batch, columns].
  int64_t columns(const Dims& y_true, const Dims& y_pred) const {
    if (y_true.size() != 2 || y_pred.size() != 2 || !y_pred[1].is_const())
      user_error("metric ", class_name_, ": targets and predictions must be [batch, n], they are ", str(y_true), " and ", str(y_pred));
    return y_pred[1].value();
  }
  const Config config_;

 private:
  const std::string class_name_;
};

class SumOf final : public Named {
 public:
  using Named::Named;
  void update(const Tensor&, const Tensor& values, const Tensor& sample_weight) override {
    Tensor v = values.cast(DType::F32);
    if (sample_weight.defined()) {
      const auto [a, w] = same_rank(v, sample_weight.cast(DType::F32));
      v = a * padded_rank(w, a.rank());
    }
    total_.assign_add(sum(v));
  }
  Tensor result() const override { return total_.value(); }

 private:
  const Variable total_ = add_variable("total", {});
};

class RootMeanSquare final : public Named {
 public:
  using Named::Named;
  Better better() const override { return Better::Lower; }
  void update(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) override {
    const auto [y, p] = same_rank(y_true.cast(DType::F32), y_pred.cast(DType::F32));
    const auto [values, weight] = samplewise(square(p - y), sample_weight);
    total_.assign_add(sum(values));
    count_.assign_add(weight.defined() ? sum(weight) : extent(values.dims()[0], DType::F32));
  }
  Tensor result() const override { return sqrt(divide_no_nan(total_, count_)); }

 private:
  const Variable total_ = add_variable("total", {}), count_ = add_variable("count", {});
};

class FBeta final : public Named {
 public:
  FBeta(const MetricKind& kind, const Config& config) : Named(kind, config) {
    const Config& average = config["average"];
    if (!average.is_null() && average != "micro" && average != "macro" && average != "weighted")
      user_error("metric ", kind.class_name, ": average ", average.dump(), R"( is none of null, "micro", "macro", "weighted")");
    if (beta() <= 0) user_error("metric ", kind.class_name, ": beta is ", beta(), ", it must be above 0");
    if (const Config& t = config["threshold"]; !t.is_null() && !(t.get<double>() > 0 && t.get<double>() <= 1))
      user_error("metric ", kind.class_name, ": threshold is ", t.get<double>(), ", it must be in (0, 1]");
  }
  Better better() const override { return Better::Higher; }
  void build(const Dims& y_true, const Dims& y_pred) override {
    const int64_t n = columns(y_true, y_pred);
    const Shape shape = is_micro() ? Shape{} : Shape{n};
    tp_ = add_variable("true_positives", shape);
    fp_ = add_variable("false_positives", shape);
    fn_ = add_variable("false_negatives", shape);
    weights_ = add_variable("intermediate_weights", shape);
  }
  void update(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) override {
    const Tensor y = y_true.cast(DType::F32), raw = y_pred.cast(DType::F32);
    const Config& threshold = config_["threshold"];
    const Tensor p = (threshold.is_null() ? logical_and(raw >= max(raw, -1, true), absolute(raw) > 1e-9) : raw > threshold.get<double>())
                         .cast(DType::F32);
    const auto weighted = [&](const Tensor& v) {
      return sum(sample_weight.defined() ? v * padded_rank(sample_weight.cast(DType::F32), 2) : v, is_micro() ? IntList() : IntList(0));
    };
    tp_.assign_add(weighted(p * y));
    fp_.assign_add(weighted(p * (1 - y)));
    fn_.assign_add(weighted((1 - p) * y));
    weights_.assign_add(weighted(y));
  }
  Tensor result() const override {
    const double square_beta = beta() * beta();
    const Tensor precision = tp_ / (tp_ + fp_ + kEpsilon), recall = tp_ / (tp_ + fn_ + kEpsilon);
    const Tensor score = precision * recall / (square_beta * precision + recall + kEpsilon) * (1 + square_beta);
    if (config_["average"] == "weighted") return sum(score * (weights_ / (sum(weights_) + kEpsilon)));
    return config_["average"].is_null() ? score : mean(score);
  }

 private:
  bool is_micro() const { return config_["average"] == "micro"; }
  double beta() const { return config_.contains("beta") ? config_["beta"].get<double>() : 1.0; }
  Variable tp_, fp_, fn_, weights_;
};

// Over a confusion matrix of whole numbers.
class IntersectionOverUnion final : public Named {
 public:
  IntersectionOverUnion(const MetricKind& kind, const Config& config) : Named(kind, config) {
    if (!config["num_classes"].is_number_integer() || config["num_classes"].get<int64_t>() < 1)
      user_error("metric ", kind.class_name, ": num_classes is ", config["num_classes"].dump(), ", it must be a positive number");
    classes_ = config["num_classes"];
    matrix_ = add_variable("total_confusion_matrix", {classes_, classes_}, DType::I32);
    if (config.contains("target_class_ids")) {
      targets_ = config["target_class_ids"].get<std::vector<int64_t>>();
    } else {
      for (int64_t i = 0; i < classes_; ++i) targets_.push_back(i);
    }
    for (const int64_t id : targets_)
      if (id < 0 || id >= classes_) user_error("metric ", kind.class_name, ": target class ", id, " is not in [0, ", classes_, ")");
  }
  Better better() const override { return Better::Higher; }
  void update(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) override {
    const auto numbers = [&](const Tensor& t, const char* sparse) {
      return (config_[sparse].get<bool>() ? t : t.argmax(config_["axis"].get<int64_t>())).cast(DType::I32).flatten();
    };
    std::vector<int64_t> ignored;
    if (!config_["ignore_class"].is_null()) ignored.push_back(config_["ignore_class"]);
    const bool is_sparse = config_["sparse_y_true"].get<bool>();
    const Tensor labels = is_sparse ? checked_classes(y_true, classes_, "metric " + class_name(), ignored) : y_true;
    const Tensor y = numbers(labels, "sparse_y_true"), p = numbers(y_pred, "sparse_y_pred");
    Tensor counts = logical_and(logical_and(y >= 0, y < classes_), logical_and(p >= 0, p < classes_));
    for (const int64_t c : ignored) counts = logical_and(counts, y != c);
    Tensor weight = counts.cast(DType::I32);
    if (sample_weight.defined()) weight = weight * sample_weight.cast(DType::I32).flatten();
    matrix_.assign_add(segment_sum(weight, where(counts, y * classes_ + p, 0), classes_ * classes_).reshape({classes_, classes_}));
  }
  Tensor result() const override {
    const Tensor m = matrix_.value(), targets = Tensor::from(targets_);
    const Tensor hits = take(diagonal(m), targets).cast(DType::F32);
    const Tensor united = take(m.sum(0) + m.sum(1) - diagonal(m), targets).cast(DType::F32);
    const Tensor is_there = united > 1e-9;
    return sum(where(is_there, hits / (united + kEpsilon), 0)) / (sum(is_there.cast(DType::F32)) + kEpsilon);
  }

 private:
  int64_t classes_ = 0;
  std::vector<int64_t> targets_;
  Variable matrix_;
};

class R2 final : public Named {
 public:
  R2(const MetricKind& kind, const Config& config) : Named(kind, config) {
    const Config& a = config["class_aggregation"];
    if (!a.is_null() && a != "uniform_average" && a != "variance_weighted_average")
      user_error("metric R2Score: class_aggregation ", a.dump(), R"( is none of null, "uniform_average", "variance_weighted_average")");
    if (config["num_regressors"] != 0)
      user_error("metric R2Score: num_regressors is ", config["num_regressors"].dump(), ", only 0 is available");
  }
  Better better() const override { return Better::Higher; }
  void build(const Dims& y_true, const Dims& y_pred) override {
    Dims y = y_true;
    if (y.size() + 1 == y_pred.size()) y.emplace_back(1);
    const int64_t n = columns(y, y_pred);
    samples_ = add_variable("num_samples", {});
    squared_ = add_variable("squared_sum", {n});
    sum_ = add_variable("sum", {n});
    residual_ = add_variable("residual", {n});
    count_ = add_variable("count", {n});
  }
  void update(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) override {
    const auto [y, p] = same_rank(y_true.cast(DType::F32), y_pred.cast(DType::F32));
    const Tensor w =
        sample_weight.defined() ? broadcast_to(padded_rank(sample_weight.cast(DType::F32), 2), y.dims()) : Tensor::ones(y.dims());
    sum_.assign_add(sum(y * w, 0));
    squared_.assign_add(sum(y * y * w, 0));
    residual_.assign_add(sum(square(y - p) * w, 0));
    count_.assign_add(sum(w, 0));
    samples_.assign_add(extent(product(y.dims()), DType::F32));
  }
  Tensor result() const override {
    const Tensor total = squared_ - sum_ * (sum_ / count_), raw = 1 - residual_ / total, scores = where(is_inf(raw), 0, raw);
    if (config_["class_aggregation"].is_null()) return scores;
    return config_["class_aggregation"] == "uniform_average" ? mean(scores) : sum(total * scores) / sum(total);
  }

 private:
  Variable samples_, squared_, sum_, residual_, count_;
};

template <class Body> std::shared_ptr<MetricBody> make(const MetricKind& kind, const Config& config) {
  return std::make_shared<Body>(kind, config);
}

}  // namespace

std::vector<MetricKind> other_metric_kinds() {
  const Config none = Config::object();
  const Config iou{{"num_classes", nullptr}, {"target_class_ids", nullptr}, {"ignore_class", nullptr},
                   {"sparse_y_true", true},  {"sparse_y_pred", true},       {"axis", -1}};
  Config mean_iou = iou;
  mean_iou.erase("target_class_ids");
  return {{"Sum", "sum", {}, none, make<SumOf>},
          {"RootMeanSquaredError", "root_mean_squared_error", {}, none, make<RootMeanSquare>},
          {"FBetaScore", "fbeta_score", {}, Config{{"average", nullptr}, {"beta", 1.0}, {"threshold", nullptr}}, make<FBeta>},
          {"F1Score", "f1_score", {}, Config{{"average", nullptr}, {"threshold", nullptr}}, make<FBeta>},
          {"IoU", "io_u", {}, iou, make<IntersectionOverUnion>, true},
          {"MeanIoU", "mean_io_u", {}, mean_iou, make<IntersectionOverUnion>, true},
          {"R2Score", "r2_score", {}, Config{{"class_aggregation", "uniform_average"}, {"num_regressors", 0}}, make<R2>}};
}

}  // namespace tandem::nn
