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

#include "ir/compose.hpp"
#include "ir/rewrite.hpp"
#include "passes/pipeline.hpp"

namespace tandem::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

class Mixer {
 public:
  Mixer(const ir::OpTable& table, const Graph& g, DType half)
      : table_(table), g_(g), half_(half), builder_(table), rewriter_(builder_, g) {}

  Graph run() {
    find_readers();
    find_ways();
    for (const Node& n : g_.nodes)
      if (takes_halves(n))
        for (Value v : n.inputs) round_operand(v);
    for (int32_t n = 0; n < g_.count(); ++n)
      if (takes_halves(g_.node(n))) round_result(n);
    return ir::prune(table_, rewriter_.run([this](int32_t n) { return emitted(g_.node(n)); }));
  }

 private:
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
  bool is_source(Value v) const { return g_.node(v).op->name == "input" || g_.node(v).op->name == "constant"; }
  Value before_movement(Value v) const {
    while (is_movement(g_.node(v))) v = g_.node(v).inputs[0];
    return v;
  }

  void find_readers() {
    readers_ = ir::NodeMap<std::vector<int32_t>>(g_);
    is_output_ = ir::NodeMap<bool>(g_);
    for (int32_t n = 0; n < g_.count(); ++n)
      for (Value v : g_.node(n).inputs) {
        auto& list = readers_[v];
        if (list.empty() || list.back() != n) list.push_back(n);
      }
    for (Value v : g_.outputs) is_output_[v] = true;
  }

  // Which nodes lead to a product at all, and which to a sensitive row with no sum in between.
  void find_ways() {
    leads_to_product_ = ir::NodeMap<bool>(g_);
    is_sensitive_ = ir::NodeMap<bool>(g_);
    for (int32_t n = g_.count(); n-- > 0;)
      for (int32_t reader : readers_[n]) {
        const Node& x = g_.node(reader);
        if (takes_halves(x) || leads_to_product_[reader]) leads_to_product_[n] = true;
        if (x.op->has(ir::kSensitive) || (is_sensitive_[reader] && passes_elements(x))) is_sensitive_[n] = true;
      }
  }
  bool passes_elements(const Node& n) const {
    if (is_elementwise(n) || n.op->has(ir::kView)) return true;
    return n.op->loops && !loops(n).reduction;
  }

  bool may_round(Value v) const { return is_float32(v) && !is_source(v) && !is_output_[v] && !is_sensitive_[v]; }
  void round_operand(Value v) {
    v = before_movement(v);
    if (may_round(v)) rounded_.insert(v);
  }
  // Behind the elementwise ops that nobody else sees the operands of.
  void round_result(int32_t product) {
    Value v{product, 0};
    while (!is_output_[v] && readers_[v].size() == 1) {
      const int32_t reader = readers_[v][0];
      if (!is_elementwise(g_.node(reader)) || !(g_.node(reader).types[0] == g_.type(v))) break;
      v = {reader, 0};
    }
    if (leads_to_product_[v] && may_round(v)) rounded_.insert(v);
  }

  std::vector<Value> emitted(const Node& n) {
    std::vector<Value> inputs;
    if (takes_halves(n)) {
      for (Value v : n.inputs) inputs.push_back(narrow(v));
      ir::Attrs attrs = n.attrs;
      attrs.set("dtype", DType::F32);
      builder_.follow(n);
      return builder_.node(*n.op, inputs, attrs);
    }
    for (Value v : n.inputs) inputs.push_back(rounded_.contains(v) ? widened(v) : rewriter_.now(v));
    return rewriter_.copy(n, std::move(inputs));
  }

  // A value in 16 bits, made once.
  Value narrow(Value v) {
    if (const auto found = narrow_.find(v); found != narrow_.end()) return found->second;
    const Node& n = g_.node(v);
    builder_.follow(n);
    const Value half = is_movement(n) ? builder_.node(*n.op, std::array{narrow(n.inputs[0])}, n.attrs).front()
                                      : builder_.op("cast", {rewriter_.now(v)}, {{"dtype", half_}});
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
  ir::Rewriter rewriter_;
  ir::NodeMap<std::vector<int32_t>> readers_;
  ir::NodeMap<bool> is_output_, leads_to_product_, is_sensitive_;
  std::set<Value> rounded_;
  std::map<Value, Value> narrow_, widened_;
};

}  // namespace

Graph mix(const ir::OpTable& table, const Graph& g, Precision precision) {
  if (precision == Precision::Float32) return g;
  const Graph whole = ir::with_subgraphs(g, [&](const Graph& inner) { return mix(table, inner, precision); });
  const Graph needed = ir::prune(table, whole);  // a reader that nobody needs should not decide
  return Mixer(table, needed, precision == Precision::MixedFloat16 ? DType::F16 : DType::BF16).run();
}

}  // namespace tandem::passes
