// From units in their order to a plan: who takes whose place, addresses, waits.
#pragma once
#include <map>

#include "plan/plan.hpp"

namespace tandem::plan {

// What a planner needs to know besides the units.
struct Facts {
  std::span<const KernelFacts> kernels;  // one a kernel of the tables
  std::span<const DeviceFacts> devices;
};
// Plans of loops' bodies: they do not depend on when the loop runs.
using BodyPlans = std::map<const Units*, std::shared_ptr<const Plan>>;

Units in_order(Units units);  // as they run without a limit (order.hpp)

// `capacities`: what a device's arena should stay within, 0: as small as is found at once; empty: all 0. The plan has no constants yet.
Plan place(Units units, const Facts& facts, BodyPlans& bodies, std::span<const size_t> capacities = {});

// What a unit needs only while it runs: of its program, or the arena of its bodies.
size_t scratch_bytes(const Unit& unit, const Facts& facts, BodyPlans& bodies);

}  // namespace tandem::plan
