// Common subexpressions: each node is looked up by op, attributes and (already merged) inputs. Every op is pure, random ones included:
// their numbers follow from the key that they are given.
#include <unordered_map>

#include "ir/rewrite.hpp"
#include "passes/pipeline.hpp"

namespace tandem::passes {
namespace {

class Merger {
 public:
  explicit Merger(const ir::Graph& g) : g_(g), numbers_(g), twin_(g, -1) {}

  ir::Graph run() {
    by_hash_.reserve(g_.nodes.size());
    for (int32_t n = 0; n < g_.count(); ++n) add(n);
    return numbers_.finish(g_.inputs, first_twins(g_.outputs), g_.name);
  }

 private:
  void add(int32_t number) {
    ir::Node n = g_.node(number);
    n.inputs = numbers_.apply(first_twins(std::move(n.inputs)));
    ir::map_subgraphs(n, [](const ir::Graph& g) { return Merger(g).run(); });
    if (n.op->name == "scan") find_twins(number, n);
    const size_t h = hash(n);
    for (auto [at, end] = by_hash_.equal_range(h); at != end; ++at)
      if (same(numbers_.graph().node(at->second), n)) return numbers_.put(number, at->second);
    by_hash_.emplace(h, numbers_.add(number, std::move(n)));
  }

  // A scan that gives the same value of each step twice: readers of the second take the first.
  void find_twins(int32_t number, const ir::Node& scan) {
    const std::vector<ir::Value>& results = scan.attrs.get<ir::Graphs>("functions").at(0)->outputs;
    for (auto k = static_cast<int32_t>(scan.attrs.get<int64_t>("carries")); k < std::ssize(results); ++k) {
      const auto carries = results.begin() + scan.attrs.get<int64_t>("carries");
      twin_[{number, k}] = static_cast<int32_t>(std::find(carries, results.end(), results[static_cast<size_t>(k)]) - results.begin());
    }
  }
  std::vector<ir::Value> first_twins(std::vector<ir::Value> values) const {
    for (ir::Value& v : values)
      if (const int32_t first = twin_[v]; first >= 0) v.out = first;
    return values;
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

  const ir::Graph& g_;
  ir::Renumbering numbers_;
  ir::ValueMap<int32_t> twin_;  // the first result of its node that is equal to it, where that was looked for
  std::unordered_multimap<size_t, int32_t> by_hash_;
};

}  // namespace

ir::Graph cse(const ir::OpTable&, const ir::Graph& g) { return Merger(g).run(); }

}  // namespace tandem::passes
