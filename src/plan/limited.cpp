#include "plan/limited.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.hpp"
#include "device/account.hpp"
#include "plan/budget.hpp"
#include "plan/defer.hpp"
#include "plan/prefetch.hpp"
#include "plan/schedule_dump.hpp"
#include "plan/tightest.hpp"

namespace tandem::plan {
namespace {

constexpr int kRounds = 8;            // of scheduling for less because addresses did not fit
constexpr int kSmallerTargets = 4;    // that are scheduled for before: a schedule for less memory is the start of that for more
constexpr double kNextTarget = 0.84;  // of one to the next; they are the same for every limit, so that plans for two limits share them
constexpr int64_t kSmallerShare = 8;  // each has this part of the effort

class LimitedPlanner {
 public:
  LimitedPlanner(Units units, std::span<const Constant> constants, const Facts& facts, const PlanOptions& options)
      : units_(std::move(units)), constants_(constants), facts_(facts), devices_(facts.devices), options_(options) {
    for (size_t d = 0; d < devices_.size(); ++d) {
      if (devices_[d].host_memory && host_ < 0) host_ = static_cast<int32_t>(d);
      is_limited_ |= devices_[d].limit_bytes > 0 && !devices_[d].host_memory;
    }
  }

  Plan run() {
    if (options_.baseline) return along(*options_.baseline);
    std::vector<size_t> capacities(devices_.size());
    Plan plan = placed(units_, {});
    for (size_t d = 0; d < devices_.size(); ++d) {
      const size_t limit = devices_[d].limit_bytes;
      if (limit == 0 || devices_[d].host_memory) continue;
      const size_t peak = peak_of(plan, d);
      if (peak > limit || !host_fits(plan)) plan = within(static_cast<int32_t>(d), peak, capacities);
    }
    if (is_limited_ && plan.seconds == 0) plan.seconds = unlimited_seconds();
    plan.budgets = std::move(reports_);
    return plan;
  }

 private:
  // As late on the host as its memory allows.
  Plan placed(const Units& units, std::span<const size_t> capacities) {
    Plan plan = place(host_last(units, devices_), facts_, bodies_, capacities);
    return host_fits(plan) ? std::move(plan) : place(units, facts_, bodies_, capacities);
  }
  size_t peak_of(const Plan& plan, size_t device) const {
    size_t constants = 0;
    for (const Constant& c : constants_)
      if (c.device == static_cast<int32_t>(device)) constants += device::Account::counted(c.literal.bytes->size());
    return plan.peak_bytes(static_cast<int32_t>(device)) + constants;
  }
  static size_t arena_bytes(const Plan& plan, int32_t device, bool pinned) {
    size_t bytes = 0;
    for (const Arena& a : plan.arenas)
      if (a.device == device && (a.pinned_by >= 0) == pinned) bytes += device::Account::counted(a.taken_bytes());
    return bytes;
  }
  size_t host_limit() const { return host_ < 0 ? 0 : devices_[static_cast<size_t>(host_)].limit_bytes; }
  bool host_fits(const Plan& plan) const { return host_limit() == 0 || arena_bytes(plan, host_, true) <= host_limit(); }
  std::vector<size_t> scratch() {
    std::vector<size_t> bytes;
    for (const Unit& u : units_.units) bytes.push_back(scratch_bytes(u, facts_, bodies_));
    return bytes;
  }
  Plan along(Baseline baseline) {
    const auto card = std::ranges::find(devices_, false, &DeviceFacts::host_memory);
    if (card == devices_.end() || host_ < 0) return placed(units_, {});
    const auto device = static_cast<int32_t>(card - devices_.begin());
    const Schedule fixed{.actions = baseline_actions(problem_of(units_, scratch(), facts_, device, 0), baseline)};
    std::vector<int32_t> origin;
    return placed(scheduled(units_, fixed, devices_, device, origin), {});
  }
  // By the cost model, in the order that they are in. Of one device: that is where the time goes.
  double unlimited_seconds() {
    const auto device = static_cast<int32_t>(std::ranges::find(devices_, false, &DeviceFacts::host_memory) - devices_.begin());
    ScheduleProblem problem = problem_of(units_, scratch(), facts_, device, 0);
    problem.limit = problem.host_limit = INT64_MAX;
    return static_cast<double>(schedule(problem, {}).cost) * 1e-9;
  }

  // An effort of a second is what is quick for the problem; others are a part or a multiple of it.
  static int64_t steps_for(const ScheduleProblem& problem, int64_t effort) {
    return static_cast<int64_t>(static_cast<double>(quick_effort(problem)) * static_cast<double>(effort) /
                                static_cast<double>(kScheduleStepsPerSecond));
  }

  struct Found {
    Schedule schedule;
    Units units;
    Plan plan;
    size_t peak = 0;
  };
  Schedule scheduled_for(size_t target, int64_t effort, const std::vector<ScheduleAction>& start) {
    ScheduleProblem problem = problem_of(units_, scratch_, facts_, report_.device, target);
    if (!options_.may_offload) problem.link = {};
    if (!options_.may_recompute)
      for (ScheduleUnit& u : problem.units) u.once = true;
    return schedule(problem, {.effort = steps_for(problem, effort), .start = start, .is_enough = options_.is_enough});
  }
  // More memory is not slower: the schedule for less memory, which was itself begun from one for still less. Nothing where the quick rules
  // find the best there is, or none for less.
  std::vector<ScheduleAction> for_less(size_t target) {
    const auto is_best = [](const Schedule& s) { return s.fits && s.cost <= s.bound; };
    if (is_best(scheduled_for(target, 0, {}))) return {};
    std::vector<size_t> targets;
    for (size_t t = next_below(target); targets.size() < kSmallerTargets && t > 0 && scheduled_for(t, 0, {}).fits; t = next_below(t))
      targets.push_back(t);
    std::vector<ScheduleAction> best;
    for (auto t = targets.rbegin(); t != targets.rend(); ++t)
      if (Schedule s = scheduled_for(*t, options_.effort / kSmallerShare, best); s.fits) best = std::move(s.actions);
    return best;
  }

