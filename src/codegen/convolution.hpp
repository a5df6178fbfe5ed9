// Convolutions taken apart: sizes and steps with always three spatial axes, and where the elements of their operands lie. For devices with
// kernels of their own for them.
#pragma once
#include <array>

#include "codegen/kernel.hpp"

namespace tandem::codegen {

inline constexpr int kSpatial = 3;  // depth, height, width; axes that an op does not have come first and have one element

// out o reads positions o * stride + k * dilation - low of the input, spread so that its elements lie input_dilation apart.
struct ConvAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, input_dilation = 1, low = 0;
};

struct Conv {
  int64_t batch, channels, filters, groups;
  std::array<ConvAxis, kSpatial> axes;
  int64_t outputs() const { return axes[0].out * axes[1].out * axes[2].out; }  // pixels of one image
  int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  double work() const {  // multiplications
    return static_cast<double>(batch * outputs()) * static_cast<double>(taps() * channels) * static_cast<double>(filters);
  }
};

// Sizes from the shapes of the three tensors and the op's attributes (of general_conv or conv_kernel_gradient).
Conv conv_of(const ir::Attrs& attrs, const Shape& x, const Shape& w, const Shape& y);

// Element steps of a tensor [batch, spatial, channels].
struct ImageSteps {
  int64_t batch, channel;
  std::array<int64_t, kSpatial> axes;
};
ImageSteps image_steps(const codegen::Layout& x);
// Likewise of a kernel [spatial, channels, filters].
struct KernelSteps {
  int64_t channel, filter;
  std::array<int64_t, kSpatial> axes;
};
KernelSteps kernel_steps(const codegen::Layout& w);

}  // namespace tandem::codegen
