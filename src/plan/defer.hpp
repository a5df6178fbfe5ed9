// What is given to the other devices' streams when: the host does its own steps as it walks a plan, and a stream does its own in order.
#pragma once
#include "plan/plan.hpp"

namespace tandem::plan {

// What the host computes comes as late as it can: behind all that the other devices get to do before somebody needs its results. So they
// have work while it computes. What may fail stays where it is. State of a device that the host wants comes down first of all: behind
// results in the same stream it would wait for them.
Units host_last(Units units, std::span<const DeviceFacts> devices);

}  // namespace tandem::plan
