// Matching with backtracking over the orders of commutative operands, and rewriting to a fixed point.
#include "ir/pattern.hpp"

#include <algorithm>
#include <bit>

#include "base/log.hpp"
#include "ir/rewrite.hpp"

namespace tandem::ir::pattern {

struct PatternNode {
  enum class Kind : uint8_t { Any, Op, Constant };
  Kind kind = Kind::Any;
  std::string op;  // empty: any op with a body
  bool has_operands = false;
  std::vector<P> in;
  std::string capture;
  bool has_value = false;
  double value = 0;
  std::vector<std::function<bool(const Node&)>> conditions;
};

namespace {

using Kind = PatternNode::Kind;

constexpr int kMostRounds = 32;    // over the whole graph
constexpr int kLongestChain = 16;  // of rewrites of one node in one round

P made(PatternNode n) { return P(std::make_shared<const PatternNode>(std::move(n))); }

bool has_value(const Node& n, double v) {
  const Literal& l = n.attrs.get<Literal>("value");
  if (!l.shape.empty()) return false;
  const double found = load_number(l.dtype, l.bytes->data());
  return is_float(l.dtype) ? std::bit_cast<uint64_t>(found) == std::bit_cast<uint64_t>(v) : found == v;
}

class Matcher {
 public:
  explicit Matcher(const Graph& g) : graph_(g) {}

  bool match(const P& p, Value v) { return match_all({{&p, v}}); }
  Match::Captures captures;

 private:
  using Pairs = std::vector<std::pair<const P*, Value>>;

  // All pairs must match under one set of captures. Where there is a choice, both are tried with everything that is left to do.
  bool match_all(Pairs todo) {
    while (!todo.empty()) {
      const auto [p, v] = todo.back();
      todo.pop_back();
      const PatternNode& pattern = *p->operator->();
      if (!matches_node(pattern, v) || !capture(pattern.capture, v)) return false;
      if (!pattern.has_operands) continue;
      const Node& n = graph_.node(v);
      if (n.op->has(kCommutative) && n.inputs.size() == 2) {
        const Match::Captures before = captures;
        Pairs swapped = todo;
        swapped.insert(swapped.end(), {{&pattern.in[0], n.inputs[1]}, {&pattern.in[1], n.inputs[0]}});
        todo.insert(todo.end(), {{&pattern.in[0], n.inputs[0]}, {&pattern.in[1], n.inputs[1]}});
        if (match_all(std::move(todo))) return true;
        captures = before;
        return match_all(std::move(swapped));
      }
      for (size_t i = 0; i < n.inputs.size(); ++i) todo.emplace_back(&pattern.in[i], n.inputs[i]);
    }
    return true;
  }

  bool matches_node(const PatternNode& p, Value v) const {
    const Node& n = graph_.node(v);
    if (p.kind == Kind::Op && ((p.op.empty() ? !n.op->body : n.op->name != p.op) || v.out != 0)) return false;
    if (p.kind == Kind::Op && p.has_operands && n.inputs.size() != p.in.size()) return false;
    if (p.kind == Kind::Constant && (n.op->name != "constant" || (p.has_value && !has_value(n, p.value)))) return false;
    return std::ranges::all_of(p.conditions, [&](const auto& holds) { return holds(n); });
  }

  bool capture(const std::string& name, Value v) {
    if (name.empty()) return true;
    const auto found = std::ranges::find(captures, name, &Match::Captures::value_type::first);
    if (found != captures.end()) return found->second == v;
    captures.emplace_back(name, v);
    return true;
  }

  const Graph& graph_;
};

// One walk over a graph: each node is copied and then replaced for as long as a rule applies to what came of it.
class Round {
 public:
  Round(const OpTable& table, const RuleSet& rules) : table_(table), rules_(rules), builder_(table) {}

  // The graph with what the rules made of it; it may hold nodes that nobody needs.
  Graph run(const Graph& g) {
    Rewriter r(builder_, g);
    return r.run([&](int32_t n) {
      const Node& node = g.node(n);
      std::vector<Value> made = node.op->name == "constant" ? std::vector{builder_.constant(node.attrs.get<Literal>("value"))}
                                : has_subgraphs(node)       ? r.copy(rewritten(node))
                                                            : r.copy(node);
      if (made.size() == 1) made[0] = simplified(made[0]);
      return made;
    });
  }

  bool changed() const { return last_rule_ != nullptr; }
  const std::string* last_rule() const { return last_rule_; }

 private:
  Node rewritten(Node n) {
    map_subgraphs(n, [&](const Graph& g) {
      Round inner(table_, rules_);
      const Graph result = inner.run(g);
      if (inner.changed()) last_rule_ = inner.last_rule_;
      return inner.changed() ? prune(table_, result) : g;
    });
    return n;
  }

  Value simplified(Value v) {
    for (int step = 0; step < kLongestChain; ++step) {
      const Value next = replaced(v);
      if (next == v) break;
      v = next;
    }
    return v;
  }

