// The interpreter: evaluates loops one element at a time with the C library's functions. Slow, plain, and the oracle for every device.
#pragma once
#include <span>

#include "codegen/kernel.hpp"
#include "ir/loops.hpp"

namespace tandem::codegen {

struct HostOperand {
  Layout layout;
  void* data;
};
// Runs bound loops over operands as they lie; every output is dense.
void interpret(const ir::Loops& loops, const Bindings& bindings, std::span<const HostOperand> in, std::span<const HostOperand> out);
// Runs a canonical stage with its parameters (renderers are checked against this too).
void interpret(const LoopKernel& kernel, std::span<void* const> in, std::span<void* const> out);

}  // namespace tandem::codegen
