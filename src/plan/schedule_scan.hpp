// Memory over a stretch of a sequence, at once: where most of the search's time goes.
#pragma once
#include <cstdint>
#include <span>

namespace tandem::plan::scheduling {

// The sum of what lies above `floor`, of each at most `most`.
int64_t sum_above(std::span<const int64_t> memory, int64_t floor, int64_t most);

// Adds bytes to each; by how much the sum of what lies above `limit` grows.
int64_t add_bytes(std::span<int64_t> memory, int64_t bytes, int64_t limit);

}  // namespace tandem::plan::scheduling
