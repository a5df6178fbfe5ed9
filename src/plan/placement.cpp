#include "plan/placement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

namespace tandem::plan {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 4;

// Integers, so that nothing depends on the order of sums.
int64_t picoseconds(double seconds) { return static_cast<int64_t>(std::llround(std::min(seconds, 1e5) * 1e12)); }

class Network {
 public:
  explicit Network(size_t nodes) : first_(nodes, -1) {}
  int32_t add_node() {
    first_.push_back(-1);
    return static_cast<int32_t>(first_.size()) - 1;
  }
  void add_edge(int32_t from, int32_t to, int64_t capacity) {
    if (capacity == 0) return;
    for (const auto& [a, b, c] : {std::tuple{from, to, capacity}, std::tuple{to, from, int64_t{0}}}) {
      edges_.push_back({b, first_[static_cast<size_t>(a)], c});
      first_[static_cast<size_t>(a)] = static_cast<int32_t>(edges_.size()) - 1;
    }
  }

  // Fills the network; what the sink can still be reached from afterwards is on its side.
  void saturate(int32_t source, int32_t sink) {
    while (find_levels(source, sink)) {
      next_ = first_;
      while (push(source, sink)) {
      }
    }
  }
  std::vector<bool> reaching(int32_t sink) const {
    std::vector<bool> seen(first_.size());
    std::vector<int32_t> stack{sink};
    seen[static_cast<size_t>(sink)] = true;
    while (!stack.empty()) {
      const int32_t n = stack.back();
      stack.pop_back();
      for (int32_t e = first_[static_cast<size_t>(n)]; e >= 0; e = edges_[static_cast<size_t>(e)].next) {
        const Edge& back = edges_[static_cast<size_t>(e ^ 1)];  // towards n
        const auto m = static_cast<size_t>(edges_[static_cast<size_t>(e)].to);
        if (back.capacity == 0 || seen[m]) continue;
        seen[m] = true;
        stack.push_back(static_cast<int32_t>(m));
      }
    }
    return seen;
  }

 private:
  struct Edge {
    int32_t to, next;
    int64_t capacity;
  };

  bool find_levels(int32_t source, int32_t sink) {
    level_.assign(first_.size(), -1);
    level_[static_cast<size_t>(source)] = 0;
    std::queue<int32_t> open;
    open.push(source);
    while (!open.empty()) {
      const int32_t n = open.front();
      open.pop();
      for (int32_t e = first_[static_cast<size_t>(n)]; e >= 0; e = edges_[static_cast<size_t>(e)].next) {
        const Edge& edge = edges_[static_cast<size_t>(e)];
        if (edge.capacity == 0 || level_[static_cast<size_t>(edge.to)] >= 0) continue;
        level_[static_cast<size_t>(edge.to)] = level_[static_cast<size_t>(n)] + 1;
        open.push(edge.to);
      }
    }
    return level_[static_cast<size_t>(sink)] >= 0;
  }

  // One more way from the source to the sink, along the levels. No recursion: a graph may be thousands of nodes deep.
  bool push(int32_t source, int32_t sink) {
    std::vector<int32_t> way;  // edges
    int32_t n = source;
    while (n != sink) {
      int32_t& e = next_[static_cast<size_t>(n)];
      while (e >= 0 && !leads_on(n, edges_[static_cast<size_t>(e)])) e = edges_[static_cast<size_t>(e)].next;
      if (e >= 0) {
        way.push_back(e);
        n = edges_[static_cast<size_t>(e)].to;
        continue;
      }
      if (way.empty()) return false;
      n = edges_[static_cast<size_t>(way.back() ^ 1)].to;  // a dead end
      way.pop_back();
      next_[static_cast<size_t>(n)] = edges_[static_cast<size_t>(next_[static_cast<size_t>(n)])].next;
    }
    int64_t most = kUnlimited;
    for (const int32_t e : way) most = std::min(most, edges_[static_cast<size_t>(e)].capacity);
    for (const int32_t e : way) {
      edges_[static_cast<size_t>(e)].capacity -= most;
      edges_[static_cast<size_t>(e ^ 1)].capacity += most;
    }
    return true;
  }
  bool leads_on(int32_t n, const Edge& e) const {
    return e.capacity > 0 && level_[static_cast<size_t>(e.to)] == level_[static_cast<size_t>(n)] + 1;
  }

  std::vector<int32_t> first_, next_, level_;  // by node
  std::vector<Edge> edges_;                    // each behind it the one back
};

double seconds_of(const PlacementProblem& p, const std::vector<int8_t>& side) {
  double sum = 0;
  for (size_t n = 0; n < p.nodes.size(); ++n) sum += p.nodes[n].seconds[static_cast<size_t>(side[n])];
  for (const PlacementProblem::Value& v : p.values) {
    const int8_t own = side[static_cast<size_t>(v.from)];
    if (std::ranges::any_of(v.readers, [&](int32_t r) { return side[static_cast<size_t>(r)] != own; })) sum += v.seconds;
  }
  return sum;
}

}  // namespace

// A node on side 0 is cut off from the sink, and pays for its seconds there by the edge to it; one on side 1 by that from the source. A
// value that crosses is paid for once, at a node of its own for each direction: its edge is cut when any of the readers is on the other
// side.
Placement place_between(const PlacementProblem& p) {
  const auto count = static_cast<int32_t>(p.nodes.size());
  const int32_t source = count, sink = count + 1;
  Network network(p.nodes.size() + 2);
  for (int32_t n = 0; n < count; ++n) {
    const PlacementProblem::Node& node = p.nodes[static_cast<size_t>(n)];
    network.add_edge(n, sink, node.fixed == 1 ? kUnlimited : picoseconds(node.seconds[0]));
    network.add_edge(source, n, node.fixed == 0 ? kUnlimited : picoseconds(node.seconds[1]));
  }
  for (const PlacementProblem::Value& v : p.values) {
    const int64_t cost = picoseconds(v.seconds);
    if (v.readers.empty() || cost == 0) continue;
    const int32_t to = network.add_node(), back = network.add_node();
    network.add_edge(v.from, to, cost);
    network.add_edge(back, v.from, cost);
    for (const int32_t r : v.readers) {
      network.add_edge(to, r, kUnlimited);
      network.add_edge(r, back, kUnlimited);
    }
  }
  network.saturate(source, sink);
  const std::vector<bool> on_far_side = network.reaching(sink);
  Placement found;
  for (int32_t n = 0; n < count; ++n) found.side.push_back(on_far_side[static_cast<size_t>(n)] ? 1 : 0);
  found.seconds = seconds_of(p, found.side);
  return found;
}

}  // namespace tandem::plan
