// Metrics that are the mean of a value an example: accuracies, losses as metrics, own formulas.
#include <utility>

#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "frontend/thread_state.hpp"
#include "nn/labels.hpp"
#include "nn/losses_table.hpp"
#include "nn/metrics/kinds.hpp"
#include "nn/ranks.hpp"

namespace tandem::nn {
namespace {

IntList axes(int first, int last) {
  std::vector<int64_t> list;
  for (int i = first; i < last; ++i) list.push_back(i);
  return list;
}

// --- what the means are of -------------------------------------------------------------------------------------------------------------

using Values = Tensor (*)(const Tensor& y, const Tensor& p, const Config& config);

Tensor accuracy(const Tensor& y_true, const Tensor& y_pred, const Config&) {
  const auto [y, p] = same_rank(y_true, y_pred);
  return (y.cast(p.dtype()) == p).cast(DType::F32);
}
Tensor binary_accuracy(const Tensor& y_true, const Tensor& y_pred, const Config& c) {
  const auto [y, p] = same_rank(y_true, y_pred);
  return (y == (p > c["threshold"].get<double>()).cast(y.dtype())).cast(DType::F32);
}
Tensor matches(const Tensor& classes, const Tensor& p) {
  const Tensor found = p.argmax(-1);
  return (found == classes.cast(found.dtype())).cast(DType::F32);
}
Tensor share_classes(const Tensor& y, const Tensor& p, const char* what) {  // of one-hot rows
  expect_one_shape(y, p, what, /*broadcasts=*/false);
  return y.argmax(-1);
}
Tensor categorical_accuracy(const Tensor& y, const Tensor& p, const Config&) {
  return matches(share_classes(y, p, "metric categorical_accuracy"), p);
}
Tensor sparse_categorical_accuracy(const Tensor& y, const Tensor& p, const Config&) {
  return matches(class_rows(y, p, "metric sparse_categorical_accuracy"), p);
}

Tensor in_top(const Tensor& classes, const Tensor& p, const Config& c) {
  const Tensor found = in_top_k(classes.cast(DType::I32).flatten(), p.reshape({-1, p.dims().back()}), c["k"].get<int64_t>());
  return found.cast(DType::F32).reshape(classes.dims());
}
Tensor top_k(const Tensor& y, const Tensor& p, const Config& c) {
  return in_top(share_classes(y, p, "metric top_k_categorical_accuracy"), p, c);
}
Tensor sparse_top_k(const Tensor& y, const Tensor& p, const Config& c) {
  return in_top(class_rows(y, p, "metric sparse_top_k_categorical_accuracy"), p, c);
}

Tensor cosine(const Tensor& y_true, const Tensor& y_pred, const Config& c) {
  const auto [y, p] = same_rank(y_true.cast(DType::F32), y_pred);
  const int64_t axis = c["axis"];
  return sum(normalize(y, axis) * normalize(p, axis), axis);
}

// --- the body --------------------------------------------------------------------------------------------------------------------------

class MeanOf final : public MetricBody {
 public:
  MeanOf(std::string class_name, Config config, Better better, std::function<Tensor(const Tensor&, const Tensor&)> values)
      : class_name_(std::move(class_name)), config_(std::move(config)), better_(better), values_(std::move(values)) {}
  std::string class_name() const override { return class_name_; }
  Config config() const override { return config_; }
  Better better() const override { return better_; }
  bool takes_mask() const override { return true; }
  void update(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) override {
    const auto [values, weight] = samplewise(values_(y_true, y_pred), sample_weight);
    total_.assign_add(sum(values));
    if (weight.defined())
      count_.assign_add(sum(weight));
    else
      count_.assign_add(extent(values.rank() ? values.dims()[0] : Dim(1), DType::F32));
  }
  Tensor result() const override { return divide_no_nan(total_, count_); }

