// Normalisation layers, with Keras's definitions, as compositions. Statistics are two-pass (x - mean first), so that a large mean
// costs no digits; float16 and bfloat16 are computed in float32 and rounded once.
//
// scale and offset operands may be left out from the end. To give an offset without a scale, pass the number 1 as the scale (and 0
// as the offset where that comes first): a number known while the graph is built costs nothing.
#include <algorithm>
#include <cmath>

#include "ops/helpers.hpp"
#include "ops/table.hpp"

namespace tandem::ops {

using namespace ir;

namespace {

Expr mean(const Expr& x, const Ints& axes) { return x.op("mean", {{"axis", axes}, {"keepdims", true}}); }

// (x - mean) / sqrt(variance + epsilon) over axes.
Expr standardized(const Expr& x, const Ints& axes, double epsilon) {
  const Expr centered = x - mean(x, axes);
  return centered * (mean(centered * centered, axes) + epsilon).op("rsqrt");
}

// x * scale + offset, where given; `fit` brings them into the shape of x.
template <class Fit> Expr scaled(Expr x, std::span<const Expr> in, size_t scale, size_t offset, Fit fit) {
  if (scale < in.size() && !is_number(in[scale], 1)) x = x * fit(wide(in[scale]));
  if (offset < in.size() && !is_number(in[offset], 0)) x = x + fit(wide(in[offset]));
  return x;
}

double epsilon_of(const OpCall& call) { return call.attrs.get<double>("epsilon"); }

// --- over the axes of each example ----------------------------------------------------------------------------------------------

// The shape in which an operand with one element for each position along `axes` meets x.
Dims kept_dims(const Dims& dims, const Ints& axes) {
  Dims kept(dims.size(), Dim(1));
  for (int64_t a : axes) kept[static_cast<size_t>(a)] = dims[static_cast<size_t>(a)];
  return kept;
}

Dims along(const Dims& dims, const Ints& axes) {
  Dims out;
  for (int64_t a : axes) out.push_back(dims[static_cast<size_t>(a)]);
  return out;
}

// A number, one element a position along `axes`, or the whole rank (axes of 1 where it is the same everywhere).
void check_factor(const OpCall& call, size_t operand, const Ints& axes) {
  const Dims &x = call.in[0].dims, &v = call.in[operand].dims;
  if (v.empty() || v == along(x, axes)) return;
  bool fits = v.size() == x.size();
  for (size_t i = 0; fits && i < x.size(); ++i) fits = v[i].is(1) || v[i] == x[i];
  if (!fits)
    call.fail(call.op.signature.operands[operand].name, " ", str(v), " does not fit, input ", str(x), " is normalised over ",
              str(along(x, axes)));
}

Expr fit_factor(const Expr& v, const Dims& dims, const Ints& axes) {
  return v.dims() == along(dims, axes) ? v.reshape(kept_dims(dims, axes)) : v;
}

std::vector<TensorType> infer_over_axes(const OpCall& call) {
  const Ints axes = call.axes("axis", call.in[0].rank());
  for (size_t i = 1; i < call.in.size(); ++i) check_factor(call, i, axes);
  return {call.in[0]};
}

std::vector<Expr> expand_layer(Builder&, const OpCall& call, std::span<const Expr> in) {
  const Ints axes = call.axes("axis", in[0].rank());
  const Dims dims = in[0].dims();
  const Expr x = standardized(wide(in[0]), axes, epsilon_of(call));
  return {scaled(x, in, 1, 2, [&](const Expr& v) { return fit_factor(v, dims, axes); }).cast(in[0].dtype())};
}

std::vector<Expr> expand_rms(Builder&, const OpCall& call, std::span<const Expr> in) {
  const Ints axes = call.axes("axis", in[0].rank());
  const Dims dims = in[0].dims();
  const Expr x = wide(in[0]);
  const Expr normal = x * (mean(x * x, axes) + epsilon_of(call)).op("rsqrt");
  return {scaled(normal, in, 1, in.size(), [&](const Expr& v) { return fit_factor(v, dims, axes); }).cast(in[0].dtype())};
}

// x / max(norm, epsilon). The limit is put on what the root is taken of: at x = 0 the gradient is then that of x / epsilon, not NaN.
std::vector<Expr> expand_normalize(Builder&, const OpCall& call, std::span<const Expr> in) {
  constexpr double kSmallest = 1.2e-38;  // of a normal float32
  const Ints axes = call.axes("axis", in[0].rank());
  const auto order = static_cast<double>(call.attrs.get<int64_t>("order"));
  const Expr x = wide(in[0]);
  const double limit = std::max(std::pow(epsilon_of(call), order), kSmallest);
  const auto at_least = [&](const Expr& sum) { return maximum(sum, limit); };
  Expr y;
  if (order == 1)
    y = x / at_least(x.op("absolute").sum(axes, true));
  else if (order == 2)
    y = x * at_least((x * x).sum(axes, true)).op("rsqrt");
  else
    y = x * power(at_least(power(x.op("absolute"), order).sum(axes, true)), -1 / order);
  return {y.cast(in[0].dtype())};
}

std::vector<TensorType> infer_normalize(const OpCall& call) {
  call.axes("axis", call.in[0].rank());
  if (call.attrs.get<int64_t>("order") < 1) call.fail("order must be at least 1, got ", call.attrs.get<int64_t>("order"));
  return {call.in[0]};
}

// --- over one axis of channels --------------------------------------------------------------------------------------------------

void check_per_channel(const OpCall& call, size_t first, int64_t axis) {
  const Dim& channels = call.in[0].dims[static_cast<size_t>(axis)];
  for (size_t i = first; i < call.in.size(); ++i) {
    const Dims& v = call.in[i].dims;
    const bool is_optional = call.op.signature.operands[i].optional;
    if (!(v == Dims{channels}) && !(is_optional && v.empty()))
      call.fail(call.op.signature.operands[i].name, " must be ", str(Dims{channels}), ", one element a channel of ", str(call.in[0].dims),
                ", got ", str(v));
  }
}

std::vector<TensorType> infer_batch(const OpCall& call) {
  check_per_channel(call, 1, call.axis("axis", call.in[0].rank()));
  return {call.in[0]};
}

std::vector<Expr> expand_batch(Builder&, const OpCall& call, std::span<const Expr> in) {
  const int64_t axis = call.axis("axis", in[0].rank());
  const Dims dims = in[0].dims();
  const auto fit = [&](const Expr& v) { return fit_factor(v, dims, {axis}); };
  Expr factor = (wide(in[2]) + epsilon_of(call)).op("rsqrt");
  if (in.size() > 4 && !is_number(in[4], 1)) factor = factor * wide(in[4]);  // per channel, before it meets x
  const Expr x = (wide(in[0]) - fit(wide(in[1]))) * fit(factor);
  return {scaled(x, in, in.size(), 3, fit).cast(in[0].dtype())};
}

std::vector<TensorType> infer_group(const OpCall& call) {
  const TensorType& x = call.in[0];
  const int64_t axis = call.axis("axis", x.rank()), groups = call.attrs.get<int64_t>("groups");
  if (axis == 0) call.fail("axis 0 is the batch, the channels must be another one");
  const Dim& channels = x.dims[static_cast<size_t>(axis)];
  Dim each;
  if (groups < 1 || !divides_exactly(channels, groups, each)) call.fail(channels, " channels do not divide into ", groups, " groups");
  if (x.rank() == kMaxRank) call.fail("takes at most ", kMaxRank - 1, " axes, got ", str(x.dims));
  check_per_channel(call, 1, axis);
  return {x};
}

// The channels of a group become an axis of their own; a group's statistics are over it and over all positions.
std::vector<Expr> expand_group(Builder&, const OpCall& call, std::span<const Expr> in) {
  const auto axis = static_cast<size_t>(call.axis("axis", in[0].rank()));
  const int64_t groups = call.attrs.get<int64_t>("groups");
  const Dims dims = in[0].dims();
  Dims grouped = dims;
  Dim each;
  divides_exactly(dims[axis], groups, each);
  grouped[axis] = groups;
  grouped.insert(grouped.begin() + static_cast<std::ptrdiff_t>(axis) + 1, each);
  Ints axes;
  for (size_t i = 1; i < grouped.size(); ++i)
    if (i != axis) axes.push_back(static_cast<int64_t>(i));
  const Expr x = standardized(wide(in[0]).reshape(grouped), axes, epsilon_of(call)).reshape(dims);
  return {scaled(x, in, 1, 2, [&](const Expr& v) { return fit_factor(v, dims, {static_cast<int64_t>(axis)}); }).cast(in[0].dtype())};
}

}  // namespace

Rows normalization_rows() {
  return {
      {.name = "layer_normalization",
       .sig = "(x: float, gamma: float?, beta: float?; axis: ints = [-1], epsilon: float = 1e-7) -> same",
       .doc =
           "x with mean 0 and variance 1 over `axis` of each example, times gamma plus beta; these have one element a position along the "
           "axes, or are numbers.",
       .infer = infer_over_axes,
       .decompose = expand_layer,
       .samples = {"([2,6])", "([2,6], [6])", "([2,6], [6], [6]; epsilon=0.001)", "([2,3,4], [3,4], [3,4]; axis=[1,2])",
                   "([2,3,4], [3], [3]; axis=[1])", "([2,3,4], [1,3,1]; axis=[-2])", "([2,6], 1, [6])", "([0,6], [6], [6])",
                   "([2,2,3,2,3], [2,3]; axis=[1,-1])", "([3,130] in 8..9, [130], [130]; epsilon=0.001)"},
       .tolerance = {.abs = 3e-5}},  // the mean of the last sample is thirty times the deviation, so that many roundings show
      {.name = "rms_normalization",
       .sig = "(x: float, scale: float?; axis: ints = [-1], epsilon: float = 1e-7) -> same",
       .doc = "x / sqrt(mean(x^2) + epsilon) over `axis` of each example, times scale.",
       .infer = infer_over_axes,
       .decompose = expand_rms,
       .samples = {"([2,6])", "([2,6], [6]; epsilon=0.001)", "([2,3,4], [3,4]; axis=[1,2])", "([2,3,4], [3]; axis=[1])", "([0,6], [6])",
                   "([3,130], [130])"}},
      {.name = "normalize",
       .sig = "(x: float; axis: ints? = [-1], order: int = 2, epsilon: float = 1e-7) -> same",
       .doc = "x divided by its norm of the given order over `axis`, or by epsilon where the norm is smaller.",
       .infer = infer_normalize,
       .decompose = expand_normalize,
       .samples = {"([2,6])", "([2,6]; order=1)", "([2,3,4] in 0.5..2; axis=[0,2], order=3)", "([2,3]; axis=none)", "([0,6])",
                   "({{0,0},{3,4}}) !grad", "([3,130])"}},
      {.name = "batch_normalization",
       .sig = "(x: float, mean: float, variance: float, offset: float?, scale: float?; axis: int = -1, epsilon: float = 1e-3) -> same",
       .doc = "(x - mean) / sqrt(variance + epsilon) * scale + offset, each with one element a position along `axis`.",
       .infer = infer_batch,
       .decompose = expand_batch,
       .samples = {"([4,3], [3], [3] in 0.5..2)", "([4,3], [3], [3] in 0.5..2, [3])", "([4,3], [3], [3] in 0.5..2, [3], [3])",
                   "([2,3,4], [3], [3] in 0.5..2, [3], [3]; axis=1)", "([4,3], [3], [3] in 0.5..2, 0, [3])",
                   "([2,3,3,2,4], [4], [4] in 0.5..2, [4], [4]; epsilon=0.01)", "([0,3], [3], [3] in 0.5..2)",
                   "([5,70], [70], [70] in 0.5..2, [70], [70])"}},
      {.name = "group_normalization",
       .sig = "(x: float, gamma: float?, beta: float?; groups: int, axis: int = -1, epsilon: float = 1e-3) -> same",
       .doc =
           "x with mean 0 and variance 1 over all positions and the channels of one group, for each example, times gamma plus beta, which "
           "have one element a channel.",
       .infer = infer_group,
       .decompose = expand_group,
       .samples = {"([2,6]; groups=2)", "([2,3,3,4], [4], [4]; groups=2)", "([2,4,3,3], [4], [4]; groups=2, axis=1)",
                   "([2,5,6], [6]; groups=6)", "([2,5,6], 1, [6]; groups=1)", "([0,3,4], [4], [4]; groups=2)", "([2,2,2,2,4]; groups=2)",
                   "([2,9,9,8], [8], [8]; groups=4)"}},
  };
}

}  // namespace tandem::ops
