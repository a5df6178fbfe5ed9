// What kernels of convolutions share: an op's sizes and steps with always three spatial axes, and which input positions its outputs read.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "codegen/kernel.hpp"

namespace tandem::cpu {

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
// Whether the register tiles are for it, forward or back; else the reason why not.
bool tiles_take(const Conv& conv, DType operands, DType result, std::string& refusal);

// Element steps of a tensor [batch, spatial, channels].
struct ImageSteps {
  int64_t batch, channel;
  std::array<int64_t, kSpatial> axes;
};
ImageSteps image_steps(const codegen::Operand& x);
// Likewise of a kernel [spatial, channels, filters].
struct KernelSteps {
  int64_t channel, filter;
  std::array<int64_t, kSpatial> axes;
};
KernelSteps kernel_steps(const codegen::Operand& w);

// Outputs first, first + step, … along one axis, which read the same taps at positions that move on by `stride`. With a spread input most
// taps meet the gaps; sorted by phase, only those that meet an element are left.
struct Phase {
  struct Tap {
    int64_t kernel, position;  // where in the kernel; which element of the input for the first output
  };
  int64_t first, step, count, stride;
  std::vector<Tap> taps;
  // The first index of this phase whose output is not before this one.
  int64_t index_from(int64_t output) const { return output <= first ? 0 : (output - first + step - 1) / step; }
};
std::vector<Phase> phases(const ConvAxis& axis);
// The same outputs in more phases, each with only the taps that meet the input's elements and none that lie beyond them.
std::vector<Phase> split_at_edges(const std::vector<Phase>& phases, int64_t elements);

// The first and the last input position that any output of [begin, end) reads.
struct Reach {
  int64_t first, last;
  bool empty() const { return first > last; }
  int64_t count() const { return empty() ? 0 : last - first + 1; }
};
Reach reach(const std::vector<Phase>& phases, int64_t begin, int64_t end);

}  // namespace tandem::cpu