 private:
  const std::string class_name_;
  const Config config_;
  const Better better_;
  const std::function<Tensor(const Tensor&, const Tensor&)> values_;
  const Variable total_ = add_variable("total", {}), count_ = add_variable("count", {});
};

template <Values values, MetricBody::Better better> std::shared_ptr<MetricBody> make(const MetricKind& kind, const Config& config) {
  return std::make_shared<MeanOf>(kind.class_name, config, better,
                                  [config](const Tensor& y, const Tensor& p) { return values(y, p, config); });
}

std::shared_ptr<MetricBody> make_loss(const MetricKind& kind, const Config& config) {
  const LossKind* loss = find_loss_kind(kind.class_name == std::string_view("LogCoshError") ? "log_cosh" : kind.class_name);
  TANDEM_CHECK(loss, "a metric of a loss that is not there");
  return std::make_shared<MeanOf>(kind.class_name, config, MetricBody::Better::Lower,
                                  [config, loss](const Tensor& y, const Tensor& p) { return loss_values(*loss, config, y, p, "metric"); });
}

std::shared_ptr<MetricBody> make_mean(const MetricKind& kind, const Config& config) {
  return std::make_shared<MeanOf>(kind.class_name, config, MetricBody::Better::Unknown, [](const Tensor&, const Tensor& p) { return p; });
}

}  // namespace

Samplewise samplewise(const Tensor& raw, const Tensor& sample_weight) {
  Tensor values = raw.cast(DType::F32), weight;
  if (sample_weight.defined()) {
    std::tie(values, weight) = same_rank(values, sample_weight.cast(DType::F32));
    if (values.rank() > weight.rank()) values = mean(values, axes(weight.rank(), values.rank()));
    weight = broadcast_to(weight, values.dims());
    values = values * weight;
    if (weight.rank() > 1) weight = mean(weight, axes(1, weight.rank()));
  }
  if (values.rank() > 1) values = mean(values, axes(1, values.rank()));
  return {values, weight};
}

std::shared_ptr<MetricBody> mean_of(Metric::Formula formula) {
  return std::make_shared<MeanOf>("", Config::object(), MetricBody::Better::Unknown,
                                  [f = std::move(formula)](const Tensor& y, const Tensor& p) {
                                    const frontend::UserScope user;
                                    return f(y, p);
                                  });
}

std::vector<MetricKind> mean_metric_kinds() {
  using enum MetricBody::Better;
  const Config none = Config::object(), top{{"k", 5}}, axis{{"axis", -1}};
  std::vector<MetricKind> kinds{
      {"Mean", "mean", {}, none, make_mean},
      {"Accuracy", "accuracy", {}, none, make<accuracy, Higher>},
      {"BinaryAccuracy", "binary_accuracy", {}, Config{{"threshold", 0.5}}, make<binary_accuracy, Higher>},
      {"CategoricalAccuracy", "categorical_accuracy", {}, none, make<categorical_accuracy, Higher>},
      {"SparseCategoricalAccuracy", "sparse_categorical_accuracy", {}, none, make<sparse_categorical_accuracy, Higher>, true},
      {"TopKCategoricalAccuracy", "top_k_categorical_accuracy", {}, top, make<top_k, Higher>},
      {"SparseTopKCategoricalAccuracy", "sparse_top_k_categorical_accuracy", {}, top, make<sparse_top_k, Higher>, true},
      {"CosineSimilarity", "cosine_similarity", {}, axis, make<cosine, Higher>},
      {"LogCoshError", "logcosh", {}, none, make_loss},
  };
  const std::pair<const char*, std::vector<const char*>> losses[] = {{"MeanSquaredError", {"mse", "MSE"}},
                                                                     {"MeanAbsoluteError", {"mae", "MAE"}},
                                                                     {"MeanAbsolutePercentageError", {"mape", "MAPE"}},
                                                                     {"MeanSquaredLogarithmicError", {"msle", "MSLE"}},
                                                                     {"KLDivergence", {}},
                                                                     {"Poisson", {}},
                                                                     {"BinaryCrossentropy", {"bce", "BCE"}},
                                                                     {"CategoricalCrossentropy", {}},
                                                                     {"SparseCategoricalCrossentropy", {}},
                                                                     {"Hinge", {}},
                                                                     {"SquaredHinge", {}},
                                                                     {"CategoricalHinge", {}}};
  for (const auto& [class_name, aliases] : losses) {
    const LossKind* loss = find_loss_kind(class_name);
    kinds.push_back({loss->class_name, loss->name, aliases, loss->defaults, make_loss, loss->targets == Targets::Classes});
  }
  return kinds;
}

}  // namespace tandem::nn
