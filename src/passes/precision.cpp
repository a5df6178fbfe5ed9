// Mixed precision. All arithmetic stays float32; what changes is which values are rounded to 16 bits on their way through memory:
//
//   - what a product reads. It takes 16-bit operands and sums in float32. Arguments, state and constants are rounded for products alone;
//     any other value is rounded for all its readers, so that only the 16 bits are kept;
//   - what a product makes and others than products read next (a normalisation, a pool, a sum of two branches), behind the elementwise ops
//     that belong to it (bias, activation), if it leads to another product. So the gradient of a weight is not, nor what only the loss
//     reads.
//
// Never rounded is what the graph returns, and what reaches a sensitive row (exp, log) by elementwise ops: logits keep their digits.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "ir/builder.hpp"
#include "ir/compose.hpp"
#include "passes/pipeline.hpp"
#include "passes/subgraphs.hpp"

namespace tandem::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

class Mixer {
 public:
  Mixer(const ir::OpTable& table, const Graph& g, DType half) : table_(table), g_(g), half_(half), builder_(table) {}

  Graph run() {
    find_readers();
    find_ways();
    for (const Node& n : g_.nodes)
      if (takes_halves(n))
        for (Value v : n.inputs) round_operand(v);
    for (int32_t n = 0; n < count(); ++n)
      if (takes_halves(node(n))) round_result(n);
    return build();
  }

 private:
  int32_t count() const { return static_cast<int32_t>(g_.nodes.size()); }
  const Node& node(int32_t n) const { return g_.nodes[static_cast<size_t>(n)]; }
  bool is_float32(Value v) const { return g_.type(v).dtype == DType::F32; }

  // A product that can sum 16-bit operands in float32. One of two vectors is a sum and no product.
  bool takes_halves(const Node& n) const {
    const bool can_widen = std::ranges::any_of(n.op->signature.attributes, [](const auto& a) { return a.name == "dtype"; });
    return n.op->has(ir::kProduct) && n.op->loops && can_widen && n.types[0].dtype == DType::F32 && n.types[0].rank() > 0 &&
           std::ranges::all_of(n.inputs, [&](Value v) { return is_float32(v); });
  }

  ir::Loops loops(const Node& n) const {
    std::vector<ir::TensorType> in;
    for (Value v : n.inputs) in.push_back(g_.type(v));
    return ir::loops_of(*n.op, in, n.attrs, n.types);
  }
  bool is_elementwise(const Node& n) const { return n.op->body && n.types.size() == 1; }
  // Elements of one operand in another order, none left out: it may as well move them when they have 16 bits.
  bool is_movement(const Node& n) const {
    if (n.inputs.size() != 1 || n.types.size() != 1 || !(product(g_.type(n.inputs[0]).dims) == product(n.types[0].dims))) return false;
    if (n.op->has(ir::kView)) return true;
    if (!n.op->loops) return false;
    const ir::Loops l = loops(n);
    return !l.reduction && l.scan_axis < 0 && ir::moves_element(l.results[0]);
  }
  bool is_source(Value v) const { return node(v.node).op->name == "input" || node(v.node).op->name == "constant"; }
  Value before_movement(Value v) const {
    while (is_movement(node(v.node))) v = node(v.node).inputs[0];
    return v;
  }

  void find_readers() {
    readers_.resize(g_.nodes.size());
    is_output_.resize(g_.nodes.size());
    for (int32_t n = 0; n < count(); ++n)
      for (Value v : node(n).inputs) {
        auto& list = readers_[static_cast<size_t>(v.node)];
        if (list.empty() || list.back() != n) list.push_back(n);
      }
    for (Value v : g_.outputs) is_output_[static_cast<size_t>(v.node)] = true;
  }

