#include "ops/quantile.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "ops/helpers.hpp"

namespace tandem::ops {
using namespace ir;
namespace {

constexpr std::array<std::string_view, 5> kMethods = {"linear", "lower", "higher", "midpoint", "nearest"};

void check_method(const OpCall& call) {
  const std::string& method = call.attrs.get<std::string>("method");
  for (std::string_view known : kMethods)
    if (method == known) return;
  call.fail("unknown method '", method, "'\n  hint: linear, lower, higher, midpoint or nearest");
}

Dims infer_reduced(const OpCall& call) {
  const TensorType& x = call.in[0];
  Ints axes = call.axes("axis", x.rank());
  require_elements(call, x.dims, axes);
  for (int64_t a : axes) require_int32(call, x.dims[static_cast<size_t>(a)]);
  return reduced_dims(x.dims, axes, call.attrs.get<bool>("keepdims"));
}

std::vector<TensorType> infer_median(const OpCall& call) { return {{call.in[0].dtype, infer_reduced(call)}}; }

// The axes of q come first, as in NumPy.
std::vector<TensorType> infer_quantile(const OpCall& call) {
  check_method(call);
  Dims dims = call.in[1].dims, rest = infer_reduced(call);
  dims.insert(dims.end(), rest.begin(), rest.end());
  return {{call.in[0].dtype, dims}};
}

struct Sorted {
  Expr values;  // [others…, n], NaN last, in the accumulator type
  Expr last;    // [others…, 1]: the last valid position, n - 1, or fewer where NaN are left out
  bool ignore_nan;

