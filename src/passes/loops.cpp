// Loops that run twice: a gradient runs its loop again, keeping more of each step. Then the first run is for nothing.
#include <unordered_map>

#include "ir/builder.hpp"
#include "ops/control.hpp"
#include "passes/pipeline.hpp"
#include "passes/subgraphs.hpp"

namespace tandem::passes {
namespace {

constexpr size_t kMostCandidates = 8;  // loops on one first operand that are compared with each other, so that time stays linear

class LoopMerger {
 public:
  explicit LoopMerger(const ir::Graph& g) : graph_(g), stand_in_(g.nodes.size()) {
    for (size_t i = 0; i < stand_in_.size(); ++i) stand_in_[i] = static_cast<int32_t>(i);
  }

  bool find() {
    bool found = false;
    std::unordered_map<size_t, std::vector<int32_t>> by_operand;  // the last loops on each first operand
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const ir::Node& wide = graph_.nodes[i];
      if (!ops::may_keep_more(wide) || wide.inputs.empty()) continue;
      const ir::Value operand = wide.inputs[0];
      auto& others = by_operand[(static_cast<size_t>(operand.node) << 8) ^ static_cast<size_t>(operand.out)];
      for (int32_t other : others) found = cover(static_cast<int32_t>(i), other) || found;
      others.push_back(static_cast<int32_t>(i));
      if (others.size() > kMostCandidates) others.erase(others.begin());
    }
    return found;
  }

  // Nodes in the old order, but each after what it needs: a loop that took another's place may have to come earlier than it did.
  ir::Graph sorted() {
    ir::Graph out;
    out.name = graph_.name;
    std::vector<int32_t> place(graph_.nodes.size(), -1);
    const auto moved = [&](std::vector<ir::Value> values) {
      for (ir::Value& v : values) v.node = place[static_cast<size_t>(stand_in(v.node))];
      return values;
    };
    std::vector<int32_t> order, todo;
    for (ir::Value v : graph_.inputs) order.push_back(v.node);  // they keep theirs, whoever needs one earlier
    for (size_t i = 0; i < graph_.nodes.size(); ++i) order.push_back(static_cast<int32_t>(i));
    for (int32_t next : order) {
      todo.push_back(next);
      while (!todo.empty()) {
        const int32_t node = todo.back();
        const ir::Node& n = graph_.nodes[static_cast<size_t>(node)];
        bool is_ready = true;
        if (place[static_cast<size_t>(node)] < 0)
          for (ir::Value v : n.inputs)
            if (const int32_t input = stand_in(v.node); place[static_cast<size_t>(input)] < 0) {
              todo.push_back(input);
              is_ready = false;
            }
        if (!is_ready) continue;
        todo.pop_back();
        if (place[static_cast<size_t>(node)] >= 0) continue;
        place[static_cast<size_t>(node)] = static_cast<int32_t>(out.nodes.size());
        out.nodes.push_back(n);
        out.nodes.back().inputs = moved(n.inputs);
      }
    }
    out.inputs = moved(graph_.inputs);
    out.outputs = moved(graph_.outputs);
    return out;
  }

 private:
  int32_t stand_in(int32_t node) const {
    while (stand_in_[static_cast<size_t>(node)] != node) node = stand_in_[static_cast<size_t>(node)];
    return node;
  }

  // Whichever covers the other stands in for it, unless it needs the other's results itself.
  bool cover(int32_t a, int32_t b) {
    for (const auto& [wide, narrow] : {std::pair{a, b}, std::pair{b, a}}) {
      if (stand_in(wide) != wide || stand_in(narrow) != narrow) continue;
      if (!ops::covers(graph_.nodes[static_cast<size_t>(wide)], graph_.nodes[static_cast<size_t>(narrow)])) continue;
      if (needs(wide, narrow)) continue;
      stand_in_[static_cast<size_t>(narrow)] = wide;
      return true;
    }
    return false;
  }

  bool needs(int32_t user, int32_t wanted) const {
    std::vector<bool> seen(graph_.nodes.size());
    std::vector<int32_t> todo{user};
    while (!todo.empty()) {
      const int32_t node = todo.back();
      todo.pop_back();
      for (ir::Value v : graph_.nodes[static_cast<size_t>(node)].inputs) {
        const int32_t input = stand_in(v.node);
        if (input == wanted) return true;
        if (seen[static_cast<size_t>(input)]) continue;
        seen[static_cast<size_t>(input)] = true;
        todo.push_back(input);
      }
    }
    return false;
  }

  const ir::Graph& graph_;
  std::vector<int32_t> stand_in_;
};

}  // namespace

ir::Graph loops(const ir::OpTable& table, const ir::Graph& g) {
  if (std::ranges::none_of(g.nodes, [](const ir::Node& n) { return has_subgraphs(n) || ops::may_keep_more(n); })) return g;
  ir::Graph now = g;
  for (ir::Node& n : now.nodes) map_subgraphs(n, [&](const ir::Graph& inner) { return loops(table, inner); });
  LoopMerger merger(now);
  return merger.find() ? ir::prune(table, merger.sorted()) : now;
}

}  // namespace tandem::passes
