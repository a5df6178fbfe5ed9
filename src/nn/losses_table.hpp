// The rows of the losses, which metrics of the same name use too.
#pragma once
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <tandem/nn/config.hpp>
#include <tandem/tensor.hpp>

namespace tandem::nn {

struct LossKind {
  const char* class_name;
  const char* name;  // the function's
  std::vector<const char*> aliases;
  Config defaults;
  Tensor (*values)(const Tensor& y_true, const Tensor& y_pred, const Config& config);
  const char* made_name() const;  // what an object of the class is called: the function's name but for Huber
};

Tensor ctc_loss(const Tensor& labels, const Tensor& logits, const Config& config);
Tensor circle_loss(const Tensor& labels, const Tensor& embeddings,
                   const Config& config);  // 0: an example without a pair, which does not count

const LossKind* find_loss_kind(std::string_view name);  // by class, function or short name; null when there is none
// The values of one batch; brings ranks together and refuses shapes that do not fit. `what` is "loss" or "metric".
Tensor loss_values(const LossKind& kind, const Config& config, const Tensor& y_true, const Tensor& y_pred, std::string_view what);

}  // namespace tandem::nn
