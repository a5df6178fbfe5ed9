// Elementwise ops behind a reshape are computed in the shape before it: reshape(x) + y becomes reshape(x + reshape(y)). A reshape costs
// nothing where it goes, and a product keeps its epilogue although somebody looked at its result in another shape in between.
#include <algorithm>
#include <map>
#include <optional>

#include "ir/rewrite.hpp"
#include "passes/pipeline.hpp"

namespace tandem::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

class Shapes {
 public:
  Shapes(const ir::OpTable& table, const Graph& g) : g_(g), b_(table), rewriter_(b_, g) {}

  Graph run() {
    return rewriter_.run([this](int32_t n) { return emit(g_.node(n)); });
  }

 private:
  std::vector<Value> emit(const Node& node) {
    if (node.op->body && node.types.size() == 1)
      if (const auto moved = before_reshape(node, rewriter_.now(node.inputs))) return {*moved};
    return rewriter_.copy(node);
  }

  // What a value was before it was reshaped, when it was made by something that fusion may add to.
  std::optional<Value> before(Value v) const {
    const Node& node = b_.graph().node(v);
    if (node.op->name != "reshape") return {};
    const Node& source = b_.graph().node(node.inputs[0]);
    const bool grows = source.op->has(ir::kProduct) || source.op->body;
    return grows ? std::optional(node.inputs[0]) : std::nullopt;
  }

  std::optional<Value> before_reshape(const Node& node, const std::vector<Value>& in) {
    const Dims& dims = node.types[0].dims;
    std::optional<Value> source;
    for (Value v : in)
      if (!source && b_.type(v).dims == dims) source = before(v);
    if (!source) return {};
    const Dims inner = b_.type(*source).dims;
    std::vector<Dims> shapes;
    for (Value v : in) {
      const auto shape = reshaped(b_.type(v).dims, dims, inner);
      if (!shape) return {};
      shapes.push_back(*shape);
    }
    std::vector<Value> moved;
    for (size_t i = 0; i < in.size(); ++i) moved.push_back(in_shape(in[i], shapes[i]));
    const Value result = b_.node(*node.op, moved, node.attrs)[0];
    return b_.op("reshape", {result}, {{"shape", dims}});
  }
  Value in_shape(Value v, const Dims& shape) {
    if (b_.type(v).dims == shape) return v;
    const Node& node = b_.graph().node(v);
    if (node.op->name == "reshape" && b_.type(node.inputs[0]).dims == shape) return node.inputs[0];
    std::vector<Value>& made = reshapes_[v];
    const auto found = std::ranges::find_if(made, [&](Value r) { return b_.type(r).dims == shape; });
    return found != made.end() ? *found : made.emplace_back(b_.op("reshape", {v}, {{"shape", shape}}));
  }

  // The shape that an operand of an op over `dims` has in an op over `inner`, which holds the same elements: a number stays one, the
  // whole becomes the whole, and what is repeated along leading axes stays so if both shapes can be cut at that place.
  static std::optional<Dims> reshaped(const Dims& operand, const Dims& dims, const Dims& inner) {
    if (operand.empty()) return operand;
    if (operand == dims) return inner;
    if (operand.size() >= dims.size() || !std::equal(operand.rbegin(), operand.rend(), dims.rbegin())) return {};
    const Dim count = product(operand);
    Dim tail = 1;
    for (size_t k = inner.size(); k-- > 0;) {
      tail = tail * inner[k];
      if (tail == count) return Dims(inner.begin() + static_cast<std::ptrdiff_t>(k), inner.end());
    }
    return {};
  }

  const Graph& g_;
  ir::Builder b_;
  ir::Rewriter rewriter_;
  std::map<Value, std::vector<Value>> reshapes_;  // of operands: nobody looks for equal nodes behind this pass
};

}  // namespace

Graph shapes(const ir::OpTable& table, const Graph& g) {
  return Shapes(table, ir::with_subgraphs(g, [&](const Graph& inner) { return shapes(table, inner); })).run();
}

}  // namespace tandem::passes
