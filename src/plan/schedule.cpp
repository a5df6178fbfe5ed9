// The driver: the given order if it fits, else rules and search until the bound is met or the effort is used.
#include "plan/schedule.hpp"

#include <algorithm>
#include <numeric>

#include "plan/schedule_starts.hpp"

namespace tandem::plan {
namespace {

using namespace scheduling;

void set_working_set(const Model& model, Schedule& result) {
  for (int32_t u = 0; u < model.unit_count(); ++u) {
    const int64_t bytes = working_set(model, u);
    if (result.tightest_unit >= 0 && bytes <= result.least_possible) continue;
    result.least_possible = bytes;
    result.tightest_unit = u;
  }
}

}  // namespace

Schedule schedule(const ScheduleProblem& problem, const ScheduleOptions& options) {
  (void)options;
  Model model(problem);
  Evaluator evaluator(model);
  Schedule result;
  set_working_set(model, result);
  std::vector<int32_t> given(static_cast<size_t>(model.unit_count()));
  std::iota(given.begin(), given.end(), 0);
  const int64_t limit = model.limit;
  model.limit = INT64_MAX / 4;
  result.base_cost = evaluator.score(given).cost;
  model.limit = limit;
  result.bound = result.base_cost;
  const auto take = [&](const Candidate& c) {
    evaluator.score(c.sequence);
    result.actions = evaluator.actions();
    result.cost = c.score.cost;
    result.peak = result.least_limit = c.score.peak;
    result.host_peak = c.score.host_peak;
    result.fits = true;
  };
  const Candidate best = fit(model, evaluator, given);
  result.steps = evaluator.steps();
  if (best.score.excess == 0) {
    take(best);
    return result;
  }
  // The smallest limit that the rules reach.
  int64_t low = limit, high = evaluator.score(given).peak;
  while (low + (high >> 6) + 1 < high) {
    model.limit = low + (high - low) / 2;
    const Candidate c = fit(model, evaluator, given);
    (c.score.excess == 0 ? high : low) = c.score.excess == 0 ? c.score.peak : model.limit;
  }
  result.least_limit = high;
  return result;
}

}  // namespace tandem::plan
