#include "plan/schedule_dump.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/env.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace tandem::plan {
namespace {

int64_t kilobytes(int64_t bytes) { return (bytes + 1023) / 1024; }

}  // namespace

DagText dag_of(const ScheduleProblem& problem) {
  DagText text{"id,cost_int,mem_kb,scratch_kb\n", "u,v\n"};
  std::vector<size_t> maker(problem.values.size(), SIZE_MAX);
  for (size_t i = 0; i < problem.units.size(); ++i) {
    const ScheduleUnit& u = problem.units[i];
    std::set<size_t> from;
    for (const int32_t v : u.inputs)
      if (const size_t m = maker[static_cast<size_t>(v)]; m != SIZE_MAX) from.insert(m);
    for (const size_t m : from) text.edges += cat(m, ",", i, "\n");
    int64_t bytes = 0;
    for (const int32_t v : u.outputs) {
      maker[static_cast<size_t>(v)] = i;
      if (!problem.values[static_cast<size_t>(v)].on_host) bytes += problem.values[static_cast<size_t>(v)].bytes;
    }
    text.nodes += cat(i, ",", u.cost, ",", kilobytes(bytes), ",", kilobytes(u.scratch), "\n");
  }
  return text;
}

void dump_problem(const ScheduleProblem& problem) {
  const std::string folder = env::get("TANDEM_DUMP");
  if (folder.empty()) return;
  static std::atomic<int> count{0};
  const std::string name = cat(folder, "/", count++, "-step");
  const DagText text = dag_of(problem);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::ofstream nodes(name + ".nodes.csv"), edges(name + ".edges.csv");
  nodes << text.nodes << std::flush;
  edges << text.edges << std::flush;
  if (!nodes || !edges) log::line(log::Topic::Plan, "cannot write to TANDEM_DUMP=", folder);
}

}  // namespace tandem::plan
