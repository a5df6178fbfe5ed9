// Nodes carried from one graph into another.
#include "ir/rewrite.hpp"

#include <utility>

namespace tandem::ir {

NodeMap<bool> needed_nodes(const Graph& g) {
  NodeMap<bool> needed(g, false);
  for (const Value v : g.outputs) needed[v] = true;
  for (int32_t n = g.count(); n-- > 0;)
    if (needed[n])
      for (const Value v : g.node(n).inputs) needed[v] = true;
  return needed;
}

bool has_subgraphs(const Node& n) {
  return std::ranges::any_of(n.attrs.entries(), [](const auto& entry) { return std::holds_alternative<Graphs>(entry.value); });
}

void Rewriter::inputs() {
  for (const Value v : from_.inputs) now_[v] = builder_.input_like(from_.node(v));
}

void Rewriter::inputs(std::span<const Value> values) {
  TANDEM_CHECK(values.size() == from_.inputs.size(), "graph '", from_.name, "' takes ", from_.inputs.size(), " inputs, got ",
               values.size());
  for (size_t i = 0; i < values.size(); ++i) now_[from_.inputs[i]] = values[i];
}

std::vector<Value> Rewriter::now(std::span<const Value> values) const {
  std::vector<Value> result;
  result.reserve(values.size());
  for (const Value v : values) result.push_back(now_[v]);
  return result;
}

void Rewriter::put(int32_t node, std::span<const Value> results) {
  for (size_t o = 0; o < results.size(); ++o) now_[{node, static_cast<int32_t>(o)}] = results[o];
}

std::vector<Value> Rewriter::copy(const Node& n, std::vector<Value> inputs) {
  std::vector<Value> results(n.types.size());
  const Value first = builder_.copy(n, std::move(inputs));
  for (size_t o = 0; o < results.size(); ++o) results[o] = {first.node, static_cast<int32_t>(o)};
  return results;
}

int32_t Renumbering::add(int32_t node, Node n) {
  to_.nodes.push_back(std::move(n));
  return place_[node] = to_.count() - 1;
}

int32_t Renumbering::take(int32_t node, Node n) {
  n.inputs = apply(std::move(n.inputs));
  return add(node, std::move(n));
}

std::vector<Value> Renumbering::apply(std::vector<Value> values) const {
  for (Value& v : values) v.node = place_[v];
  return values;
}

Graph Renumbering::finish(std::vector<Value> inputs, std::vector<Value> outputs, std::string name) {
  to_.inputs = apply(std::move(inputs));
  to_.outputs = apply(std::move(outputs));
  to_.name = std::move(name);
  return std::exchange(to_, {});
}

}  // namespace tandem::ir
