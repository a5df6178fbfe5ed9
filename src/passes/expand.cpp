// Decompositions become the nodes they stand for; what is left has a body, loops, a host routine, is structural, or is kept whole.
#include <map>

#include "ir/builder.hpp"
#include "passes/pipeline.hpp"

namespace tandem::passes {
namespace {

class Expander {
 public:
  Expander(ir::Builder& b, const ir::KeepsFn& keeps) : b_(b), keeps_(keeps) {}

  // Emits a node, or what it decomposes into.
  std::vector<ir::Value> emit(const ir::OpDef& op, std::span<const ir::Value> in, const ir::Attrs& attrs) {
    if (!op.decompose) return b_.node(op, in, attrs);
    std::vector<ir::TensorType> types;
    for (ir::Value v : in) types.push_back(b_.type(v));
    if (keeps_ && keeps_({op, types, attrs, b_.device})) return b_.node(op, in, attrs);
    // The decomposition is built aside and then copied, so that its own composites are expanded on the way.
    ir::Builder inner(b_.table());
    inner.location = b_.location;
    inner.device = b_.device;
    std::vector<ir::Expr> parameters;
    for (const ir::TensorType& t : types) parameters.emplace_back(inner, inner.input(t));
    const std::vector<ir::Expr> results = op.decompose(inner, {op, types, attrs}, parameters);
    return copy(inner.finish(ir::values(results)), in);
  }

  std::vector<ir::Value> copy(const ir::Graph& g, std::span<const ir::Value> inputs) {
    std::map<ir::Value, ir::Value> to;
    for (size_t i = 0; i < g.inputs.size(); ++i) to[g.inputs[i]] = inputs[i];
    std::vector<bool> needed(g.nodes.size(), false);
    for (ir::Value v : g.outputs) needed[static_cast<size_t>(v.node)] = true;
    for (size_t n = g.nodes.size(); n-- > 0;)
      if (needed[n])
        for (ir::Value v : g.nodes[n].inputs) needed[static_cast<size_t>(v.node)] = true;
    for (size_t n = 0; n < g.nodes.size(); ++n) {
      const ir::Node& node = g.nodes[n];
      if (!needed[n] || node.op->name == "input") continue;
      std::vector<ir::Value> in;
      for (ir::Value v : node.inputs) in.push_back(to.at(v));
      if (node.location) b_.location = node.location;
      b_.device = node.device;
      const auto out = emit(*node.op, in, expand_graphs(node.attrs));
      for (size_t o = 0; o < out.size(); ++o) to[{static_cast<int32_t>(n), static_cast<int32_t>(o)}] = out[o];
    }
    std::vector<ir::Value> results;
    for (ir::Value v : g.outputs) results.push_back(to.at(v));
    return results;
  }

 private:
  ir::Attrs expand_graphs(const ir::Attrs& attrs) {
    ir::Attrs result = attrs;
    for (const auto& entry : attrs.entries())
      if (const auto* graphs = std::get_if<ir::Graphs>(&entry.value)) {
        ir::Graphs expanded;
        for (const ir::GraphRef& g : *graphs) expanded.push_back(std::make_shared<const ir::Graph>(expand(b_.table(), *g, keeps_)));
        result.set(entry.name, std::move(expanded));
      }
    return result;
  }

  ir::Builder& b_;
  const ir::KeepsFn& keeps_;
};

}  // namespace

ir::Graph expand(const ir::OpTable& table, const ir::Graph& g, const ir::KeepsFn& keeps) {
  ir::Builder b(table);
  std::vector<ir::Value> inputs;
  for (ir::Value v : g.inputs) inputs.push_back(b.input_like(g.node(v)));
  return b.finish(Expander(b, keeps).copy(g, inputs), g.name);
}

}  // namespace tandem::passes
