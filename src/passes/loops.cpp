// Loops that run twice: a gradient runs its loop again, keeping more of each step. Then the first run is for nothing.
#include <unordered_map>

#include "ir/rewrite.hpp"
#include "ops/control.hpp"
#include "passes/pipeline.hpp"

namespace tandem::passes {
namespace {

constexpr size_t kMostCandidates = 8;  // loops on one first operand that are compared with each other, so that time stays linear

class LoopMerger {
 public:
  explicit LoopMerger(const ir::Graph& g) : graph_(g), stand_in_(g) {
    for (int32_t n = 0; n < g.count(); ++n) stand_in_[n] = n;
  }

  bool find() {
    bool found = false;
    std::unordered_map<size_t, std::vector<int32_t>> by_operand;  // the last loops on each first operand
    for (int32_t n = 0; n < graph_.count(); ++n) {
      const ir::Node& wide = graph_.node(n);
      if (!ops::may_keep_more(wide) || wide.inputs.empty()) continue;
      const ir::Value operand = wide.inputs[0];
      auto& others = by_operand[(static_cast<size_t>(operand.node) << 8) ^ static_cast<size_t>(operand.out)];
      for (int32_t other : others) found = cover(n, other) || found;
      others.push_back(n);
      if (others.size() > kMostCandidates) others.erase(others.begin());
    }
    return found;
  }

  // Nodes in the old order, but each after what it needs: a loop that took another's place may have to come earlier than it did.
  ir::Graph sorted() {
    ir::Renumbering numbers(graph_);
    std::vector<int32_t> order, todo;
    for (ir::Value v : graph_.inputs) order.push_back(v.node);  // they keep theirs, whoever needs one earlier
    for (int32_t n = 0; n < graph_.count(); ++n) order.push_back(n);
    for (int32_t next : order) {
      todo.push_back(next);
      while (!todo.empty()) {
        const int32_t node = todo.back();
        const std::vector<ir::Value> inputs = stand_ins(graph_.node(node).inputs);
        const size_t before = todo.size();
        if (!numbers.has(node))
          for (ir::Value v : inputs)
            if (!numbers.has(v.node)) todo.push_back(v.node);
        if (todo.size() > before) continue;
        todo.pop_back();
        if (numbers.has(node)) continue;
        ir::Node n = graph_.node(node);
        n.inputs = inputs;
        numbers.take(node, std::move(n));
      }
    }
    return numbers.finish(stand_ins(graph_.inputs), stand_ins(graph_.outputs), graph_.name);
  }

 private:
  int32_t stand_in(int32_t node) const {
    while (stand_in_[node] != node) node = stand_in_[node];
    return node;
  }
  std::vector<ir::Value> stand_ins(std::vector<ir::Value> values) const {
    for (ir::Value& v : values) v.node = stand_in(v.node);
    return values;
  }

  // Whichever covers the other stands in for it, unless it needs the other's results itself.
  bool cover(int32_t a, int32_t b) {
    for (const auto& [wide, narrow] : {std::pair{a, b}, std::pair{b, a}}) {
      if (stand_in(wide) != wide || stand_in(narrow) != narrow) continue;
      if (!ops::covers(graph_.node(wide), graph_.node(narrow))) continue;
      if (needs(wide, narrow)) continue;
      stand_in_[narrow] = wide;
      return true;
    }
    return false;
  }

  bool needs(int32_t user, int32_t wanted) const {
    ir::NodeMap<bool> seen(graph_);
    std::vector<int32_t> todo{user};
    while (!todo.empty()) {
      const int32_t node = todo.back();
      todo.pop_back();
      for (ir::Value v : graph_.node(node).inputs) {
        const int32_t input = stand_in(v.node);
        if (input == wanted) return true;
        if (seen[input]) continue;
        seen[input] = true;
        todo.push_back(input);
      }
    }
    return false;
  }

  const ir::Graph& graph_;
  ir::NodeMap<int32_t> stand_in_;
};

}  // namespace

ir::Graph loops(const ir::OpTable& table, const ir::Graph& g) {
  if (std::ranges::none_of(g.nodes, [](const ir::Node& n) { return has_subgraphs(n) || ops::may_keep_more(n); })) return g;
  const ir::Graph now = ir::with_subgraphs(g, [&](const ir::Graph& inner) { return loops(table, inner); });
  LoopMerger merger(now);
  return merger.find() ? ir::prune(table, merger.sorted()) : now;
}

}  // namespace tandem::passes
