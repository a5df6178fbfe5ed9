// Which processor this is, asked without LLVM: a run whose kernels are all cached never loads it.
#pragma once
#include <string_view>

#include "target.hpp"

namespace tandem::cpu {

// What of it generated code asks for; each level has those before it.
struct Levels {
  bool avx2 = false;    // with FMA and F16C
  bool avx512 = false;  // F, BW, DQ and VL
  bool pairs = false;   // BF16
};
Levels host_levels();

// `isa`: native, avx2, avx512 or avx512_bf16. ResourceError when the processor lacks what is asked for (AVX2 and FMA at the least).
Target host_target(std::string_view isa);

}  // namespace tandem::cpu
