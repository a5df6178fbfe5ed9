// Layers that walk along a sequence [batch, time, features]. Further inputs are the states to begin with: lstm({x, h, c}).
#pragma once
#include <tandem/nn/layers/core.hpp>

namespace tandem::nn {

struct LSTMOptions {
  ActivationFunction activation = "tanh", recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform", recurrent_initializer = "orthogonal", bias_initializer = "zeros";
  bool unit_forget_bias = true;  // the forget gate begins open
  Regularizer kernel_regularizer = {}, recurrent_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  Constraint kernel_constraint = {}, recurrent_constraint = {}, bias_constraint = {};
  double dropout = 0.0, recurrent_dropout = 0.0;
  std::optional<int64_t> seed = {};
  bool return_sequences = false, return_state = false, go_backwards = false;
  bool unroll = false;                // kept for files; compiled code does not differ
  bool zero_output_for_mask = false;  // masked steps give zeros instead of the step before
  std::string name = {};
};
struct LSTM : Layer {
  explicit LSTM(int64_t units, const LSTMOptions& options = {});
};

struct GRUOptions {
  ActivationFunction activation = "tanh", recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform", recurrent_initializer = "orthogonal", bias_initializer = "zeros";
  Regularizer kernel_regularizer = {}, recurrent_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  Constraint kernel_constraint = {}, recurrent_constraint = {}, bias_constraint = {};
  double dropout = 0.0, recurrent_dropout = 0.0;
  bool reset_after = true;  // the reset gate applies to the product with the state, or to the state
  std::optional<int64_t> seed = {};
  bool return_sequences = false, return_state = false, go_backwards = false;
  bool unroll = false;
  bool zero_output_for_mask = false;
  std::string name = {};
};
struct GRU : Layer {
  explicit GRU(int64_t units, const GRUOptions& options = {});
};

struct SimpleRNNOptions {
  ActivationFunction activation = "tanh";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform", recurrent_initializer = "orthogonal", bias_initializer = "zeros";
  Regularizer kernel_regularizer = {}, recurrent_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  Constraint kernel_constraint = {}, recurrent_constraint = {}, bias_constraint = {};
  double dropout = 0.0, recurrent_dropout = 0.0;
  std::optional<int64_t> seed = {};
  bool return_sequences = false, return_state = false, go_backwards = false;
  bool unroll = false;
  bool zero_output_for_mask = false;
  std::string name = {};
};
struct SimpleRNN : Layer {
  explicit SimpleRNN(int64_t units, const SimpleRNNOptions& options = {});
};

struct BidirectionalOptions {
  std::optional<std::string> merge_mode = "concat";  // concat, sum, ave, mul; none: both outputs
  Layer backward_layer = {};                         // default: the same layer, walking backwards
  std::string name = {};
};
// A recurrent layer in both directions. The layer given is a pattern: both directions have weights of their own.
struct Bidirectional : Layer {
  explicit Bidirectional(const Layer& layer, const BidirectionalOptions& options = {});
};

// The same layer at each time step.
struct TimeDistributed : Layer {
  explicit TimeDistributed(const Layer& layer, const NamedOptions& options = {});
};

}  // namespace tandem::nn
