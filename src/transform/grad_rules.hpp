// The parts of gradients() that grad*.cpp share: how one node passes cotangents from its outputs to its inputs.
#pragma once
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "ir/builder.hpp"

namespace tandem::transform {

// One node that cotangents pass through. Holds a copy: the graph grows, and its nodes move, while a rule runs.
struct NodeGrad {
  ir::Builder& builder;
  ir::Node node;
  std::vector<ir::Value> outputs;
  std::vector<ir::Value> output_grads;  // invalid where none flows
  std::vector<bool> needed;             // which inputs want a gradient
};
using InputGrads = std::vector<ir::Value>;  // one an input, invalid where none flows

InputGrads body_gradients(const NodeGrad& n);    // the derivative of the row's body, as nodes
InputGrads branch_gradients(const NodeGrad& n);  // grad_control.cpp
InputGrads scan_gradients(const NodeGrad& n);    // grad_scan.cpp
InputGrads while_gradients(const NodeGrad& n);   // grad_while.cpp

// gradients() of checked arguments along paths that lead only through nodes from `first` on; what is before is taken as given.
std::vector<ir::Value> gradients_within(ir::Builder& b, int32_t first, std::span<const ir::Value> targets,
                                        std::span<const ir::Value> target_grads, std::span<const ir::Value> sources);

// Adds to `reached` every floating value of the nodes [first, end) that depends on one already in it.
void spread_reached(const ir::Graph& g, int32_t first, int32_t end, std::set<ir::Value>& reached);

// Which carries of a loop depend on operands that want a gradient, after any number of trips. `needed` is one an input of the body.
std::vector<bool> varied_carries(const ir::Graph& body, std::vector<bool> needed, size_t carries);

ir::Value zeros(ir::Builder& b, const ir::TensorType& type);

// A closed sub-graph written as a function of its inputs.
using GraphFn = std::function<std::vector<ir::Value>(ir::Builder&, std::span<const ir::Value> inputs)>;
ir::GraphRef make_graph(const ir::OpTable& table, std::span<const ir::TensorType> inputs, const std::string& name, const GraphFn& f);

}  // namespace tandem::transform
