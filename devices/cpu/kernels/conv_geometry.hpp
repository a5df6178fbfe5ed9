// What kernels of convolutions share beside codegen/convolution.hpp: which input positions an op's outputs read.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "codegen/convolution.hpp"

namespace tandem::cpu {

using codegen::Conv;
using codegen::conv_of;
using codegen::ConvAxis;
using codegen::image_steps;
using codegen::ImageSteps;
using codegen::kernel_steps;
using codegen::KernelSteps;
using codegen::kSpatial;

// Whether the register tiles are for it, forward or back; else the reason why not.
bool tiles_take(const Conv& conv, DType operands, DType result, std::string& refusal);

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