  // Which nodes lead to a product at all, and which to a sensitive row with no sum in between.
  void find_ways() {
    leads_to_product_.resize(g_.nodes.size());
    is_sensitive_.resize(g_.nodes.size());
    for (size_t n = g_.nodes.size(); n-- > 0;)
      for (int32_t reader : readers_[n]) {
        const auto r = static_cast<size_t>(reader);
        const Node& x = node(reader);
        if (takes_halves(x) || leads_to_product_[r]) leads_to_product_[n] = true;
        if (x.op->has(ir::kSensitive) || (is_sensitive_[r] && passes_elements(x))) is_sensitive_[n] = true;
      }
  }
  bool passes_elements(const Node& n) const {
    if (is_elementwise(n) || n.op->has(ir::kView)) return true;
    return n.op->loops && !loops(n).reduction;
  }

  bool may_round(Value v) const {
    const auto n = static_cast<size_t>(v.node);
    return is_float32(v) && !is_source(v) && !is_output_[n] && !is_sensitive_[n];
  }
  void round_operand(Value v) {
    v = before_movement(v);
    if (may_round(v)) rounded_.insert(v);
  }
  // Behind the elementwise ops that nobody else sees the operands of.
  void round_result(int32_t product) {
    Value v{product, 0};
    while (!is_output_[static_cast<size_t>(v.node)] && readers_[static_cast<size_t>(v.node)].size() == 1) {
      const int32_t reader = readers_[static_cast<size_t>(v.node)][0];
      if (!is_elementwise(node(reader)) || !(node(reader).types[0] == g_.type(v))) break;
      v = {reader, 0};
    }
    if (leads_to_product_[static_cast<size_t>(v.node)] && may_round(v)) rounded_.insert(v);
  }

  Graph build() {
    made_.reserve(g_.nodes.size());
    for (const Node& n : g_.nodes) made_.push_back(emitted(n));
    std::vector<Value> outputs;
    for (Value v : g_.outputs) outputs.push_back(now(v));
    return ir::prune(table_, builder_.finish(std::move(outputs), g_.name));
  }
  Value emitted(const Node& n) {
    builder_.follow(n);
    if (n.op->name == "input") return builder_.input_like(n);
    std::vector<Value> inputs;
    if (takes_halves(n)) {
      for (Value v : n.inputs) inputs.push_back(narrow(v));
      ir::Attrs attrs = n.attrs;
      attrs.set("dtype", DType::F32);
      builder_.follow(n);
      return builder_.node(*n.op, inputs, attrs).front();
    }
    for (Value v : n.inputs) inputs.push_back(rounded_.contains(v) ? widened(v) : now(v));
    Node copy = n;
    const Precision own = half_ == DType::F16 ? Precision::MixedFloat16 : Precision::MixedBFloat16;
    map_subgraphs(copy, [&](const Graph& g) { return mix(table_, g, own); });
    return builder_.copy(std::move(copy), std::move(inputs));
  }
  Value now(Value v) const { return {made_[static_cast<size_t>(v.node)].node, v.out}; }

  // A value in 16 bits, made once.
  Value narrow(Value v) {
    if (const auto found = narrow_.find(v); found != narrow_.end()) return found->second;
    const Node& n = node(v.node);
    builder_.follow(n);
    const Value half = is_movement(n) ? builder_.node(*n.op, std::array{narrow(n.inputs[0])}, n.attrs).front()
                                      : builder_.op("cast", {now(v)}, {{"dtype", half_}});
    return narrow_[v] = half;
  }
  Value widened(Value v) {
    if (const auto found = widened_.find(v); found != widened_.end()) return found->second;
    return widened_[v] = builder_.op("cast", {narrow(v)}, {{"dtype", DType::F32}});
  }

  const ir::OpTable& table_;
  const Graph& g_;
  const DType half_;
  ir::Builder builder_;
  std::vector<std::vector<int32_t>> readers_;
  std::vector<bool> is_output_, leads_to_product_, is_sensitive_;
  std::set<Value> rounded_;
  std::vector<Value> made_;  // what each node's first result became
  std::map<Value, Value> narrow_, widened_;
};

}  // namespace

Graph mix(const ir::OpTable& table, const Graph& g, Precision precision) {
  if (precision == Precision::Float32) return g;
  const Graph needed = ir::prune(table, g);  // a reader that nobody needs should not decide
  return Mixer(table, needed, precision == Precision::MixedFloat16 ? DType::F16 : DType::BF16).run();
}

}  // namespace tandem::passes
