// Operands that a step takes from the host's memory may come while the step before still computes.
#pragma once
#include "plan/units.hpp"

namespace tandem::plan {

// Uploads of inputs that the step does not write come first, and what they write is marked (Block::is_prefetched). `units`: in order.
Units with_prefetches(Units units);

}  // namespace tandem::plan
