// Checks a scheduling problem and lays it out flat.
#include "plan/schedule_model.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace tandem::plan {

int64_t copy_time(const ScheduleLink& link, int64_t bytes) {
  constexpr int64_t kGib = int64_t{1} << 30;
  return link.latency + static_cast<int64_t>((bytes * scheduling::Wide{link.time_per_gib} + kGib - 1) / kGib);
}

namespace scheduling {
namespace {

constexpr int64_t kLargest = int64_t{1} << 61;  // of bytes: below it no sum overflows
constexpr int64_t kLongest = int64_t{1} << 50;  // of all units once: thirteen days of nanoseconds

void check(const ScheduleProblem& problem) {
  const auto value_count = static_cast<int32_t>(problem.values.size());
  std::vector<uint8_t> is_made(problem.values.size(), 0), is_overwritten(problem.values.size(), 0);
  TANDEM_CHECK(problem.limit >= 0 && problem.host_limit >= 0, "schedule: limits ", problem.limit, " and ", problem.host_limit);
  TANDEM_CHECK(problem.link.time_per_gib >= 0 && problem.link.latency >= 0, "schedule: a link of negative time");
  Wide bytes = 0, time = 0;
  for (const ScheduleValue& v : problem.values) {
    TANDEM_CHECK(v.bytes >= 0, "schedule: a value of ", v.bytes, " bytes");
    bytes += v.bytes;
  }
  std::vector<uint8_t> has_maker(problem.values.size(), 0);
  for (const ScheduleUnit& u : problem.units)
    for (int32_t v : u.outputs) {
      TANDEM_CHECK(v >= 0 && v < value_count, "schedule: value ", v, " of ", value_count);
      TANDEM_CHECK(!has_maker[static_cast<size_t>(v)], "schedule: two units make value ", v);
      has_maker[static_cast<size_t>(v)] = 1;
    }
  for (size_t i = 0; i < problem.units.size(); ++i) {
    const ScheduleUnit& u = problem.units[i];
    TANDEM_CHECK(u.cost >= 0 && u.scratch >= 0, "schedule: unit ", i, " has cost ", u.cost, " and scratch ", u.scratch);
    bytes += u.scratch;
    time += u.cost;
    for (int32_t v : u.inputs) {
      TANDEM_CHECK(v >= 0 && v < value_count, "schedule: value ", v, " of ", value_count);
      const auto k = static_cast<size_t>(v);
      TANDEM_CHECK(!has_maker[k] || is_made[k], "schedule: unit ", i, " reads value ", v, ", which is made later");
      TANDEM_CHECK(!is_overwritten[k], "schedule: unit ", i, " reads value ", v, ", which is overwritten before");
    }
    for (int32_t v : u.may_replace)
      TANDEM_CHECK(std::find(u.inputs.begin(), u.inputs.end(), v) != u.inputs.end(), "schedule: unit ", i, " replaces ", v,
                   ", which it does not read");
    for (int32_t v : u.overwrites) {
      TANDEM_CHECK(v >= 0 && v < value_count && !has_maker[static_cast<size_t>(v)], "schedule: unit ", i, " overwrites value ", v,
                   ", which is not there from the start");
      TANDEM_CHECK(!is_overwritten[static_cast<size_t>(v)], "schedule: value ", v, " is overwritten twice");
      is_overwritten[static_cast<size_t>(v)] = 1;
    }
    for (int32_t v : u.outputs) is_made[static_cast<size_t>(v)] = 1;
  }
  TANDEM_CHECK(bytes < kLargest && time < kLongest, "schedule: 2^61 bytes or more, or 2^50 units of time");
}

std::vector<int32_t> unique(std::vector<int32_t> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace

Model::Model(const ScheduleProblem& problem)
    : limit(std::min(problem.limit, kLargest)),
      host_limit(std::min(problem.host_limit, kLargest)),
      unit_count_(static_cast<int32_t>(problem.units.size())) {
  check(problem);
  maker.assign(problem.values.size(), -1);
  fetch.assign(problem.values.size(), -1);
  std::vector<int32_t> overwriter(problem.values.size(), -1);
  for (int32_t i = 0; i < unit_count_; ++i) {
    const ScheduleUnit& u = problem.units[static_cast<size_t>(i)];
    for (int32_t v : u.outputs) maker[static_cast<size_t>(v)] = i;
    for (int32_t v : u.overwrites) overwriter[static_cast<size_t>(v)] = i;
  }
  for (const ScheduleValue& v : problem.values) {
    bytes.push_back(v.bytes);
    on_host.push_back(v.on_host);
    is_result.push_back(v.is_result);
    copy_time.push_back(plan::copy_time(problem.link, v.bytes));
  }
  has_rules.assign(static_cast<size_t>(unit_count_), 0);
  for (int32_t i = 0; i < unit_count_; ++i) {
    const ScheduleUnit& u = problem.units[static_cast<size_t>(i)];
    cost.push_back(u.cost);
    base_sum += u.cost;
    scratch.push_back(u.scratch);
    lane.push_back(u.lane);
    if (u.lane != Lane::Device) is_timed = true;
    once.push_back(u.once || !u.overwrites.empty());
    if (once.back()) has_rules[static_cast<size_t>(i)] = 1;
    for (int32_t v : unique(u.inputs)) {
      if (maker[static_cast<size_t>(v)] >= 0) inputs.add(v);
      if (const int32_t by = overwriter[static_cast<size_t>(v)]; by >= 0 && by != i) {
        runs_before.add(by);
        reads_overwritten.add(v);
        has_rules[static_cast<size_t>(i)] = 1;
      }
    }
    inputs.end();
    runs_before.end();
    reads_overwritten.end();
    for (int32_t v : u.overwrites) overwrites.add(v);
    overwrites.end();
    for (int32_t v : u.outputs) {
      outputs.add(v);
      if (on_host[static_cast<size_t>(v)] && bytes[static_cast<size_t>(v)] > 0) uses_host = true;
    }
    outputs.end();
    std::vector<int32_t> left(u.may_replace);
    for (int32_t out : u.outputs) {
      const auto fits = std::find_if(left.begin(), left.end(), [&](int32_t in) {
        const auto a = static_cast<size_t>(in), b = static_cast<size_t>(out);
        return maker[a] >= 0 && bytes[a] == bytes[b] && on_host[a] == on_host[b];
      });
      if (fits == left.end() || bytes[static_cast<size_t>(out)] == 0) continue;
      replaces.add(*fits);
      replaces.add(out);
      left.erase(fits);
    }
    replaces.end();
  }
  if (problem.link.time_per_gib == 0) return;
  for (int32_t v = 0; v < value_count(); ++v) {
    const auto k = static_cast<size_t>(v);
    if (maker[k] < 0 || on_host[k] || bytes[k] == 0) continue;
    fetch[k] = item_count();
    cost.push_back(copy_time[k]);
    scratch.push_back(0);
    lane.push_back(Lane::Upload);
    once.push_back(0);
    has_rules.push_back(0);
    inputs.end();
    outputs.add(v);
    outputs.end();
    for (Lists* none : {&replaces, &runs_before, &overwrites, &reads_overwritten}) none->end();
    is_timed = uses_host = true;
  }
}

int64_t working_set(const Model& model, int32_t unit) {
  int64_t sum = model.scratch[static_cast<size_t>(unit)];
  for (auto list : {model.inputs[unit], model.outputs[unit]})
    for (int32_t v : list)
      if (!model.on_host[static_cast<size_t>(v)]) sum += model.bytes[static_cast<size_t>(v)];
  const auto pairs = model.replaces[unit];
  for (size_t i = 0; i < pairs.size(); i += 2)
    if (const auto v = static_cast<size_t>(pairs[i]); !model.on_host[v]) sum -= model.bytes[v];
  return sum;
}

}  // namespace scheduling
}  // namespace tandem::plan
