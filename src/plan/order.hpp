// The order in which units run.
#pragma once
#include <cstdint>
#include <vector>

#include "plan/units.hpp"

namespace tandem::plan {

// All units, each behind those it needs. Their own order, with three exceptions: what gives back at least as much memory as it takes runs
// as soon as it can (an optimizer's update frees its gradient); the last reader of state comes before the unit that overwrites it, and so
// does what may fail on the numbers, where nothing speaks against it.
std::vector<int32_t> order(const Units& units);

}  // namespace tandem::plan
