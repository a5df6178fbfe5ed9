// Which queue of work a step is in. 0 is the host, which does the steps of devices with its own memory as it walks the plan; behind it come
// the streams of the other devices. A queue is in order by itself, and everything comes after what the host did before it was given.
#pragma once
#include <algorithm>

#include "plan/plan.hpp"

namespace tandem::plan {

inline size_t queue_of(const Step& s) {
  return s.on_host ? 0 : 1 + static_cast<size_t>(s.device) * device::kStreamKinds + static_cast<size_t>(s.stream);
}
inline size_t queue_count(const Plan& p) {
  size_t most = 0;
  for (const Step& s : p.steps) most = std::max(most, queue_of(s));
  return most + 1;
}

// For each queue the last of its steps that is known to have happened; -1: none.
using Clock = std::vector<int32_t>;
inline void merge(Clock& into, const Clock& from) {
  for (size_t q = 0; q < into.size(); ++q) into[q] = std::max(into[q], from[q]);
}

}  // namespace tandem::plan
