// The search behind allocate(): complete, bottom-up, with backjumping.
#pragma once
#include "plan/allocate.hpp"

namespace tandem::plan {

struct SearchResult {
  enum class Kind : uint8_t { Found, Impossible, GaveUp };
  Kind kind = Kind::GaveUp;
  std::vector<size_t> offsets;  // Found: one a block
  int64_t steps = 0;
};

// Blocks have bytes; offsets are sums of bytes, so what is aligned stays aligned.
SearchResult search(std::span<const Lifetime> blocks, size_t capacity, int64_t effort);

}  // namespace tandem::plan
