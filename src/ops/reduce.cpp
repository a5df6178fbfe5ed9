// Reductions: many elements become one, along some axes or all of them.
#include <cmath>
#include <limits>

#include "ops/helpers.hpp"
#include "ops/quantile.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
using namespace ir;
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// --- shapes and types ---
using Types = std::vector<TensorType>;

Types infer_as(const OpCall& call, DType t) {
  const TensorType& x = call.in[0];
  return {{t, reduced_dims(x.dims, call.axes("axis", x.rank()), call.attrs.get<bool>("keepdims"))}};
}
Types infer_same(const OpCall& call) { return infer_as(call, call.in[0].dtype); }
Types infer_sum(const OpCall& call) { return infer_as(call, sum_type(call.in[0].dtype)); }
Types infer_bool(const OpCall& call) { return infer_as(call, DType::Bool); }
Types infer_count(const OpCall& call) { return infer_as(call, DType::I32); }
Types infer_extreme(const OpCall& call) {
  require_elements(call, call.in[0].dims, call.axes("axis", call.in[0].rank()));
  return infer_same(call);
}
Types infer_moments(const OpCall& call) {
  Types one = infer_same(call);
  return {one[0], one[0]};
}

// argmax and friends: axis is one int, or none for the position in the flattened tensor.
Ints position_axes(const OpCall& call) {
  int rank = call.in[0].rank();
  return call.attrs.has("axis") ? Ints{call.axis("axis", rank)} : all_axes(rank);
}
Dim count_along(const Dims& dims, const Ints& axes) {
  Dim n = 1;
  for (int64_t a : axes) n = n * dims[static_cast<size_t>(a)];
  return n;
}
Types infer_position(const OpCall& call) {
  const Dims& dims = call.in[0].dims;
  Ints axes = position_axes(call);
  require_elements(call, dims, axes);
  require_int32(call, count_along(dims, axes));
  return {{DType::I32, reduced_dims(dims, axes, call.attrs.get<bool>("keepdims"))}};
}

// --- loops ---
struct ReduceSpace {
  Dims extents;               // of the reduce axes
  std::vector<Scalar> index;  // of the input
  Scalar position;            // of the element among those reduced, row-major
};
ReduceSpace reduce_space(const Dims& dims, const Ints& axes, bool keepdims, int out_rank) {
  ReduceSpace space{{}, {}, index_constant(0)};
  int next_out = 0;
  size_t next_axis = 0;
  for (size_t k = 0; k < dims.size(); ++k) {
    bool reduced = next_axis < axes.size() && axes[next_axis] == static_cast<int64_t>(k);
    if (!reduced) {
      space.index.push_back(axis(next_out++));
      continue;
    }
    Scalar here = axis(out_rank + static_cast<int>(next_axis++));
    space.position = space.extents.empty() ? here : space.position * extent(dims[k]) + here;
    space.index.push_back(here);
    space.extents.push_back(dims[k]);
    if (keepdims) ++next_out;
  }
  return space;
}

// element: loaded value -> what is folded; finish: the folded value -> the result.
template <class Element, class Finish>
Loops fold_loops(const OpCall& call, std::span<const TensorType> out, Fold how, Element element, Finish finish) {
  const TensorType& x = call.in[0];
  Ints axes = call.axes("axis", x.rank());
  ReduceSpace space = reduce_space(x.dims, axes, call.attrs.get<bool>("keepdims"), out[0].rank());
  Scalar one = element(load(0, x.dtype, space.index));
  if (axes.empty()) return map_loops(out[0].dims, finish(one));
  return {.extents = out[0].dims, .reduction = fold(how, space.extents, one), .results = {finish(acc(0, one.dtype()))}};
}

template <Fold kHow> Loops arithmetic_loops(const OpCall& call, std::span<const TensorType> out) {
  DType t = out[0].dtype;
  return fold_loops(
      call, out, kHow, [t](const Scalar& x) { return cast(x, accumulator_type(t)); }, [t](const Scalar& s) { return cast(s, t); });
}

Loops mean_loops(const OpCall& call, std::span<const TensorType> out) {
  DType t = out[0].dtype, wide = accumulator_type(t);
  const Dims& dims = call.in[0].dims;
  Scalar count = cast(extent(count_along(dims, call.axes("axis", call.in[0].rank()))), wide);
  return fold_loops(
      call, out, Fold::Sum, [wide](const Scalar& x) { return cast(x, wide); }, [&](const Scalar& s) { return cast(s / count, t); });
}

