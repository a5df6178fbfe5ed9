// Which results may take the place of which operands.
#pragma once
#include "plan/plan.hpp"

namespace tandem::plan {

// Whether a result of so many bytes may take the place of that block, which has as many: every time the unit reads it, that is at the
// element being written. `root`: by block, the one whose place it has; empty: each its own.
inline bool may_replace(const Unit& u, std::span<const KernelFacts> facts, int32_t block, size_t block_bytes, size_t bytes,
                        std::span<const int32_t> root) {
  if (u.kernel < 0 || block_bytes != bytes) return false;
  const std::vector<bool>& in_place = facts[static_cast<size_t>(u.kernel)].in_place;
  if (in_place.empty()) return false;
  const auto root_of = [&](int32_t b) { return root.empty() ? b : root[static_cast<size_t>(b)]; };
  for (size_t r = 0; r < u.reads.size(); ++r)
    if (root_of(u.reads[r].block) == root_of(block) && (!in_place[r] || u.reads[r].shift != 0 || u.reads[r].bytes != bytes)) return false;
  return true;
}

}  // namespace tandem::plan
