// From canonical loops to LLVM's intermediate code.
#pragma once
#include <llvm/IR/Module.h>

#include "codegen/kernel.hpp"
#include "schedule.hpp"
#include "target.hpp"

namespace tandem::cpu {

// Adds the function kKernelSymbol to the module.
void emit_kernel(const codegen::LoopKernel& kernel, const Schedule& schedule, const Target& target, llvm::LLVMContext& context,
                 llvm::Module& module);

}  // namespace tandem::cpu
