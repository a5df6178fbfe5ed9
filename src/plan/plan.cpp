#include "plan/plan.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "device/account.hpp"
#include "plan/budget.hpp"
#include "plan/place.hpp"

namespace tandem::plan {
namespace {

// Plans as if there were no limit, and where that takes too much of a device's memory, schedules the units for what there is.
class LimitedPlanner {
 public:
  LimitedPlanner(Units units, std::span<const Constant> constants, const Facts& facts)
      : units_(std::move(units)), constants_(constants), facts_(facts), devices_(facts.devices) {}

  Plan run() {
    Plan plan = place(units_, facts_, bodies_);
    std::vector<size_t> capacities(devices_.size());
    for (size_t d = 0; d < devices_.size(); ++d) {
      const size_t limit = devices_[d].limit_bytes;
      if (limit == 0 || devices_[d].host_memory) continue;
      const size_t peak = peak_of(plan, d);
      if (peak <= limit) continue;
      plan = within(static_cast<int32_t>(d), peak, capacities);
    }
    plan.budgets = std::move(reports_);
    return plan;
  }

 private:
  size_t peak_of(const Plan& plan, size_t device) const {
    size_t constants = 0;
    for (const Constant& c : constants_)
      if (c.device == static_cast<int32_t>(device)) constants += device::Account::counted(c.literal.bytes->size());
    return plan.peak_bytes(static_cast<int32_t>(device)) + constants;
  }

  // Schedules for less and less memory until the addresses are within the limit too.
  Plan within(int32_t device, size_t unlimited, std::vector<size_t>& capacities) {
    const auto d = static_cast<size_t>(device);
    BudgetReport report{.device = device, .limit_bytes = devices_[d].limit_bytes, .unlimited_bytes = unlimited, .fits = false};
    Plan plan = place(units_, facts_, bodies_, capacities);
    report.fixed_bytes = unlimited - arena_bytes(plan, device);
    report.least_bytes = unlimited;
    std::vector<size_t> scratch;
    for (const Unit& u : units_.units) scratch.push_back(scratch_bytes(u, facts_, bodies_));
    const size_t room = report.limit_bytes > report.fixed_bytes ? report.limit_bytes - report.fixed_bytes : 0;
    size_t target = room / codegen::kAlignment * codegen::kAlignment;
    for (int round = 0; round < kRounds; ++round) {
      const ScheduleProblem problem = problem_of(units_, scratch, facts_, device, target);
      const Schedule found = schedule(problem, {.effort = quick_effort(problem)});
      if (!found.fits) {
        refuse(report, found, plan);
        break;
      }
      std::vector<int32_t> origin;
      Units units = scheduled(units_, found, devices_, device, origin);
      capacities[d] = room;
      Plan tried = place(units, facts_, bodies_, capacities);
      const size_t peak = report.fixed_bytes + arena_bytes(tried, device);
      if (peak <= report.limit_bytes) {
        describe(report, problem, found, units, tried, peak);
        units_ = std::move(units);
        plan = std::move(tried);
        break;
      }
      report.least_bytes = std::min(report.least_bytes, peak);
      // What lies apart from each other needs more than it has bytes: the schedule gets that much less.
      const size_t over = peak - report.limit_bytes;
      target = target > over + over / 8 ? (target - over - over / 8) / codegen::kAlignment * codegen::kAlignment : 0;
    }
    reports_.push_back(std::move(report));
    return plan;
  }
  static size_t arena_bytes(const Plan& plan, int32_t device) {
    size_t bytes = 0;
    for (const Arena& a : plan.arenas)
      if (a.device == device && a.pinned_by < 0) bytes += device::Account::counted(a.bytes);
    return bytes;
  }

