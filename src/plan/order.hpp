// The order in which a graph's nodes run.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "ir/graph.hpp"

namespace tandem::plan {

// All nodes, each behind those it needs. The graph's own order, with two exceptions: what gives back at least as much memory as it takes
// runs as soon as it can (an optimizer's update frees its gradient), and the last reader of state comes before the node that overwrites
// it, where nothing speaks against it. `donations` has one entry an output: the input that it may overwrite, or -1.
std::vector<int32_t> order(const ir::Graph& graph, const std::vector<int32_t>& donations, const std::function<size_t(ir::Value)>& bytes);

}  // namespace tandem::plan
