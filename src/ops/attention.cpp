// Scaled dot-product attention, with Keras's definition.
#include <cmath>

#include "ops/contract.hpp"
#include "ops/table.hpp"

namespace tandem::ops {

using namespace ir;

namespace {

// query [batch, targets, heads, depth], key [batch, sources, key heads, depth], value [batch, sources, key heads, value depth].
// Each key head serves heads / key heads query heads (grouped-query attention).
struct AttentionDims {
  Dim batch, targets, sources, heads, key_heads, group, depth, value_depth;
  Dims logits() const { return {batch, heads, targets, sources}; }
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

std::vector<TensorType> infer_attention(const OpCall& call) {
  const AttentionDims d = attention_dims(call);
  for (size_t i = 3; i < call.in.size(); ++i) {
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
  return {{call.in[0].dtype, {d.batch, d.targets, d.heads, d.value_depth}}};
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

std::vector<Expr> expand_attention(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const AttentionDims d = attention_dims(call);
  const DType t = in[0].dtype(), wide = accumulator_type(t);
  const auto heads_first = [](const Expr& x) { return x.transpose({0, 2, 1, 3}); };
  // The queries of a group lie one behind the other: one matrix product for each key head, whatever the size of the group.
  const Dim rows = d.group * d.targets;
  const Expr query = heads_first(in[0]).reshape({d.batch, d.key_heads, rows, d.depth});
  Expr logits = query.op("matmul", {heads_first(in[1])}, {{"transpose_y", true}, {"dtype", wide}}).reshape(d.logits());
  logits = logits * scale_of(call, d);
  if (in.size() > 3 && !is_number(in[3], 0)) logits = logits + in[3].reshape(four_axes(in[3].dims())).cast(wide);
  Expr mask;
  if (in.size() > 4) mask = in[4].reshape(four_axes(in[4].dims()));
  if (call.attrs.get<bool>("is_causal")) mask = mask ? mask.op("logical_and", {causal_mask(b, d)}) : causal_mask(b, d);
  if (mask) logits = where(mask, logits, masked_logit(wide));
  const Expr weights = logits.op("softmax").cast(t).reshape({d.batch, d.key_heads, rows, d.sources});
  const Expr mixed = weights.op("matmul", {heads_first(in[2])}).reshape({d.batch, d.heads, d.targets, d.value_depth});
  return {heads_first(mixed)};
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
       .samples = {"([2,3,2,4], [2,5,2,4], [2,5,2,4])", "([2,3,2,4], [2,5,2,4], [2,5,2,3]; scale=0.3)",
                   "([2,4,2,3], [2,4,2,3], [2,4,2,3]; is_causal=true)", "([1,3,4,2], [1,5,2,2], [1,5,2,3])",
                   "([2,3,2,4], [2,5,2,4], [2,5,2,4], [2,1,3,5])", "([2,3,2,4], [2,5,2,4], [2,5,2,4], 0, [2,2,3,5])",
                   "([2,3,4,2], [2,3,2,2], [2,3,2,2], [3,3], [2,3,3]; is_causal=true)", "([0,3,2,4], [0,5,2,4], [0,5,2,4])",
                   "([1,17,2,8], [1,70,2,8], [1,70,2,8])"}},
  };
}

}  // namespace tandem::ops
