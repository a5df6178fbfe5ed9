#include "host_target.hpp"

#include <unistd.h>

#include "base/text.hpp"

namespace tandem::cpu {

Levels host_levels() {
  __builtin_cpu_init();
  Levels l;
  l.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  l.avx512 = l.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
  l.pairs = l.avx512 && __builtin_cpu_supports("avx512bf16");
  return l;
}

// Few levels instead of each processor's own name: the same machine code, and so the same bits, on every processor of a level, and a
// cache that survives a move to the next machine.
Target host_target(std::string_view isa) {
  if (isa != "native" && isa != "avx2" && isa != "avx512" && isa != "avx512_bf16")
    user_error("TANDEM_CPU_ISA is '", isa, "'; known are native, avx2, avx512, avx512_bf16");
  const auto [avx2, avx512, pairs] = host_levels();
  if (!avx2) resource_error("cpu: this processor has no AVX2, FMA and F16C; tandem's generated code needs them");
  if ((isa == "avx512" && !avx512) || (isa == "avx512_bf16" && !pairs))
    resource_error("cpu: TANDEM_CPU_ISA asks for ", isa, ", which this processor does not have");
  Target t;
  t.wide = avx512 && isa != "avx2";
  t.pairs = pairs && (isa == "native" || isa == "avx512_bf16");
  t.cpu = t.wide ? "x86-64-v4" : "x86-64-v3";
  t.lanes = t.wide ? 16 : 8;
  if (const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE); l2 > 0) t.caches.l2_bytes = l2;
  return t;
}

}  // namespace tandem::cpu
