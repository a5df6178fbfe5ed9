// Batches come from the host's memory while the step before still computes.
#pragma once
#include "plan/units.hpp"

namespace tandem::plan {

// Uploads of fresh inputs come first, and what they write is marked (Block::is_prefetched). `units`: in order.
Units with_prefetches(Units units);

}  // namespace tandem::plan
