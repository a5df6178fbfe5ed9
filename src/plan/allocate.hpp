// Addresses for blocks of memory whose lives are known beforehand: cheap heuristics first, then, if asked for, a search that either
// fits them into a capacity or proves that they do not fit. Knows nothing of graphs; docs/adr/0008 says why it works as it does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tandem::plan {

// Bytes that are needed from step `first` to step `last`, both included.
struct Lifetime {
  int64_t first = 0, last = 0;
  size_t bytes = 0;
};

// For those who must fit: two seconds of search, and more for more blocks (sixty thousand: some ten seconds). A step is one look at one
// block or section of time; two hundred million take about a second.
constexpr int64_t thorough_effort(size_t blocks) { return 400'000'000 + 20'000 * static_cast<int64_t>(blocks); }

struct AllocateOptions {
  size_t alignment = 64;  // every offset is a multiple of it, and every block takes a multiple of it
  size_t capacity = 0;    // stop as soon as the peak is within it; 0: as small as is found
  int64_t effort = 0;     // steps of search after the heuristics; counted and not timed, so that the result is the same everywhere (I6)
};

struct Allocation {
  std::vector<size_t> offsets;  // one a block; 0 for a block of no bytes
  size_t peak = 0;              // the end of the highest block
  size_t bound = 0;             // no allocation is smaller; more than lower_bound() where the search proved it
  int64_t steps = 0;            // of search that were used
};

// The largest sum of bytes that are alive at once.
size_t lower_bound(std::span<const Lifetime> blocks, size_t alignment = 64);

// The best allocation found. One that was asked to fit does so when its peak is within the capacity; when its bound is above the
// capacity, none does. UserError when all blocks together have 2^62 bytes or more.
Allocation allocate(std::span<const Lifetime> blocks, const AllocateOptions& options = {});

}  // namespace tandem::plan
