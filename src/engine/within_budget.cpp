#include "engine/within_budget.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "base/env.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "plan/schedule.hpp"
#include "plan/tightest.hpp"

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
  Chooser(const plan::Request& request, Lowered lowered, const Devices& devices, std::vector<DeviceFacts> facts, const Planner& planner)
      : request_(request), devices_(devices), facts_(std::move(facts)), planner_(planner), as_it_is_(std::move(lowered)) {
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
    Planned first = plan_of(as_it_is_, facts_, options(effort_ / kQuickShare));
    const auto host = std::ranges::find(facts_, true, &DeviceFacts::host_memory);
    if (first.plan.budgets.empty() || host == facts_.end()) return first;
    device_ = first.plan.budgets[0].device;
    host_ = static_cast<int32_t>(host - facts_.begin());
    limit_ = facts_[static_cast<size_t>(device_)].limit_bytes;
    host_limit_ = facts_[static_cast<size_t>(host_)].limit_bytes;
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
    return {.effort = effort, .is_enough = devices_.is_enough, .may_recompute = may_recompute_, .may_offload = may_offload_};
  }
  struct Prepared {
    size_t sent_bytes = 0;
    int64_t updates_on_host = 0;
    Lowered lowered;
  };
  const Prepared& prepared(const Candidate& c) {
    const auto [known, is_new] = prepared_.try_emplace({c.bytes, c.updates});
    Prepared& made = known->second;
    if (!is_new) return made;
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
    made = {p.sent_bytes, std::ranges::count(p.on_host, true), planner_.lower(request)};
    return made;
  }
  // Nothing when it does not fit.
  std::optional<Planned> plan(const Candidate& c, size_t limit, int64_t effort) {
    const Prepared& p = prepared(c);
    std::vector<DeviceFacts> facts = facts_;
    facts[static_cast<size_t>(device_)].limit_bytes = limit;
    size_t& pinned = facts[static_cast<size_t>(host_)].limit_bytes;
    pinned = host_limit_;
    if (pinned > 0 && p.sent_bytes >= pinned) return {};
    if (pinned > 0) pinned -= p.sent_bytes;
    Planned made = plan_of(p.lowered, facts, options(effort));
    if (log::enabled(log::Topic::Plan))
      log::write(log::Topic::Plan,
                 cat("budget: limit ", limit, ", state on the host ", p.sent_bytes, c.updates == Updates::OnHost ? ", updated there" : "",
                     ": ", made.plan.budgets.empty() || made.plan.budgets[0].fits ? cat(made.plan.seconds * 1e3, " ms") : "does not fit"));
    for (const BudgetReport& r : made.plan.budgets)
      if (!r.fits) {
        if (limit == limit_) nearest_ = std::min(nearest_, r.least_bytes);
        return {};
      }
    // The model is not believed when it says that less memory takes less time: more memory must not be slower.
    made.plan.seconds = std::max(made.plan.seconds, unlimited().plan.seconds);
    made.pinned_bytes = p.sent_bytes;
    for (const plan::Arena& a : made.plan.arenas)
      if (a.pinned_by == device_) made.pinned_bytes += device::Account::counted(a.bytes);
    made.state_bytes = p.sent_bytes;
    made.updates_on_host = p.updates_on_host;
    return made;
  }

  // All of the state on the host comes first where only one that fits is wanted.
  std::vector<Candidate> candidates() const {
    std::vector<Candidate> all = {{0, Updates::OnDevice}};
    const size_t state = may_send_ ? placement_->state_bytes() : 0;
    for (int part = 1; state > 0 && part <= kParts; ++part)
      for (const Updates updates : {Updates::OnHost, Updates::OnDevice})
        all.push_back({part == kParts ? state : state / kParts * static_cast<size_t>(part), updates});
    return all;
  }
  std::optional<Planned> choose(size_t limit, int64_t effort) {
    std::optional<Planned> best;
    for (const Candidate& c : candidates()) {
      std::optional<Planned> made = plan(c, limit, effort);
      if (!made || (best && made->plan.seconds >= best->plan.seconds)) continue;
      best = std::move(made);
      chosen_ = c;
    }
    return best;
  }
  // One that fits, of any speed.
  std::optional<Planned> any(size_t limit) {
    const std::vector<Candidate> all = candidates();
    for (auto c = all.rbegin(); c != all.rend(); ++c)
      if (std::optional<Planned> made = plan(*c, limit, effort_ / kQuickShare)) return made;
    return {};
  }

  // The smallest number that works, of those above `low`, and its plan: plans are made until it is known. `high` works.
  template <class Make> static std::pair<size_t, Planned> smallest(size_t low, size_t high, Planned at_high, Make make) {
    while (low + std::max(high / kLeastPrecision, codegen::kAlignment) < high) {
      const size_t middle = codegen::align_up(low + (high - low) / 2);
      if (std::optional<Planned> made = make(middle)) {
        high = middle;
        at_high = std::move(*made);
      } else {
        low = middle;
      }
    }
    return {high, std::move(at_high)};
  }
  const Planned& unlimited() {
    if (!unlimited_) {
      std::vector<DeviceFacts> facts = facts_;
      facts[static_cast<size_t>(device_)].limit_bytes = kPlenty;
      facts[static_cast<size_t>(host_)].limit_bytes = 0;
      unlimited_ = plan_of(as_it_is_, facts, {});
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

  // What was allowed and could be done, as a list.
  std::string tried() const {
    std::string text;
    const auto add = [&](const std::string& means) { text += cat(text.empty() ? "" : ", ", means); };
    if (may_recompute_) add("computing again");
    if (may_offload_ && facts_[static_cast<size_t>(device_)].rates.link_bytes_per_second > 0) add("results on the host");
    if (may_send_ && placement_->state_bytes() > 0) add(cat(plan::bytes_text(placement_->state_bytes()), " of state on the host"));
    return text.empty() ? "another order alone" : text;
  }
  static std::string with_number(size_t bytes) { return cat(plan::bytes_text(bytes), " (", bytes, " bytes)"); }

  // With the smallest limit that works, what takes most in its plan, and what else would help.
  [[noreturn]] void refuse() {
    const std::string device = devices_.at(static_cast<size_t>(device_)).info().name;
    const size_t free_bytes = unlimited().plan.peak_bytes(device_);
    BudgetReport r{.device = device_, .limit_bytes = limit_, .unlimited_bytes = free_bytes, .least_bytes = nearest_, .fits = false};
    const size_t host = host_limit_;
    std::optional<Planned> with_more_host;
    if (host > 0 && devices_.finds_least) {
      host_limit_ = 0;
      with_more_host = any(limit_);
      host_limit_ = host;
    }
    size_t least_host = 0;
    if (devices_.finds_least) {
      auto [least, at_least] = smallest(limit_, free_bytes, unlimited(), [&](size_t limit) { return any(limit); });
      r.least_bytes = least;
      name_tightest(at_least.plan, r);
      if (with_more_host) {
        const size_t enough = with_more_host->pinned_bytes + codegen::kAlignment;
        least_host = smallest(host, enough, std::move(*with_more_host), [&](size_t bytes) {
                       host_limit_ = bytes;
                       return any(limit_);
                     }).first;
        host_limit_ = host;
      }
    } else {
      name_tightest(unlimited().plan, r);
    }
    std::string largest;
    for (const auto& [label, bytes] : r.largest) largest += cat(largest.empty() ? "" : ", ", label, " (", plan::bytes_text(bytes), ")");
    const std::string sets =
        r.tightest.empty() ? "" : cat(", which ", r.tightest, " sets", r.tightest_location ? cat(" at ", r.tightest_location.str()) : "");
    const std::string has = host == 0 ? "" : cat(" with the ", with_number(host), " that are left of the host's memory for it");
    const std::string or_host =
        least_host == 0 ? "" : cat(", or ", with_number(least_host - host), " more of the host's memory (TANDEM_HOST_MEMORY)");
    throw DoesNotFit(cat(request_.graph.name.empty() ? "call" : request_.graph.name, ": it does not fit into ", with_number(limit_), " of ",
                         device, has, ": it needs at least ", with_number(r.least_bytes), sets, "; without a limit it takes ",
                         plan::bytes_text(free_bytes), "\n  largest values: ", largest.empty() ? "none" : largest, "\n  tried: ", tried(),
                         "\n  hint: a limit of ", r.least_bytes, " bytes or more", or_host, ", or a smaller batch"),
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
  Lowered as_it_is_;                                         // no state on the host
  std::map<std::pair<size_t, Updates>, Prepared> prepared_;  // by Candidate
  Candidate chosen_;
  size_t host_limit_ = 0;      // of what waits on the host; 0: none
  size_t nearest_ = SIZE_MAX;  // of the plans that were too large for the limit, what the smallest needs
};

}  // namespace

Planned planned_within(const plan::Request& request, Lowered lowered, const Devices& devices, std::vector<DeviceFacts> facts,
                       const Planner& planner) {
  return Chooser(request, std::move(lowered), devices, std::move(facts), planner).run();
}

}  // namespace tandem::engine
