// `tandem plan`: what can be planned, each in a file of its own; the options say which is meant.
#include <cstdio>

#include "base/text.hpp"
#include "command.hpp"

namespace tandem::cli {
namespace {

constexpr const PlanMode* kModes[] = {&kPlanDag, &kPlanAllocate, &kPlanCards, &kPlanModel};

constexpr std::string_view kFlags[] = {"cards", "json", "curve", "quick"};

std::string name_of(const PlanMode& m) { return m.option.empty() ? "MODEL.keras" : cat("--", m.option); }

std::string list_of_modes() {
  std::string list = "usage: tandem plan MODE …\n\n";
  for (const PlanMode* m : kModes) list += cat("  ", name_of(*m), std::string(14 - name_of(*m).size(), ' '), m->summary, "\n");
  return list;
}

std::string help() {
  std::string all = list_of_modes();
  for (const PlanMode* m : kModes) all += cat("\n", m->help);
  return all;
}

Exit run(const Arguments& arguments) {
  for (const PlanMode* m : kModes)
    if (m->option.empty() ? !arguments.files().empty() : arguments.has(m->option)) return m->run(arguments);
  if (!arguments.empty()) throw UsageError("the options do not say what to plan");
  std::fputs((list_of_modes() + "\ntandem plan --help says more about each.\n").c_str(), stderr);
  return Exit::Usage;
}

}  // namespace

const Command kPlan = {.name = "plan",
                       .summary = "tells, before anything runs, whether it fits into a device's memory",
                       .help = "",
                       .run = run,
                       .flags = kFlags,
                       .most_files = 1,
                       .long_help = help};

}  // namespace tandem::cli
