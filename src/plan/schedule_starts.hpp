// Schedules that are made by rules, for the search to start from.
#pragma once
#include "plan/schedule_moves.hpp"

namespace tandem::plan::scheduling {

// Takes values out of memory, the one that helps most for its price first, until the draft fits. What is left above the limit shows in
// the draft's excess when nothing helps any more.
void fit(const Model& model, Draft& draft, bool may_fetch);

// Leaves out repeats, the dearest first, as long as the draft fits without them.
void fill(const Model& model, Draft& draft);

// The units in their order; what is made up to `moment` and neither kept nor read by it is made again or fetched when it is needed next.
std::vector<int32_t> keep_only(const Model& model, int32_t moment, const std::vector<Fate>& fates);

// Moves fetches to where their copies end just in time, as far as memory allows.
void fetch_early(const Model& model, Draft& draft);

}  // namespace tandem::plan::scheduling
