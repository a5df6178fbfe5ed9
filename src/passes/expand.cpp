// Decompositions become the nodes they stand for; what is left has a body, loops, a host routine, is structural, or is kept whole.
#include "ir/rewrite.hpp"
#include "passes/pipeline.hpp"

namespace tandem::passes {
namespace {

class Expander {
 public:
  Expander(ir::Builder& b, const ir::KeepsFn& keeps) : b_(b), keeps_(keeps) {}

  // The nodes of a graph that its outputs need, each where it was written, or else where the last one was. Returns what the outputs became.
  std::vector<ir::Value> copy(ir::Rewriter& r, const ir::Graph& g) {
    const ir::NodeMap<bool> needed = ir::needed_nodes(g);
    Location last = b_.location;
    return r.nodes([&](int32_t n) {
      if (!needed[n]) return std::vector<ir::Value>();
      ir::Node node = g.node(n);
      if (node.location) last = node.location;
      b_.location = last;
      ir::map_subgraphs(node, [&](const ir::Graph& inner) { return expand(b_.table(), inner, keeps_); });
      return emit(*node.op, r.now(node.inputs), node.attrs);
    });
  }

 private:
  // Emits a node, or what it decomposes into.
  std::vector<ir::Value> emit(const ir::OpDef& op, std::span<const ir::Value> in, const ir::Attrs& attrs) {
    if (!op.decompose) return b_.node(op, in, attrs);
    std::vector<ir::TensorType> types;
    for (ir::Value v : in) types.push_back(b_.type(v));
    if (keeps_ && keeps_({op, types, attrs, b_.device})) return b_.node(op, in, attrs);
    // The decomposition is built aside and then copied, so that its own composites are expanded on the way.
    ir::Builder aside(b_.table());
    aside.location = b_.location;
    aside.device = b_.device;
    std::vector<ir::Expr> parameters;
    for (const ir::TensorType& t : types) parameters.emplace_back(aside, aside.input(t));
    const std::vector<ir::Expr> results = op.decompose(aside, {op, types, attrs}, parameters);
    const ir::Graph decomposed = aside.finish(ir::values(results));
    ir::Rewriter r(b_, decomposed);
    r.inputs(in);
    return copy(r, decomposed);
  }

  ir::Builder& b_;
  const ir::KeepsFn& keeps_;
};

}  // namespace

ir::Graph expand(const ir::OpTable& table, const ir::Graph& g, const ir::KeepsFn& keeps) {
  ir::Builder b(table);
  ir::Rewriter r(b, g);
  r.inputs();
  return b.finish(Expander(b, keeps).copy(r, g), g.name);
}

}  // namespace tandem::passes
