// Plan: what running a graph once means, as plain data. Steps in order, on which stream of which device each is, what it waits for, and
// for every value where its bytes lie. Made once for each binding of symbols; the executor follows it without deciding anything. Devices
// and kernels are numbers, and what the planner needs to know of them is given to it: so a plan for a card that is not there is possible.
#pragma once
#include <functional>
#include <span>

#include "codegen/cost.hpp"
#include "device/device.hpp"
#include "plan/lower.hpp"
#include "plan/schedule_baselines.hpp"
#include "plan/units.hpp"

namespace tandem::plan {

// A place in memory: a base (an arena, an input, an output, a constant) and a byte offset.
struct Slot {
  enum class Base : uint8_t { Arena, Input, Output, Constant };
  Base base = Base::Arena;
  int32_t index = 0;  // which of them
  size_t offset = 0;
  size_t bytes = 0;
  size_t shift = 0;    // of the first element that is used: a slice begins behind its block's first byte
  int32_t value = -1;  // whose bytes these are: lets verify() tell two values in one place apart
  std::string str() const;
  bool overlaps(const Slot& o) const {
    return base == o.base && index == o.index && offset < o.offset + o.bytes && o.offset < offset + bytes;
  }
};

// What a step does to memory. A step's effects are in the order of these kinds.
struct Effect {
  enum class Kind : uint8_t { Read, Write, Carry, Scratch };  // Carry: the second places of what a loop carries
  Kind kind = Kind::Read;
  Slot slot;
  bool in_place = false;  // Read: a write may take exactly its place
};

struct Plan;

struct Step {
  plan::Kind kind = plan::Kind::Launch;
  int32_t device = 0;
  bool on_host = true;  // done at once by the host as it walks the plan: a device whose memory is the host's
  device::StreamKind stream = device::StreamKind::Compute;  // else on this one
  std::vector<int32_t> waits;                               // for these earlier steps, which are on streams that it is not on
  bool is_awaited = false;                                  // somebody waits for it
  int32_t kernel = -1;                                      // Launch: by its number
  std::vector<Effect> effects;
  std::vector<std::shared_ptr<const Plan>> bodies;
  int64_t carries = 0, sequences = 0, trips = 0;
  bool reverse = false;
  bool may_fail = false;  // a launch that refuses some numbers, before it writes
  bool is_again = false;  // so that the plan stays within a limit: it ran before, or what it brings was there
  std::string label, kernel_name;
  codegen::Cost cost;
  Location location;

  std::span<const Effect> of(Effect::Kind k) const;
  std::span<const Effect> reads() const { return of(Effect::Kind::Read); }
  std::span<const Effect> writes() const { return of(Effect::Kind::Write); }
  const Slot* scratch() const {  // of the program, or the arena of the bodies; null when there is none
    return effects.empty() || effects.back().kind != Effect::Kind::Scratch ? nullptr : &effects.back().slot;
  }
};

// Memory that is taken for one run, or for two that follow each other.
struct Arena {
  int32_t device = 0;
  int32_t pinned_by = -1;  // the device whose copies reach it: where one with the host's memory works together with one that has its own
  size_t bytes = 0;
  bool is_double_buffered = false;  // there are two, which runs use in turn: copies to one go on while the run before uses the other
  size_t taken_bytes() const { return is_double_buffered ? 2 * bytes : bytes; }
};

// What was done so that a plan stays within a device's limit, or why it does not.
struct BudgetReport {
  int32_t device = 0;
  size_t limit_bytes = 0;      // of the device
  size_t fixed_bytes = 0;      // inputs, outputs and constants in its memory
  size_t unlimited_bytes = 0;  // what the plan would take without a limit
  size_t peak_bytes = 0;       // what it takes
  size_t least_bytes = 0;      // the smallest limit at which a plan was found; the peak when it fits
  size_t pinned_bytes = 0;     // what it takes of the host's memory that copies reach
  size_t state_bytes = 0;      // inputs that are there instead
  int64_t updates_on_host = 0;
  bool fits = true;
  int64_t recomputed = 0, offloaded = 0, fetched = 0;  // units that run again; values that go to the host's memory, and come from there
  size_t offloaded_bytes = 0, fetched_bytes = 0;
  // Of a run by the schedule's clock, which is what plans are compared by; no plan of these units is faster than the bound.
  double seconds = 0, unlimited_seconds = 0, bound_seconds = 0;
  // Of a run among others (simulate.hpp), and of one without a limit. 0: not known.
  double predicted_seconds = 0, unlimited_predicted_seconds = 0;
  std::string tightest;  // what runs where the plan takes most
  Location tightest_location;
  std::vector<std::pair<std::string, size_t>> largest;  // values alive there
};

// Of what a run may take: of a device's memory, or of the host's that copies reach.
struct Limit {
  int32_t device = 0;
  bool is_pinned = false;
  size_t bytes = 0;
};

// Plain data (I20): no device, program or address is in it.
struct Plan {
  std::vector<Step> steps;
  size_t prefetches = 0;                // so many of the first steps are uploads that do not wait for the run before
  std::vector<Arena> arenas;            // planned peak of everything that lives only inside a run; one a device that has any
  std::vector<codegen::Layout> inputs;  // as they must lie
  std::vector<int32_t> input_devices;
  std::vector<codegen::Layout> outputs;  // dense
  std::vector<int32_t> output_devices;
  std::vector<OutputAlias> aliases;   // one an output
  std::vector<int32_t> donated;       // one an output: the input whose place it takes, or -1
  std::vector<int32_t> waits_at_end;  // the host waits for these steps: they write results that lie in its memory
  std::vector<Constant> constants;    // bodies use those of the plan that they are in
  Bindings bindings;
  std::vector<Limit> limits;          // that it stays within (I19), where every report of `budgets` says that it fits
  std::vector<BudgetReport> budgets;  // of the devices whose limit needed more than an order
  double seconds = 0;                 // of a run, as the cost model says; where some device has a limit

