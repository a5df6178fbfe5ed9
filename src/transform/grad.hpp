// Reverse-mode gradients, graph to graph: what is appended is made of ordinary rows, so gradients of gradients need nothing more.
#pragma once
#include <span>
#include <vector>

#include "ir/builder.hpp"

namespace tandem::transform {

// Appends nodes that compute d(sum of targets)/d(sources), one value a source; an invalid Value where a source reaches no target.
// `target_grads` may be empty, and any of them may be invalid: then that cotangent is all ones. Sources may be any values of the graph,
// also intermediate ones: each is then the total derivative, as if the value could be changed on its own.
// Only nodes on the way from a source to a target are looked at. New nodes carry the location of the node they are the gradient of.
// UserError: a source or target that is not floating, a node on the way that has no gradient.
std::vector<ir::Value> gradients(ir::Builder& b, std::span<const ir::Value> targets, std::span<const ir::Value> target_grads,
                                 std::span<const ir::Value> sources);

// g's inputs -> g's outputs, then the gradients of output 0 (a floating scalar) by the inputs `wrt`; zeros where it does not depend on one.
ir::Graph grad_graph(const ir::OpTable& table, const ir::Graph& g, std::span<const int> wrt);

}  // namespace tandem::transform