  void describe(BudgetReport& report, const ScheduleProblem& problem, const Schedule& found, const Units& units, const Plan& plan,
                size_t peak) const {
    report.fits = true;
    report.peak_bytes = report.least_bytes = peak;
    for (const ScheduleAction& a : found.actions) {
      report.offloaded += a.kind == ScheduleAction::Kind::Offload;
      if (a.kind == ScheduleAction::Kind::Offload) report.offloaded_bytes += static_cast<size_t>(problem.values[static_cast<size_t>(a.id)].bytes);
    }
    for (const Unit& u : units.units) {
      if (!u.is_again) continue;
      const bool fetches = u.kind == Kind::Upload;
      (fetches ? report.fetched : report.recomputed) += 1;
      if (fetches) report.fetched_bytes += u.writes[0].bytes;
    }
    report.seconds = static_cast<double>(found.cost) * 1e-9;
    report.unlimited_seconds = static_cast<double>(found.base_cost) * 1e-9;
    report.bound_seconds = static_cast<double>(found.bound) * 1e-9;
    name_largest(report, found, plan);
  }
  void refuse(BudgetReport& report, const Schedule& found, const Plan& unlimited) const {
    report.least_bytes = std::min(report.least_bytes, report.fixed_bytes + static_cast<size_t>(found.least_limit));
    name_largest(report, found, unlimited);
  }
  void name_largest(BudgetReport& report, const Schedule& found, const Plan& plan) const {
    if (found.tightest_unit >= 0) report.tightest = units_.units[static_cast<size_t>(found.tightest_unit)].label;
    report.largest = largest_in_arena(plan, report.device);
  }
  // Steps' results that take most.
  static std::vector<std::pair<std::string, size_t>> largest_in_arena(const Plan& plan, int32_t device) {
    std::vector<std::pair<std::string, size_t>> all;
    for (const Step& s : plan.steps)
      for (const Effect& e : s.writes())
        if (e.slot.base == Slot::Base::Arena && plan.arenas[static_cast<size_t>(e.slot.index)].device == device && !s.is_again)
          all.emplace_back(s.label, e.slot.bytes);
    std::ranges::stable_sort(all, std::greater{}, &std::pair<std::string, size_t>::second);
    if (all.size() > kLargest) all.resize(kLargest);
    return all;
  }

  static constexpr int kRounds = 8;
  static constexpr size_t kLargest = 5;
  Units units_;  // in the order in which they run
  std::span<const Constant> constants_;
  const Facts facts_;
  std::span<const DeviceFacts> devices_;
  BodyPlans bodies_;
  std::vector<BudgetReport> reports_;
};

}  // namespace

Plan make_plan(Units units, Tables tables, std::span<const KernelFacts> facts, std::span<const DeviceFacts> devices) {
  TANDEM_CHECK(facts.size() == tables.kernels.size(), "facts of ", facts.size(), " kernels for ", tables.kernels.size());
  Plan plan = LimitedPlanner(in_order(std::move(units)), tables.constants, {facts, devices}).run();
  plan.constants = std::move(tables.constants);
  return plan;
}

std::span<const Effect> Step::of(Effect::Kind k) const {
  const auto found = std::ranges::equal_range(effects, k, {}, &Effect::kind);
  return {found.begin(), found.end()};
}

size_t Plan::arena_bytes() const {
  size_t bytes = 0;
  for (const Arena& a : arenas) bytes += a.bytes;
  return bytes;
}

size_t Plan::peak_bytes(int32_t device) const {
  size_t bytes = 0;
  const auto add = [&](size_t b) { bytes += device::Account::counted(b); };
  for (size_t i = 0; i < inputs.size(); ++i)
    if (input_devices[i] == device) add(byte_size(inputs[i].shape, inputs[i].dtype));
  for (size_t k = 0; k < outputs.size(); ++k)
    if (output_devices[k] == device && aliases[k].input < 0 && aliases[k].constant < 0 && donated[k] < 0)
      add(byte_size(outputs[k].shape, outputs[k].dtype));
  for (const Constant& c : constants)
    if (c.device == device) add(c.literal.bytes->size());
  for (const Arena& a : arenas)
    if (a.device == device && a.pinned_by < 0) add(a.bytes);
  return bytes;
}

}  // namespace tandem::plan