template <Fold kHow> Loops extreme_loops(const OpCall& call, std::span<const TensorType> out) {
  bool logical = call.in[0].dtype == DType::Bool;
  Fold how = !logical ? kHow : kHow == Fold::Max ? Fold::Or : Fold::And;
  auto same = [](const Scalar& x) { return x; };
  return fold_loops(call, out, how, same, same);
}

template <Fold kHow> Loops logical_loops(const OpCall& call, std::span<const TensorType> out) {
  return fold_loops(call, out, kHow, [](const Scalar& x) { return cast(x, DType::Bool); }, [](const Scalar& x) { return x; });
}

Loops count_loops(const OpCall& call, std::span<const TensorType> out) {
  return fold_loops(
      call, out, Fold::Sum, [](const Scalar& x) { return cast(cast(x, DType::Bool), DType::I32); }, [](const Scalar& x) { return x; });
}

template <Fold kHow> Loops position_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType& x = call.in[0];
  Ints axes = position_axes(call);
  if (axes.empty()) return map_loops(out[0].dims, constant_int(DType::I32, 0));
  ReduceSpace space = reduce_space(x.dims, axes, call.attrs.get<bool>("keepdims"), out[0].rank());
  DType t = x.dtype == DType::Bool ? DType::U8 : x.dtype;
  Reduction r = fold_position(kHow, space.extents, cast(load(0, x.dtype, space.index), t), cast(space.position, DType::I32));
  return {.extents = out[0].dims, .reduction = std::move(r), .results = {acc(1, DType::I32)}};
}

// --- compositions ---
Attrs keep(const Ints& axes, bool keepdims = true) { return {{"axis", axes}, {"keepdims", keepdims}}; }

// What every composition below needs to know of its call.
struct Setting {
  Ints axes;
  bool keepdims;
  DType type, wide;
  Setting(const OpCall& call)
      : axes(call.axes("axis", call.in[0].rank())),
        keepdims(call.attrs.get<bool>("keepdims")),
        type(call.in[0].dtype),
        wide(accumulator_type(type)) {}
  Attrs attrs() const { return keep(axes, keepdims); }
};

// Degrees of freedom; NumPy's max(n - ddof, 0), so that too few elements give NaN or infinity and no negative variance.
Dim freedom(const Attrs& attrs, const Dims& dims, const Ints& axes) {
  return max(count_along(dims, axes) - Dim(attrs.get<int64_t>("ddof")), 0);
}

std::vector<Expr> decompose_var(Builder&, const OpCall& call, std::span<const Expr> in) {
  Setting s(call);
  Expr x = in[0].cast(s.wide);
  Expr centred = x - x.op("mean", keep(s.axes));
  Expr squares = (centred * centred).op("sum", s.attrs());
  return {divide_by_count(squares, freedom(call.attrs, x.dims(), s.axes)).cast(s.type)};
}
std::vector<Expr> decompose_std(Builder&, const OpCall& call, std::span<const Expr> in) {
  Setting s(call);
  Attrs attrs = s.attrs();
  attrs.set("ddof", call.attrs.get<int64_t>("ddof"));
  return {sqrt(in[0].cast(s.wide).op("var", attrs)).cast(s.type)};
}
std::vector<Expr> decompose_moments(Builder&, const OpCall& call, std::span<const Expr> in) {
  Setting s(call);
  return {in[0].op("mean", s.attrs()), in[0].op("var", s.attrs())};
}

std::vector<Expr> decompose_logsumexp(Builder&, const OpCall& call, std::span<const Expr> in) {
  Setting s(call);
  Expr x = in[0].cast(s.wide);
  if (count_along(x.dims(), s.axes).is(0)) return {log(x.op("sum", s.attrs())).cast(s.type)};
  Expr largest = x.op("max", keep(s.axes)).stop_gradient();
  Expr shift = where(largest.op("is_finite"), largest, 0);  // infinities must not meet as inf - inf
  Expr sum = log(exp(x - shift).op("sum", s.attrs()));
  return {(sum + shift.reshape(sum.dims())).cast(s.type)};
}

