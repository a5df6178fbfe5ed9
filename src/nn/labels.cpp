#include "nn/labels.hpp"

#include <nlohmann/json.hpp>

#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "nn/losses_table.hpp"
#include "nn/metrics/kinds.hpp"
#include "nn/ranks.hpp"

namespace tandem::nn {
namespace {

thread_local bool targets_are_checked = false;

std::vector<int64_t> ignored_in(const Config& config) {
  const auto found = config.find("ignore_class");
  return found != config.end() && found->is_number_integer() ? std::vector{found->get<int64_t>()} : std::vector<int64_t>();
}

std::optional<ClassTargets> known_classes(const Spec& output, const Config& config) {
  if (output.dims.empty() || !output.dims.back().is_const()) return {};
  return ClassTargets{output.dims.back().value(), ignored_in(config)};
}

}  // namespace

TargetsAreChecked::TargetsAreChecked(bool are_checked) : outer_(std::exchange(targets_are_checked, are_checked)) {}
TargetsAreChecked::~TargetsAreChecked() { targets_are_checked = outer_; }

Tensor checked_classes(const Tensor& y, const Dim& classes, const std::string& what, const std::vector<int64_t>& ignored) {
  if (y.dtype() == DType::Bool && classes.is(2)) return y;
  return targets_are_checked && classes.is_const() ? y : check_classes(y, DimList{classes}, what, ignored);
}

Tensor class_rows(const Tensor& y_true, const Tensor& y_pred, const std::string& what, const std::vector<int64_t>& ignored) {
  const Tensor classes = class_numbers(y_true, y_pred);
  if (classes.rank() + 1 != y_pred.rank())
    user_error(what, ": targets are ", y_true.type_str(), ", predictions are ", y_pred.type_str(),
               ": there must be one class number for each row of predictions\n  hint: one-hot targets go with ",
               what.starts_with("loss") ? "categorical_crossentropy" : "the metrics that are not sparse");
  return checked_classes(classes, y_pred.dims().back(), what, ignored);
}

std::optional<ClassTargets> class_targets(const Loss& loss, const Spec& target, const Spec& output) {
  const LossKind* kind = loss ? find_loss_kind(loss.class_name()) : nullptr;
  if (!kind) return {};
  switch (kind->targets) {
    case Targets::YesOrNo: return is_int(target.dtype) ? std::optional(ClassTargets{2, {}, /*is_yes_or_no=*/true}) : std::nullopt;
    case Targets::Classes:
    case Targets::ClassSequences: return known_classes(output, loss.config());
    default: return {};
  }
}

std::optional<ClassTargets> class_targets(const Metric& metric, const Spec&, const Spec& output) {
  const MetricKind* kind = find_metric_kind(metric.class_name());
  if (!kind || !kind->takes_classes) return {};
  const Config config = metric.config();
  if (config.contains("num_classes")) {
    if (!config["sparse_y_true"].get<bool>()) return {};
    return ClassTargets{config["num_classes"].get<int64_t>(), ignored_in(config)};
  }
  return known_classes(output, config);
}

}  // namespace tandem::nn
