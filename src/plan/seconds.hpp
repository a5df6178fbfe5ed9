// How long a unit or a step takes: the one place that says so, for the planner, for placing, and for what is predicted.
#pragma once
#include "plan/plan.hpp"

namespace tandem::plan {

// What it is reckoned by, as plain data.
struct Speeds {
  std::span<const double> kernels;  // seconds, by number
  std::span<const DeviceFacts> devices;
};

inline constexpr int64_t kGuessedTrips = 8;  // of a loop that ends when it likes

// The longest branch; all trips of a loop. A condition that the host reads costs a copy.
double seconds_of(const Unit& unit, const Speeds& speeds);
double seconds_of(const Step& step, const Speeds& speeds);

}  // namespace tandem::plan
