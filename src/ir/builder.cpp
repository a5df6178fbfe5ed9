// Nodes made, graphs copied into graphs.
#include "ir/builder.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "ir/rewrite.hpp"

namespace tandem::ir {
namespace {

// Then a node's types stay where they are while the list of nodes grows, and a reference to them may be held across making more.
static_assert(std::is_nothrow_move_constructible_v<Node>);

// "text\n  at file:line\n  hint: …": the place goes in front of the hint, and only the innermost place is kept.
std::string with_location(std::string text, const Location& where) {
  if (!where || text.find("\n  at ") != std::string::npos) return text;
  const size_t at = std::min(text.find("\n  hint:"), text.size());
  return text.insert(at, cat("\n  at ", where));
}

Location either(const Location& first, const Location& second) { return first ? first : second; }

bool exists(const Graph& g, Value v) {
  return v.node >= 0 && v.out >= 0 && static_cast<size_t>(v.node) < g.nodes.size() && static_cast<size_t>(v.out) < g.node(v).types.size();
}

std::vector<TensorType> operand_types(const OpDef& op, const Graph& g, std::span<const Value> in) {
  std::vector<TensorType> types;
  types.reserve(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    TANDEM_CHECK(exists(g, in[i]), "operand ", i, " of ", op.name, " is not a value of this graph");
    types.push_back(g.type(in[i]));
  }
  return types;
}

}  // namespace

Value Builder::input(TensorType type, std::string name) {
  const Attrs attrs{{"index", static_cast<int64_t>(graph_.inputs.size())},
                    {"dtype", type.dtype},
                    {"shape", std::move(type.dims)},
                    {"name", std::move(name)}};
  return node(table_.at("input"), {}, attrs).front();
}

Value Builder::input_like(const Node& input) {
  const Attr* name = input.attrs.find("name");
  const auto* text = name ? std::get_if<std::string>(name) : nullptr;
  return this->input(input.types.at(0), text ? *text : "");
}

Value Builder::constant(Literal value) {
  const bool is_scalar = value.shape.empty();
  const Attr attr = std::move(value);
  const size_t key = is_scalar ? hash(attr) : 0;
  if (is_scalar) {
    for (auto [at, end] = scalars_.equal_range(key); at != end; ++at)
      if (equal(*graph_.node(at->second).attrs.find("value"), attr)) return at->second;
  }
  const Value v = node(table_.at("constant"), {}, {{"value", attr}}).front();
  if (is_scalar) scalars_.emplace(key, v);
  return v;
}

Value Builder::scalar(DType t, double value) { return constant(Literal::scalar(t, value)); }

std::vector<Value> Builder::node(const OpDef& op, std::span<const Value> in, const Attrs& attrs) try {
  Node n;
  n.op = &op;
  n.inputs.assign(in.begin(), in.end());
  n.attrs = complete_attrs(op, attrs);
  n.types = infer(op, operand_types(op, graph_, in), n.attrs);
  n.location = location;
  if (op.name != "input" && op.name != "constant") n.device = device;

  const auto index = static_cast<int32_t>(graph_.nodes.size());
  std::vector<Value> results;
  for (size_t i = 0; i < n.types.size(); ++i) results.push_back({index, static_cast<int32_t>(i)});
  const bool is_input = op.name == "input";
  if (is_input) {
    const auto place = n.attrs.get<int64_t>("index");
    TANDEM_CHECK(place == static_cast<int64_t>(graph_.inputs.size()), "input ", place, " is made as number ", graph_.inputs.size());
  }
  graph_.nodes.push_back(std::move(n));
  if (is_input) graph_.inputs.push_back(results.front());
  return results;
} catch (const UserError& e) {
  throw UserError(with_location(e.what(), location), e.code());
}

std::vector<Value> Builder::nodes(std::string_view op, std::span<const Value> in, const Attrs& attrs) {
  const OpDef* row = nullptr;
  try {
    row = &table_.at(op);
  } catch (const UserError& e) {
    throw UserError(with_location(e.what(), location), e.code());
  }
  return node(*row, in, attrs);
}

Value Builder::op(std::string_view op, std::initializer_list<Value> in, const Attrs& attrs) {
  const std::vector<Value> results = nodes(op, std::span<const Value>(in.begin(), in.size()), attrs);
  TANDEM_CHECK(!results.empty(), op, " has no result");
  return results.front();
}

Value Builder::copy(Node n, std::vector<Value> inputs) {
  n.inputs = std::move(inputs);
  graph_.nodes.push_back(std::move(n));
  return {static_cast<int32_t>(graph_.nodes.size()) - 1, 0};
}

Graph Builder::finish(std::vector<Value> outputs, std::string name) {
  for (size_t i = 0; i < outputs.size(); ++i) TANDEM_CHECK(exists(graph_, outputs[i]), "output ", i, " is not a value of this graph");
  graph_.outputs = std::move(outputs);
  graph_.name = std::move(name);
  scalars_.clear();
  return std::exchange(graph_, {});
}

std::vector<Value> inline_graph(Builder& b, const Graph& g, std::span<const Value> inputs) {
  if (inputs.size() != g.inputs.size()) user_error("graph '", g.name, "' takes ", g.inputs.size(), " inputs, got ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!(b.type(inputs[i]) == g.type(g.inputs[i])))
      user_error("graph '", g.name, "' takes ", g.type(g.inputs[i]), " as input ", i, ", got ", b.type(inputs[i]));
  const Location outer = b.location;
  const int32_t outer_device = b.device;
  Rewriter r(b, g);
  r.inputs(inputs);
  std::vector<Value> outputs = r.nodes([&](int32_t i) {
    const Node& n = g.node(i);
    b.location = either(n.location, outer);
    b.device = n.device >= 0 ? n.device : outer_device;
    return n.op->name == "constant" ? std::vector{b.constant(n.attrs.get<Literal>("value"))} : b.node(*n.op, r.now(n.inputs), n.attrs);
  });
  b.location = outer;
  b.device = outer_device;
  return outputs;
}

Graph prune(const OpTable&, const Graph& g) {
  NodeMap<bool> needed = needed_nodes(g);
  for (const Value v : g.inputs) needed[v] = true;
  Renumbering numbers(g);
  for (int32_t n = 0; n < g.count(); ++n)
    if (needed[n]) numbers.take(n, g.node(n));
  return numbers.finish(g.inputs, g.outputs, g.name);
}

}  // namespace tandem::ir
