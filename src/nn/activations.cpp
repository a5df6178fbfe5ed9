// Activations by name.
#include <tandem/ops.hpp>

#include "nn/named.hpp"

namespace tandem::nn {
namespace {

Tensor gated_linear_unit(const Tensor& x) {
  const Dim last = x.dims().back();
  Dim half;
  if (!divides_exactly(last, 2, half)) user_error("glu: the last axis of ", x.type_str(), " is halved, so its extent must be even");
  return x(ellipsis, Slice(0, half)) * sigmoid(x(ellipsis, Slice(half, last)));
}

NamedEntry<ActivationKind> entry(const char* name, Tensor (*f)(const Tensor&), std::vector<std::string> aliases = {}) {
  return {name, std::move(aliases), [name, f](const Config&) { return ActivationFunction::custom(name, f); }};
}
#define TANDEM_SAME_NAME(op) entry(#op, [](const Tensor& x) { return tandem::op(x); })

}  // namespace

template <> const char* NamedTable<ActivationKind>::what() { return "activation"; }
template <> const char* NamedTable<ActivationKind>::module() { return "keras.activations"; }
template <> bool NamedTable<ActivationKind>::by_name_only() { return true; }
template <> const std::vector<NamedEntry<ActivationKind>>& NamedTable<ActivationKind>::entries() {
  static const auto& all = *new std::vector<NamedEntry<ActivationKind>>{
      entry("linear", [](const Tensor& x) { return x; }),
      TANDEM_SAME_NAME(relu),
      TANDEM_SAME_NAME(relu6),
      entry("leaky_relu", [](const Tensor& x) { return leaky_relu(x); }),
      entry("softmax", [](const Tensor& x) { return softmax(x); }),
      entry("log_softmax", [](const Tensor& x) { return log_softmax(x); }),
      entry("elu", [](const Tensor& x) { return elu(x); }),
      entry("celu", [](const Tensor& x) { return celu(x); }),
      TANDEM_SAME_NAME(selu),
      entry("gelu", [](const Tensor& x) { return gelu(x, false); }),
      entry("silu", [](const Tensor& x) { return silu(x); }, {"swish"}),
      TANDEM_SAME_NAME(mish),
      entry("glu", gated_linear_unit),
      TANDEM_SAME_NAME(sigmoid),
      TANDEM_SAME_NAME(log_sigmoid),
      TANDEM_SAME_NAME(sparse_sigmoid),
      TANDEM_SAME_NAME(tanh),
      TANDEM_SAME_NAME(tanh_shrink),
      TANDEM_SAME_NAME(softplus),
      TANDEM_SAME_NAME(softsign),
      entry("soft_shrink", [](const Tensor& x) { return soft_shrink(x); }),
      TANDEM_SAME_NAME(sparse_plus),
      entry("squareplus", [](const Tensor& x) { return squareplus(x); }),
      entry("sparsemax", [](const Tensor& x) { return sparsemax(x); }),
      TANDEM_SAME_NAME(hard_sigmoid),
      entry("hard_silu", [](const Tensor& x) { return hard_silu(x); }, {"hard_swish"}),
      TANDEM_SAME_NAME(hard_tanh),
      entry("hard_shrink", [](const Tensor& x) { return hard_shrink(x); }),
      entry("exponential", [](const Tensor& x) { return exp(x); }),
  };
  return all;
}

template class Named<ActivationKind>;

}  // namespace tandem::nn