  // For so many bytes of values, and then for less, until what lies apart from each other fits as well.
  std::optional<Found> find(size_t target, const std::vector<ScheduleAction>& start) {
    const auto d = static_cast<size_t>(report_.device);
    std::vector<size_t> capacities = *capacities_;
    for (int round = 0; round < kRounds; ++round) {
      Found f;
      f.schedule = scheduled_for(target, options_.effort, start);
      if (!f.schedule.fits) {
        report_.least_bytes = std::min(report_.least_bytes, report_.fixed_bytes + static_cast<size_t>(f.schedule.least_limit));
        return {};
      }
      std::vector<int32_t> origin;
      f.units = scheduled(units_, f.schedule, devices_, report_.device, origin);
      capacities[d] = room_;
      f.plan = placed(f.units, capacities);
      f.peak = report_.fixed_bytes + arena_bytes(f.plan, report_.device, false);
      if (f.peak <= report_.limit_bytes && host_fits(f.plan)) return f;
      report_.least_bytes = std::min(report_.least_bytes, f.peak);
      if (f.peak <= report_.limit_bytes) return {};  // the host has too little
      const size_t over = f.peak - report_.limit_bytes, less = over + over / 8;
      target = target > less ? (target - less) / codegen::kAlignment * codegen::kAlignment : 0;
    }
    return {};
  }

  Plan within(int32_t device, size_t unlimited, std::vector<size_t>& capacities) {
    const auto d = static_cast<size_t>(device);
    capacities_ = &capacities;
    report_ = {.device = device, .limit_bytes = devices_[d].limit_bytes, .unlimited_bytes = unlimited, .fits = false};
    Plan plan = place(units_, facts_, bodies_, capacities);
    report_.fixed_bytes = unlimited - arena_bytes(plan, device, false);
    report_.least_bytes = unlimited;
    scratch_ = scratch();
    dump_problem(problem_of(units_, scratch_, facts_, device, 0));
    room_ = report_.limit_bytes > report_.fixed_bytes ? report_.limit_bytes - report_.fixed_bytes : 0;
    const size_t target = room_ / codegen::kAlignment * codegen::kAlignment;
    std::optional<Found> best = find(target, for_less(target));
    if (best) {
      describe(*best);
      units_ = std::move(best->units);
      plan = std::move(best->plan);
      plan.seconds = report_.seconds;
      capacities[d] = room_;
    } else {
      name_tightest(plan, report_);
    }
    reports_.push_back(report_);
    return plan;
  }
  static size_t next_below(size_t target) {
    if (target < codegen::kAlignment) return 0;
    const double step = std::log(kNextTarget);
    const double rung = std::floor(std::log(static_cast<double>(target)) / step) + 1;
    return static_cast<size_t>(std::exp(rung * step)) / codegen::kAlignment * codegen::kAlignment;
  }

  void describe(const Found& f) {
    report_.fits = true;
    report_.peak_bytes = report_.least_bytes = f.peak;
    for (const ScheduleAction& a : f.schedule.actions) {
      if (a.kind != ScheduleAction::Kind::Offload) continue;
      ++report_.offloaded;
      report_.offloaded_bytes += codegen::align_up(units_.blocks[static_cast<size_t>(a.id)].bytes);
    }
    for (const Unit& u : f.units.units) {
      if (!u.is_again) continue;
      const bool fetches = u.kind == Kind::Upload;
      (fetches ? report_.fetched : report_.recomputed) += 1;
      if (fetches) report_.fetched_bytes += u.writes[0].bytes;
    }
    report_.pinned_bytes = host_ < 0 ? 0 : arena_bytes(f.plan, host_, true);
    report_.seconds = static_cast<double>(f.schedule.cost) * 1e-9;
    report_.unlimited_seconds = static_cast<double>(f.schedule.base_cost) * 1e-9;
    report_.bound_seconds = static_cast<double>(f.schedule.bound) * 1e-9;
    name_tightest(f.plan, report_);
  }

  Units units_;  // in the order in which they run
  std::span<const Constant> constants_;
  const Facts facts_;
  std::span<const DeviceFacts> devices_;
  const PlanOptions& options_;
  int32_t host_ = -1;
  bool is_limited_ = false;
  BodyPlans bodies_;
  std::vector<BudgetReport> reports_;
  // Of the device at hand.
  BudgetReport report_;
  std::vector<size_t> scratch_;
  size_t room_ = 0;
  const std::vector<size_t>* capacities_ = nullptr;
};

}  // namespace

Plan plan_within(Units units, std::span<const Constant> constants, const Facts& facts, const PlanOptions& options) {
  return LimitedPlanner(with_prefetches(in_order(std::move(units))), constants, facts, options).run();
}

}  // namespace tandem::plan
