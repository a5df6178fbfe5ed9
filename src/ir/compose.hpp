// Several nodes as one kernel: results of maps are written out where they are loaded, so that nothing between them goes through memory.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/graph.hpp"
#include "ir/loops.hpp"

namespace tandem::ir {

// How the nodes of a fused body make one kernel.
enum class Form : uint8_t {
  Map,       // no reduction: every output has the same extents, but for axes of 1
  Reduce,    // reductions over the same axes, of which none needs another, and maps over their results
  Row,       // reductions along the last axis that may need each other, with maps before, between and behind them
  Epilogue,  // a product (trait kProduct) of the body's first inputs, and maps over its result
};
std::string_view name(Form f);
Form parse_form(std::string_view name);  // InternalError when there is no such form

// Elements of a graph's values as expressions.
class Composer {
 public:
  // `input` gives the number of the input that a value is loaded from, or -1: then it is written out.
  using InputFn = std::function<int(Value)>;
  Composer(const Graph& g, InputFn input) : graph_(g), input_(std::move(input)) {}

  // The element at `index`. Where the guard (if there is one) is false nothing is loaded, and the element may be anything.
  Scalar at(Value v, const std::vector<Scalar>& index, const Scalar& guard = {});
  // An expression of a node's own loops, with `axes` in place of its axes.
  Scalar inside(int32_t node, const Scalar& s, const std::vector<Scalar>& axes, const Scalar& guard = {});
  // From now on, component k of this node's reduction is Acc(first + k).
  void number_state(int32_t node, int first) { first_state_[node] = first; }
  const Loops& loops(int32_t node);
  // After `input` has changed its mind about some values.
  void forget() {
    known_.clear();
    alive_.clear();
  }

 private:
  using Key = std::pair<Value, std::vector<const ScalarNode*>>;
  const Graph& graph_;
  InputFn input_;
  std::unordered_map<int32_t, Loops> loops_;
  std::unordered_map<int32_t, int> first_state_;
  std::map<Key, Scalar> known_;
  std::vector<Scalar> alive_;  // what the keys point at
};

// Where the elements of `dims` lie in a space that differs from it by axes of 1 only: one index a dim. Nothing when it differs by more.
std::vector<Scalar> places(const Dims& dims, const Dims& space);
bool same_space(const Dims& a, const Dims& b);
// Whether the index of a value with these dims is the reader's own element, axes of 1 aside. An empty index of a value with axes is not.
bool is_own_element(std::span<const Scalar> index, const Dims& dims, const Dims& reader);
Dims without_ones(const Dims& dims);

// One element of an input as it is, from a place that is affine in the axes.
bool moves_element(const Scalar& s);
// Likewise, or such an element widened from 16 bits, a number, a position: nothing that would be worth keeping in memory.
bool moves_only(const Scalar& s);

// The loops of a body in which every node is a map, a reduction or (Epilogue) a product. Epilogue: the loops behind the product, which is
// their last input.
Loops compose(const Graph& body, Form form);
int32_t product_node(const Graph& body);  // of a body of form Epilogue

}  // namespace tandem::ir