std::vector<Expr> decompose_norm2(Builder&, const OpCall& call, std::span<const Expr> in) {
  Setting s(call);
  Expr x = in[0].cast(s.wide);
  return {sqrt((x * x).op("sum", s.attrs())).cast(s.type)};
}

// --- compositions that leave NaN out ---
bool may_have_nan(const Expr& x) { return is_float(x.dtype()); }
Expr without_nan(const Expr& x, double instead) { return may_have_nan(x) ? where(x.op("is_nan"), instead, x) : x; }

template <bool kProduct> std::vector<Expr> decompose_nansum(Builder&, const OpCall& call, std::span<const Expr> in) {
  return {without_nan(in[0], kProduct ? 1 : 0).op(kProduct ? "prod" : "sum", Setting(call).attrs())};
}

template <bool kMax> std::vector<Expr> decompose_nanmax(Builder&, const OpCall& call, std::span<const Expr> in) {
  Setting s(call);
  Expr best = without_nan(in[0], kMax ? -kInf : kInf).op(kMax ? "max" : "min", s.attrs());
  if (!may_have_nan(in[0])) return {best};
  return {where(in[0].op("is_nan").op("all", s.attrs()), std::nan(""), best)};
}

template <bool kMax> std::vector<Expr> decompose_nanargmax(Builder&, const OpCall& call, std::span<const Expr> in) {
  Expr at = without_nan(in[0], kMax ? -kInf : kInf).op(kMax ? "argmax" : "argmin", call.attrs);
  if (!may_have_nan(in[0])) return {at};
  Attrs all = keep(position_axes(call), call.attrs.get<bool>("keepdims"));
  return {where(in[0].op("is_nan").op("all", all), -1, at)};
}

Expr valid_count(const Expr& x, const Setting& s, bool keepdims) {
  return x.op("is_nan").op("logical_not").cast(s.wide).op("sum", keep(s.axes, keepdims));
}
Expr wide_nanmean(const Expr& x, const Setting& s, bool keepdims) {
  return without_nan(x.cast(s.wide), 0).op("sum", keep(s.axes, keepdims)) / valid_count(x, s, keepdims);
}
Expr wide_nanvar(const Expr& x, const Setting& s, int64_t ddof) {
  Expr deviation = x.cast(s.wide) - wide_nanmean(x, s, true);
  Expr centred = where(x.op("is_nan"), 0, deviation);
  Expr count = maximum(valid_count(x, s, s.keepdims) - static_cast<double>(ddof), 0);
  return (centred * centred).op("sum", s.attrs()) / count;
}
std::vector<Expr> decompose_nanmean(Builder&, const OpCall& call, std::span<const Expr> in) {
  Setting s(call);
  return {wide_nanmean(in[0], s, s.keepdims).cast(s.type)};
}
std::vector<Expr> decompose_nanvar(Builder&, const OpCall& call, std::span<const Expr> in) {
  Setting s(call);
  return {wide_nanvar(in[0], s, call.attrs.get<int64_t>("ddof")).cast(s.type)};
}
std::vector<Expr> decompose_nanstd(Builder&, const OpCall& call, std::span<const Expr> in) {
  Setting s(call);
  return {sqrt(wide_nanvar(in[0], s, call.attrs.get<int64_t>("ddof"))).cast(s.type)};
}

// --- gradients ---
std::vector<Expr> vjp_sum(const GradCall& g) { return {spread(g.grad(), g.in[0].dims(), grad_axes(g))}; }

std::vector<Expr> vjp_mean(const GradCall& g) {
  const Dims& dims = g.in[0].dims();
  Ints axes = grad_axes(g);
  return {spread(divide_by_count(g.grad(), count_along(dims, axes)), dims, axes)};
}

// The product of all the others, from both sides: no division, so zeros are no special case, here nor in a second derivative.
std::vector<Expr> vjp_prod(const GradCall& g) {
  const Dims& dims = g.in[0].dims();
  Ints axes = grad_axes(g);
  if (axes.empty()) return {g.grad()};
  Expr flat = flatten_axes(g.in[0], axes);
  Expr before = flat.op("cumprod", Attrs{{"exclusive", true}});
  Expr after = flat.op("cumprod", Attrs{{"exclusive", true}, {"reverse", true}});
  return {unflatten_axes(before * after, dims, axes) * spread(g.grad(), dims, axes)};
}

