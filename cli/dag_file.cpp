// Reads graphs, and puts their nodes into a valid order.
#include "dag_file.hpp"

#include <algorithm>
#include <map>
#include <queue>

#include "base/text.hpp"
#include "table_file.hpp"

namespace tandem::cli {
namespace {

constexpr std::string_view kNodeColumns[] = {"id", "cost_int", "mem_kb"}, kEdgeColumns[] = {"u", "v"};
// So that no sum of a file overflows, in bytes or in time.
constexpr int64_t kMostKilobytes = int64_t{1} << 40, kMostCost = int64_t{1} << 40;

// Of the nodes that may come next, the first of the file.
std::vector<size_t> in_order(const std::vector<std::vector<int32_t>>& inputs, const std::vector<int64_t>& ids, const std::string& path) {
  std::vector<std::vector<int32_t>> readers(inputs.size());
  std::vector<size_t> missing(inputs.size()), order;
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < inputs.size(); ++i) {
    missing[i] = inputs[i].size();
    for (int32_t in : inputs[i]) readers[static_cast<size_t>(in)].push_back(static_cast<int32_t>(i));
    if (missing[i] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (int32_t r : readers[i])
      if (--missing[static_cast<size_t>(r)] == 0) ready.push(static_cast<size_t>(r));
  }
  if (order.size() == ids.size()) return order;
  const auto stuck = std::find_if(missing.begin(), missing.end(), [](size_t m) { return m > 0; });
  user_error(path, ": the edges have a cycle; node ", ids[static_cast<size_t>(stuck - missing.begin())], " is in it or behind it");
}

}  // namespace

DagFile read_dag(const std::string& nodes_path, const std::string& edges_path) {
  DagFile file;
  std::map<int64_t, int32_t> index;
  const NumberTable nodes = read_numbers(nodes_path, kNodeColumns), edges = read_numbers(edges_path, kEdgeColumns);
  for (const NumberTable::Row& row : nodes.rows) {
    const int64_t id = row.values[0], cost = row.values[1], kilobytes = row.values[2];
    if (!index.emplace(id, static_cast<int32_t>(file.ids.size())).second) user_error(nodes.place(row, 0), "node ", id, " is there twice");
    if (cost < 0 || cost > kMostCost) user_error(nodes.place(row, 1), "cost_int ", cost, " is not between 0 and ", kMostCost);
    if (kilobytes < 0 || kilobytes > kMostKilobytes)
      user_error(nodes.place(row, 2), "mem_kb ", kilobytes, " is not between 0 and ", kMostKilobytes);
    file.ids.push_back(id);
    file.costs.push_back(cost);
    file.kilobytes.push_back(kilobytes);
  }
  if (file.ids.empty()) user_error(nodes_path, ": no nodes");
  std::vector<std::vector<int32_t>> inputs(file.ids.size());
  for (const NumberTable::Row& row : edges.rows) {
    int32_t ends[2];
    for (size_t e = 0; e < 2; ++e) {
      const auto found = index.find(row.values[e]);
      if (found == index.end()) user_error(edges.place(row, e), kEdgeColumns[e], " is ", row.values[e], ", and there is no such node");
      ends[e] = found->second;
    }
    if (ends[0] == ends[1]) user_error(edges.place(row, 1), "node ", row.values[0], " needs itself");
    std::vector<int32_t>& of = inputs[static_cast<size_t>(ends[1])];
    if (std::find(of.begin(), of.end(), ends[0]) == of.end()) of.push_back(ends[0]);
  }
  const std::vector<size_t> order = in_order(inputs, file.ids, edges_path);
  std::vector<int32_t> place_of(order.size());
  for (size_t k = 0; k < order.size(); ++k) place_of[order[k]] = static_cast<int32_t>(k);
  DagFile sorted;
  for (size_t i : order) {
    sorted.ids.push_back(file.ids[i]);
    sorted.costs.push_back(file.costs[i]);
    sorted.kilobytes.push_back(file.kilobytes[i]);
    sorted.inputs.emplace_back();
    for (int32_t in : inputs[i]) sorted.inputs.back().push_back(place_of[static_cast<size_t>(in)]);
  }
  return sorted;
}

}  // namespace tandem::cli
