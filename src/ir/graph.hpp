// Graph: nodes in an order in which every input precedes its user. Immutable once built; indexes instead of pointers.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tandem/error.hpp>

#include "ir/attr.hpp"
#include "ir/type.hpp"

namespace tandem::ir {

struct OpDef;

struct Value {
  int32_t node = -1;
  int32_t out = 0;
  explicit operator bool() const { return node >= 0; }
  friend bool operator==(const Value&, const Value&) = default;
  friend auto operator<=>(const Value&, const Value&) = default;
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<Value> inputs;
  Attrs attrs;
  std::vector<TensorType> types;  // one an output
  Location location;
  int32_t device = -1;  // that was asked for, as the engine numbers them; -1: any. Inputs and constants have none
};

// Once built it does not change (I3): everybody holds it as const, and a pass makes another one.
class Graph {
 public:
  std::vector<Node> nodes;
  std::vector<Value> inputs;  // nodes of op "input", in order
  std::vector<Value> outputs;
  std::string name;

  int32_t count() const { return static_cast<int32_t>(nodes.size()); }
  const Node& node(int32_t n) const { return nodes[static_cast<size_t>(n)]; }
  const Node& node(Value v) const { return node(v.node); }
  const TensorType& type(Value v) const { return node(v).types[static_cast<size_t>(v.out)]; }
  std::vector<TensorType> input_types() const;
  std::vector<TensorType> output_types() const;
  std::vector<std::string> symbols() const;  // of the inputs, in order of appearance
};

bool operator==(const Graph& a, const Graph& b);  // structure; locations and names do not count
size_t hash(const Graph& g);
bool calls_host(const Graph& g);  // here or in a sub-graph: a cache that keeps it keeps functions of the host program alive

}  // namespace tandem::ir
