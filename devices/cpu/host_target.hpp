// Which processor this is, asked without LLVM: a run whose kernels are all cached never loads it.
#pragma once
#include <string_view>

#include "schedule.hpp"

namespace tandem::cpu {

// `isa`: native, avx2, avx512 or avx512_bf16. ResourceError when the processor lacks what is asked for (AVX2 and FMA at the least).
Target host_target(std::string_view isa);

}  // namespace tandem::cpu
