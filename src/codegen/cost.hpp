// What a kernel moves and computes, counted from its canonical loops, or by what is known of a routine that has none.
#pragma once
#include "codegen/kernel.hpp"

namespace tandem::codegen {

struct Cost {
  double flops = 0;  // primitives on values; addresses are not counted
  double bytes = 0;  // each operand once, or as often as it is read if that is less
};
Cost cost_of(const codegen::Kernel& kernel);

}  // namespace tandem::codegen
