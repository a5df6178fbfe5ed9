// Random loops for fuzzing: expressions over every primitive and type, over random shapes, strides, guards, gathers and reductions.
#pragma once
#include <random>

#include "support.hpp"

namespace tandem::testing {

struct RandomKernel {
  ir::Loops loops;
  std::vector<HostTensor> in;
  std::vector<Allowed> allowed;  // one an output
};
RandomKernel random_kernel(uint64_t seed);

}  // namespace tandem::testing
