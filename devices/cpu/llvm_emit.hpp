// The one door to LLVM. The device loads the library that holds it only when no cache knows a kernel.
#pragma once
#include <string>
#include <vector>

#include "codegen/kernel.hpp"
#include "schedule.hpp"
#include "target.hpp"

namespace tandem::cpu {

// A relocatable object that defines kKernelSymbol. Throws InternalError when LLVM refuses our code.
using EmitFn = void (*)(const codegen::LoopKernel& kernel, const Schedule& schedule, const Target& target, std::vector<char>& object);

inline constexpr const char* kEmitSymbol = "tandem_llvm_emit";

}  // namespace tandem::cpu
