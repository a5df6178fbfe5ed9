// The rows of the losses, which metrics of the same name use too.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <tandem/nn/config.hpp>
#include <tandem/tensor.hpp>

namespace tandem::nn {

// How a loss's targets belong to its predictions. Of one shape with them: numbers, numbers from 0 to 1, shares of the classes in each row.
// Else: one class a row, classes in sequences that the loss itself looks at, anything that it looks at.
enum class Targets : uint8_t { Values, YesOrNo, Shares, Classes, ClassSequences, Own };

struct LossKind {
  const char* class_name;
  const char* name;  // the function's
  std::vector<const char*> aliases;
  Config defaults;
  Tensor (*values)(const Tensor& y_true, const Tensor& y_pred, const Config& config);
  Targets targets = Targets::Values;
  bool counts_zeros = true;       // false: a value of 0 is an example without one, and no part of a mean
  const char* made_name() const;  // what an object of the class is called: the function's name but for Huber
};

Tensor ctc_loss(const Tensor& labels, const Tensor& logits, const Config& config);
Tensor circle_loss(const Tensor& labels, const Tensor& embeddings, const Config& config);  // 0: an example without a pair

const LossKind* find_loss_kind(std::string_view name);  // by class, function or short name; null when there is none
// UserError with a hint unless targets and predictions have the same shape, or, if that is allowed, meet by broadcasting.
void expect_one_shape(const Tensor& y_true, const Tensor& y_pred, const std::string& what, bool broadcasts);
// The values of one batch; brings ranks together and refuses shapes that do not fit. `what` is "loss" or "metric".
Tensor loss_values(const LossKind& kind, const Config& config, const Tensor& y_true, const Tensor& y_pred, std::string_view what);

}  // namespace tandem::nn
