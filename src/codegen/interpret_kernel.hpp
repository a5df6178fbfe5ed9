// Runs a whole kernel on host memory with the interpreter: stages, partial results, host routines. What devices without code of their
// own (ref, late) compute with.
#pragma once
#include <span>

#include "codegen/kernel.hpp"

namespace tandem::codegen {

// pointers: inputs, then outputs, as they lie; scratch: kernel.partial_bytes().
void interpret(const Kernel& kernel, std::span<void* const> pointers, void* scratch);

// UserError when there is nothing to interpret: the op has neither loops nor a host routine.
void check_interpretable(const Kernel& kernel);

}  // namespace tandem::codegen
