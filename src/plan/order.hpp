// The order in which a graph's nodes run.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "ir/graph.hpp"

namespace tandem::plan {

// What the order depends on. `donations` has one entry an output: the input that it may overwrite, or -1.
struct OrderRequest {
  const ir::Graph& graph;
  const std::vector<int32_t>& donations;
  std::function<size_t(ir::Value)> bytes;
  std::function<bool(const ir::Node&)> is_view;  // its result is its first operand's bytes, perhaps walked in other steps
};

// All nodes, each behind those it needs. The graph's own order, with two exceptions: what gives back at least as much memory as it takes
// runs as soon as it can (an optimizer's update frees its gradient), and the last reader of state comes before the node that overwrites
// it, where nothing speaks against it.
std::vector<int32_t> order(const OrderRequest& request);

}  // namespace tandem::plan
