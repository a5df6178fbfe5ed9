// The driver: the given order if it fits, else rules and search until the bound is met or the effort is used.
#include "plan/schedule.hpp"

#include <algorithm>
#include <numeric>

#include "plan/schedule_cut.hpp"
#include "plan/schedule_search.hpp"
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

class Scheduler {
 public:
  Scheduler(const ScheduleProblem& problem, const ScheduleOptions& options)
      : options_(options), model_(problem), evaluator_(model_), draft_(model_), given_(static_cast<size_t>(model_.unit_count())) {
    std::iota(given_.begin(), given_.end(), 0);
  }

  Schedule run() {
    Schedule result;
    set_working_set(model_, result);
    const int64_t limit = model_.limit;
    model_.limit = INT64_MAX / 4;
    result.base_cost = evaluator_.score(given_).cost;
    model_.limit = limit;
    const Score unlimited = evaluator_.score(given_);
    unlimited_.assign(evaluator_.memory().begin(), evaluator_.memory().end());
    Moments moments(model_);
    if (unlimited.excess == 0) {
      best_ = {given_, unlimited};
    } else if (limit >= result.least_possible) {
      moments.look(unlimited_, std::max<int64_t>(options_.effort / 6, kLeastLook));
      moments.branch(INT64_MAX, options_.effort / 12);
      start(moments);
      if (!is_done(moments)) {
        Search search(model_, evaluator_, options_.seed);
        search.run(best_, moments.bound(), options_.effort - moments.steps() - draft_.steps(), options_.is_enough);
        result.steps += search.steps();
      }
    }
    result.bound = moments.bound();
    result.steps += moments.steps() + draft_.steps();
    if (best_.score.is_valid && best_.score.excess == 0) {
      evaluator_.score(best_.sequence);
      result.actions = evaluator_.actions();
      result.cost = best_.score.cost;
      result.peak = result.least_limit = best_.score.peak;
      result.host_peak = best_.score.host_peak;
      result.fits = true;
    } else {
      result.least_limit = least_limit(result.least_possible, unlimited.peak);
    }
    return result;
  }

 private:
  // Steps that the bound gets even if no search is wanted.
  static constexpr int64_t kLeastLook = 2'000'000;

  bool is_done(const Moments& moments) const {
    return best_.score.is_valid && best_.score.excess == 0 && best_.score.cost <= moments.bound();
  }

  void consider(const std::vector<int32_t>& sequence, bool may_fetch = true) {
    if (!evaluator_.score(sequence).is_valid) return;
    draft_.assign(sequence);
    fit(model_, draft_, may_fetch);
    fill(model_, draft_);
    take_if_better();
    if (!model_.uses_host) return;
    fetch_early(model_, draft_);
    take_if_better();
  }

  void take_if_better() {
    std::vector<int32_t> sequence;
    draft_.items(sequence);
    const Score score = evaluator_.score(sequence);
    if (!score.is_valid) return;
    const bool is_better =
        !best_.score.is_valid || score.excess < best_.score.excess || (score.excess == best_.score.excess && score.cost < best_.score.cost);
    if (is_better) best_ = {std::move(sequence), score};
  }

  void start(Moments& moments) {
    consider(given_);
    if (model_.uses_host) consider(given_, false);
    const int32_t moment = moments.best_moment();
    if (moment < 0) return;
    if (!moments.best_kept().empty()) consider(keep_only(model_, moment, moments.best_kept()));
    const int64_t until = draft_.steps() + moments.steps() + std::max(options_.effort / 4, kLeastLook);
    std::vector<Fate> last;
    for (int share = 100; share >= 50 && !is_done(moments); share -= 2) {
      if (draft_.steps() + moments.steps() > until || (options_.is_enough && options_.is_enough())) break;
      const std::vector<Fate> kept = moments.keep(moment, static_cast<int64_t>(Wide{model_.limit} * share / 100));
      if (!kept.empty() && kept != last) consider(keep_only(model_, moment, kept));
      last = kept;
    }
  }

  // The smallest limit that the rules reach.
  int64_t least_limit(int64_t low, int64_t high) {
    const int64_t limit = model_.limit;
    const auto reach = [&](int64_t bytes) {
      model_.limit = bytes;
      draft_.assign(given_);
      fit(model_, draft_, true);
      if (draft_.excess() > 0) return false;
      std::vector<int32_t> sequence;
      draft_.items(sequence);
      high = std::min(high, evaluator_.score(sequence).peak);
      return true;
    };
    low = std::max(low - 1, limit);
    if (low < high && low + 1 < high && reach(low + 1)) low = high;
    while (low + (high >> 6) + 1 < high) {
      const int64_t middle = low + (high - low) / 2;
      if (!reach(middle)) low = middle;
    }
    model_.limit = limit;
    return high;
  }

  const ScheduleOptions& options_;
  Model model_;
  Evaluator evaluator_;
  Draft draft_;
  std::vector<int32_t> given_;
  std::vector<int64_t> unlimited_;
  Candidate best_;
};

}  // namespace

int64_t quick_effort(const ScheduleProblem& problem) {
  const auto n = static_cast<int64_t>(std::min<size_t>(problem.units.size(), 1000));
  return std::min(kScheduleStepsPerSecond, 20 * n * n * n);
}

Schedule schedule(const ScheduleProblem& problem, const ScheduleOptions& options) { return Scheduler(problem, options).run(); }

}  // namespace tandem::plan
