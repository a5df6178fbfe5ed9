// Plans within the devices' limits: schedules the units for less and less memory until the addresses fit as well.
#pragma once
#include "plan/place.hpp"

namespace tandem::plan {

// `units` in any valid order. The plan has no constants yet; these are here to be counted.
Plan plan_within(Units units, std::span<const Constant> constants, const Facts& facts, const PlanOptions& options);

}  // namespace tandem::plan
