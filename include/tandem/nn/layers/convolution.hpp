// Convolutions in one to three spatial axes. Sizes, strides and rates are one number for all axes or one for each.
#pragma once
#include <tandem/nn/layers/core.hpp>

namespace tandem::nn {

struct ConvOptions {
  IntList strides = 1;
  std::string padding = "valid";  // valid, same; in one axis also causal
  std::string data_format = "channels_last";
  IntList dilation_rate = 1;
  int64_t groups = 1;
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform", bias_initializer = "zeros";
  Regularizer kernel_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  Constraint kernel_constraint = {}, bias_constraint = {};
  std::string name = {};
};
struct Conv1D : Layer {
  Conv1D(int64_t filters, const IntList& kernel_size, const ConvOptions& options = {});
};
struct Conv2D : Layer {
  Conv2D(int64_t filters, const IntList& kernel_size, const ConvOptions& options = {});
};
struct Conv3D : Layer {
  Conv3D(int64_t filters, const IntList& kernel_size, const ConvOptions& options = {});
};

struct ConvTransposeOptions {
  IntList strides = 1;
  std::string padding = "valid";
  IntList output_padding = {};
  std::string data_format = "channels_last";
  IntList dilation_rate = 1;
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform", bias_initializer = "zeros";
  Regularizer kernel_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  Constraint kernel_constraint = {}, bias_constraint = {};
  std::string name = {};
};
struct Conv1DTranspose : Layer {
  Conv1DTranspose(int64_t filters, const IntList& kernel_size, const ConvTransposeOptions& options = {});
};
struct Conv2DTranspose : Layer {
  Conv2DTranspose(int64_t filters, const IntList& kernel_size, const ConvTransposeOptions& options = {});
};
struct Conv3DTranspose : Layer {
  Conv3DTranspose(int64_t filters, const IntList& kernel_size, const ConvTransposeOptions& options = {});
};

struct DepthwiseConvOptions {
  IntList strides = 1;
  std::string padding = "valid";
  int64_t depth_multiplier = 1;
  std::string data_format = "channels_last";
  IntList dilation_rate = 1;
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform", bias_initializer = "zeros";
  Regularizer depthwise_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  Constraint depthwise_constraint = {}, bias_constraint = {};
  std::string name = {};
};
// Each channel by itself.
struct DepthwiseConv1D : Layer {
  explicit DepthwiseConv1D(const IntList& kernel_size, const DepthwiseConvOptions& options = {});
};
struct DepthwiseConv2D : Layer {
  explicit DepthwiseConv2D(const IntList& kernel_size, const DepthwiseConvOptions& options = {});
};

struct SeparableConvOptions {
  IntList strides = 1;
  std::string padding = "valid";
  std::string data_format = "channels_last";
  IntList dilation_rate = 1;
  int64_t depth_multiplier = 1;
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform", pointwise_initializer = "glorot_uniform", bias_initializer = "zeros";
  Regularizer depthwise_regularizer = {}, pointwise_regularizer = {}, bias_regularizer = {}, activity_regularizer = {};
  Constraint depthwise_constraint = {}, pointwise_constraint = {}, bias_constraint = {};
  std::string name = {};
};
// Each channel by itself, then all channels at each place.
struct SeparableConv1D : Layer {
  SeparableConv1D(int64_t filters, const IntList& kernel_size, const SeparableConvOptions& options = {});
};
struct SeparableConv2D : Layer {
  SeparableConv2D(int64_t filters, const IntList& kernel_size, const SeparableConvOptions& options = {});
};

}  // namespace tandem::nn
