#include "plan/schedule_baselines.hpp"

#include <algorithm>
#include <cmath>

namespace tandem::plan {
namespace {

using Kind = ScheduleAction::Kind;

class Maker {
 public:
  explicit Maker(const ScheduleProblem& problem) : problem_(problem), maker_(count(), -1), last_(count(), -1) {
    for (size_t u = 0; u < problem.units.size(); ++u) {
      for (const int32_t v : problem.units[u].outputs) maker_[at(v)] = static_cast<int>(u), last_[at(v)] = static_cast<int>(u);
      for (const int32_t v : problem.units[u].inputs) last_[at(v)] = static_cast<int>(u);
    }
    for (size_t v = 0; v < count(); ++v)
      if (problem.values[v].is_result) last_[v] = static_cast<int>(problem.units.size());
    find_split();
    find_crossing();
  }

  std::vector<ScheduleAction> run(Baseline baseline) {
    baseline == Baseline::Sqrt ? compute_again() : offload();
    return with_frees();
  }

 private:
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  size_t count() const { return problem_.values.size(); }
  const ScheduleUnit& unit(int u) const { return problem_.units[static_cast<size_t>(u)]; }
  int unit_count() const { return static_cast<int>(problem_.units.size()); }
  bool is_here(size_t v) const { return maker_[v] >= 0 && problem_.values[v].bytes > 0 && !problem_.values[v].on_host; }

  // The forward pass is what comes before: the first unit at which most is alive begins the backward pass.
  void find_split() {
    std::vector<int64_t> change(problem_.units.size() + 2);
    for (size_t v = 0; v < count(); ++v) {
      if (!is_here(v)) continue;
      change[static_cast<size_t>(maker_[v])] += problem_.values[v].bytes;
      change[static_cast<size_t>(last_[v]) + 1] -= problem_.values[v].bytes;
    }
    int64_t alive = 0, most = -1;
    for (int u = 0; u < unit_count(); ++u) {
      alive += change[static_cast<size_t>(u)];
      if (alive > most) most = alive, split_ = u;
    }
  }
  // Values that are made before the split and read behind it, in the order in which they are made.
  void find_crossing() {
    for (int u = 0; u < split_; ++u)
      for (const int32_t v : unit(u).outputs)
        if (is_here(at(v)) && last_[at(v)] > split_ && !problem_.values[at(v)].is_result) crossing_.push_back(v);
  }

  void compute(int u) { actions_.push_back({Kind::Compute, u}); }

  // ---- computing again ----
  void compute_again() {
    for (int u = 0; u < split_; ++u) compute(u);
    const auto part = static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(crossing_.size()))));
    segment_of_.assign(count(), -1);
    for (size_t i = 0; i < crossing_.size(); ++i)
      if (i % part != 0 && !unit(maker_[at(crossing_[i])]).once) segment_of_[at(crossing_[i])] = static_cast<int>(i / part);
    is_there_.assign(count(), true);
    for (size_t v = 0; v < count(); ++v)
      if (is_here(v) && maker_[v] < split_ && !unit(maker_[v]).once) is_there_[v] = last_[v] >= split_ && segment_of_[v] < 0;
    for (int u = split_; u < unit_count(); ++u) {
      for (const int32_t v : unit(u).inputs)
        if (!is_there_[at(v)]) bring_segment(segment_of_[at(v)]);
      compute(u);
      for (const int32_t v : unit(u).outputs) is_there_[at(v)] = true;
    }
  }
  // What was dropped of a segment, with what is needed for it in between, which goes again.
  void bring_segment(int segment) {
    const std::vector<bool> before = is_there_;
    for (const int32_t v : crossing_)
      if (segment_of_[at(v)] == segment) bring(v);
    for (size_t v = 0; v < count(); ++v) is_there_[v] = before[v] || (is_there_[v] && segment_of_[v] == segment);
  }
  void bring(int32_t value) {
    if (is_there_[at(value)]) return;
    const int u = maker_[at(value)];
    for (const int32_t v : unit(u).inputs) bring(v);
    compute(u);
    for (const int32_t v : unit(u).outputs) is_there_[at(v)] = true;
  }

  // ---- offloading ----
  void offload() {
    std::vector<std::vector<int32_t>> goes(problem_.units.size()), comes(problem_.units.size());
    for (const int32_t v : crossing_) {
      int last = maker_[at(v)], next = unit_count();
      for (int u = 0; u < unit_count(); ++u)
        if (std::ranges::find(unit(u).inputs, v) != unit(u).inputs.end()) (u < split_ ? last : next) = u < split_ ? u : std::min(next, u);
      goes[static_cast<size_t>(last)].push_back(v);
      // One unit early, so that the copy has something to run beside.
      comes[static_cast<size_t>(std::max(next - 1, split_))].push_back(v);
    }
    for (int u = 0; u < unit_count(); ++u) {
      for (const int32_t v : comes[static_cast<size_t>(u)]) actions_.push_back({Kind::Fetch, v});
      compute(u);
      for (const int32_t v : goes[static_cast<size_t>(u)]) actions_.push_back({Kind::Offload, v});
    }
  }

  // Each life ends with its last use.
  std::vector<ScheduleAction> with_frees() const {
    std::vector<ScheduleAction> reversed;
    std::vector<bool> is_needed(count()), on_host_is_needed(count());
    for (size_t v = 0; v < count(); ++v) is_needed[v] = problem_.values[v].is_result;
    const auto ends = [&](std::vector<bool>& needed, int32_t v, Kind how) {
      if (!needed[at(v)] && maker_[at(v)] >= 0) reversed.push_back({how, v});
    };
    for (auto a = actions_.rbegin(); a != actions_.rend(); ++a) {
      switch (a->kind) {
        case Kind::Compute: {
          for (const int32_t v : unit(a->id).outputs) {
            ends(is_needed, v, Kind::Free);
            is_needed[at(v)] = true;
          }
          for (const int32_t v : unit(a->id).inputs) {
            ends(is_needed, v, Kind::Free);
            is_needed[at(v)] = true;
          }
          reversed.push_back(*a);
          for (const int32_t v : unit(a->id).outputs) is_needed[at(v)] = false;
          break;
        }
        case Kind::Offload:
          ends(is_needed, a->id, Kind::Free);
          is_needed[at(a->id)] = true;
          reversed.push_back(*a);
          on_host_is_needed[at(a->id)] = false;
          break;
        case Kind::Fetch:
          ends(is_needed, a->id, Kind::Free);
          ends(on_host_is_needed, a->id, Kind::FreeHost);
          on_host_is_needed[at(a->id)] = true;
          reversed.push_back(*a);
          is_needed[at(a->id)] = false;
          break;
        default: break;
      }
    }
    std::ranges::reverse(reversed);
    return reversed;
  }

  const ScheduleProblem& problem_;
  std::vector<int> maker_, last_;  // by value: units
  int split_ = 0;
  std::vector<int32_t> crossing_;
  std::vector<int> segment_of_;  // by value that is dropped; else -1
  std::vector<bool> is_there_;
  std::vector<ScheduleAction> actions_;
};

}  // namespace

std::optional<Baseline> baseline_of(std::string_view name) {
  if (name == "sqrt") return Baseline::Sqrt;
  if (name == "offload_all") return Baseline::OffloadAll;
  return {};
}

std::vector<ScheduleAction> baseline_actions(const ScheduleProblem& problem, Baseline baseline) { return Maker(problem).run(baseline); }

}  // namespace tandem::plan
