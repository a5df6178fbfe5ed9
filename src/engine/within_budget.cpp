#include "engine/within_budget.hpp"

#include <algorithm>
#include <optional>

#include "base/env.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "plan/schedule.hpp"

namespace tandem::engine {
namespace {

using plan::BudgetReport;
using plan::DeviceFacts;
using plan::PlanOptions;

constexpr int64_t kQuickShare = 16;         // of the effort, for each plan that is only compared
constexpr int64_t kMostEffort = 1'000'000;  // seconds
constexpr int kParts = 3;                   // of the state: so many sizes of what is on the host are compared
constexpr size_t kPlenty = SIZE_MAX / 4;
constexpr size_t kLeastPrecision = 64;  // the smallest limit is found to this part of it

struct Candidate {
  size_t bytes = 0;  // of state on the host
  Updates updates = Updates::OnHost;
};

class Chooser {
 public:
  Chooser(const plan::Request& request, const Devices& devices, std::vector<DeviceFacts> facts, const Planner& planner)
      : request_(request), devices_(devices), facts_(std::move(facts)), planner_(planner) {
    effort_ =
        devices.plan_effort >= 0 ? devices.plan_effort : env::get_count("TANDEM_PLAN_EFFORT", kMostEffort) * plan::kScheduleStepsPerSecond;
    static constexpr std::string_view kMeans[] = {"recompute", "offload", "state"};
    const std::vector<std::string> means = env::get_names("TANDEM_PLAN_MEANS", kMeans);
    const auto has = [&](std::string_view name) { return std::ranges::find(means, name) != means.end(); };
    may_recompute_ = has("recompute");
    may_offload_ = has("offload");
    may_send_ = has("state");
  }

  Planned run() {
    Planned first = planner_.plan(request_, facts_, options(effort_ / kQuickShare));
    const auto host = std::ranges::find(facts_, true, &DeviceFacts::host_memory);
    if (first.plan.budgets.empty() || host == facts_.end()) return first;
    device_ = first.plan.budgets[0].device;
    host_ = static_cast<int32_t>(host - facts_.begin());
    limit_ = facts_[static_cast<size_t>(device_)].limit_bytes;
    placement_.emplace(request_, device_, host_,
                       [this](const ir::Graph& g, const ir::Node& n) { return planner_.device_of(g, n) != host_; });
    std::optional<Planned> best = choose(limit_, effort_ / kQuickShare);
    if (!best) refuse();
    // With the whole effort, once.
    if (std::optional<Planned> thorough = plan(chosen_, limit_, effort_); thorough && thorough->plan.seconds < best->plan.seconds)
      best = std::move(thorough);
    complete(*best);
    return std::move(*best);
  }

 private:
  PlanOptions options(int64_t effort) const {
    return {.effort = effort, .is_enough = {}, .may_recompute = may_recompute_, .may_offload = may_offload_};
  }
  // Nothing when it does not fit.
  std::optional<Planned> plan(const Candidate& c, size_t limit, int64_t effort) {
    const Placement p = placement_->place(c.bytes, c.updates);
    plan::Request request{p.graph};
    request.bindings = request_.bindings;
    request.inputs = request_.inputs;
    request.donations = request_.donations;
    request.host_memory = request_.host_memory;
    request.input_devices = p.input_devices;
    request.output_devices = p.output_devices;
    request.device_of = [&](const ir::Node& n) {
      const auto number = static_cast<size_t>(&n - p.graph.nodes.data());
      return p.on_host[number] ? host_ : planner_.device_of(p.graph, n);
    };
    std::vector<DeviceFacts> facts = facts_;
    facts[static_cast<size_t>(device_)].limit_bytes = limit;
    size_t& pinned = facts[static_cast<size_t>(host_)].limit_bytes;
    if (pinned > 0 && p.sent_bytes >= pinned) return {};
    if (pinned > 0) pinned -= p.sent_bytes;
    Planned made = planner_.plan(request, facts, options(effort));
    if (log::enabled(log::Topic::Plan))
      log::write(log::Topic::Plan,
                 cat("budget: limit ", limit, ", state on the host ", p.sent_bytes, c.updates == Updates::OnHost ? ", updated there" : "",
                     ": ", made.plan.budgets.empty() || made.plan.budgets[0].fits ? cat(made.plan.seconds * 1e3, " ms") : "does not fit"));
    for (const BudgetReport& r : made.plan.budgets)
      if (!r.fits) {
        if (limit == limit_ && (!refused_ || r.least_bytes < refused_->least_bytes)) refused_ = r;
        return {};
      }
    // The model is not believed when it says that less memory takes less time: more memory must not be slower.
    made.plan.seconds = std::max(made.plan.seconds, unlimited().plan.seconds);
    made.pinned_bytes = p.sent_bytes;
    for (const plan::Arena& a : made.plan.arenas)
      if (a.pinned_by == device_) made.pinned_bytes += device::Account::counted(a.bytes);
    made.state_bytes = p.sent_bytes;
    made.updates_on_host = std::ranges::count(p.on_host, true);
    return made;
  }

