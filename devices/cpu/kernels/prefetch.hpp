// Software prefetch of memory that will be needed soon, a few lines at a time: tiles do it in the course of their sums, so that it arrives
// while they compute. Prefetched all at once before a tile, it held the tile up (ADR 0011).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace tandem::cpu {

struct PrefetchRows {
  const char* row;
  int64_t row_step, row_bytes, rows;
};
inline constexpr int64_t kPrefetchStep = 256;  // bytes at a time

// A few matrices, one after the other.
class Prefetch {
 public:
  // NOLINTNEXTLINE(modernize-use-equals-default): that would clear the rows, and one is made for every few tiles
  Prefetch() {}
  bool full() const { return count == kMost; }
  void add(const PrefetchRows& r) { rows[count++] = r; }
  int64_t steps() const {
    int64_t sum = 0;
    for (size_t i = 0; i < count; ++i) sum += rows[i].rows * (rows[i].row_bytes / kPrefetchStep + 1);
    return sum;
  }

  // For the tiles: what is left of the rows, and of the row that is being prefetched.
  static constexpr size_t kMost = 10;
  std::array<PrefetchRows, kMost> rows;
  size_t count = 0, done = 0;
  const char *at = nullptr, *end = nullptr;
};

}  // namespace tandem::cpu
