// Graphs to plan, from two comma-separated files: nodes with id, cost_int and mem_kb, edges with u and v. Columns of other names are not
// looked at.
#pragma once
#include <string>
#include <vector>

namespace tandem::cli {

struct DagFile {
  std::vector<int64_t> ids;  // in an order that is valid: the file's, if that is
  std::vector<int64_t> costs, kilobytes;
  std::vector<std::vector<int32_t>> inputs;  // indices of the nodes that each needs
};

// ResourceError when one cannot be read; UserError with the line and the column when it says something else than a graph.
DagFile read_dag(const std::string& nodes_path, const std::string& edges_path);

}  // namespace tandem::cli
