// What passes share: a thing for each node or value of a graph, and the walk that makes one graph out of another.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "ir/builder.hpp"

namespace tandem::ir {

// A thing for each node of a graph; of a value, that of its node.
template <class T> class NodeMap {
 public:
  using reference = typename std::vector<T>::reference;
  using const_reference = typename std::vector<T>::const_reference;

  NodeMap() = default;
  explicit NodeMap(const Graph& g, const T& thing = {}) : things_(g.nodes.size(), thing) {}
  reference operator[](int32_t node) { return things_[static_cast<size_t>(node)]; }
  const_reference operator[](int32_t node) const { return things_[static_cast<size_t>(node)]; }
  reference operator[](Value v) { return (*this)[v.node]; }
  const_reference operator[](Value v) const { return (*this)[v.node]; }

 private:
  std::vector<T> things_;
};

// A thing for each value: a node has as many as results.
template <class T> class ValueMap {
 public:
  using reference = typename std::vector<T>::reference;
  using const_reference = typename std::vector<T>::const_reference;

  ValueMap() = default;
  explicit ValueMap(const Graph& g, const T& thing = {}) : first_(g) {
    size_t count = 0;
    for (int32_t n = 0; n < g.count(); ++n) {
      first_[n] = count;
      count += g.node(n).types.size();
    }
    things_.assign(count, thing);
  }
  reference operator[](Value v) { return things_[first_[v] + static_cast<size_t>(v.out)]; }
  const_reference operator[](Value v) const { return things_[first_[v] + static_cast<size_t>(v.out)]; }

 private:
  NodeMap<size_t> first_;
  std::vector<T> things_;
};

NodeMap<bool> needed_nodes(const Graph& g);  // by the outputs

// Sub-graphs of branches, loops and fused nodes: every pass goes into them.
bool has_subgraphs(const Node& n);
// Replaces each of them by f of it, which has the same inputs and outputs.
template <class F> void map_subgraphs(Node& n, F f) {
  if (!has_subgraphs(n)) return;
  const Attrs before = n.attrs;
  for (const auto& entry : before.entries())
    if (const auto* graphs = std::get_if<Graphs>(&entry.value)) {
      Graphs now;
      for (const GraphRef& g : *graphs) now.push_back(std::make_shared<const Graph>(f(*g)));
      n.attrs.set(entry.name, std::move(now));
    }
}
template <class F> Graph with_subgraphs(Graph g, F f) {
  for (Node& n : g.nodes) map_subgraphs(n, f);
  return g;
}

// Copies a graph node by node into a builder, and knows what each value became. A whole pass is `run` with a function that makes something
// else of some nodes:
//
//   Rewriter r(b, g);
//   Graph smaller = r.run([&](int32_t n) { return is_odd(g.node(n)) ? other(r, n) : r.copy(n); });
class Rewriter {
 public:
  Rewriter(Builder& to, const Graph& from) : builder_(to), from_(from), now_(from) {}

  // What the inputs became: inputs like them, or these.
  void inputs();
  void inputs(std::span<const Value> values);
  // Every other node in order, at its own place in the program and on its own device. `emit` returns its results, or nothing when the node
  // goes, or is put later. Returns what the outputs became.
  template <class F> std::vector<Value> nodes(F emit) {
    for (int32_t n = 0; n < from_.count(); ++n) {
      if (from_.node(n).op->name == "input") continue;
      builder_.follow(from_.node(n));
      put(n, emit(n));
    }
    return now(from_.outputs);
  }
  template <class F> Graph run(F emit) {
    inputs();
    return builder_.finish(nodes(std::move(emit)), from_.name);
  }

  Value now(Value v) const { return now_[v]; }
  std::vector<Value> now(std::span<const Value> values) const;
  void put(int32_t node, std::span<const Value> results);  // what a node's results became
  // A node as it is, on what its operands became, or on these.
  std::vector<Value> copy(const Node& n) { return copy(n, now(n.inputs)); }
  std::vector<Value> copy(const Node& n, std::vector<Value> inputs);
  std::vector<Value> copy(int32_t node) { return copy(from_.node(node)); }

 private:
  Builder& builder_;
  const Graph& from_;
  ValueMap<Value> now_;
};

// Takes nodes over as they are, some of them or in another order, under new numbers.
class Renumbering {
 public:
  explicit Renumbering(const Graph& from) : place_(from, -1) {}

  bool has(int32_t node) const { return place_[node] >= 0; }
  void put(int32_t node, int32_t place) { place_[node] = place; }  // it is the same as one that is there
  int32_t add(int32_t node, Node n);                               // with operands of the new graph; returns its place
  int32_t take(int32_t node, Node n);                              // with operands of the old one, which were taken
  std::vector<Value> apply(std::vector<Value> values) const;       // of the old graph, in the new one
  const Graph& graph() const { return to_; }                       // so far
  Graph finish(std::vector<Value> inputs, std::vector<Value> outputs, std::string name);  // both of the old graph

 private:
  NodeMap<int32_t> place_;
  Graph to_;
};

}  // namespace tandem::ir
