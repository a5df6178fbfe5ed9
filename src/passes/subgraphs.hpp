// Sub-graphs of branches and loops: every pass goes into them.
#pragma once
#include <algorithm>
#include <memory>

#include "ir/graph.hpp"

namespace tandem::passes {

inline bool has_subgraphs(const ir::Node& n) {
  return std::ranges::any_of(n.attrs.entries(), [](const auto& entry) { return std::holds_alternative<ir::Graphs>(entry.value); });
}

// Replaces each sub-graph by f of it, which has the same inputs and outputs.
template <class F> void map_subgraphs(ir::Node& n, F f) {
  if (!has_subgraphs(n)) return;
  const ir::Attrs before = n.attrs;
  for (const auto& entry : before.entries())
    if (const auto* graphs = std::get_if<ir::Graphs>(&entry.value)) {
      ir::Graphs now;
      for (const ir::GraphRef& g : *graphs) now.push_back(std::make_shared<const ir::Graph>(f(*g)));
      n.attrs.set(entry.name, std::move(now));
    }
}

}  // namespace tandem::passes
