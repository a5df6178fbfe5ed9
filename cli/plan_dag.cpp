// `tandem plan --dag`: a graph of a file through the planner's schedule().
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/text.hpp"
#include "command.hpp"
#include "dag_file.hpp"
#include "plan/schedule.hpp"

namespace tandem::cli {
namespace {

using plan::ScheduleAction;

constexpr int64_t kDefaultSeconds = 10;
constexpr int64_t kKilobyte = 1024;
// A unit of cost_int where copies have a time, which files do not say otherwise: hundredths of a millisecond.
constexpr double kUnitsPerSecond = 1e5;

plan::ScheduleProblem problem_of(const DagFile& file, int64_t kilobytes) {
  plan::ScheduleProblem problem;
  problem.limit = kilobytes * kKilobyte;
  for (size_t i = 0; i < file.ids.size(); ++i) {
    problem.values.push_back({.bytes = file.kilobytes[i] * kKilobyte});
    plan::ScheduleUnit unit;
    unit.cost = file.costs[i];
    unit.inputs = file.inputs[i];
    unit.outputs = {static_cast<int32_t>(i)};
    problem.units.push_back(std::move(unit));
  }
  return problem;
}

double gigabytes_per_second(const std::string& text) {
  char* end = nullptr;
  const double rate = std::strtod(text.c_str(), &end);
  if (*end != 0 || !std::isfinite(rate) || rate < 1e-3 || rate > 1e6)
    throw UsageError(cat("--link-gb-per-s is \"", text, "\", not a number between 0.001 and 1000000"));
  return rate;
}

void write_schedule(const std::string& path, const DagFile& file, const std::vector<ScheduleAction>& actions) {
  static constexpr const char* kWords[] = {"compute", "free", "offload", "fetch", "free_host"};
  std::ofstream out(path);
  for (const ScheduleAction& a : actions) out << kWords[static_cast<size_t>(a.kind)] << ',' << file.ids[static_cast<size_t>(a.id)] << '\n';
  out.close();
  if (!out) resource_error(path, ": ", std::strerror(errno));
}

double percent(int64_t more, int64_t of) { return of == 0 ? 0 : 100.0 * static_cast<double>(more) / static_cast<double>(of); }

int64_t kilobytes_of(const Arguments& arguments, std::string_view name) {
  arguments.required(name);
  const int64_t kilobytes = *arguments.number(name, 0);
  if (kilobytes > int64_t{1} << 50) throw UsageError(cat("--", name, " is ", kilobytes, ", more than ", int64_t{1} << 50));
  return kilobytes;
}

Exit run(const Arguments& arguments) {
  arguments.allow({"dag", "fixed-kb", "budget-kb", "schedule", "seed", "effort", "seconds", "link-gb-per-s"});
  const std::string nodes = arguments.required("dag");
  if (arguments.files().size() != 1) throw UsageError("--dag needs two files, of nodes and of edges");
  const int64_t fixed = kilobytes_of(arguments, "fixed-kb"), budget = kilobytes_of(arguments, "budget-kb");
  const std::optional<std::string> out = arguments.text("schedule"), link = arguments.text("link-gb-per-s");
  const std::optional<int64_t> seconds = arguments.number("seconds", 1), given_effort = arguments.number("effort", 0);
  if (seconds && given_effort) throw UsageError("--seconds and --effort are given, and one of them says when to stop");
  if (seconds && *seconds > 1'000'000) throw UsageError(cat("--seconds is ", *seconds, ", more than 1000000"));

  const DagFile file = read_dag(nodes, arguments.files()[0]);
  plan::ScheduleProblem problem = problem_of(file, std::max<int64_t>(0, budget - fixed));
  if (link) problem.link.time_per_gib = static_cast<int64_t>(std::ceil(0x1p30 / (gigabytes_per_second(*link) * 1e9) * kUnitsPerSecond));
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  plan::ScheduleOptions options;
  options.effort = given_effort.value_or(seconds.value_or(kDefaultSeconds) * plan::kScheduleStepsPerSecond);
  options.seed = static_cast<uint64_t>(arguments.number("seed", 0).value_or(1));
  if (seconds) options.is_enough = [&] { return elapsed() >= static_cast<double>(*seconds); };
  const plan::Schedule s = schedule(problem, options);
  const auto in_kb = [&](int64_t bytes) { return fixed + bytes / kKilobyte; };
  if (!s.fits) {
    const int64_t unit = file.ids[static_cast<size_t>(s.tightest_unit)];
    if (budget < in_kb(s.least_possible))
      resource_error("no schedule is within ", budget, " KB: node ", unit, " needs ", in_kb(s.least_possible),
                     " KB while it runs\n  hint: the smallest budget for which a schedule was found is ", in_kb(s.least_limit), " KB");
    resource_error("no schedule within ", budget, " KB was found; less than ", in_kb(s.least_possible), " KB is impossible, for node ",
                   unit, "\n  hint: the smallest budget for which a schedule was found is ", in_kb(s.least_limit), " KB");
  }
  const plan::ScheduleReplay replayed = replay(problem, s.actions);
  TANDEM_CHECK(replayed.problem_found.empty() && replayed.cost == s.cost && replayed.peak == s.peak, "the schedule costs ", s.cost,
               " with a peak of ", s.peak, ", run again ", replayed.cost, " and ", replayed.peak, " ", replayed.problem_found);
  size_t computed = 0, fetched = 0;
  for (const ScheduleAction& a : s.actions) {
    computed += a.kind == ScheduleAction::Kind::Compute;
    fetched += a.kind == ScheduleAction::Kind::Fetch;
  }
  std::printf("%zu nodes, cost %lld, overhead %.3f %%, bound %lld (%.3f %%), gap %.3f %%\n", file.ids.size(),
              static_cast<long long>(s.cost), percent(s.cost - s.base_cost, s.base_cost), static_cast<long long>(s.bound),
              percent(s.bound - s.base_cost, s.base_cost), percent(s.cost - s.bound, s.bound));
  std::printf("peak %lld KB of %lld, %zu computed again, ", static_cast<long long>(in_kb(s.peak)), static_cast<long long>(budget),
              computed - file.ids.size());
  if (link) std::printf("%zu fetched, host peak %lld KB, ", fetched, static_cast<long long>(s.host_peak / kKilobyte));
  std::printf("%.2f s, %lld steps\n", elapsed(), static_cast<long long>(s.steps));
  if (out) write_schedule(*out, file, s.actions);
  return Exit::Done;
}

}  // namespace

const PlanMode kPlanDag = {"dag", "when the nodes of a graph run, and which again, so that memory is enough",
                           R"(usage: tandem plan --dag NODES EDGES --fixed-kb N --budget-kb N [--schedule OUT] [--seed N]
                   [--effort N | --seconds N] [--link-gb-per-s X]

Finds when each node of a graph runs, when its output is freed and which nodes run again, so that the outputs that are
live and the fixed memory stay within the budget, at the least cost. Prints the cost, the overhead over running each node
once, a bound that no schedule goes below, the gap between the two, the peak and what the search took.

  --dag NODES EDGES   comma-separated, the first line names the columns: id, cost_int and mem_kb of nodes; u and v of
                      edges, where v needs the output of u. Other columns are not looked at.
  --fixed-kb N        memory that is always taken
  --budget-kb N       memory that there is, with what is fixed
  --schedule OUT      receives lines `compute,ID` and `free,ID`; not written when nothing fits
  --seed N            of the search's random choices; 1 if not given
  --effort N          steps to search at most, 0 for quick rules alone. Steps are counted and not timed, so the result is
                      the same on every machine. 100 million take about a second
  --seconds N         instead: 100 million steps for each second, cut off by the clock; 10 if neither is given
  --link-gb-per-s X   outputs may also wait in the host's memory, over a link of X times 10^9 bytes a second each way, with
                      cost_int in hundredths of a millisecond. OUT then has lines `offload,ID`, `fetch,ID` and
                      `free_host,ID` too.

Exit code: 0 when a schedule was found, 1 when none was or a file is wrong, 2 for a wrong command line.
)",
                           run};

}  // namespace tandem::cli
