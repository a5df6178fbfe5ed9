// Scaled dot-product attention, with Keras's definition.
//
// Three rows: `dot_product_attention` is what users call. `attention_parts` gives besides what the gradient needs to make the weights again
// from query and key; `attention_gradient` is the gradient itself. A device that keeps these two never has a matrix of targets by sources
// in memory (ADR 0013); their decompositions say what they are.
#include <cmath>
#include <limits>

#include "ops/helpers.hpp"
#include "ops/table.hpp"

namespace tandem::ops {

using namespace ir;

namespace {

// query [batch, targets, heads, depth], key [batch, sources, key heads, depth], value [batch, sources, key heads, value depth].
// Each key head serves heads / key heads query heads (grouped-query attention).
struct AttentionDims {
  Dim batch, targets, sources, heads, key_heads, group, depth, value_depth;
  Dims logits() const { return {batch, heads, targets, sources}; }
  Dims result() const { return {batch, targets, heads, value_depth}; }
  Dims rows() const { return {batch, heads, targets}; }  // one number for each row of logits
};

AttentionDims attention_dims(const OpCall& call) {
  const TensorType &q = call.in[0], &k = call.in[1], &v = call.in[2];
  const auto shapes = [&] { return cat("query ", str(q.dims), ", key ", str(k.dims), " and value ", str(v.dims)); };
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) call.fail("takes [batch, length, heads, depth] three times, got ", shapes());
  AttentionDims d{q.dims[0], q.dims[1], k.dims[1], q.dims[2], k.dims[2], {}, q.dims[3], v.dims[3]};
  if (!(k.dims[0] == d.batch) || !(v.dims[0] == d.batch)) call.fail("batch sizes differ, ", shapes());
  if (!(k.dims[3] == d.depth)) call.fail("query and key differ in depth, ", shapes(), " (", d.depth, " != ", k.dims[3], ")");
  if (!(v.dims[1] == d.sources)) call.fail("key and value differ in length, ", shapes(), " (", d.sources, " != ", v.dims[1], ")");
  if (!(v.dims[2] == d.key_heads)) call.fail("key and value differ in heads, ", shapes(), " (", d.key_heads, " != ", v.dims[2], ")");
  if (d.key_heads.is(0) || !divides_exactly(d.heads, d.key_heads, d.group))
    call.fail(d.heads, " query heads do not divide into groups for ", d.key_heads, " key heads, ", shapes());
  return d;
}

// bias and mask as they broadcast over [batch, heads, targets, sources]; three axes are [batch, targets, sources].
Dims four_axes(const Dims& dims) {
  Dims four = dims;
  if (four.size() == 3) four.insert(four.begin() + 1, Dim(1));
  return four;
}

// Operands `at` (bias) and `at` + 1 (mask) may be there.
void check_seen(const OpCall& call, const AttentionDims& d, size_t at) {
  for (size_t i = at; i < call.in.size(); ++i) {
    bool fits = call.in[i].rank() <= 4;
    try {
      fits = fits && broadcast(four_axes(call.in[i].dims), d.logits()) == d.logits();
    } catch (const UserError&) {
      fits = false;
    }
    if (!fits)
      call.fail(call.op.signature.operands[i].name, " ", str(call.in[i].dims),
                " does not broadcast to [batch, heads, targets, sources] = ", str(d.logits()));
  }
  if (!call.attrs.has("scale") && !d.depth.is_const())
    call.fail("the depth is the symbol ", d.depth, "\n  hint: give scale, or trace with a fixed depth");
}

std::vector<TensorType> infer_attention(const OpCall& call) {
  const AttentionDims d = attention_dims(call);
  check_seen(call, d, 3);
  return {{call.in[0].dtype, d.result()}};
}

std::vector<TensorType> infer_parts(const OpCall& call) {
  const AttentionDims d = attention_dims(call);
  check_seen(call, d, 3);
  const DType t = call.in[0].dtype;
  return {{t, d.result()}, {t, d.rows()}, {t, d.rows()}};
}

std::vector<TensorType> infer_gradient(const OpCall& call) {
  const AttentionDims d = attention_dims(call);
  const auto expect = [&](size_t i, const Dims& dims) {
    if (!(call.in[i].dims == dims)) call.fail(call.op.signature.operands[i].name, " is ", str(call.in[i].dims), ", not ", str(dims));
  };
  expect(3, d.result());
  for (size_t i = 4; i < 7; ++i) expect(i, d.rows());
  check_seen(call, d, 7);
  std::vector<TensorType> out(call.in.begin(), call.in.begin() + 3);
  if (call.attrs.get<bool>("bias_gradient")) out.push_back({call.in[0].dtype, d.logits()});
  return out;
}

double scale_of(const OpCall& call, const AttentionDims& d) {
  if (call.attrs.has("scale")) return call.attrs.get<double>("scale");
  return d.depth.is(0) ? 1 : 1 / std::sqrt(static_cast<double>(d.depth.value()));
}

// Targets see the sources up to their own position.
Expr causal_mask(Builder& b, const AttentionDims& d) {
  return iota(b, {d.targets, Dim(1)}, 0, DType::I32) >= iota(b, {d.sources}, 0, DType::I32);
}

// A number that vanishes in softmax and stays finite when added to another.
double masked_logit(DType t) { return t == DType::F64 ? -1e300 : -2e38; }

Expr heads_first(const Expr& x) { return x.transpose({0, 2, 1, 3}); }

// The formulas that the two rows share, in the type that sums run in.
class Scores {
 public:
  Scores(Builder& b, const OpCall& call, std::span<const Expr> in, size_t at) : d(attention_dims(call)), scale(scale_of(call, d)) {
    query = by_key_head(wide(in[0]), d.depth);
    key = heads_first(wide(in[1]));
    value = heads_first(wide(in[2]));
    logits = query.op("matmul", {key}, {{"transpose_y", true}}).reshape(d.logits()) * scale;
    if (in.size() > at && !is_number(in[at], 0)) logits = logits + wide(in[at].reshape(four_axes(in[at].dims())));
    if (in.size() > at + 1) seen = in[at + 1].reshape(four_axes(in[at + 1].dims()));
    if (call.attrs.get<bool>("is_causal")) seen = seen ? seen.op("logical_and", {causal_mask(b, d)}) : causal_mask(b, d);
    if (seen) logits = where(seen, logits, masked_logit(logits.dtype()));
  }
  // [batch, targets, heads, depth]: the queries of a group one behind the other, so that there is one matrix for each key head.
  Expr by_key_head(const Expr& x, const Dim& depth) const {
    return heads_first(x).reshape({d.batch, d.key_heads, d.group * d.targets, depth});
  }
  Expr by_target(const Expr& x, const Dim& depth) const { return heads_first(x.reshape({d.batch, d.heads, d.targets, depth})); }
  // Of [batch, heads, targets, sources].
  Expr matrices(const Expr& x) const { return x.reshape({d.batch, d.key_heads, d.group * d.targets, d.sources}); }
  Expr weights(const Expr& peak, const Expr& total) const { return exp(logits - peak) / total; }