  std::optional<Planned> choose(size_t limit, int64_t effort) {
    std::optional<Planned> best;
    const auto consider = [&](const Candidate& c) {
      std::optional<Planned> made = plan(c, limit, effort);
      if (!made || (best && made->plan.seconds >= best->plan.seconds)) return;
      best = std::move(made);
      chosen_ = c;
    };
    consider({0, Updates::OnDevice});
    const size_t all = may_send_ ? placement_->state_bytes() : 0;
    for (int part = 1; all > 0 && part <= kParts; ++part)
      for (const Updates updates : {Updates::OnHost, Updates::OnDevice})
        consider({part == kParts ? all : all / kParts * static_cast<size_t>(part), updates});
    return best;
  }

  // The smallest limit that works: plans are made for it until it is known.
  size_t least_limit() {
    const auto works = [&](size_t limit) {
      const int64_t effort = effort_ / kQuickShare;
      const size_t all = placement_->state_bytes();
      return (may_send_ && (plan({all, Updates::OnHost}, limit, effort) || plan({all, Updates::OnDevice}, limit, effort))) ||
             plan({0, Updates::OnDevice}, limit, effort);
    };
    size_t low = limit_, high = unlimited().plan.peak_bytes(device_);
    while (low + std::max(high / kLeastPrecision, codegen::kAlignment) < high) {
      const size_t middle = codegen::align_up(low + (high - low) / 2);
      (works(middle) ? high : low) = middle;
    }
    return high;
  }
  const Planned& unlimited() {
    if (!unlimited_) {
      std::vector<DeviceFacts> facts = facts_;
      facts[static_cast<size_t>(device_)].limit_bytes = kPlenty;
      facts[static_cast<size_t>(host_)].limit_bytes = 0;
      unlimited_ = planner_.plan(request_, facts, {});
    }
    return *unlimited_;
  }

  // What the planner cannot know: it saw a part of the choice.
  void complete(Planned& made) {
    const Planned& free = unlimited();
    if (made.plan.budgets.empty()) made.plan.budgets.push_back({.device = device_, .limit_bytes = limit_});
    BudgetReport& r = made.plan.budgets[0];
    r.fits = true;
    r.unlimited_bytes = free.plan.peak_bytes(device_);
    r.unlimited_seconds = free.plan.seconds;
    r.peak_bytes = r.least_bytes = made.plan.peak_bytes(device_);
    r.seconds = made.plan.seconds;
    r.pinned_bytes = made.pinned_bytes;
    r.state_bytes = made.state_bytes;
    r.updates_on_host = made.updates_on_host;
  }

  [[noreturn]] void refuse() {
    const std::string device = devices_.at(static_cast<size_t>(device_)).info().name;
    const size_t pinned = facts_[static_cast<size_t>(host_)].limit_bytes;
    BudgetReport r = refused_ ? *refused_ : BudgetReport{};
    const size_t least = devices_.finds_least ? least_limit() : r.least_bytes;
    r.least_bytes = least;
    std::string largest;
    for (const auto& [label, bytes] : r.largest) largest += cat(largest.empty() ? "" : ", ", label, " (", plan::bytes_text(bytes), ")");
    std::string sets;
    if (!r.tightest.empty()) sets = cat(", which ", r.tightest, " sets", r.tightest_location ? cat(" at ", r.tightest_location.str()) : "");
    throw DoesNotFit(cat(request_.graph.name.empty() ? "call" : request_.graph.name, ": it does not fit into ", plan::bytes_text(limit_),
                         " (", limit_, " bytes) of ", device, ": it needs at least ", plan::bytes_text(least), " (", least, " bytes", ")",
                         sets, "; without a limit it takes ", plan::bytes_text(unlimited().plan.peak_bytes(device_)),
                         "\n  largest values: ", largest.empty() ? "none" : largest, "\n  tried: computing again, results on the host, ",
                         plan::bytes_text(placement_->state_bytes()), " of state on the host",
                         pinned ? cat("; the host may take ", plan::bytes_text(pinned)) : "", "\n  hint: a limit of ", least,
                         " bytes or more, or a smaller batch"),
                     std::move(r));
  }

  const plan::Request& request_;
  const Devices& devices_;
  const std::vector<DeviceFacts> facts_;
  const Planner& planner_;
  int64_t effort_ = 0;
  bool may_recompute_ = true, may_offload_ = true, may_send_ = true;
  int32_t device_ = -1, host_ = -1;
  size_t limit_ = 0;
  std::optional<StatePlacement> placement_;
  std::optional<Planned> unlimited_;
  Candidate chosen_;
  std::optional<BudgetReport> refused_;  // that came nearest
};

}  // namespace

Planned planned_within(const plan::Request& request, const Devices& devices, std::vector<DeviceFacts> facts, const Planner& planner) {
  return Chooser(request, devices, std::move(facts), planner).run();
}

}  // namespace tandem::engine
