// When to compute, free, compute again, copy to the host and fetch back, so that memory stays within a limit at the least time. A pure
// function: knows no graph and no device. docs/adr/0042 says why it works as it does.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tandem::plan {

// Who runs a unit. Each lane runs its units one after the other, in the order of the actions, beside the other lanes. Offloads take turns
// with the units of Download, fetches with those of Upload.
enum class Lane : uint8_t { Device, Host, Upload, Download };

struct ScheduleValue {
  int64_t bytes = 0;
  bool on_host = false;    // counted in the host's memory (host_limit) instead of the device's (limit)
  bool is_result = false;  // must be there at the end
};

struct ScheduleUnit {
  Lane lane = Lane::Device;
  int64_t cost = 0;                      // time, in any unit
  int64_t scratch = 0;                   // bytes of the device's memory that it takes only while it runs
  std::vector<int32_t> inputs, outputs;  // values. A value has at most one maker; one without is there from the start
  std::vector<int32_t> may_replace;      // inputs whose bytes an output of the same size may take, if the input dies in this unit
  std::vector<int32_t> overwrites;       // values that are there from the start, which no other unit may read once this one ran
  bool once = false;                     // runs exactly once, and keeps its order among the others that do; so does what overwrites
};

struct ScheduleLink {
  int64_t time_per_gib = 0;  // in the unit of cost, for one copy in one direction; 0: there is no link, nothing is offloaded
  int64_t latency = 0;       // of each copy, in the unit of cost
};

struct ScheduleProblem {
  std::vector<ScheduleValue> values;
  std::vector<ScheduleUnit>
      units;  // each at least once, in an order that is valid: the one that is kept if there is no reason to change it
  // Bytes. Values that are there from the start do not count; the caller subtracts them.
  int64_t limit = INT64_MAX, host_limit = INT64_MAX;
  ScheduleLink link;
};

struct ScheduleAction {
  // Of a unit: Compute. Of a value: Free it (of one that was offloaded: the device's copy), Offload: copy it to the
  // host, Fetch: copy it back, FreeHost: forget the offloaded copy.
  enum class Kind : uint8_t { Compute, Free, Offload, Fetch, FreeHost };
  Kind kind = Kind::Compute;
  int32_t id = 0;
  bool operator==(const ScheduleAction&) const = default;
};

struct ScheduleOptions {
  int64_t effort = 0;               // steps of search, counted and not timed (I6); 0: quick rules alone
  uint64_t seed = 1;                // of the search's random choices
  std::function<bool()> is_enough;  // asked now and then; once it says true, the best so far is the result, which then depends on when
};

// A step is one look at one unit of a sequence; so many take about a second.
constexpr int64_t kScheduleStepsPerSecond = 100'000'000;

// The effort for a good plan before a program runs: about a second for some hundred units, less for fewer.
int64_t quick_effort(const ScheduleProblem& problem);

// Memory is counted in the order of the actions: a value from the action that makes it until it is freed. An action starts when its lane
// is free, what it reads is there, and enough of what was freed before it is no longer in use on another lane; so what is in use at any
// time is never more than what the order counts.
struct Schedule {
  std::vector<ScheduleAction> actions;  // empty if nothing that fits was found
  int64_t cost = 0;                     // time from the first start to the last end
  int64_t base_cost = 0;                // that of the given order without a limit
  int64_t bound = 0;                    // no schedule within the limits takes less
  int64_t peak = 0, host_peak = 0;      // bytes
  int64_t steps = 0;                    // of search that were used
  bool fits = false;
  int64_t least_limit = 0;     // the smallest limit for which a schedule was found: the peak if this one fits
  int64_t least_possible = 0;  // no schedule exists for a smaller limit: what one unit needs while it runs
  int32_t tightest_unit = -1;  // that unit
};

Schedule schedule(const ScheduleProblem& problem, const ScheduleOptions& options = {});

// Runs the actions anew, sharing no code with what made them: cost, peak and host_peak as they come out. `problem_found` says which action
// breaks a rule, or is empty.
struct ScheduleReplay {
  std::string problem_found;
  int64_t cost = 0, peak = 0, host_peak = 0;
};
ScheduleReplay replay(const ScheduleProblem& problem, const std::vector<ScheduleAction>& actions);

// The time of one copy over the link, rounded up.
int64_t copy_time(const ScheduleLink& link, int64_t bytes);

}  // namespace tandem::plan