  const AttentionDims d;
  const double scale;
  Expr query, key, value, logits, seen;  // seen may be empty: everything is
};

std::vector<Expr> expand_parts(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const DType t = in[0].dtype();
  const Scores s(b, call, in, 3);
  if (s.d.sources.is(0))  // nothing has no largest element
    return {filled(b, {t, s.d.result()}, 0), filled(b, {t, s.d.rows()}, -std::numeric_limits<double>::infinity()),
            filled(b, {t, s.d.rows()}, 0)};
  const Expr peak = s.logits.max({3}, true), total = exp(s.logits - peak).sum({3}, true);
  const Expr mixed = s.matrices(s.weights(peak, total)).op("matmul", {s.value});
  return {s.by_target(mixed, s.d.value_depth).cast(t), peak.reshape(s.d.rows()).cast(t), total.reshape(s.d.rows()).cast(t)};
}

std::vector<Expr> expand_gradient(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const DType t = in[0].dtype();
  const Scores s(b, call, in, 7);
  Dims column = s.d.rows();
  column.emplace_back(1);
  const auto of_row = [&](size_t i) { return wide(in[i]).reshape(column); };
  const Expr gradient = s.by_key_head(wide(in[3]), s.d.value_depth);
  const Expr weights = s.weights(of_row(4), of_row(5));
  const Expr by_weights = gradient.op("matmul", {s.value}, {{"transpose_y", true}}).reshape(s.d.logits());
  Expr by_logits = weights * (by_weights - of_row(6));
  if (s.seen) by_logits = where(s.seen, by_logits, 0);
  const Expr by_products = s.matrices(by_logits * s.scale);
  const Attrs transposed{{"transpose_x", true}};
  std::vector<Expr> grads{s.by_target(by_products.op("matmul", {s.key}), s.d.depth).cast(t),
                          heads_first(by_products.op("matmul", {s.query}, transposed)).cast(t),
                          heads_first(s.matrices(weights).op("matmul", {gradient}, transposed)).cast(t)};
  if (call.attrs.get<bool>("bias_gradient")) grads.push_back(by_logits.cast(t));
  return grads;
}

// The operands of attention_parts, from those of dot_product_attention: 16-bit floats are computed in float32 and rounded once.
std::vector<Expr> parts_of(Builder& b, std::span<const Expr> in, const Attrs& attrs) {
  std::vector<Expr> operands(in.begin(), in.end());
  for (size_t i = 0; i < operands.size() && i < 4; ++i) operands[i] = wide(operands[i]);
  return ir::call(b, "attention_parts", operands, attrs);
}

std::vector<Expr> expand_attention(Builder& b, const OpCall& call, std::span<const Expr> in) {
  return {parts_of(b, in, call.attrs)[0].cast(in[0].dtype())};
}

// The weights are made again from query and key. `attention_parts` is the forward node once more, and becomes one with it.
std::vector<Expr> attention_vjp(const GradCall& call) {
  const std::vector<Expr> parts = parts_of(call.builder, call.in, call.node.attrs);
  const Expr gradient = wide(call.grad());
  const Expr mean = (gradient * parts[0]).sum({3}).transpose({0, 2, 1});  // of the weights' gradients, weighted by themselves
  const bool has_bias = call.in.size() > 3;
  Attrs attrs = call.node.attrs;
  attrs.set("bias_gradient", has_bias && call.needed[3]);
  std::vector<Expr> operands{wide(call.in[0]), wide(call.in[1]), wide(call.in[2]), gradient, parts[1], parts[2], mean};
  if (has_bias) operands.push_back(wide(call.in[3]));
  if (call.in.size() > 4) operands.push_back(call.in[4]);
  std::vector<Expr> grads = ir::call(call.builder, "attention_gradient", operands, attrs);
  grads.resize(call.in.size());
  if (has_bias && grads[3]) {
    const Dims& dims = call.in[3].dims();
    grads[3] = grads[3].sum_to(four_axes(dims)).reshape(dims);
  }
  for (Expr& g : grads)
    if (g) g = g.cast(call.in[0].dtype());
  return grads;
}

}  // namespace

