// Common subexpressions: each node is looked up by op, attributes and (already merged) inputs. Every op is pure, random ones included:
// their numbers follow from the key that they are given.
#include <unordered_map>

#include "passes/pipeline.hpp"
#include "passes/subgraphs.hpp"

namespace tandem::passes {
namespace {

class Merger {
 public:
  ir::Graph run(const ir::Graph& g) {
    place_.reserve(g.nodes.size());
    by_hash_.reserve(g.nodes.size());
    out_.nodes.reserve(g.nodes.size());
    for (const ir::Node& n : g.nodes) place_.push_back(add(n));
    out_.name = g.name;
    out_.inputs = mapped(g.inputs);
    out_.outputs = mapped(g.outputs);
    return std::move(out_);
  }

 private:
  std::vector<ir::Value> mapped(std::vector<ir::Value> values) const {
    for (ir::Value& v : values) {
      v.node = place_[static_cast<size_t>(v.node)];
      if (const auto twins = twins_.find(v.node); twins != twins_.end()) v.out = twins->second[static_cast<size_t>(v.out)];
    }
    return values;
  }

  // A scan that gives the same value of each step twice: readers of the second take the first.
  void find_twins(const ir::Node& scan, int32_t place) {
    const std::vector<ir::Value>& results = scan.attrs.get<ir::Graphs>("functions").at(0)->outputs;
    const auto carries = static_cast<size_t>(scan.attrs.get<int64_t>("carries"));
    std::vector<int32_t> first(results.size());
    bool any = false;
    for (size_t k = 0; k < results.size(); ++k) {
      first[k] = static_cast<int32_t>(k);
      for (size_t j = carries; k >= carries && j < k && first[k] == static_cast<int32_t>(k); ++j)
        if (results[j] == results[k]) first[k] = static_cast<int32_t>(j);
      any = any || first[k] != static_cast<int32_t>(k);
    }
    if (any) twins_.emplace(place, std::move(first));
  }

  int32_t add(const ir::Node& original) {
    ir::Node n = original;
    n.inputs = mapped(std::move(n.inputs));
    map_subgraphs(n, [](const ir::Graph& g) { return Merger().run(g); });
    const size_t h = hash(n);
    for (auto [at, end] = by_hash_.equal_range(h); at != end; ++at)
      if (same(out_.nodes[static_cast<size_t>(at->second)], n)) return at->second;
    const auto place = static_cast<int32_t>(out_.nodes.size());
    by_hash_.emplace(h, place);
    if (n.op->name == "scan") find_twins(n, place);
    out_.nodes.push_back(std::move(n));
    return place;
  }

  // Which operand comes first does not matter to integers. It does to floats: it decides which of two NaNs is kept.
  static std::vector<ir::Value> key(const ir::Node& n) {
    std::vector<ir::Value> inputs = n.inputs;
    if (n.op->has(ir::kCommutative) && !is_float(n.types[0].dtype) && n.op->body) std::ranges::sort(inputs);
    return inputs;
  }
  static size_t hash(const ir::Node& n) {
    size_t h = ir::hash_combine(static_cast<size_t>(n.op->id) ^ (static_cast<size_t>(n.device + 1) << 32), n.attrs.hash());
    for (ir::Value v : key(n)) h = ir::hash_combine(h, (static_cast<size_t>(v.node) << 8) ^ static_cast<size_t>(v.out));
    return h;
  }
  static bool same(const ir::Node& a, const ir::Node& b) {
    return a.op == b.op && a.device == b.device && key(a) == key(b) && a.attrs == b.attrs;
  }

  ir::Graph out_;
  std::vector<int32_t> place_;
  std::unordered_map<int32_t, std::vector<int32_t>> twins_;  // by new node: for each result, the first that is equal to it
  std::unordered_multimap<size_t, int32_t> by_hash_;
};

}  // namespace

ir::Graph cse(const ir::OpTable&, const ir::Graph& g) { return Merger().run(g); }

}  // namespace tandem::passes
