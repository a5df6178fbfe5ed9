// Schedules that are made by rules, for the search to start from.
#pragma once
#include "plan/schedule_moves.hpp"

namespace tandem::plan::scheduling {

struct Candidate {
  std::vector<int32_t> sequence;
  Score score;
};

// Takes values out of memory, the one that helps most for its price first, until the sequence fits. What is left above the limits shows in
// the score when nothing helps any more.
Candidate fit(const Model& model, Evaluator& evaluator, std::vector<int32_t> sequence);

}  // namespace tandem::plan::scheduling