Rows attention_rows() {
  return {
      {.name = "dot_product_attention",
       .sig = "(query: float, key: float, value: float, bias: float?, mask: bool?; scale: float? = none, is_causal: bool = false) -> same",
       .doc = "softmax(query key^T * scale + bias) value for [batch, length, heads, depth]; key and value may have fewer heads, each then "
              "serves a group. Where mask is false nothing is seen. To give a mask without a bias, pass the number 0 as the bias.",
       .infer = infer_attention,
       .decompose = expand_attention,
       .vjp = attention_vjp,
       .samples = {"([2,3,2,4], [2,5,2,4], [2,5,2,4])", "([2,3,2,4], [2,5,2,4], [2,5,2,3]; scale=0.3)",
                   "([2,4,2,3], [2,4,2,3], [2,4,2,3]; is_causal=true)", "([1,3,4,2], [1,5,2,2], [1,5,2,3])",
                   "([2,3,2,4], [2,5,2,4], [2,5,2,4], [2,1,3,5])", "([2,3,2,4], [2,5,2,4], [2,5,2,4], 0, [2,2,3,5])",
                   "([2,3,4,2], [2,3,2,2], [2,3,2,2], [3,3], [2,3,3]; is_causal=true)", "([0,3,2,4], [0,5,2,4], [0,5,2,4])",
                   "([1,17,2,8], [1,70,2,8], [1,70,2,8])"}},
      {.name = "attention_parts",
       .sig = "(query: float, key: float, value: float, bias: float?, mask: bool?; scale: float? = none, is_causal: bool = false) -> "
              "same, same, same",
       .doc = "dot_product_attention, and for each [batch, head, target] the largest logit and the sum of exp(logit - largest).",
       .infer = infer_parts,
       .decompose = expand_parts,
       .samples = {"([2,3,2,4], [2,5,2,4], [2,5,2,3])", "([2,4,2,3], [2,4,2,3], [2,4,2,3]; is_causal=true, scale=0.3)",
                   "([2,3,4,2], [2,3,2,2], [2,3,2,2], [3,3], {{1,0,1},{0,1,1},{1,1,0}})",
                   "([2,3,4,2], [2,3,2,2], [2,3,2,2], [3,3], [2,3,3]) !grad", "([0,3,2,4], [0,5,2,4], [0,5,2,4])",
                   "([1,2,2,4], [1,0,2,4], [1,0,2,3]) !grad", "([1,9,2,4], [1,5,1,4], [1,5,1,4]; is_causal=true)"}},
      {.name = "attention_gradient",
       .sig =
           "(query: float, key: float, value: float, gradient: float, peak: float, total: float, mean: float, bias: float?, mask: bool?; "
           "scale: float? = none, is_causal: bool = false, bias_gradient: bool = false) -> custom",
       .doc = "The gradients of dot_product_attention by query, key, value and, if asked for, the logits. peak and total are what "
              "attention_parts gives; mean is the sum of gradient * result over the depth.",
       .infer = infer_gradient,
       .decompose = expand_gradient,
       .samples =
           {"([2,3,2,4], [2,5,2,4], [2,5,2,3], [2,3,2,3], [2,2,3], [2,2,3] in 1..3, [2,2,3])",
            "([2,4,2,3], [2,4,2,3], [2,4,2,3], [2,4,2,3], [2,2,4], [2,2,4] in 1..3, [2,2,4]; is_causal=true, scale=0.3)",
            "([2,3,4,2], [2,3,2,2], [2,3,2,2], [2,3,4,2], [2,4,3], [2,4,3] in 1..3, [2,4,3], [3,3], [2,3,3]; bias_gradient=true)",
            "([0,3,2,4], [0,5,2,4], [0,5,2,4], [0,3,2,4], [0,2,3], [0,2,3], [0,2,3])",
            "([1,2,2,4], [1,0,2,4], [1,0,2,3], [1,2,2,3], [1,2,2], [1,2,2], [1,2,2])",
            "([1,9,2,4], [1,5,1,4], [1,5,1,4], [1,9,2,4], [1,2,9], [1,2,9] in 1..3, [1,2,9], [9,5]; is_causal=true, bias_gradient=true)"}},
  };
}

}  // namespace tandem::ops
