// How much work is worth a chunk of its own, for all kernels that are cut into blocks.
#pragma once
#include <cstdint>

namespace tandem::cpu {

// What these change is speed alone. A chunk of less than 10 us costs more to hand out than it saves (ADR 0004).
inline constexpr double kTinyWork = 4096;     // multiplications below which generated code is as good
inline constexpr double kChunkWork = 400e3;   // multiplications that a chunk should have at the least: about 10 us of a core
inline constexpr int64_t kWantedChunks = 16;  // in all, where there is enough to cut: a thread that is delayed delays the whole by little

// Sums in parts, which are added in order when all are known: the numbers are part of what a kernel computes (I10). Others give other bits.
inline constexpr double kSumPartWork = 400e3;  // multiplications that a part should have at the least
inline constexpr int64_t kMostSumParts = 16;

}  // namespace tandem::cpu
