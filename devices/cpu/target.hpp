// The processor that kernels are made for.
#pragma once
#include <cstdint>
#include <string>

namespace tandem::cpu {

// Of one core. What they change is speed alone.
struct Caches {
  int64_t l2_bytes = 512 << 10;  // where the system does not say
};

// What code is generated for.
struct Target {
  std::string cpu;     // LLVM's name for a level of instructions, "x86-64-v3"
  int lanes = 8;       // elements a vector loop takes at a time: 16 with 512-bit registers, else 8
  bool wide = false;   // 512-bit registers
  bool pairs = false;  // instructions that multiply pairs of bfloat16; generated code does not use them
  Caches caches;       // for kernels that are cut into blocks; generated code does not ask
};

}  // namespace tandem::cpu
