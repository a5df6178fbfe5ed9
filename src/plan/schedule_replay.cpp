// Runs a schedule's actions anew, by the rules of schedule.hpp alone.
#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "plan/schedule.hpp"

namespace tandem::plan {
namespace {

using Kind = ScheduleAction::Kind;

// One kind of memory: what is live in the order of the actions, and what was freed in that order but may still be in use.
struct Memory {
  int64_t limit = 0, live = 0, peak = 0;
  std::multimap<int64_t, int64_t> freed;  // in use until then: bytes

  // The first time from `start` on at which `live` fits beside what is still in use.
  int64_t wait(int64_t start) const {
    int64_t in_use = 0;
    for (auto it = freed.rbegin(); it != freed.rend() && it->first > start; ++it)
      if ((in_use += it->second) + live > limit) return it->first;
    return start;
  }
};

struct Place {
  bool is_there = false;
  int64_t from = 0, until = 0;  // readable from then on, in use until then
};

class Replay {
 public:
  explicit Replay(const ScheduleProblem& problem)
      : problem_(problem),
        main_(problem.values.size()),
        copies_(problem.values.size()),
        has_maker_(problem.values.size()),
        runs_(problem.units.size()),
        overwritten_(problem.values.size()) {
    memory_[0].limit = problem.limit;
    memory_[1].limit = problem.host_limit;
    for (const ScheduleUnit& u : problem.units)
      for (int32_t v : u.outputs) has_maker_[static_cast<size_t>(v)] = true;
    for (size_t v = 0; v < main_.size(); ++v) main_[v].is_there = !has_maker_[v];
  }

  ScheduleReplay run(const std::vector<ScheduleAction>& actions) {
    ScheduleReplay result;
    for (size_t i = 0; i < actions.size() && result.problem_found.empty(); ++i) {
      const std::string what = act(actions, i);
      if (!what.empty()) result.problem_found = cat("action ", i, ": ", what);
    }
    if (result.problem_found.empty()) result.problem_found = at_the_end();
    result.cost = end_;
    result.peak = memory_[0].peak;
    result.host_peak = memory_[1].peak;
    return result;
  }

 private:
  Memory& memory_of(size_t v) { return memory_[problem_.values[v].on_host ? 1 : 0]; }
  int64_t take(Lane lane, int64_t start, int64_t time) {
    int64_t& free_from = lanes_[static_cast<size_t>(lane)];
    free_from = std::max(free_from, start) + time;
    end_ = std::max(end_, free_from);
    return free_from;
  }
  int64_t free_from(Lane lane) const { return lanes_[static_cast<size_t>(lane)]; }
  void count_peaks() {
    for (Memory& m : memory_) m.peak = std::max(m.peak, m.live);
  }

  std::string act(const std::vector<ScheduleAction>& actions, size_t i) {
    const ScheduleAction a = actions[i];
    const auto id = static_cast<size_t>(a.id);
    const size_t count = a.kind == Kind::Compute ? problem_.units.size() : problem_.values.size();
    if (a.id < 0 || id >= count) return cat("there is no ", a.id, " of ", count);
    switch (a.kind) {
      case Kind::Compute: return compute(actions, i);
      case Kind::Free:
        if (!main_[id].is_there || !has_maker_[id]) return cat("value ", id, " is freed and is not there");
        main_[id].is_there = false;
        if (replaced_.erase(a.id) > 0) return "";  // its bytes are an output's already
        memory_of(id).live -= problem_.values[id].bytes;
        memory_of(id).freed.insert({main_[id].until, problem_.values[id].bytes});
        return "";
      case Kind::FreeHost:
        if (!copies_[id].is_there) return cat("the copy of value ", id, " is freed and is not there");
        copies_[id].is_there = false;
        memory_[1].live -= problem_.values[id].bytes;
        memory_[1].freed.insert({copies_[id].until, problem_.values[id].bytes});
        return "";
      case Kind::Offload: {
        if (problem_.link.time_per_gib == 0 || problem_.values[id].on_host) return cat("value ", id, " cannot be offloaded");
        if (!main_[id].is_there || copies_[id].is_there) return cat("value ", id, " is offloaded and is not there, or was already");
        memory_[1].live += problem_.values[id].bytes;
        count_peaks();
        const int64_t start = memory_[1].wait(std::max(free_from(Lane::Download), main_[id].from));
        const int64_t end = take(Lane::Download, start, copy_time(problem_.link, problem_.values[id].bytes));
        main_[id].until = std::max(main_[id].until, end);
        copies_[id] = {true, end, end};
        return "";
      }
      case Kind::Fetch: {
        if (!copies_[id].is_there || main_[id].is_there) return cat("value ", id, " is fetched and has no copy, or is there already");
        memory_[0].live += problem_.values[id].bytes;
        count_peaks();
        const int64_t start = memory_[0].wait(std::max(free_from(Lane::Upload), copies_[id].from));
        const int64_t end = take(Lane::Upload, start, copy_time(problem_.link, problem_.values[id].bytes));
        main_[id] = {true, end, end};
        copies_[id].until = std::max(copies_[id].until, end);
        return "";
      }
    }
    return "no such kind";
  }

