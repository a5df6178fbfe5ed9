// Graphs compared and hashed by structure.
#include "ir/graph.hpp"

#include <algorithm>

#include "ir/op.hpp"

namespace tandem::ir {
namespace {

std::vector<TensorType> types_of(const Graph& g, const std::vector<Value>& values) {
  std::vector<TensorType> types;
  types.reserve(values.size());
  for (Value v : values) types.push_back(g.type(v));
  return types;
}

// An input's type and place say all but its name, which does not count.
bool is_input(const Node& n) { return n.op->name == "input"; }

bool same(const Node& a, const Node& b) {
  return a.op->id == b.op->id && a.inputs == b.inputs && a.types == b.types && a.device == b.device && (is_input(a) || a.attrs == b.attrs);
}

size_t hash_of(const TensorType& t) {
  size_t h = static_cast<size_t>(t.dtype);
  for (const Dim& d : t.dims) h = hash_combine(h, d.hash());
  return hash_combine(h, t.dims.size());
}

size_t hash_of(size_t seed, const std::vector<Value>& values) {
  size_t h = hash_combine(seed, values.size());
  for (Value v : values) h = hash_combine(h, (static_cast<size_t>(v.node) << 8) ^ static_cast<size_t>(v.out));
  return h;
}

}  // namespace

std::vector<TensorType> Graph::input_types() const { return types_of(*this, inputs); }
std::vector<TensorType> Graph::output_types() const { return types_of(*this, outputs); }

std::vector<std::string> Graph::symbols() const {
  std::vector<std::string> found;
  for (Value v : inputs) {
    std::vector<std::string> of_input;
    for (const Dim& d : type(v).dims) d.collect_symbols(of_input);
    for (std::string& s : of_input)
      if (std::ranges::find(found, s) == found.end()) found.push_back(std::move(s));
  }
  return found;
}

bool operator==(const Graph& a, const Graph& b) {
  return a.inputs == b.inputs && a.outputs == b.outputs && std::ranges::equal(a.nodes, b.nodes, same);
}

size_t hash(const Graph& g) {
  size_t h = hash_of(hash_of(g.nodes.size(), g.inputs), g.outputs);
  for (const Node& n : g.nodes) {
    h = hash_of(hash_combine(h, static_cast<size_t>(n.op->id)), n.inputs);
    if (n.device >= 0) h = hash_combine(h, static_cast<size_t>(n.device) + 1);
    for (const TensorType& t : n.types) h = hash_combine(h, hash_of(t));
    if (!is_input(n)) h = hash_combine(h, n.attrs.hash());
  }
  return h;
}

bool calls_host(const Graph& g) {
  const auto is_call = [](const Attrs::Entry& e) {
    if (const auto* graphs = std::get_if<Graphs>(&e.value))
      return std::ranges::any_of(*graphs, [](const GraphRef& inner) { return calls_host(*inner); });
    return std::holds_alternative<HostFunctionRef>(e.value);
  };
  return std::ranges::any_of(g.nodes, [&](const Node& n) { return std::ranges::any_of(n.attrs.entries(), is_call); });
}

}  // namespace tandem::ir
