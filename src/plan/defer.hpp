// The host does its own steps as it walks a plan, and what follows is given to the other devices' streams only afterwards.
#pragma once
#include "plan/plan.hpp"

namespace tandem::plan {

// What the host computes comes as late as it can: behind all that the other devices get to do before somebody needs its results. So they
// have work while it computes. What may fail stays where it is.
Units host_last(Units units, std::span<const DeviceFacts> devices);

}  // namespace tandem::plan