// Elements that share the extreme value share the gradient.
std::vector<Expr> vjp_extreme(const GradCall& g) {
  const Dims& dims = g.in[0].dims();
  Ints axes = grad_axes(g);
  Dims kept = reduced_dims(dims, axes, true);
  Expr chosen = equal(g.in[0], g.out[0].reshape(kept));
  Expr share = g.grad().reshape(kept) / chosen.cast(g.grad().dtype()).sum(axes, true);
  return {where(chosen, share.broadcast_to(dims), 0)};
}

// d var = 2 (x - mean) / freedom, and for std the same over 2 std; where all elements are equal the gradient is 0, not 0/0.
std::vector<Expr> vjp_spread_measure(const GradCall& g, bool is_std) {
  const Dims& dims = g.in[0].dims();
  Ints axes = grad_axes(g);
  DType wide = accumulator_type(g.in[0].dtype());
  Expr x = g.in[0].cast(wide), grad = g.grad().cast(wide), out = g.out[0].cast(wide);
  Expr slope = is_std ? grad / where(equal(out, 0), 1, out) : grad * 2;
  slope = divide_by_count(slope, freedom(g.node.attrs, dims, axes));
  return {((x - x.op("mean", keep(axes))) * spread(slope, dims, axes)).cast(g.in[0].dtype())};
}
std::vector<Expr> vjp_var(const GradCall& g) { return vjp_spread_measure(g, false); }
std::vector<Expr> vjp_std(const GradCall& g) { return vjp_spread_measure(g, true); }

std::vector<Expr> vjp_logsumexp(const GradCall& g) {
  const Dims& dims = g.in[0].dims();
  Ints axes = grad_axes(g);
  DType type = g.in[0].dtype(), wide = accumulator_type(type);
  Expr x = g.in[0].cast(wide);
  // A rounded float16 total would make weights that are wrong by percents.
  Expr total = is_half(type) ? x.op("logsumexp", keep(axes)) : g.out[0];
  total = where(equal(total, -kInf), 0, total);  // all elements -inf: weights 0, not NaN
  return {(exp(x - spread(total, dims, axes)) * spread(g.grad().cast(wide), dims, axes)).cast(type)};
}

std::vector<Expr> vjp_norm2(const GradCall& g) {
  const Dims& dims = g.in[0].dims();
  Expr slope = g.grad() / where(equal(g.out[0], 0), 1, g.out[0]);
  return {g.in[0] * spread(slope, dims, grad_axes(g))};
}

}  // namespace

