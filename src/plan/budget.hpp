// Units within a limit: which of them run again, and which results wait in the host's memory, so that what is alive on a device at once
// takes no more than so many bytes. Turns units into a problem for schedule(), and its answer into units again.
#pragma once
#include "plan/place.hpp"
#include "plan/schedule.hpp"

namespace tandem::plan {

// `units` in the order in which they would run without a limit; `scratch`: one a unit. The values of the problem are the blocks, by number;
// what is not in the device's memory, or was there before, counts nothing. Times are in nanoseconds.
ScheduleProblem problem_of(const Units& units, std::span<const size_t> scratch, const Facts& facts, int32_t device, size_t bytes);

// The units as the schedule has them. A block that is written again is a new block each time: so the life of each is one piece.
// `origin`: receives for each unit which of the given ones it is, or -1 for a copy to or from the host.
Units scheduled(const Units& units, const Schedule& schedule, std::span<const DeviceFacts> devices, int32_t device,
                std::vector<int32_t>& origin);

}  // namespace tandem::plan
