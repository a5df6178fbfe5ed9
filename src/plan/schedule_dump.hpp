// A scheduling problem as a graph in files, for `tandem plan --dag`.
#pragma once
#include <string>

#include "plan/schedule.hpp"

namespace tandem::plan {

// The units are the nodes, with their time as it is in the problem and what all that they make takes; scratch is a column that nobody
// reads, and one output in place of an input is two outputs. Values that are there from the start and what must be there at the end are
// left out.
struct DagText {
  std::string nodes, edges;
};
DagText dag_of(const ScheduleProblem& problem);

// Writes NUMBER-step.nodes.csv and .edges.csv into the folder of TANDEM_DUMP, if there is one.
void dump_problem(const ScheduleProblem& problem);

}  // namespace tandem::plan