  // Values at positions [m] or, where NaN are left out, [others…, m]; both give [others…, m].
  Expr at(const Expr& position) const {
    Expr index = maximum(position.cast(DType::I32), 0);
    if (ignore_nan) return values.op("take_along_axis_clipped", {index}, {{"axis", -1}});
    return values.op("take_clipped", {index}, {{"axis", -1}});
  }
};

Sorted sort_axes(const Expr& x, const Ints& axes, bool ignore_nan) {
  DType wide = accumulator_type(x.dtype());
  Expr flat = flatten_axes(x, axes);
  Expr values = flat.op("sort", {{"axis", -1}}).cast(wide);
  Dim n = flat.dims().back();
  Expr last = count_of(x.builder(), n - Dim(1), wide);
  if (ignore_nan) {
    Ints axis{flat.rank() - 1};
    last = flat.op("is_nan").op("logical_not").cast(wide).sum(axis, true) - 1;
  }
  return {values, last, ignore_nan};
}

Expr interpolate(const Sorted& s, const Expr& position, const std::string& method) {
  Expr below = position.op("floor"), above = position.op("ceil");
  if (method == "lower") return s.at(below);
  if (method == "higher") return s.at(above);
  if (method == "nearest") return s.at(position.op("round"));
  Expr low = s.at(below), high = s.at(above);
  Expr weight = method == "midpoint" ? where(equal(below, above), position.like(0), position.like(0.5)) : position - below;
  // Equal ends need no weight, and infinite ones must not be subtracted.
  return where(equal(low, high), low, low + (high - low) * weight);
}

// q is [m]; the result is [others…, m].
Expr flat_quantile(const Expr& x, const Expr& q, const Ints& axes, bool ignore_nan, const std::string& method) {
  Sorted s = sort_axes(x, axes, ignore_nan);
  Expr result = interpolate(s, q * s.last, method);
  if (ignore_nan) return result;
  // One NaN makes the result NaN; sorted, it is the last.
  Expr largest = s.at(s.last.reshape({1}));
  return where(largest.op("is_nan"), largest, result);
}

template <bool kIgnoreNan> std::vector<Expr> decompose_quantile(Builder&, const OpCall& call, std::span<const Expr> in) {
  Ints axes = call.axes("axis", in[0].rank());
  const Expr& x = in[0];
  DType wide = accumulator_type(x.dtype());
  const Dims& q_dims = in[1].dims();
  Expr q = maximum(minimum(in[1].cast(wide), 1), 0).reshape({product(q_dims)});
  Expr result = flat_quantile(x, q, axes, kIgnoreNan, call.attrs.get<std::string>("method"));
  Ints to_front{result.rank() - 1};
  for (int64_t k = 0; k + 1 < result.rank(); ++k) to_front.push_back(k);
  return {result.transpose(to_front).reshape(infer_quantile(call)[0].dims).cast(x.dtype())};
}

template <bool kIgnoreNan> std::vector<Expr> decompose_median(Builder& b, const OpCall& call, std::span<const Expr> in) {
  Ints axes = call.axes("axis", in[0].rank());
  Expr half = Expr(b, b.scalar(accumulator_type(in[0].dtype()), 0.5)).reshape({1});
  Expr result = flat_quantile(in[0], half, axes, kIgnoreNan, "linear");
  return {result.reshape(infer_median(call)[0].dims).cast(in[0].dtype())};
}

}  // namespace

Rows quantile_rows() {
  return {
      {.name = "quantile",
       .sig = "(x: float, q: own; axis: ints? = none, method: string = 'linear', keepdims: bool = false) -> same",
       .doc = "The value below which the part q (0 to 1) of the elements lies; the axes of q come first. NaN when an element is NaN. "
              "Between two elements: linear, lower, higher, midpoint or nearest.",
       .infer = infer_quantile,
       .decompose = decompose_quantile<false>,
       .samples = {"([5] distinct, {0.3}:float32)", "([2,7]:float32 distinct, {0.05,0.25,0.6}:float32; axis=[1])",
                   "([2,7]:float32 distinct, {0,0.5,1}:float32; axis=[1]) !grad",
                   "([2,3,4]:float32 distinct, {0.1,0.8}:float32; axis=[0,-1], keepdims=true)", "([], [] in 0..1)",
                   "([100]:float32 distinct, []:float32 in 0..1; method='lower')", "([6]:float32 distinct, {0.3}:float32; method='higher')",
                   "([6]:float32 distinct, {0.3}:float32; method='midpoint')", "([6]:float32 distinct, {0.35}:float32; method='nearest')",
                   "({1,nan,3}:float32, {0.5}:float32) !grad", "([0,5] distinct, {0.5}:float32; axis=[1])",
                   "({inf,-inf,1,2}:float32, {0.4}:float32) !grad"}},
      {.name = "nanquantile",
       .sig = "(x: float, q: own; axis: ints? = none, method: string = 'linear', keepdims: bool = false) -> same",
       .doc = "quantile of the elements that are not NaN; NaN when there is none.",
       .infer = infer_quantile,
       .decompose = decompose_quantile<true>,
       .samples = {"([2,7]:float32 distinct, {0.05,0.4}:float32; axis=[1])", "({4,nan,1,3}:float32, {0.4}:float32) !grad",
                   "({nan,nan}:float32, {0.5}:float32; keepdims=true) !grad"}},
      {.name = "median",
       .sig = "(x: float; axis: ints? = none, keepdims: bool = false) -> same",
       .doc = "The middle element, or the mean of the two in the middle. NaN when an element is NaN.",
       .infer = infer_median,
       .decompose = decompose_median<false>,
       .samples = {"([5] distinct)", "([2,4] distinct; axis=[1])", "([2,3,4]:float32 distinct; axis=[0,-1], keepdims=true)", "([])",
                   "([101]:float32 distinct)", "({1,nan,3}:float32) !grad", "([0,5] distinct; axis=[1])", "({inf,inf,1}:float32) !grad"}},
      {.name = "nanmedian",
       .sig = "(x: float; axis: ints? = none, keepdims: bool = false) -> same",
       .doc = "median of the elements that are not NaN; NaN when there is none.",
       .infer = infer_median,
       .decompose = decompose_median<true>,
       .samples = {"([2,4] distinct; axis=[1])", "({4,nan,1,3}:float32) !grad", "({nan,nan}:float32; keepdims=true) !grad"}},
  };
}

}  // namespace tandem::ops