  std::string compute(const std::vector<ScheduleAction>& actions, size_t i) {
    const auto id = static_cast<size_t>(actions[i].id);
    const ScheduleUnit& u = problem_.units[id];
    const bool is_once = u.once || !u.overwrites.empty();
    if (is_once && runs_[id]) return cat("unit ", id, " runs again");
    if (is_once && actions[i].id < last_once_) return cat("unit ", id, " runs after ", last_once_);
    if (is_once) last_once_ = actions[i].id;
    runs_[id] = true;
    int64_t start = free_from(u.lane);
    for (int32_t v : u.inputs) {
      const auto k = static_cast<size_t>(v);
      if (!main_[k].is_there) return cat("unit ", id, " reads value ", v, ", which is not there");
      const bool is_own = std::find(u.overwrites.begin(), u.overwrites.end(), v) != u.overwrites.end();
      if (overwritten_[k] && !is_own) return cat("unit ", id, " reads value ", v, ", which was overwritten");
      start = std::max(start, main_[k].from);
    }
    for (int32_t v : u.overwrites) {
      overwritten_[static_cast<size_t>(v)] = true;
      start = std::max(start, main_[static_cast<size_t>(v)].until);
    }
    memory_[0].live += u.scratch;
    bool takes[2] = {u.scratch > 0, false};
    for (int32_t v : u.outputs) {
      const auto k = static_cast<size_t>(v);
      if (main_[k].is_there) return cat("unit ", id, " makes value ", v, ", which is there already");
      memory_of(k).live += problem_.values[k].bytes;
      takes[problem_.values[k].on_host ? 1 : 0] = true;
    }
    for (int32_t in : replaced_inputs(actions, i)) {
      const auto k = static_cast<size_t>(in);
      replaced_.insert(in);
      memory_of(k).live -= problem_.values[k].bytes;
      start = std::max(start, main_[k].until);
    }
    count_peaks();
    for (int m : {0, 1})
      if (takes[m]) start = memory_[m].wait(start);
    const int64_t end = take(u.lane, start, u.cost);
    memory_[0].live -= u.scratch;
    if (u.scratch > 0) memory_[0].freed.insert({end, u.scratch});
    for (int32_t v : u.inputs) main_[static_cast<size_t>(v)].until = std::max(main_[static_cast<size_t>(v)].until, end);
    for (int32_t v : u.outputs) main_[static_cast<size_t>(v)] = {true, end, end};
    return "";
  }

  // The inputs that give their bytes to an output: those that are freed before anything else is computed or fetched.
  std::vector<int32_t> replaced_inputs(const std::vector<ScheduleAction>& actions, size_t i) const {
    const ScheduleUnit& u = problem_.units[static_cast<size_t>(actions[i].id)];
    std::set<int32_t> dying;
    for (size_t j = i + 1; j < actions.size() && actions[j].kind != Kind::Compute && actions[j].kind != Kind::Fetch; ++j)
      if (actions[j].kind == Kind::Free) dying.insert(actions[j].id);
    std::vector<int32_t> left = u.may_replace, replaced;
    for (int32_t out : u.outputs) {
      const ScheduleValue& o = problem_.values[static_cast<size_t>(out)];
      const auto match = std::find_if(left.begin(), left.end(), [&](int32_t in) {
        const ScheduleValue& x = problem_.values[static_cast<size_t>(in)];
        return has_maker_[static_cast<size_t>(in)] && x.bytes == o.bytes && x.on_host == o.on_host;
      });
      if (match == left.end() || o.bytes == 0) continue;
      if (dying.contains(*match)) replaced.push_back(*match);
      left.erase(match);
    }
    return replaced;
  }

  std::string at_the_end() const {
    for (size_t u = 0; u < runs_.size(); ++u)
      if (!runs_[u]) return cat("unit ", u, " never runs");
    for (size_t v = 0; v < main_.size(); ++v)
      if (problem_.values[v].is_result && !main_[v].is_there) return cat("the result ", v, " is not there at the end");
    for (int m : {0, 1})
      if (memory_[m].peak > memory_[m].limit) return cat("the peak is ", memory_[m].peak, ", the limit ", memory_[m].limit);
    return "";
  }

  const ScheduleProblem& problem_;
  std::vector<Place> main_, copies_;
  std::vector<bool> has_maker_, runs_, overwritten_;
  Memory memory_[2];            // the device's, the host's
  std::set<int32_t> replaced_;  // inputs of which the bytes are an output's already, until they are freed
  int64_t lanes_[4] = {0, 0, 0, 0};
  int64_t end_ = 0;
  int32_t last_once_ = -1;
};

}  // namespace

ScheduleReplay replay(const ScheduleProblem& problem, const std::vector<ScheduleAction>& actions) { return Replay(problem).run(actions); }

}  // namespace tandem::plan
