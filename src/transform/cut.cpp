#include "transform/cut.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "ir/builder.hpp"
#include "ir/compose.hpp"

namespace tandem::transform {
namespace {

using ir::Form;
using ir::Graph;
using ir::Node;
using ir::Prim;
using ir::Value;

bool is_exact(Prim p) {
  switch (p) {
    case Prim::Const:
    case Prim::Arg:
    case Prim::Load:
    case Prim::Axis:
    case Prim::Extent:
    case Prim::Add:
    case Prim::Sub:
    case Prim::Mul:
    case Prim::Div:
    case Prim::Min:
    case Prim::Max:
    case Prim::And:
    case Prim::Or:
    case Prim::Xor:
    case Prim::Shl:
    case Prim::Shr:
    case Prim::MulHi:
    case Prim::Eq:
    case Prim::Ne:
    case Prim::Lt:
    case Prim::Le:
    case Prim::Gt:
    case Prim::Ge:
    case Prim::Select:
    case Prim::Fma:
    case Prim::Neg:
    case Prim::Abs:
    case Prim::Not:
    case Prim::Floor:
    case Prim::Ceil:
    case Prim::Trunc:
    case Prim::Round:
    case Prim::Sqrt:
    case Prim::Cast:
    case Prim::Bitcast: return true;
    default: return false;
  }
}
bool is_exact(const ir::Loops& l) {
  if (l.reduction || l.scan_axis >= 0 || !l.row_reductions.empty()) return false;
  return std::ranges::all_of(ir::post_order(l.results), [](const ir::Scalar& s) { return is_exact(s->prim); });
}

bool is_fused(const Node& n, Form form) { return n.op->name == "fused" && ir::parse_form(n.attrs.get<std::string>("form")) == form; }
const Graph& body_of(const Node& n) { return *n.attrs.get<ir::Graphs>("body").at(0); }

// What comes behind the product, over the body's other operands and the product's result, which is the last input.
struct EndBody {
  Graph graph;
  std::vector<size_t> operands;  // of the whole body, in the order of its inputs
  std::vector<int32_t> results;  // one an output of the whole body: which output of `graph`; -1: the product itself
};

EndBody end_of(const ir::OpTable& table, const Graph& body) {
  EndBody end;
  ir::Builder b(table);
  const int32_t product = ir::product_node(body);
  std::map<Value, Value> to;
  std::set<Value> read;
  for (size_t n = 0; n < body.nodes.size(); ++n)
    if (static_cast<int32_t>(n) != product) read.insert(body.nodes[n].inputs.begin(), body.nodes[n].inputs.end());
  read.insert(body.outputs.begin(), body.outputs.end());
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    if (!read.contains(body.inputs[i])) continue;
    to[body.inputs[i]] = b.input_like(body.node(body.inputs[i]));
    end.operands.push_back(i);
  }
  to[{product, 0}] = b.input(body.nodes[static_cast<size_t>(product)].types[0]);
  for (size_t n = 0; n < body.nodes.size(); ++n) {
    const auto number = static_cast<int32_t>(n);
    const Node& node = body.nodes[n];
    if (number == product || node.op->name == "input") continue;
    std::vector<Value> in;
    for (const Value v : node.inputs) in.push_back(to.at(v));
    const Value made = b.copy(node, std::move(in));
    for (size_t o = 0; o < node.types.size(); ++o) to[{number, static_cast<int32_t>(o)}] = {made.node, static_cast<int32_t>(o)};
  }
  std::vector<Value> outputs;
  for (const Value v : body.outputs) {
    end.results.push_back(v == Value{product, 0} ? -1 : static_cast<int32_t>(outputs.size()));
    if (end.results.back() >= 0) outputs.push_back(to.at(v));
  }
  end.graph = b.finish(std::move(outputs), body.name);
  return end;
}

}  // namespace

bool is_exact_map(const Graph& g, const Node& n) {
  if (n.op->name == "fused") return is_fused(n, Form::Map) && is_exact(ir::compose(body_of(n), Form::Map));
  if (!n.op->body && !n.op->loops) return false;
  std::vector<ir::TensorType> in;
  for (const Value v : n.inputs) in.push_back(g.type(v));
  return is_exact(ir::loops_of(*n.op, in, n.attrs, n.types));
}

bool has_exact_end(const Graph& g, const Node& n) {
  if (!is_fused(n, Form::End)) return false;
  const Graph& body = body_of(n);
  const Node& product = body.nodes[static_cast<size_t>(ir::product_node(body))];
  // A product with one column is computed the other way round when it has an end.
  if (std::ranges::any_of(product.inputs, [&](Value v) { return body.type(v).rank() < 2; })) return false;
  (void)g;
  return is_exact(ir::compose(body, Form::End));
}

Graph cut_ends(const ir::OpTable& table, const Graph& g, const std::vector<bool>& ends) {
  ir::Builder b(table);
  std::map<Value, Value> to;
  for (const Value v : g.inputs) to[v] = b.input_like(g.node(v));
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    const Node& node = g.nodes[n];
    if (node.op->name == "input") continue;
    const auto number = static_cast<int32_t>(n);
    std::vector<Value> in;
    for (const Value v : node.inputs) in.push_back(to.at(v));
    if (!ends[n]) {
      const Value made = b.copy(node, std::move(in));
      for (size_t o = 0; o < node.types.size(); ++o) to[{number, static_cast<int32_t>(o)}] = {made.node, static_cast<int32_t>(o)};
      continue;
    }
    const Graph& body = body_of(node);
    EndBody end = end_of(table, body);
    Node product = body.nodes[static_cast<size_t>(ir::product_node(body))];
    product.location = node.location;
    product.device = node.device;
    std::vector<Value> operands(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(product.inputs.size()));
    const Value result = b.copy(std::move(product), std::move(operands));
    std::vector<Value> read;
    for (const size_t i : end.operands) read.push_back(in[i]);
    read.push_back(result);
    b.follow(node);
    const std::vector<int32_t> results = end.results;
    const std::vector<Value> made =
        b.nodes("fused", read,
                {{"body", ir::Graphs{std::make_shared<const Graph>(std::move(end.graph))}}, {"form", std::string(ir::name(Form::Map))}});
    for (size_t o = 0; o < results.size(); ++o)
      to[{number, static_cast<int32_t>(o)}] = results[o] < 0 ? result : made[static_cast<size_t>(results[o])];
  }
  std::vector<Value> outputs;
  for (const Value v : g.outputs) outputs.push_back(to.at(v));
  return b.finish(std::move(outputs), g.name);
}

}  // namespace tandem::transform