  size_t arena_bytes() const;               // of all arenas
  size_t peak_bytes(int32_t device) const;  // what a run takes of a device's memory, counted as its account does
  size_t pinned_bytes() const;              // likewise of the host's that copies reach, besides inputs that wait there
  std::string str(int indent = 0) const;    // a table that people can read
};

// What a planner needs to know of a kernel and of a device.
struct KernelFacts {
  size_t scratch_bytes = 0;
  std::vector<bool> in_place;  // one an input: whether an output of as many bytes may take its place. Empty: none
  std::string name;            // which entry of the device's list it is
  codegen::Cost cost;
  double seconds = 0;  // where a device has a limit
};
struct DeviceFacts {
  bool host_memory = true;
  size_t gap_bytes = 0;      // to keep between values in small memory
  size_t limit_bytes = 0;    // of a run: inputs, outputs, constants and arena together; the host's: of its arena. 0: none
  device::Rates rates = {};  // where times are asked for
};

std::vector<Limit> limits_of(std::span<const DeviceFacts> devices);

// How hard to look for a plan within a limit.
struct PlanOptions {
  int64_t effort = 100'000'000;     // steps of search (ScheduleOptions), about a second
  std::function<bool()> is_enough;  // likewise
  bool may_recompute = true, may_offload = true;
  std::optional<Baseline> baseline;  // this schedule instead, whatever the limits are
};

// Orders the units, gives results the places of operands that die with them, outputs those of donated inputs, everything an address, and
// each step what it waits for. `facts`: one a kernel of the tables. Where a device has a limit that this goes over, units run again or
// their results go to the host's memory and back (schedule.hpp); Plan::budgets says so, also when no plan was found that fits.
Plan make_plan(Units units, Tables tables, std::span<const KernelFacts> facts, std::span<const DeviceFacts> devices,
               const PlanOptions& options = {});

// One line: "gpu:0: 512 MiB of 1.3 GiB: 14 results computed again, 210 MiB wait on the host, predicted +12 %".
std::string summary(const BudgetReport& report, std::string_view device);
std::string bytes_text(size_t bytes);  // "1.3 GiB", rounded up
// For each device, the report that takes most without a limit: a smaller last batch may fit as it is.
void keep_largest(std::vector<BudgetReport>& most, const std::vector<BudgetReport>& others);

// Checks a plan by replaying it, knowing nothing of how it was made. InternalError names the step and the invariant of ARCHITECTURE.md.
void verify(const Plan& plan);

}  // namespace tandem::plan
