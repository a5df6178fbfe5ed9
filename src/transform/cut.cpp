// An end taken off its product: two nodes for one.
#include "transform/cut.hpp"

#include <algorithm>
#include <set>

#include "ir/compose.hpp"
#include "ir/rewrite.hpp"

namespace tandem::transform {
namespace {

using ir::Form;
using ir::Graph;
using ir::Node;
using ir::Value;

bool is_exact(const ir::Loops& l) {
  if (l.reduction || l.scan_axis >= 0 || !l.row_reductions.empty()) return false;
  return std::ranges::all_of(ir::post_order(l.results), [](const ir::Scalar& s) { return ir::is_exact(s->prim); });
}

bool is_fused(const Node& n, Form form) { return n.op->name == "fused" && ir::parse_form(n.attrs.get<std::string>("form")) == form; }
const Graph& body_of(const Node& n) { return *n.attrs.get<ir::Graphs>("body").at(0); }

// What comes behind the product, over the body's other operands and the product's result, which is the last input.
struct EpilogueBody {
  Graph graph;
  std::vector<size_t> operands;  // of the whole body, in the order of its inputs
  std::vector<int32_t> results;  // one an output of the whole body: which output of `graph`; -1: the product itself
};

EpilogueBody epilogue_of(const ir::OpTable& table, const Graph& body) {
  EpilogueBody end;
  ir::Builder b(table);
  ir::Rewriter r(b, body);
  const int32_t product = ir::product_node(body);
  std::set<Value> read;
  for (int32_t n = 0; n < body.count(); ++n)
    if (n != product) read.insert(body.node(n).inputs.begin(), body.node(n).inputs.end());
  read.insert(body.outputs.begin(), body.outputs.end());
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const Value input = body.inputs[i];
    if (!read.contains(input)) continue;
    r.put(input.node, {{b.input_like(body.node(input))}});
    end.operands.push_back(i);
  }
  const Value result{product, 0};
  r.put(product, {{b.input(body.type(result))}});
  r.nodes([&](int32_t n) { return n == product ? std::vector<Value>() : r.copy(n); });
  std::vector<Value> outputs;
  for (const Value v : body.outputs) {
    end.results.push_back(v == result ? -1 : static_cast<int32_t>(outputs.size()));
    if (v != result) outputs.push_back(r.now(v));
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

bool has_exact_epilogue(const Node& n) {
  if (!is_fused(n, Form::Epilogue)) return false;
  const Graph& body = body_of(n);
  const Node& product = body.node(ir::product_node(body));
  // A product with one column is computed the other way round when it has an end.
  if (std::ranges::any_of(product.inputs, [&](Value v) { return body.type(v).rank() < 2; })) return false;
  return is_exact(ir::compose(body, Form::Epilogue));
}

Graph cut_epilogues(const ir::OpTable& table, const Graph& g, const std::vector<bool>& ends) {
  ir::Builder b(table);
  ir::Rewriter r(b, g);
  return r.run([&](int32_t n) {
    const Node& node = g.node(n);
    if (!ends[static_cast<size_t>(n)]) return r.copy(node);
    const Graph& body = body_of(node);
    EpilogueBody end = epilogue_of(table, body);
    Node product = body.node(ir::product_node(body));
    product.location = node.location;
    product.device = node.device;
    const std::vector<Value> in = r.now(node.inputs);
    std::vector<Value> operands(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(product.inputs.size()));
    const Value result = b.copy(std::move(product), std::move(operands));
    std::vector<Value> read;
    for (const size_t i : end.operands) read.push_back(in[i]);
    read.push_back(result);
    const std::vector<Value> made =
        b.nodes("fused", read,
                {{"body", ir::Graphs{std::make_shared<const Graph>(std::move(end.graph))}}, {"form", std::string(ir::name(Form::Map))}});
    std::vector<Value> results;
    for (const int32_t of_end : end.results) results.push_back(of_end < 0 ? result : made[static_cast<size_t>(of_end)]);
    return results;
  });
}

}  // namespace tandem::transform