  // The value that the first fitting rule puts in its place; itself when there is none.
  Value replaced(Value v) {
    const Node& n = builder_.graph().node(v);
    if (v.out != 0 || n.types.size() != 1) return v;
    for (size_t i : rules_.about(*n.op)) {
      const Rule& rule = rules_.rules()[i];
      Matcher matcher(builder_.graph());
      if (!matcher.match(rule.pattern, v)) continue;
      Match m(builder_, v, std::move(matcher.captures));
      const Expr result = rewritten(rule, m);
      if (!result || result.value() == v) continue;
      check(rule, v, result);
      rules_.count(i);
      last_rule_ = &rule.name;
      return result.value();
    }
    return v;
  }

  // Rules see good graphs only, so what they cannot build is their own mistake.
  static Expr rewritten(const Rule& rule, Match& m) {
    try {
      return rule.rewrite(m);
    } catch (const UserError& e) {
      internal_error("rule '", rule.name, "': ", e.what());
    }
  }

  void check(const Rule& rule, Value v, const Expr& result) const {
    if (&result.builder() != &builder_) internal_error("rule '", rule.name, "' gives a value of another graph");
    if (!(result.type() == builder_.type(v)))
      internal_error("rule '", rule.name, "' puts ", result.type(), " in the place of ", builder_.type(v), " (",
                     builder_.graph().node(v).op->name, ")");
  }

  const OpTable& table_;
  const RuleSet& rules_;
  Builder builder_;
  const std::string* last_rule_ = nullptr;
};

}  // namespace

P P::as(std::string_view capture) const {
  PatternNode n = *node_;
  n.capture = capture;
  return made(std::move(n));
}

P P::where(std::function<bool(const Node&)> holds) const {
  PatternNode n = *node_;
  n.conditions.push_back(std::move(holds));
  return made(std::move(n));
}

P any(std::string_view capture) { return made({.kind = Kind::Any, .capture = std::string(capture)}); }
P elementwise() { return made({.kind = Kind::Op}); }
P op(std::string_view name) { return made({.kind = Kind::Op, .op = std::string(name)}); }
P op(std::string_view name, std::vector<P> in) {
  return made({.kind = Kind::Op, .op = std::string(name), .has_operands = true, .in = std::move(in)});
}
P constant(std::string_view capture) { return made({.kind = Kind::Constant, .capture = std::string(capture)}); }
P constant_value(double v) { return made({.kind = Kind::Constant, .has_value = true, .value = v}); }

Expr Match::operator[](std::string_view capture) const {
  const auto found = std::ranges::find(captures_, capture, &Captures::value_type::first);
  if (found == captures_.end()) internal_error("the pattern has no part called '", capture, "'");
  return {builder_, found->second};
}

Node Match::node(std::string_view capture) const { return builder_.graph().node((*this)[capture].value()); }
Literal Match::literal(std::string_view capture) const { return node(capture).attrs.get<Literal>("value"); }

RuleSet::RuleSet(std::string name, std::vector<Rule> rules)
    : name_(std::move(name)), rules_(std::move(rules)), hits_(std::make_unique<std::atomic<uint64_t>[]>(rules_.size())) {
  for (const Rule& r : rules_)
    TANDEM_CHECK(r.rewrite && r.pattern && r.pattern->kind == Kind::Op, "rule '", r.name, "' of '", name_,
                 "' needs the pattern of an op and a rewrite");
  for (size_t i = 0; i < rules_.size(); ++i) {
    const std::string& op = rules_[i].pattern->op;
    (op.empty() ? elementwise_ : by_op_[op]).push_back(i);
  }
  // Matching asks again whether an op is elementwise, so the lists may hold these rules for any op.
  for (auto& [op, about] : by_op_) {
    about.insert(about.end(), elementwise_.begin(), elementwise_.end());
    std::ranges::sort(about);
  }
}

std::span<const size_t> RuleSet::about(const OpDef& op) const {
  const auto found = by_op_.find(op.name);
  return found == by_op_.end() ? elementwise_ : found->second;
}

void RuleSet::check(const OpTable& table) const {
  if (checked_.load(std::memory_order_relaxed) == &table) return;
  for (const Rule& r : rules_)
    if (!r.pattern->op.empty() && !table.find(r.pattern->op))
      internal_error("rule '", r.name, "' is about the op '", r.pattern->op, "', which is not in the table");
  checked_.store(&table, std::memory_order_relaxed);
}

uint64_t RuleSet::hits(std::string_view rule) const {
  const auto found = std::ranges::find(rules_, rule, &Rule::name);
  if (found == rules_.end()) internal_error("no rule of '", name_, "' is called '", rule, "'");
  return hits_[static_cast<size_t>(found - rules_.begin())].load(std::memory_order_relaxed);
}

Graph rewrite(const OpTable& table, const Graph& g, const RuleSet& rules) {
  rules.check(table);
  Graph now = prune(table, g);
  for (int round = 0; round < kMostRounds; ++round) {
    Round r(table, rules);
    Graph next = r.run(now);
    if (!r.changed()) return now;
    now = prune(table, next);
    if (round + 1 == kMostRounds)
      log::line(log::Topic::Pass, rules.name(), ": rule '", *r.last_rule(), "' still applies after ", kMostRounds, " rounds");
  }
  return now;
}

}  // namespace tandem::ir::pattern
