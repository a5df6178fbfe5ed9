// Transposes meet. A transpose of an elementwise result is the same as that of its operands, so it can be taken up to where it meets
// another one that undoes it; and equal transposes of all operands can be taken down behind the op as one. Both only where fewer
// transposes are left than there were. Nothing is computed differently: each element is what it was, at another place.
#include "ir/rewrite.hpp"
#include "passes/permutation.hpp"
#include "passes/pipeline.hpp"

namespace tandem::passes {
namespace {

using ir::Ints;
using ir::Node;
using ir::Value;

constexpr int kMostRounds = 4;  // over the graph: a transpose that moved may meet another one, and time stays linear
constexpr int kDeepest = 64;    // how far up a transpose is taken: each step is a call, and the stack is not ours

bool is_identity(const Ints& perm) {
  for (size_t k = 0; k < perm.size(); ++k)
    if (perm[k] != static_cast<int64_t>(k)) return false;
  return true;
}

Dims permuted(const Dims& dims, const Ints& perm) {
  Dims out;
  for (int64_t p : perm) out.push_back(dims[static_cast<size_t>(p)]);
  return out;
}

// An operand with fewer axes than the result, as broadcasting sees it.
Dims padded(const Dims& dims, size_t rank) {
  Dims out(rank - dims.size(), Dim(1));
  out.insert(out.end(), dims.begin(), dims.end());
  return out;
}

bool is_transpose(const Node& n) { return n.op->name == "transpose"; }
bool is_elementwise(const Node& n) { return n.op->body && n.types.size() == 1; }

class Mover {
 public:
  Mover(const ir::OpTable& table, const ir::Graph& g)
      : table_(table), graph_(g), builder_(table), rewriter_(builder_, g), uses_(g), taken_(g, Taken::Unknown) {
    for (const Node& n : g.nodes)
      for (Value v : n.inputs) ++uses_[v];
    for (Value v : g.outputs) ++uses_[v];
  }

  ir::Graph run() {
    return ir::prune(table_, rewriter_.run([this](int32_t n) { return moved(graph_.node(n)); }));
  }
  bool changed() const { return changed_; }

 private:
  const Node& node(Value v) const { return graph_.node(v); }
  bool is_only_use(Value v) const { return uses_[v] == 1; }
  Value now(Value v) const { return rewriter_.now(v); }

  std::vector<Value> moved(const Node& n) {
    if (is_transpose(n) && added(n.inputs[0], permutation(n), 0) <= 0) {
      changed_ = true;
      return {delivered(n.inputs[0], permutation(n), 0)};
    }
    if (is_elementwise(n))
      if (const Ints perm = common_transpose(n); !perm.empty()) {
        changed_ = true;
        return {taken_down(n, perm)};
      }
    return rewriter_.copy(n);
  }

  // ---- up ----
  // By how much the number of transposes grows when v is delivered in another order of axes and nobody needs it in its own (but for
  // those who use it besides).
  int added(Value v, const Ints& perm, int depth) const {
    const Node& n = node(v);
    if (is_transpose(n)) return (is_only_use(v) ? -1 : 0) + (is_identity(composed(perm, permutation(n))) ? 0 : 1);
    if (n.op->name == "full") return 0;
    if (!is_taken_through(v, perm, depth)) return 1;
    return sum_added(n, perm, depth);
  }
  int sum_added(const Node& n, const Ints& perm, int depth) const {
    int sum = 0;
    for (Value v : n.inputs) {
      const Dims& dims = graph_.type(v).dims;
      if (dims.size() == perm.size())
        sum += added(v, perm, depth + 1);
      else if (!is_reshape(padded(dims, perm.size()), perm))
        sum += 1;
    }
    return sum;
  }
  // Each node is the only user of the ones above it, so all these walks together see a node a few times at most.
  bool is_taken_through(Value v, const Ints& perm, int depth) const {
    Taken& taken = taken_[v];
    if (taken == Taken::Unknown) {
      const Node& n = node(v);
      const bool is =
          is_elementwise(n) && is_only_use(v) && depth < kDeepest && n.types[0].dims.size() == perm.size() && sum_added(n, perm, depth) < 1;
      taken = is ? Taken::Yes : Taken::No;
    }
    return taken == Taken::Yes;
  }

  Value transposed(Value v, const Ints& perm) { return is_identity(perm) ? v : builder_.op("transpose", {v}, {{"perm", perm}}); }

  Value delivered(Value v, const Ints& perm, int depth) {
    const Node& n = node(v);
    if (is_transpose(n)) return transposed(now(n.inputs[0]), composed(perm, permutation(n)));
    if (n.op->name == "full") return builder_.op("full", {now(n.inputs[0])}, {{"shape", permuted(n.types[0].dims, perm)}});
    if (!is_taken_through(v, perm, depth)) return transposed(now(v), perm);
    std::vector<Value> inputs;
    for (Value operand : n.inputs) inputs.push_back(delivered_operand(operand, perm, depth));
    return builder_.node(*n.op, inputs, n.attrs).front();
  }
  Value delivered_operand(Value v, const Ints& perm, int depth) {
    const Dims& dims = graph_.type(v).dims;
    if (dims.empty()) return now(v);
    if (dims.size() == perm.size()) return delivered(v, perm, depth + 1);
    const Dims full = padded(dims, perm.size());
    if (is_reshape(full, perm)) return builder_.op("reshape", {now(v)}, {{"shape", permuted(full, perm)}});
    return transposed(builder_.op("reshape", {now(v)}, {{"shape", full}}), perm);
  }

  // ---- down ----
  // The transpose that two or more operands have in common while the others have no axes; empty when there is none.
  Ints common_transpose(const Node& n) const {
    Ints perm;
    int count = 0;
    for (Value v : n.inputs) {
      if (graph_.type(v).dims.empty()) continue;
      if (!is_transpose(node(v)) || !is_only_use(v) || graph_.type(v).dims.size() != n.types[0].dims.size()) return {};
      const Ints other = permutation(node(v));
      if (count++ > 0 && other != perm) return {};
      perm = other;
    }
    return count > 1 ? perm : Ints{};
  }
  Value taken_down(const Node& n, const Ints& perm) {
    std::vector<Value> inputs;
    for (Value v : n.inputs) inputs.push_back(graph_.type(v).dims.empty() ? now(v) : now(node(v).inputs[0]));
    return transposed(builder_.node(*n.op, inputs, n.attrs).front(), perm);
  }

  const ir::OpTable& table_;
  const ir::Graph& graph_;
  ir::Builder builder_;
  ir::Rewriter rewriter_;
  ir::NodeMap<int> uses_;
  enum class Taken : uint8_t { Unknown, Yes, No };
  mutable ir::NodeMap<Taken> taken_;  // whether a transpose is taken up through the node
  bool changed_ = false;
};

}  // namespace

ir::Graph layout(const ir::OpTable& table, const ir::Graph& g) {
  ir::Graph now = ir::with_subgraphs(g, [&](const ir::Graph& inner) { return layout(table, inner); });
  for (int round = 0; round < kMostRounds && std::ranges::any_of(now.nodes, is_transpose); ++round) {
    Mover mover(table, now);
    ir::Graph next = mover.run();
    if (!mover.changed()) break;
    now = std::move(next);
  }
  return now;
}

}  // namespace tandem::passes