Rows reduce_rows() {
  Rows rows = {
      {.name = "sum",
       .sig = "(x: any; axis: ints? = none, keepdims: bool = false) -> custom",
       .doc = "The sum over some axes or all. Small integers and bool are summed in 32 bits, float16 and bfloat16 in float32.",
       .infer = infer_sum,
       .loops = arithmetic_loops<Fold::Sum>,
       .vjp = vjp_sum,
       .samples = {"([2,3]; axis=[1])", "([2,3,4]; axis=[0,2], keepdims=true)", "([]; axis=none)", "([0,3]; axis=[0])", "([0,3])",
                   "([3,0]:float32; axis=[0])", "([300]:float32)", "([70,5]:float32; axis=[0])", "([2,3,2,3,2]; axis=[-1,1])",
                   "([2,3]:float32; axis=[])", "([5]:float32 special) !grad", "([24]:int32 special)", "([24]:uint32 special)"}},
      {.name = "prod",
       .sig = "(x: any; axis: ints? = none, keepdims: bool = false) -> custom",
       .doc = "The product over some axes or all; the same types as sum.",
       .infer = infer_sum,
       .loops = arithmetic_loops<Fold::Product>,
       .vjp = vjp_prod,
       .samples = {"([2,3]; axis=[1])", "([2,3,2]; axis=[0,2], keepdims=true)", "([])", "([0,3]; axis=[0])", "([70]:float32 in 0.9..1.1)",
                   "([2,2,2,2,2]:float32; axis=[0,3])", "({0,2,3,0,5,0}:float32)", "([5]:float32 special) !grad", "([24]:int32)",
                   "([24]:uint32)"}},
      {.name = "max",
       .sig = "(x: any; axis: ints? = none, keepdims: bool = false) -> same",
       .doc = "The largest element along axes; NaN when one is NaN. Equal elements share the gradient.",
       .infer = infer_extreme,
       .loops = extreme_loops<Fold::Max>,
       .vjp = vjp_extreme,
       .samples = {"([2,3] distinct; axis=[1])", "([2,3,4] distinct; axis=[0,-1], keepdims=true)", "([])", "([3,0]; axis=[0])",
                   "([130]:float32 distinct)", "([2,2,2,2,3]:float32 distinct; axis=[4,1])", "([9] special; axis=[0]) !grad"}},
      {.name = "min",
       .sig = "(x: any; axis: ints? = none, keepdims: bool = false) -> same",
       .doc = "The smallest element along axes; NaN when one is NaN. Equal elements share the gradient.",
       .infer = infer_extreme,
       .loops = extreme_loops<Fold::Min>,
       .vjp = vjp_extreme,
       .samples = {"([2,3] distinct; axis=[1])", "([2,3,4] distinct; axis=[0,-1], keepdims=true)", "([])", "([3,0]; axis=[0])",
                   "([130]:float32 distinct)", "([2,2,2,2,3]:float32 distinct; axis=[4,1])", "([9] special; axis=[0]) !grad"}},
      {.name = "mean",
       .sig = "(x: float; axis: ints? = none, keepdims: bool = false) -> same",
       .doc = "The average over some axes or all; NaN when there are no elements.",
       .infer = infer_same,
       .loops = mean_loops,
       .vjp = vjp_mean,
       .samples = {"([2,3]; axis=[1])", "([2,3,4]; axis=[0,2], keepdims=true)", "([])", "([0,3]; axis=[1])", "([0,3]; axis=[0]) !grad",
                   "([300]:float32)", "([2,3,2,3,2]; axis=[-1,1])", "({{1,nan,2},{inf,1,3},{-inf,inf,1}}; axis=[1]) !grad"}},
      {.name = "var",
       .sig = "(x: float; axis: ints? = none, keepdims: bool = false, ddof: int = 0) -> same",
       .doc = "The variance: the mean square distance from the mean, over n - ddof. Two passes, so a large mean does no harm.",
       .infer = infer_same,
       .decompose = decompose_var,
       .vjp = vjp_var,
       .samples = {"([2,3]; axis=[1])", "([2,3,4]; axis=[0,2], keepdims=true)", "([])", "([0,3]; axis=[1])", "([3,0]; axis=[0])",
                   "([300]:float32 in 1000..1001; ddof=1)", "([2,3,2,3,2]:float32; axis=[-1,1])",
                   "({{1,nan,2},{inf,1,3},{-inf,inf,1}}; axis=[1]) !grad"}},
      {.name = "std",
       .sig = "(x: float; axis: ints? = none, keepdims: bool = false, ddof: int = 0) -> same",
       .doc = "The standard deviation: the square root of var. Its gradient is 0 where all elements are equal.",
       .infer = infer_same,
       .decompose = decompose_std,
       .vjp = vjp_std,
       .samples = {"([2,3]; axis=[1])", "([2,3,4]; axis=[0,2], keepdims=true)", "([]) !grad", "([3,0]; axis=[0])",
                   "([300]:float32; ddof=1)", "([2,3,2,3,2]:float32; axis=[-1,1])",
                   "({{1,nan,2},{inf,1,3},{-inf,inf,1}}; axis=[1]) !grad"}},
      {.name = "moments",
       .sig = "(x: float; axis: ints? = none, keepdims: bool = false) -> same, same",
       .doc = "Mean and variance together.",
       .infer = infer_moments,
       .decompose = decompose_moments,
       .samples = {"([2,3]; axis=[1])", "([2,3,4]; axis=[0,2], keepdims=true)", "([])", "([300]:float32)", "([0,3]; axis=[1])"}},
      {.name = "any",
       .sig = "(x: any; axis: ints? = none, keepdims: bool = false) -> bool",
       .doc = "Whether some element along the axes is not zero.",
       .traits = kZeroGradient,
       .infer = infer_bool,
       .loops = logical_loops<Fold::Or>,
       .samples = {"([2,3]; axis=[1])", "([2,3,4]:bool; axis=[0,-1], keepdims=true)", "([])", "([0,3]; axis=[0])", "([130]:bool)",
                   "([11,2] special; axis=[1])"}},
      {.name = "all",
       .sig = "(x: any; axis: ints? = none, keepdims: bool = false) -> bool",
       .doc = "Whether every element along the axes is not zero.",
       .traits = kZeroGradient,
       .infer = infer_bool,
       .loops = logical_loops<Fold::And>,
       .samples = {"([2,3]; axis=[1])", "([2,3,4]:bool; axis=[0,-1], keepdims=true)", "([])", "([0,3]; axis=[0])", "([130]:bool)",
                   "([11,2] special; axis=[1])"}},
      {.name = "count_nonzero",
       .sig = "(x: any; axis: ints? = none, keepdims: bool = false) -> int32",
       .doc = "How many elements along the axes are not zero.",
       .traits = kZeroGradient,
       .infer = infer_count,
       .loops = count_loops,
       .samples = {"([2,3]; axis=[1])", "([2,3,4]:bool; axis=[0,-1], keepdims=true)", "([])", "([0,3]; axis=[0])", "([130]:int32 in 0..1)",
                   "([11,2] special; axis=[1])"}},
      {.name = "argmax",
       .sig = "(x: any; axis: int? = none, keepdims: bool = false) -> int32",
       .doc =
           "The position of the largest element along one axis, or in the flattened tensor. The first of equals; a NaN counts as largest.",
       .traits = kZeroGradient,
       .infer = infer_position,
       .loops = position_loops<Fold::Max>,
       .samples = {"([2,3]; axis=1)", "([2,3,4]; axis=-2, keepdims=true)", "([])", "([2,3,4]:float32; keepdims=true)", "([3,0]; axis=0)",
                   "([200]:int32 in 0..3)", "([9] special; axis=0)"}},
      {.name = "argmin",
       .sig = "(x: any; axis: int? = none, keepdims: bool = false) -> int32",
       .doc = "The position of the smallest element along one axis, or in the flattened tensor. The first of equals; a NaN counts as "
              "smallest.",
       .traits = kZeroGradient,
       .infer = infer_position,
       .loops = position_loops<Fold::Min>,
       .samples = {"([2,3]; axis=1)", "([2,3,4]; axis=-2, keepdims=true)", "([])", "([2,3,4]:float32; keepdims=true)", "([3,0]; axis=0)",
                   "([200]:int32 in 0..3)", "([9] special; axis=0)"}},
      {.name = "logsumexp",
       .sig = "(x: float; axis: ints? = none, keepdims: bool = false) -> same",
       .doc = "log(sum(exp(x))) over some axes or all, without overflow; -inf when there are no elements.",
       .infer = infer_same,
       .decompose = decompose_logsumexp,
       .vjp = vjp_logsumexp,
       .samples = {"([2,3]; axis=[1])", "([2,3,4]; axis=[0,2], keepdims=true)", "([])", "([3,0]; axis=[0])", "([0,3]; axis=[0])",
                   "([100]:float32 in 80..90)", "({inf,1,2}:float32) !grad", "({-inf,-inf}:float32) !grad"}},
      {.name = "norm2",
       .sig = "(x: float; axis: ints? = none, keepdims: bool = false) -> same",
       .doc = "The Euclidean norm: sqrt(sum(x * x)). Its gradient at the origin is 0.",
       .infer = infer_same,
       .decompose = decompose_norm2,
       .vjp = vjp_norm2,
       .samples = {"([2,3]; axis=[1])", "([2,3,4]; axis=[0,2], keepdims=true)", "([] in 1..2)", "([3,0]; axis=[0])", "([100]:float32)",
                   "({{3,nan},{inf,1},{-inf,2}}; axis=[1]) !grad"}},
      {.name = "nansum",
       .sig = "(x: any; axis: ints? = none, keepdims: bool = false) -> custom",
       .doc = "sum, with NaN counted as 0.",
       .infer = infer_sum,
       .decompose = decompose_nansum<false>,
       .samples = {"([2,3]; axis=[1])", "({1,nan,3}:float32) !grad", "([0,3]; axis=[0], keepdims=true)", "([])",
                   "([3,3]:float32 special; axis=[1]) !grad"}},
      {.name = "nanprod",
       .sig = "(x: any; axis: ints? = none, keepdims: bool = false) -> custom",
       .doc = "prod, with NaN counted as 1.",
       .infer = infer_sum,
       .decompose = decompose_nansum<true>,
       .samples = {"([2,3]; axis=[1])", "({2,nan,3}:float32) !grad", "([0,3]; axis=[0], keepdims=true)", "([])",
                   "([3,3]:float32 special; axis=[1]) !grad"}},
      {.name = "nanmax",
       .sig = "(x: any; axis: ints? = none, keepdims: bool = false) -> same",
       .doc = "max of the elements that are not NaN; NaN when there is none.",
       .infer = infer_extreme,
       .decompose = decompose_nanmax<true>,
       .samples = {"([2,3] distinct; axis=[1])", "({2,nan,3}:float32) !grad", "({nan,nan}:float32; keepdims=true) !grad", "([])",
                   "([3,0]; axis=[0])", "([11] special) !grad"}},
      {.name = "nanmin",
       .sig = "(x: any; axis: ints? = none, keepdims: bool = false) -> same",
       .doc = "min of the elements that are not NaN; NaN when there is none.",
       .infer = infer_extreme,
       .decompose = decompose_nanmax<false>,
       .samples = {"([2,3] distinct; axis=[1])", "({2,nan,3}:float32) !grad", "({nan,nan}:float32; keepdims=true) !grad", "([])",
                   "([3,0]; axis=[0])", "([11] special) !grad"}},
      {.name = "nanargmax",
       .sig = "(x: any; axis: int? = none, keepdims: bool = false) -> int32",
       .doc = "argmax of the elements that are not NaN; -1 when there is none.",
       .traits = kZeroGradient,
       .infer = infer_position,
       .decompose = decompose_nanargmax<true>,
       .samples = {"([2,3]; axis=1)", "({2,nan,3,1}:float32)", "({nan,nan}:float32; axis=0, keepdims=true)", "([])", "([3,0]; axis=0)",
                   "([11] special)", "({1,1,nan,0,0}:float32)"}},
      {.name = "nanargmin",
       .sig = "(x: any; axis: int? = none, keepdims: bool = false) -> int32",
       .doc = "argmin of the elements that are not NaN; -1 when there is none.",
       .traits = kZeroGradient,
       .infer = infer_position,
       .decompose = decompose_nanargmax<false>,
       .samples = {"([2,3]; axis=1)", "({2,nan,3,1}:float32)", "({nan,nan}:float32; axis=0, keepdims=true)", "([])", "([3,0]; axis=0)",
                   "([11] special)", "({1,1,nan,0,0}:float32)"}},
      {.name = "nanmean",
       .sig = "(x: float; axis: ints? = none, keepdims: bool = false) -> same",
       .doc = "mean of the elements that are not NaN; NaN when there is none.",
       .infer = infer_same,
       .decompose = decompose_nanmean,
       .samples = {"([2,3]; axis=[1])", "({1,nan,3}:float32) !grad", "({nan,nan}:float32; keepdims=true) !grad", "([])",
                   "([3,0]; axis=[0])", "([9,2]; axis=[0])"}},
      {.name = "nanvar",
       .sig = "(x: float; axis: ints? = none, keepdims: bool = false, ddof: int = 0) -> same",
       .doc = "var of the elements that are not NaN.",
       .infer = infer_same,
       .decompose = decompose_nanvar,
       .samples = {"([2,3]; axis=[1])", "({1,nan,3,7}:float32; ddof=1) !grad", "([2,3]; axis=[0], keepdims=true)", "([])",
                   "([3,0]; axis=[0])", "([9,2]; axis=[0])"}},
      {.name = "nanstd",
       .sig = "(x: float; axis: ints? = none, keepdims: bool = false, ddof: int = 0) -> same",
       .doc = "std of the elements that are not NaN.",
       .infer = infer_same,
       .decompose = decompose_nanstd,
       .samples = {"([2,3]; axis=[1])", "({1,nan,3,7}:float32; ddof=1) !grad", "([3,3]; axis=[0], keepdims=true)", "([]) !grad",
                   "([3,0]; axis=[0])", "([9,2]; axis=[0])"}},
  };
  for (OpDef& row : quantile_rows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace tandem::ops
