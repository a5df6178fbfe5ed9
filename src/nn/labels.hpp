// Class numbers as targets: how they stand beside predictions, and that they are classes at all.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <tandem/function.hpp>
#include <tandem/nn/losses.hpp>
#include <tandem/nn/metrics.hpp>
#include <tandem/tensor.hpp>

namespace tandem::nn {

// The targets, or, when it runs, a UserError in the name of `what` that says which of them is no class.
Tensor checked_classes(const Tensor& y, const Dim& classes, const std::string& what, const std::vector<int64_t>& ignored = {});
// Targets of sparse losses and metrics: [n] or [n,1] beside [n,c]. UserError for other shapes; checked.
Tensor class_rows(const Tensor& y_true, const Tensor& y_pred, const std::string& what, const std::vector<int64_t>& ignored = {});

// While it lives, this thread traces a part of a step whose targets are looked at before each call, so that a refused batch changes nothing
// and the step needs no check of its own.
class TargetsAreChecked {
 public:
  explicit TargetsAreChecked(bool are_checked);
  ~TargetsAreChecked();
  TargetsAreChecked(const TargetsAreChecked&) = delete;
  TargetsAreChecked& operator=(const TargetsAreChecked&) = delete;

 private:
  const bool outer_;
};

// What to look for in the targets of one output.
struct ClassTargets {
  int64_t classes = 0;
  std::vector<int64_t> ignored = {};
  bool is_yes_or_no = false;
};
// Nothing: these targets are not numbers of so many classes.
std::optional<ClassTargets> class_targets(const Loss& loss, const Spec& target, const Spec& output);
std::optional<ClassTargets> class_targets(const Metric& metric, const Spec& target, const Spec& output);

}  // namespace tandem::nn
