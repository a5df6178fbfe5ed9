// Rewrites as data: a table of rules, each a pattern and what takes its place.
//
//   using namespace tandem::ir::pattern;
//   P x = any("x");
//   RuleSet simplify("simplify", {
//       {"multiply-one", op("multiply", {x, constant_value(1)}), [](Match& m) { return m["x"]; }},
//   });
//   Graph smaller = rewrite(table, graph, simplify);
#pragma once
#include <atomic>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/builder.hpp"

namespace tandem::ir::pattern {

struct PatternNode;

// A pattern of one value. Cheap to copy; patterns may share parts.
class P {
 public:
  P() = default;
  explicit P(std::shared_ptr<const PatternNode> n) : node_(std::move(n)) {}
  P as(std::string_view capture) const;                   // the same, and the value is kept under this name
  P where(std::function<bool(const Node&)> holds) const;  // the same, if this holds of the node (its attributes, its types)
  const PatternNode* operator->() const { return node_.get(); }
  explicit operator bool() const { return node_ != nullptr; }

 private:
  std::shared_ptr<const PatternNode> node_;
};

P any(std::string_view capture = "");            // any value; the same name twice means the same value twice
P op(std::string_view name);                     // the op, whatever its operands
P op(std::string_view name, std::vector<P> in);  // the op of exactly these operands, in either order where it is commutative
P elementwise();                                 // any op whose row has a body
P constant(std::string_view capture = "");       // a constant node
P constant_value(double v);                      // a constant without axes of this value; for floats 0 and -0 are two values

// What a rewrite sees. Values belong to the graph that is being made; new nodes get the location of the one that is replaced.
class Match {
 public:
  using Captures = std::vector<std::pair<std::string, Value>>;
  Match(Builder& b, Value root, Captures captures) : builder_(b), root_(root), captures_(std::move(captures)) {}
  Expr operator[](std::string_view capture) const;  // InternalError when the pattern has no such name
  Expr root() const { return {builder_, root_}; }
  Node node() const { return builder_.graph().node(root_); }  // copies: making nodes moves the graph's own
  Node node(std::string_view capture) const;
  Literal literal(std::string_view capture) const;  // of a constant
  Builder& builder() const { return builder_; }

 private:
  Builder& builder_;
  Value root_;
  Captures captures_;
};

struct Rule {
  std::string name;
  P pattern;                            // of an op with one result
  std::function<Expr(Match&)> rewrite;  // of the same type as what it replaces; an empty Expr declines
};

// Rules are tried in order. Counts how often each one was used, over all rewrites.
class RuleSet {
 public:
  RuleSet(std::string name, std::vector<Rule> rules);
  const std::string& name() const { return name_; }
  const std::vector<Rule>& rules() const { return rules_; }
  std::span<const size_t> about(const OpDef& op) const;  // the rules that may apply to it, in order
  void check(const OpTable& table) const;                // InternalError when a rule is about an op that is not there
  uint64_t hits(std::string_view rule) const;            // InternalError when there is no such rule
  void count(size_t rule) const { hits_[rule].fetch_add(1, std::memory_order_relaxed); }

 private:
  std::string name_;
  std::vector<Rule> rules_;
  std::vector<size_t> elementwise_;                                  // rules about any elementwise op
  std::unordered_map<std::string_view, std::vector<size_t>> by_op_;  // with those, where there are others
  std::unique_ptr<std::atomic<uint64_t>[]> hits_;
  mutable std::atomic<const OpTable*> checked_{nullptr};  // the last table that was found to have all the ops
};

// Applies the rules, also inside sub-graphs, until none applies any more; gives up quietly (TANDEM_LOG=pass says so) when rules keep
// undoing each other. What is no longer needed is gone; inputs all stay.
Graph rewrite(const OpTable& table, const Graph& g, const RuleSet& rules);

}  // namespace tandem::ir::pattern
