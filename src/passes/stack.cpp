// Products of several matrices with one and the same: x1^T y and x2^T y become [x1 x2]^T y, whose rows are theirs. The weights' gradients
// of a sum of two products look like that, as in a recurrent layer, whose gates see the inputs and the state. Over a long sum y is most of
// what a product reads, and arranging it for the tiles is a good part of the work; then that is done once.
#include <algorithm>
#include <limits>
#include <map>

#include "ir/rewrite.hpp"
#include "ops/movement.hpp"
#include "passes/pipeline.hpp"

namespace tandem::passes {
namespace {

using ir::Node;
using ir::Value;

constexpr int64_t kLongSum = 16;      // terms of the sum for each row: then results are small beside operands
constexpr int64_t kLargeY = 1 << 20;  // elements: no cache of a core holds it from one product to the next

class Stacker {
 public:
  Stacker(const ir::OpTable& table, const ir::Graph& g) : graph_(g), builder_(table), rewriter_(builder_, g) {}

  ir::Graph run() {
    find_first_uses();
    find_groups();
    if (groups_.empty()) return graph_;
    return rewriter_.run([this](int32_t n) { return emitted(n); });
  }

 private:
  using Group = std::vector<int32_t>;  // nodes, in order

  const Node& node(int32_t n) const { return graph_.node(n); }
  const Dims& dims(Value v) const { return graph_.type(v).dims; }

  void find_first_uses() {
    first_use_ = ir::NodeMap<int32_t>(graph_, std::numeric_limits<int32_t>::max());
    for (int32_t n = 0; n < graph_.count(); ++n)
      for (Value v : node(n).inputs) first_use_[v] = std::min(first_use_[v], n);
  }

  bool is_candidate(const Node& n) const {
    if (n.op->name != "matmul" || !n.attrs.get<bool>("transpose_x") || n.attrs.get<bool>("transpose_y")) return false;
    const auto is_matrix = [&](Value v) {
      return dims(v).size() == 2 && std::ranges::all_of(dims(v), [](const Dim& d) { return d.is_const(); });
    };
    return std::ranges::all_of(n.inputs, is_matrix);
  }
  int64_t rows(int32_t n) const { return dims(node(n).inputs[0])[1].value(); }

  // What comes out is computed where the last of a group is, so nobody may want one of the others before.
  bool takes(const Group& group, int32_t n) const {
    const Dims& y = dims(node(n).inputs[1]);
    int64_t all_rows = rows(n);
    for (int32_t m : group) {
      if (first_use_[m] <= n) return false;
      all_rows += rows(m);
    }
    const int64_t terms = y[0].value(), columns = y[1].value();
    return group.size() < ops::kMostJoined && all_rows <= columns && terms >= kLongSum * all_rows && terms * columns >= kLargeY;
  }

  void find_groups() {
    std::map<Value, std::vector<Group>> by_y;
    for (int32_t n = 0; n < graph_.count(); ++n) {
      if (!is_candidate(node(n))) continue;
      std::vector<Group>& groups = by_y[node(n).inputs[1]];
      const auto home = std::ranges::find_if(
          groups, [&](const Group& g) { return node(g[0]).attrs == node(n).attrs && node(g[0]).device == node(n).device && takes(g, n); });
      if (home != groups.end())
        home->push_back(n);
      else
        groups.push_back({n});
    }
    for (const auto& [y, groups] : by_y)
      for (const Group& g : groups)
        if (g.size() > 1)
          for (int32_t n : g) groups_[n] = g;
  }

  std::vector<Value> emitted(int32_t n) {
    const auto group = groups_.find(n);
    if (group == groups_.end()) return rewriter_.copy(n);
    if (n == group->second.back()) stack(group->second);
    return {};  // `stack` puts what they become
  }

  void stack(const Group& group) {
    std::vector<Value> xs;
    for (int32_t n : group) xs.push_back(rewriter_.now(node(n).inputs[0]));
    const Value joined = builder_.nodes("concatenate_few", xs, {{"axis", int64_t{1}}}).front();
    const Value product = builder_.op("matmul", {joined, rewriter_.now(node(group[0]).inputs[1])}, node(group[0]).attrs);
    const Dim columns = node(group[0]).types[0].dims[1];
    int64_t row = 0;
    for (int32_t n : group) {
      const Dims start{Dim(row), Dim(0)}, limit{Dim(row + rows(n)), columns};
      const Value rows_of_n = builder_.op("slice", {product}, {{"start", start}, {"limit", limit}, {"step", ir::Ints{1, 1}}});
      rewriter_.put(n, {{rows_of_n}});
      row += rows(n);
    }
  }

  const ir::Graph& graph_;
  ir::Builder builder_;
  ir::Rewriter rewriter_;
  ir::NodeMap<int32_t> first_use_;
  std::map<int32_t, Group> groups_;  // by each of their nodes
};

}  // namespace

ir::Graph stack(const ir::OpTable& table, const ir::Graph& g) {
  return Stacker(table, ir::with_subgraphs(g, [&](const ir::Graph& inner) { return stack(table, inner); })).run();
}

}  // namespace tandem::passes
