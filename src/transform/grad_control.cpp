// Gradients of branches, and what the gradients of both kinds of loop share.
#include <algorithm>
#include <memory>

#include "transform/grad.hpp"
#include "transform/grad_rules.hpp"

namespace tandem::transform {
using namespace ir;

std::vector<bool> varied_carries(const Graph& body, std::vector<bool> needed, size_t carries) {
  for (bool changed = true; changed;) {
    std::set<Value> reached;
    for (size_t k = 0; k < body.inputs.size(); ++k)
      if (needed[k] && is_float(body.type(body.inputs[k]).dtype)) reached.insert(body.inputs[k]);
    spread_reached(body, 0, static_cast<int32_t>(body.nodes.size()), reached);
    changed = false;
    for (size_t j = 0; j < carries; ++j) {
      if (needed[j] || !reached.contains(body.outputs[j])) continue;
      needed[j] = changed = true;
    }
  }
  needed.resize(carries);
  for (size_t j = 0; j < carries; ++j) needed[j] = needed[j] && is_float(body.type(body.inputs[j]).dtype);
  return needed;
}

namespace {

// The gradient of one branch while it is being built: its graph takes the operands, then the cotangents that are there.
struct BranchGrad {
  std::unique_ptr<Builder> builder;
  std::vector<Value> found;  // one an operand that wants a gradient
};

BranchGrad differentiate(const NodeGrad& n, const Graph& branch, const std::vector<size_t>& wanted) {
  BranchGrad result{std::make_unique<Builder>(n.builder.table()), {}};
  Builder& b = *result.builder;
  std::vector<Value> inputs, targets, target_grads, sources;
  for (const TensorType& t : branch.input_types()) inputs.push_back(b.input(t));
  for (size_t i = 0; i < n.output_grads.size(); ++i)
    if (n.output_grads[i]) target_grads.push_back(b.input(branch.output_types()[i]));
  const std::vector<Value> outputs = inline_graph(b, branch, inputs);
  for (size_t i = 0; i < n.output_grads.size(); ++i)
    if (n.output_grads[i]) targets.push_back(outputs[i]);
  for (size_t k : wanted) sources.push_back(inputs[k]);
  result.found = gradients(b, targets, target_grads, sources);
  return result;
}

}  // namespace

// branch(index, operands) -> branch(index, operands and cotangents), each branch giving the gradients of what it would have computed.
InputGrads branch_gradients(const NodeGrad& n) {
  const auto& branches = n.node.attrs.get<Graphs>("branches");
  std::vector<size_t> wanted;
  for (size_t k = 1; k < n.node.inputs.size(); ++k)
    if (n.needed[k]) wanted.push_back(k - 1);
  std::vector<BranchGrad> parts;
  for (const GraphRef& g : branches) parts.push_back(differentiate(n, *g, wanted));

  std::vector<size_t> connected;  // positions in `wanted` that some branch depends on
  for (size_t i = 0; i < wanted.size(); ++i)
    if (std::ranges::any_of(parts, [&](const BranchGrad& p) { return bool(p.found[i]); })) connected.push_back(i);
  InputGrads grads(n.node.inputs.size());
  if (connected.empty()) return grads;

  const OpTable& table = n.builder.table();
  Graphs gradient_branches;
  for (size_t p = 0; p < parts.size(); ++p) {
    Builder& b = *parts[p].builder;
    std::vector<Value> outputs;
    for (size_t i : connected) {
      const Value found = parts[p].found[i];
      outputs.push_back(found ? found : zeros(b, b.type(b.graph().inputs[wanted[i]])));
    }
    gradient_branches.push_back(std::make_shared<const Graph>(prune(table, b.finish(std::move(outputs), branches[p]->name + "_grad"))));
  }
  std::vector<Value> inputs = n.node.inputs;
  for (Value g : n.output_grads)
    if (g) inputs.push_back(g);
  const std::vector<Value> found = n.builder.nodes("branch", inputs, {{"branches", gradient_branches}});
  for (size_t i = 0; i < connected.size(); ++i) grads[wanted[connected[i]] + 1] = found[i];
  return grads;
}

}  // namespace tandem::transform
