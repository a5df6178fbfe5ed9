#include "plan/order.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "ir/op.hpp"

namespace tandem::plan {
namespace {

using ir::Graph;
using ir::Value;

// Bytes that count as nothing. The optimizer's scalars must not come last: every update waits for them, and every gradient for its update.
constexpr size_t kScrap = 64;

class Orderer {
 public:
  explicit Orderer(const OrderRequest& r) : r_(r), g_(r.graph), waits_(g_.nodes.size()), behind_(g_.nodes.size()) {
    for (const ir::Node& n : g_.nodes) is_view_.push_back(r.is_view(n));
    for (size_t n = 0; n < g_.nodes.size(); ++n)
      for (Value v : g_.nodes[n].inputs) add_edge(v.node, static_cast<int32_t>(n));
    for (size_t n = 0; n < g_.nodes.size(); ++n)
      for (Value v : g_.nodes[n].inputs) {
        auto& users = users_[storage(v)];
        if (users.empty() || users.back() != static_cast<int32_t>(n)) users.push_back(static_cast<int32_t>(n));
        ++readers_[storage(v)];
      }
    for (Value v : g_.outputs) outputs_.insert(storage(v));
    for (size_t k = 0; k < r.donations.size(); ++k)
      if (r.donations[k] >= 0) {
        const Value written = storage(g_.outputs[k]);
        overwriting_.insert(written);
        readers_first(g_.inputs[static_cast<size_t>(r.donations[k])], written.node);
      }
  }

  std::vector<int32_t> run() {
    std::vector<int32_t> result;
    // Nodes that only free memory, and all others; the earliest first.
    using Queue = std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>>;
    Queue freeing, others;
    const auto ready = [&](int32_t n) { (frees(n) ? freeing : others).push(n); };
    for (size_t n = 0; n < g_.nodes.size(); ++n)
      if (waits_[n] == 0) ready(static_cast<int32_t>(n));
    while (!freeing.empty() || !others.empty()) {
      Queue& q = freeing.empty() ? others : freeing;
      const int32_t n = q.top();
      q.pop();
      result.push_back(n);
      for (Value v : g_.nodes[static_cast<size_t>(n)].inputs) --readers_[storage(v)];
      for (int32_t m : behind_[static_cast<size_t>(n)])
        if (--waits_[static_cast<size_t>(m)] == 0) ready(m);
    }
    TANDEM_CHECK(result.size() == g_.nodes.size(), "only ", result.size(), " of ", g_.nodes.size(), " nodes could be ordered");
    return result;
  }

 private:
  void add_edge(int32_t from, int32_t to) {
    behind_[static_cast<size_t>(from)].push_back(to);
    ++waits_[static_cast<size_t>(to)];
  }

  Value storage(Value v) const {
    // A barrier gives each of its operands, any other view its first.
    while (is_view_[static_cast<size_t>(v.node)]) v = g_.node(v).inputs[static_cast<size_t>(v.out)];
    return v;
  }

  // The readers of an input come before the node that overwrites it, unless they wait for that node themselves.
  void readers_first(Value input, int32_t writer) {
    for (int32_t reader : users_[input])
      if (reader != writer && !leads_to(writer, reader)) add_edge(reader, writer);
  }
  bool leads_to(int32_t from, int32_t to) const {
    std::vector<int32_t> stack{from};
    std::set<int32_t> seen;
    while (!stack.empty()) {
      const int32_t n = stack.back();
      stack.pop_back();
      if (n == to) return true;
      for (int32_t m : behind_[static_cast<size_t>(n)])
        if (seen.insert(m).second) stack.push_back(m);
    }
    return false;
  }

  bool frees(int32_t n) const {
    const ir::Node& node = g_.nodes[static_cast<size_t>(n)];
    if (node.inputs.empty()) return false;
    if (is_view_[static_cast<size_t>(n)]) return true;
    size_t taken = 0, given = 0;
    for (size_t o = 0; o < node.types.size(); ++o) {
      const Value v{n, static_cast<int32_t>(o)};
      if (!overwriting_.contains(v)) taken += r_.bytes(v);
    }
    std::set<Value> seen;
    for (Value v : node.inputs) {
      const Value s = storage(v);
      const std::string_view op = g_.node(s).op->name;
      if (op == "input" || op == "constant" || outputs_.contains(s) || !seen.insert(s).second) continue;
      const auto own = std::ranges::count_if(node.inputs, [&](Value u) { return storage(u) == s; });
      if (readers_.at(s) == own) given += r_.bytes(s);
    }
    return given + kScrap >= taken;
  }

  const OrderRequest& r_;
  const Graph& g_;
  std::vector<bool> is_view_;  // by node
  std::vector<int32_t> waits_;
  std::vector<std::vector<int32_t>> behind_;
  std::set<Value> outputs_, overwriting_;
  std::map<Value, std::vector<int32_t>> users_;  // by storage
  std::map<Value, int64_t> readers_;             // of a storage, that have not run
};

}  // namespace

std::vector<int32_t> order(const OrderRequest& request) { return Orderer(request).run(); }

}  // namespace tandem::plan
