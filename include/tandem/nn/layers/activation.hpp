// Activations as layers of their own.
#pragma once
#include <tandem/nn/layers/core.hpp>

namespace tandem::nn {

struct Activation : Layer {
  explicit Activation(const ActivationFunction& activation, const NamedOptions& options = {});
};

struct ReLUOptions {
  std::optional<double> max_value = {};
  double negative_slope = 0.0;
  double threshold = 0.0;
  std::string name = {};
};
struct ReLU : Layer {
  explicit ReLU(const ReLUOptions& options = {});
};
struct LeakyReLU : Layer {
  explicit LeakyReLU(double negative_slope = 0.3, const NamedOptions& options = {});
};

struct PReLUOptions {
  Initializer alpha_initializer = "zeros";
  Regularizer alpha_regularizer = {};
  Constraint alpha_constraint = {};
  IntList shared_axes = {};  // axes along which one slope serves all
  std::string name = {};
};
// The slope below zero is learned.
struct PReLU : Layer {
  explicit PReLU(const PReLUOptions& options = {});
};
struct ELU : Layer {
  explicit ELU(double alpha = 1.0, const NamedOptions& options = {});
};
// With a mask as second input, or from earlier layers, what it leaves out gets no share.
struct Softmax : Layer {
  explicit Softmax(const IntList& axis = -1, const NamedOptions& options = {});
};

}  // namespace tandem::nn
