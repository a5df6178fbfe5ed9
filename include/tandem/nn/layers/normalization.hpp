// Layers that bring what they are given to a common scale.
#pragma once
#include <tandem/nn/layers/core.hpp>

namespace tandem::nn {

struct BatchNormalizationOptions {
  int64_t axis = -1;
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true, scale = true;
  Initializer beta_initializer = "zeros", gamma_initializer = "ones";
  Initializer moving_mean_initializer = "zeros", moving_variance_initializer = "ones";
  Regularizer beta_regularizer = {}, gamma_regularizer = {};
  Constraint beta_constraint = {}, gamma_constraint = {};
  std::string name = {};
};
// While training by the batch, whose mean and variance move the averages that are used otherwise.
struct BatchNormalization : Layer {
  explicit BatchNormalization(const BatchNormalizationOptions& options = {});
};

struct LayerNormalizationOptions {
  IntList axis = -1;
  double epsilon = 1e-3;
  bool center = true, scale = true;
  Initializer beta_initializer = "zeros", gamma_initializer = "ones";
  Regularizer beta_regularizer = {}, gamma_regularizer = {};
  Constraint beta_constraint = {}, gamma_constraint = {};
  std::string name = {};
};
struct LayerNormalization : Layer {
  explicit LayerNormalization(const LayerNormalizationOptions& options = {});
};

struct GroupNormalizationOptions {
  int64_t axis = -1;
  double epsilon = 1e-3;
  bool center = true, scale = true;
  Initializer beta_initializer = "zeros", gamma_initializer = "ones";
  Regularizer beta_regularizer = {}, gamma_regularizer = {};
  Constraint beta_constraint = {}, gamma_constraint = {};
  std::string name = {};
};
// -1 groups: one for each channel.
struct GroupNormalization : Layer {
  explicit GroupNormalization(int64_t groups = 32, const GroupNormalizationOptions& options = {});
};

struct RMSNormalizationOptions {
  IntList axis = -1;
  double epsilon = 1e-6;
  std::string name = {};
};
// By the root of the mean of squares.
struct RMSNormalization : Layer {
  explicit RMSNormalization(const RMSNormalizationOptions& options = {});
};
struct UnitNormalization : Layer {
  explicit UnitNormalization(const IntList& axis = -1, const NamedOptions& options = {});
};

}  // namespace tandem::nn
