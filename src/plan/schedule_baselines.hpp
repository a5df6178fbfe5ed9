// What others do about memory, as schedules without a search, to compare ours with on the same engine.
#pragma once
#include <optional>
#include <string_view>

#include "plan/schedule.hpp"

namespace tandem::plan {

enum class Baseline : uint8_t {
  Sqrt,  // of the n values that the backward pass reads of the forward pass every ceil(sqrt n)-th is kept; what is between is computed
         // again
  OffloadAll,  // each of them goes to the host's memory after its last use in the forward pass, and comes back before its next one
};
std::optional<Baseline> baseline_of(std::string_view name);  // "sqrt", "offload_all"

// No limit is looked at. The forward pass ends where most is alive in the given order.
std::vector<ScheduleAction> baseline_actions(const ScheduleProblem& problem, Baseline baseline);

}  // namespace tandem::plan
