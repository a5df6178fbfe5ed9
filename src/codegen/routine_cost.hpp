// What rows compute that have no loops: routines on host memory, and composites that a device keeps whole.
#pragma once
#include "codegen/kernel.hpp"

namespace tandem::codegen {

// About how many operations: the textbook's count for the algorithm, or one for each element where there is none.
double routine_flops(const Kernel& kernel);

}  // namespace tandem::codegen
