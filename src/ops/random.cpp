// Random numbers: pure functions of a key and the position of an element, so that the same numbers come out on every device, at any
// thread count, and whenever they are drawn again. The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", 2011): the key is the operand uint32[2], the counter is the element's row-major position and a purpose.
#include "ops/random.hpp"

#include <array>
#include <cmath>
#include <numbers>

#include "ops/helpers.hpp"

namespace tandem::ops {
using namespace ir;

namespace {

// The last counter word, so that what keys are derived from never equals what is drawn with the same key.
enum class Purpose : int64_t { Draw = 0, Split = 1, Fold = 2 };

Scalar word(int64_t v) { return constant_int(DType::U32, v); }

using Words = std::array<Scalar, 4>;

Words philox(Words c, Scalar key0, Scalar key1) {
  for (int round = 0; round < 10; ++round) {
    const Scalar m0 = word(0xD2511F53), m1 = word(0xCD9E8D57);
    c = {mulhi(m1, c[2]) ^ c[1] ^ key0, m1 * c[2], mulhi(m0, c[0]) ^ c[3] ^ key1, m0 * c[0]};
    key0 = key0 + word(0x9E3779B9);
    key1 = key1 + word(0xBB67AE85);
  }
  return c;
}

// The four words for one 64-bit counter under the key in operand 0.
Words words_at(const Scalar& low, const Scalar& high, Purpose purpose) {
  const Scalar key0 = load(0, DType::U32, {index_constant(0)}), key1 = load(0, DType::U32, {index_constant(1)});
  return philox({low, high, word(0), word(static_cast<int64_t>(purpose))}, key0, key1);
}

Words words_at(const Scalar& index, Purpose purpose) { return words_at(cast(index, DType::U32), cast(index >> 32, DType::U32), purpose); }

Scalar position(const Dims& dims) {
  Scalar at = index_constant(0);
  for (size_t k = 0; k < dims.size(); ++k) at = at * extent(dims[k]) + axis(static_cast<int>(k));
  return at;
}

// The words of the element that is being computed.
Words draw(const Dims& dims) { return words_at(position(dims), Purpose::Draw); }

// --- words to numbers; every operation here is exact, so the bits are the same everywhere ---

int mantissa_bits(DType t) {
  switch (t) {
    case DType::F16: return 11;
    case DType::BF16: return 8;
    case DType::F32: return 24;
    default: return 53;
  }
}

// A multiple of 2^-p in [0, 1), where p is the precision of the type.
Scalar unit(DType t, const Scalar& w0, const Scalar& w1) {
  const int p = mantissa_bits(t);
  if (p <= 32) return cast(w0 >> (32.0 - p), t) * std::exp2(-p);
  return (cast(w0 >> 5, t) * std::exp2(26) + cast(w1 >> 6, t)) * std::exp2(-53);
}

// In (0, 1], fine near 0: there float32 resolves all 32 bits.
Scalar open_unit(DType t, const Scalar& w0, const Scalar& w1) {
  if (t == DType::F32) return cast(w0, t) * std::exp2(-32) + std::exp2(-33);
  return unit(t, w0, w1) + std::exp2(-54);
}

// --- inference ---

Dims random_shape(const OpCall& call) {
  const Dims& shape = call.attrs.get<Dims>("shape");
  for (const Dim& d : shape)
    if (d.is_const() && d.value() < 0) call.fail("shape ", str(shape), " has the negative extent ", d);
  return shape;
}

DType float_attr(const OpCall& call) {
  const DType t = call.attrs.get<DType>("dtype");
  if (!is_float(t)) call.fail("dtype must be floating, it is ", t);
  return t;
}

std::vector<TensorType> infer_floats(const OpCall& call) { return {random_result(call, float_attr(call))}; }
std::vector<TensorType> infer_bits(const OpCall& call) { return {random_result(call, DType::U32)}; }

std::vector<TensorType> infer_int(const OpCall& call) {
  const DType t = call.attrs.get<DType>("dtype");
  if (!is_int(t)) call.fail("dtype must be an integer type, it is ", t);
  for (size_t k = 1; k < call.in.size(); ++k)
    if (!is_int(call.in[k].dtype)) call.fail("the bounds must be integers, got ", call.in[k]);
  return {random_result(call, t)};
}

std::vector<TensorType> infer_bernoulli(const OpCall& call) { return {random_result(call, DType::Bool)}; }

std::vector<TensorType> infer_split(const OpCall& call) {
  check_key(call);
  const int64_t count = call.attrs.get<int64_t>("count");
  if (count < 0) call.fail("count must not be negative, it is ", count);
  return {{DType::U32, {count, 2}}};
}

std::vector<TensorType> infer_fold_in(const OpCall& call) {
  check_key(call);
  if (!is_int(call.in[1].dtype) || call.in[1].rank() != 0) call.fail("data must be an integer scalar, it is ", call.in[1]);
  return {{DType::U32, {2}}};
}

std::vector<TensorType> infer_categorical(const OpCall& call) {
  check_key(call);
  TensorType out = call.in[1];
  const auto at = call.axis("axis", out.rank());
  const int64_t samples = call.attrs.get<int64_t>("samples");
  if (samples < 0) call.fail("samples must not be negative, it is ", samples);
  require_elements(call, out.dims, {at});
  require_int32(call, out.dims[static_cast<size_t>(at)]);
  out.dims[static_cast<size_t>(at)] = samples;
  out.dtype = DType::I32;
  return {out};
}

std::vector<TensorType> infer_shuffle(const OpCall& call) {
  check_key(call);
  call.axis("axis", call.in[1].rank());
  return {call.in[1]};
}

std::vector<TensorType> infer_dropout(const OpCall& call) {
  check_key(call);
  const double rate = call.attrs.get<double>("rate");
  if (!(rate >= 0 && rate <= 1)) call.fail("rate must lie in 0..1, it is ", rate);
  if (call.attrs.has("noise_shape")) {
    const Dims& noise = call.attrs.get<Dims>("noise_shape");
    if (!(broadcast(noise, call.in[1].dims) == call.in[1].dims))
      call.fail("noise_shape ", str(noise), " does not broadcast to ", call.in[1]);
  }
  return {call.in[1]};
}

// --- loops ---

Loops bits_loops(const OpCall&, std::span<const TensorType> out) {
  const Scalar at = position(out[0].dims), lane = at & 3;
  const Words w = words_at(at >> 2, Purpose::Draw);
  return map_loops(out[0].dims, select(lane < 2, select(lane == 0, w[0], w[1]), select(lane == 2, w[2], w[3])));
}

Loops unit_loops(const OpCall&, std::span<const TensorType> out) {
  const Words w = draw(out[0].dims);
  return map_loops(out[0].dims, unit(out[0].dtype, w[0], w[1]));
}

// Box and Muller's transform, the cosine half of each pair.
Loops normal_loops(const OpCall&, std::span<const TensorType> out) {
  const DType t = accumulator_type(out[0].dtype);
  const Words w = draw(out[0].dims);
  const Scalar radius = sqrt(-2 * log(open_unit(t, w[0], w[1]))), angle = unit(t, w[2], w[3]) * (2 * std::numbers::pi);
  return map_loops(out[0].dims, cast(radius * cos(angle), out[0].dtype));
}

// -log(-log(u)) with 1-u drawn instead of u: what decides a maximum is u near 1, and 1-u is fine there.
Loops gumbel_loops(const OpCall&, std::span<const TensorType> out) {
  const DType t = accumulator_type(out[0].dtype);
  const Words w = draw(out[0].dims);
  const Scalar rest = min(open_unit(t, w[0], w[1]), 1 - std::exp2(-mantissa_bits(t)));
  return map_loops(out[0].dims, cast(-log(-log1p(-rest)), out[0].dtype));
}

Scalar broadcast_operand(const OpCall& call, int k, const Dims& out) {
  const TensorType& in = call.in[static_cast<size_t>(k)];
  const size_t shift = out.size() - in.dims.size();
  std::vector<Scalar> index;
  for (size_t i = 0; i < in.dims.size(); ++i) {
    const bool stretched = in.dims[i].is(1) && !out[i + shift].is(1);
    index.push_back(stretched ? index_constant(0) : axis(static_cast<int>(i + shift)));
  }
  return load(k, in.dtype, index);
}

// low + floor(r * range / 2^64) for a 64-bit r: the unevenness is range / 2^64, far below what any sample could show.
Loops int_loops(const OpCall& call, std::span<const TensorType> out) {
  const DType t = out[0].dtype, u64 = DType::U64;
  const Words w = draw(out[0].dims);
  const Scalar r = (cast(w[1], u64) << 32) | cast(w[0], u64);
  const Scalar low = cast(broadcast_operand(call, 1, out[0].dims), t), high = cast(broadcast_operand(call, 2, out[0].dims), t);
  const Scalar range = cast(high, u64) - cast(low, u64);
  const Scalar drawn = cast(mulhi(r, range) + cast(low, u64), t);
  return map_loops(out[0].dims, select(high > low, drawn, low));
}

Loops split_loops(const OpCall&, std::span<const TensorType> out) {
  const Words w = words_at(axis(0), Purpose::Split);
  return map_loops(out[0].dims, select(axis(1) == 0, w[0], w[1]));
}

Loops fold_in_loops(const OpCall& call, std::span<const TensorType> out) {
  const Scalar data = cast(load(1, call.in[1].dtype, {}), DType::I64);
  const Words w = words_at(data, Purpose::Fold);
  return map_loops(out[0].dims, select(axis(0) == 0, w[0], w[1]));
}

// --- decompositions ---

// offset + scale * x for operands of any number type, where they are given.
Expr scaled(const Expr& x, std::span<const Expr> in, size_t offset, size_t scale) {
  Expr y = x;
  if (scale < in.size()) y = y * in[scale].cast(x.dtype());
  if (offset < in.size()) y = y + in[offset].cast(x.dtype());
  return y;
}

std::vector<Expr> decompose_uniform(Builder&, const OpCall& call, std::span<const Expr> in) {
  const DType t = call.attrs.get<DType>("dtype");
  const Expr u = random_unit(in[0], call.attrs.get<Dims>("shape"), t);
  if (in.size() == 1) return {u};
  const Expr low = in[1].cast(t);
  if (in.size() == 2) return {low + (1 - low) * u};
  return {low + (in[2].cast(t) - low) * u};
}

std::vector<Expr> decompose_normal(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const Expr x =
      ir::call(b, "standard_normal", {in[0]}, {{"shape", call.attrs.get<Dims>("shape")}, {"dtype", call.attrs.get<DType>("dtype")}})[0];
  return {scaled(x, in, 1, 2)};
}

// By the inverse of the distribution, which needs no second draw: erfinv of a uniform number between erf(-2/sqrt 2) and erf(2/sqrt 2).
std::vector<Expr> decompose_truncated_normal(Builder&, const OpCall& call, std::span<const Expr> in) {
  const DType t = call.attrs.get<DType>("dtype"), wide = accumulator_type(t);
  const Expr u = random_unit(in[0], call.attrs.get<Dims>("shape"), wide);
  const double bound = std::erf(std::numbers::sqrt2);
  const Expr x = ((u * 2 - 1) * bound).op("erfinv") * std::numbers::sqrt2;
  return {scaled(maximum(minimum(x, 2), -2).cast(t), in, 1, 2)};
}

std::vector<Expr> decompose_bernoulli(Builder&, const OpCall& call, std::span<const Expr> in) {
  const DType t = accumulator_type(in[1].dtype());
  return {random_unit(in[0], call.attrs.get<Dims>("shape"), t) < in[1].cast(t)};
}

// The largest of logit + Gumbel noise is class k with the probability softmax(logits)[k].
std::vector<Expr> decompose_categorical(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const Expr& logits = in[1];
  const int rank = logits.rank();
  const auto at = static_cast<int>(call.axis("axis", rank));
  const DType t = accumulator_type(logits.dtype());
  Ints perm = other_axes({at}, rank);
  perm.push_back(at);
  const Expr moved = logits.cast(t).transpose(perm);
  Dims one = moved.dims(), many = one;
  one.insert(one.end() - 1, 1);
  many.insert(many.end() - 1, call.attrs.get<int64_t>("samples"));
  const Expr noise = ir::call(b, "standard_gumbel", {in[0]}, {{"shape", many}, {"dtype", t}})[0];
  const Expr found = (moved.reshape(one) + noise).op("argmax", {{"axis", int64_t{-1}}});
  return {found.transpose(inverse_permutation(perm))};
}

std::vector<Expr> decompose_shuffle(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const int64_t at = call.axis("axis", in[1].rank());
  const Expr bits = ir::call(b, "random_bits", {in[0]}, {{"shape", Dims{in[1].dims()[static_cast<size_t>(at)]}}})[0];
  return {in[1].op("take_clipped", {bits.op("argsort")}, {{"axis", at}})};
}

// Keeps an element when its 32 random bits are at least rate * 2^32: integers decide, so every device drops the same ones.
std::vector<Expr> decompose_dropout(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const Expr& x = in[1];
  const double rate = call.attrs.get<double>("rate");
  if (rate == 0) return {x};
  const double threshold = std::ceil(rate * std::exp2(32));
  if (threshold >= std::exp2(32)) return {x.like(0)};
  const Dims noise = call.attrs.has("noise_shape") ? call.attrs.get<Dims>("noise_shape") : x.dims();
  const Expr bits = ir::call(b, "random_bits", {in[0]}, {{"shape", noise}})[0];
  return {where(bits >= threshold, x * (1 / (1 - rate)), 0)};
}

std::vector<Expr> vjp_dropout(const GradCall& g) { return {Expr(), g.in[0].op("dropout", {g.grad()}, g.node.attrs)}; }

}  // namespace

void check_key(const OpCall& call) {
  if (call.in[0].rank() != 1 || !(call.in[0].dims[0] == Dim(2))) call.fail("the key must be uint32[2], it is ", call.in[0]);
}

TensorType random_result(const OpCall& call, DType t) {
  check_key(call);
  TensorType out{t, random_shape(call)};
  for (size_t k = 1; k < call.in.size(); ++k)
    if (!(broadcast(call.in[k].dims, out.dims) == out.dims))
      call.fail("operand ", k, " is ", call.in[k], ", it does not broadcast to the shape ", str(out.dims));
  return out;
}

Expr draw_key(const Expr& key, const Expr& number) { return key.op("fold_in", {number}); }
Expr draw_key(const Expr& key, int64_t number) {
  Builder& b = key.builder();
  return draw_key(key, Expr(b, b.constant(Literal::scalar_int(DType::I64, number))));
}

Expr random_unit(const Expr& key, const Dims& shape, DType t) { return key.op("random_unit", {{"shape", shape}, {"dtype", t}}); }

Rows random_rows() {
  constexpr Tolerance kTranscendental{1e-4, 1e-5};
  Rows rows{
      {.name = "random_bits",
       .sig = "(key: key; shape: shape) -> custom",
       .doc = "Random uint32 words: the output of Philox4x32-10 for the counters 0, 1, 2 …, four words each, in row-major order.",
       .infer = infer_bits,
       .loops = bits_loops,
       .samples = {"({0,0}:uint32; shape=[4])", "({1,2}:uint32; shape=[3,70])", "({4294967295,7}:uint32; shape=[])",
                   "({1,2}:uint32; shape=[0,3])", "({1,2}:uint32; shape=[2,3,2,3,2])"}},
      {.name = "random_unit",
       .sig = "(key: key; shape: shape, dtype: dtype = float32) -> custom",
       .doc = "Uniform random numbers in [0, 1): multiples of 2^-24 in float32, 2^-53 in float64, 2^-11 in float16, 2^-8 in bfloat16.",
       .infer = infer_floats,
       .loops = unit_loops,
       .samples = {"({1,2}:uint32; shape=[3,70])", "({1,2}:uint32; shape=[5], dtype=float64)", "({1,2}:uint32; shape=[5], dtype=float16)",
                   "({1,2}:uint32; shape=[5], dtype=bfloat16)", "({1,2}:uint32; shape=[])", "({1,2}:uint32; shape=[0,3])"}},
      {.name = "standard_normal",
       .sig = "(key: key; shape: shape, dtype: dtype = float32) -> custom",
       .doc = "Normally distributed random numbers with mean 0 and standard deviation 1.",
       .infer = infer_floats,
       .loops = normal_loops,
       .samples = {"({1,2}:uint32; shape=[3,70])", "({1,2}:uint32; shape=[5], dtype=float64)", "({1,2}:uint32; shape=[5], dtype=float16)",
                   "({1,2}:uint32; shape=[])", "({1,2}:uint32; shape=[0,3])"},
       .tolerance = kTranscendental},
      {.name = "standard_gumbel",
       .sig = "(key: key; shape: shape, dtype: dtype = float32) -> custom",
       .doc = "Random numbers of the standard Gumbel distribution: the largest of logits plus such noise samples their softmax.",
       .infer = infer_floats,
       .loops = gumbel_loops,
       .samples = {"({1,2}:uint32; shape=[3,70])", "({1,2}:uint32; shape=[5], dtype=float64)", "({1,2}:uint32; shape=[])"},
       .tolerance = kTranscendental},
      {.name = "random_uniform",
       .sig = "(key: key, low: own?, high: own?; shape: shape, dtype: dtype = float32) -> custom",
       .doc = "Uniform random numbers in [low, high), by default [0, 1); low + (high - low) * u may round up to high.",
       .infer = infer_floats,
       .decompose = decompose_uniform,
       .samples = {"({1,2}:uint32; shape=[70])", "({1,2}:uint32, []:float32, []:float32 in 3..4; shape=[2,3])",
                   "({1,2}:uint32, [3]:float32 in -2..-1, [2,1]:float32 in 3..4; shape=[2,3])",
                   "({1,2}:uint32, {1}:int32, {4}:int32; shape=[5], dtype=float64)", "({1,2}:uint32; shape=[0])"}},
      {.name = "random_normal",
       .sig = "(key: key, mean: own?, stddev: own?; shape: shape, dtype: dtype = float32) -> custom",
       .doc = "Normally distributed random numbers, by default with mean 0 and standard deviation 1.",
       .infer = infer_floats,
       .decompose = decompose_normal,
       .samples = {"({1,2}:uint32; shape=[70])", "({1,2}:uint32, [3]:float32, [2,1]:float32 in 0.5..2; shape=[2,3])",
                   "({1,2}:uint32, []:float64, []:float64 in 1..2; shape=[4], dtype=float64)"},
       .tolerance = kTranscendental},
      {.name = "truncated_normal",
       .sig = "(key: key, mean: own?, stddev: own?; shape: shape, dtype: dtype = float32) -> custom",
       .doc = "Normally distributed random numbers without those that lie more than two standard deviations from the mean.",
       .infer = infer_floats,
       .decompose = decompose_truncated_normal,
       .samples = {"({1,2}:uint32; shape=[70])", "({1,2}:uint32, [3]:float32, [2,1]:float32 in 0.5..2; shape=[2,3])"},
       .tolerance = kTranscendental},
      {.name = "random_int",
       .sig = "(key: key, low: own, high: own; shape: shape, dtype: dtype = int32) -> custom",
       .doc = "Random integers in [low, high), all equally likely; low itself where high is not above it.",
       .infer = infer_int,
       .loops = int_loops,
       .samples = {"({1,2}:uint32, {-3}:int32, {9}:int32; shape=[2,70])", "({1,2}:uint32, {0}:int64, {255}:int64; shape=[9], dtype=uint8)",
                   "({1,2}:uint32, {5}:int32, {5}:int32; shape=[3], dtype=int64)", "({1,2}:uint32, []:int32, []:int32; shape=[])"}},
      {.name = "bernoulli",
       .sig = "(key: key, p: float; shape: shape) -> bool",
       .doc = "True with probability p, independently for each element.",
       .infer = infer_bernoulli,
       .decompose = decompose_bernoulli,
       .samples = {"({1,2}:uint32, [] in 0..1; shape=[70])", "({1,2}:uint32, [3] in 0..1; shape=[2,3])"}},
      {.name = "categorical",
       .sig = "(key: key, logits: float; samples: int = 1, axis: int = -1) -> int32",
       .doc = "Classes drawn with the probabilities softmax(logits) along `axis`, which the `samples` drawn take the place of.",
       .infer = infer_categorical,
       .decompose = decompose_categorical,
       .samples = {"({1,2}:uint32, [5]:float32)", "({1,2}:uint32, [2,5]:float32; samples=4)",
                   "({1,2}:uint32, [5,2,3]:float32; samples=2, axis=0)", "({1,2}:uint32, [0,3]:float32; samples=2)"}},
      {.name = "shuffle",
       .sig = "(key: key, x: own; axis: int = 0) -> custom",
       .doc = "The slices of x along `axis` in a random order.",
       .infer = infer_shuffle,
       .decompose = decompose_shuffle,
       .samples = {"({1,2}:uint32, [7,3]:float32)", "({1,2}:uint32, [2,3,100]:int32; axis=-1)", "({1,2}:uint32, [0,3]:float32)"}},
      {.name = "dropout",
       .sig = "(key: key, x: float; rate: float, noise_shape: shape? = none) -> same",
       .doc = "Sets elements to zero with probability `rate` and divides the others by 1 - rate. A noise_shape that broadcasts to the "
              "shape of x makes one decision for all the elements that share an entry of it.",
       .infer = infer_dropout,
       .decompose = decompose_dropout,
       .vjp = vjp_dropout,
       .samples = {"({1,2}:uint32, [3,70]; rate=0.3)", "({1,2}:uint32, [2,3]; rate=0.0)", "({1,2}:uint32, [2,3]; rate=1.0)",
                   "({1,2}:uint32, [2,3,4]; rate=0.5, noise_shape=[2,1,4])", "({1,2}:uint32, []; rate=0.5)",
                   "({1,2}:uint32, [0,3]; rate=0.5)"}},
      {.name = "split_key",
       .sig = "(key: key; count: int = 2) -> custom",
       .doc = "`count` new keys, as uint32[count,2], that are independent of each other and of what is drawn with the old one.",
       .infer = infer_split,
       .loops = split_loops,
       .samples = {"({1,2}:uint32)", "({1,2}:uint32; count=70)", "({1,2}:uint32; count=0)"}},
      {.name = "fold_in",
       .sig = "(key: key, data: own) -> custom",
       .doc = "A new key made of a key and an integer, such as the number of a step: different integers give independent keys.",
       .infer = infer_fold_in,
       .loops = fold_in_loops,
       .samples = {"({1,2}:uint32, []:int32)", "({1,2}:uint32, []:int64)", "({1,2}:uint32, []:uint8)"}},
  };
  for (OpDef& row : rejection_rows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace tandem::ops
