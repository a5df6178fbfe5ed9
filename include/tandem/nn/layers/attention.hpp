// Attention.
#pragma once
#include <tandem/nn/layers/core.hpp>

namespace tandem::nn {

struct MultiHeadAttentionOptions {
  std::optional<int64_t> value_dim = {};  // default: key_dim
  double dropout = 0.0;
  bool use_bias = true;
  bool use_gate = false;                     // a gate, made of the query, on what the heads give
  std::vector<int64_t> output_shape = {};    // default: the features of the query
  std::vector<int64_t> attention_axes = {};  // default: all but batch and features
  std::optional<int64_t> sliding_window = {};
  Initializer kernel_initializer = "glorot_uniform", bias_initializer = "zeros";
  Regularizer kernel_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  Constraint kernel_constraint = {}, bias_constraint = {};
  std::optional<int64_t> seed = {};
  std::string name = {};
};
// attention({query, value}), ({query, value, key}) or ({query, value, key, mask}); the mask is true where a query, along its last axis
// but one, may look at a key, along its last. {{"use_causal_mask", true}} among the flags hides what comes later. Masks of earlier layers
// count too.
struct MultiHeadAttention : Layer {
  MultiHeadAttention(int64_t num_heads, int64_t key_dim, const MultiHeadAttentionOptions& options = {});
};

}  // namespace tandem::nn
