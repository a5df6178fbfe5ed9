// The kinds of metrics, by Keras's class names.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <tandem/nn/metrics.hpp>

namespace tandem::nn {

struct MetricKind {
  const char* class_name;
  const char* name;  // of an object that was given none
  std::vector<const char*> aliases;
  Config defaults;
  std::shared_ptr<MetricBody> (*make)(const MetricKind& kind, const Config& config);
  bool takes_classes = false;  // targets are class numbers
};
const MetricKind* find_metric_kind(std::string_view class_name);  // null: it is none of Keras's

// In mean.cpp: those that are the mean of a value an example; in confusion.cpp and others.cpp: the others.
std::vector<MetricKind> mean_metric_kinds();
std::vector<MetricKind> confusion_metric_kinds();
std::vector<MetricKind> other_metric_kinds();

std::shared_ptr<MetricBody> mean_of(Metric::Formula formula);  // of an own formula

// Keras's reduce_to_samplewise_values: one value an example, and its weight or an undefined tensor.
struct Samplewise {
  Tensor values, weight;
};
Samplewise samplewise(const Tensor& values, const Tensor& sample_weight);

}  // namespace tandem::nn
