// Creation: tensors made of nothing but their shape, and masks by position.
#include <cmath>
#include <limits>

#include "ops/helpers.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
using namespace ir;
namespace {

using Types = std::vector<TensorType>;

DType dtype_attr(const OpCall& call) { return call.attrs.get<DType>("dtype"); }

// --- iota, extent, full ---
Types infer_iota(const OpCall& call) {
  const Dims& shape = call.attrs.get<Dims>("shape");
  call.axis("axis", static_cast<int>(shape.size()));
  return {{dtype_attr(call), shape}};
}
Loops iota_loops(const OpCall& call, std::span<const TensorType> out) {
  return map_loops(out[0].dims, cast(axis(static_cast<int>(call.axis("axis", out[0].rank()))), out[0].dtype));
}

Types infer_extent(const OpCall& call) { return {{dtype_attr(call), {}}}; }
Loops extent_loops(const OpCall& call, std::span<const TensorType> out) {
  return map_loops({}, cast(extent(product(call.attrs.get<Dims>("dims"))), out[0].dtype));
}

Types infer_full(const OpCall& call) {
  if (call.in[0].rank() != 0) call.fail("the value must be a scalar, got ", call.in[0], "\n  hint: broadcast_to stretches other shapes");
  return {{call.in[0].dtype, call.attrs.get<Dims>("shape")}};
}
Loops full_loops(const OpCall& call, std::span<const TensorType> out) { return map_loops(out[0].dims, load(0, call.in[0].dtype, {})); }
std::vector<Expr> vjp_full(const GradCall& g) { return {g.grad().sum(all_axes(g.grad().rank()))}; }

// --- eye, tri ---
Types infer_matrix(const OpCall& call) {
  Dim rows = dims_attr(call, "rows", 1)[0];
  Dim columns = call.attrs.has("columns") ? dims_attr(call, "columns", 1)[0] : rows;
  return {{dtype_attr(call), {rows, columns}}};
}
// How far right of the k-th diagonal an element of the last two axes lies.
Scalar beyond_diagonal(const OpCall& call, int rank) { return axis(rank - 1) - axis(rank - 2) - index_constant(diagonal_attr(call, "k")); }
Loops zero_or_one(const TensorType& out, const Scalar& is_one) {
  return map_loops(out.dims, select(is_one, constant(out.dtype, 1), constant(out.dtype, 0)));
}
Loops eye_loops(const OpCall& call, std::span<const TensorType> out) { return zero_or_one(out[0], beyond_diagonal(call, 2) == 0); }
Loops tri_loops(const OpCall& call, std::span<const TensorType> out) { return zero_or_one(out[0], beyond_diagonal(call, 2) <= 0); }

// --- tril, triu ---
Types infer_triangle(const OpCall& call) {
  if (call.in[0].rank() < 2) call.fail("at least two axes are needed, got ", str(call.in[0].dims));
  return {call.in[0]};
}
template <bool kLower> Loops triangle_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType& x = call.in[0];
  Scalar beyond = beyond_diagonal(call, x.rank());
  Scalar kept = kLower ? beyond <= 0 : beyond >= 0;
  return map_loops(out[0].dims, select(kept, load(0, x.dtype, output_axes(x.rank())), constant(x.dtype, 0)));
}
std::vector<Expr> vjp_triangle(const GradCall& g) { return {g.grad().op(g.node.op->name, g.node.attrs)}; }

// --- arange ---
double float_attr(const OpCall& call, std::string_view name) { return call.attrs.get<double>(name); }

Types infer_arange(const OpCall& call) {
  double start = float_attr(call, "start"), stop = float_attr(call, "stop"), step = float_attr(call, "step");
  if (step == 0 || !std::isfinite(start) || !std::isfinite(stop) || !std::isfinite(step))
    call.fail("start ", start, ", stop ", stop, ", step ", step, " must be finite, and the step not 0");
  double count = std::max(std::ceil((stop - start) / step), 0.0);
  if (!(count < 0x1p62)) call.fail("from ", start, " to ", stop, " by ", step, " are too many elements");
  return {{dtype_attr(call), {static_cast<int64_t>(count)}}};
}
bool is_whole(double x) { return x == std::trunc(x) && std::abs(x) <= 0x1p53; }
Loops arange_loops(const OpCall& call, std::span<const TensorType> out) {
  double start = float_attr(call, "start"), step = float_attr(call, "step");
  bool whole = is_whole(start) && is_whole(step);
  DType t = out[0].dtype, wide = whole && !is_float(t) ? DType::I64 : t == DType::F64 ? DType::F64 : DType::F32;
  return map_loops(out[0].dims, cast(cast(axis(0), wide) * constant(wide, step) + constant(wide, start), t));
}

// --- linspace, logspace ---
Types infer_linspace(const OpCall& call) {
  int64_t num = call.attrs.get<int64_t>("num");
  if (num < 0) call.fail("num is ", num, ", it must not be negative");
  Dims dims = broadcast(call.in[0].dims, call.in[1].dims);
  dims.insert(dims.begin(), num);
  return {{call.in[0].dtype, dims}};
}
// NumPy: start + i * step, and the last element is exactly the end.
Expr linspace(const OpCall& call, const Expr& from, const Expr& to) {
  Builder& b = from.builder();
  DType wide = accumulator_type(from.dtype());
  bool endpoint = call.attrs.get<bool>("endpoint");
  int64_t num = call.attrs.get<int64_t>("num"), gaps = endpoint ? num - 1 : num;
  Expr start = from.cast(wide), stop = to.cast(wide);
  Dims column(broadcast(from.dims(), to.dims()).size() + 1, 1);
  column[0] = num;
  Expr i = iota(b, {num}, 0, wide).reshape(column);
  Expr step = (stop - start) / static_cast<double>(std::max<int64_t>(gaps, 1));
  Expr points = start + i * step;
  return endpoint && num > 1 ? where(equal(i, static_cast<double>(gaps)), stop, points) : points;
}
std::vector<Expr> decompose_linspace(Builder&, const OpCall& call, std::span<const Expr> in) {
  return {linspace(call, in[0], in[1]).cast(in[0].dtype())};
}
std::vector<Expr> decompose_logspace(Builder&, const OpCall& call, std::span<const Expr> in) {
  Expr exponents = linspace(call, in[0], in[1]);
  return {power(float_attr(call, "base"), exponents).cast(in[0].dtype())};
}

}  // namespace

Rows create_rows() {
  return {
      {.name = "iota",
       .sig = "(; shape: shape, axis: int = 0, dtype: dtype = int32) -> custom",
       .doc = "Each element is its position along an axis.",
       .infer = infer_iota,
       .loops = iota_loops,
       .samples = {"(; shape=[5])", "(; shape=[2,3], axis=-1, dtype=float32)", "(; shape=[0,3])", "(; shape=[300], dtype=int8)",
                   "(; shape=[100], dtype=float16)", "(; shape=[2,3,2,3,2], axis=3, dtype=int64)", "(; shape=[3], dtype=bool)"}},
      {.name = "extent",
       .sig = "(; dims: shape, dtype: dtype = int32) -> custom",
       .doc = "The number of elements of a shape as a scalar; its entries may be symbols.",
       .infer = infer_extent,
       .loops = extent_loops,
       .samples = {"(; dims=[5,7])", "(; dims=[], dtype=float32)", "(; dims=[0,3], dtype=int64)"}},
      {.name = "full",
       .sig = "(value: own; shape: shape) -> same",
       .doc = "A tensor filled with one value.",
       .infer = infer_full,
       .loops = full_loops,
       .vjp = vjp_full,
       .samples = {"([]; shape=[2,3])", "([]; shape=[])", "([]; shape=[0,3])", "([]:float32; shape=[100])"}},
      {.name = "eye",
       .sig = "(; rows: shape, columns: shape? = none, k: int = 0, dtype: dtype = float32) -> custom",
       .doc = "Ones on the k-th diagonal, zeros elsewhere; square when columns are not given.",
       .infer = infer_matrix,
       .loops = eye_loops,
       .samples = {"(; rows=3)", "(; rows=3, columns=5, k=2)", "(; rows=3, columns=2, k=-1, dtype=int32)", "(; rows=0)",
                   "(; rows=70, dtype=bool)"}},
      {.name = "tri",
       .sig = "(; rows: shape, columns: shape? = none, k: int = 0, dtype: dtype = float32) -> custom",
       .doc = "Ones on and below the k-th diagonal, zeros above it.",
       .infer = infer_matrix,
       .loops = tri_loops,
       .samples = {"(; rows=3)", "(; rows=3, columns=5, k=2)", "(; rows=3, columns=2, k=-1, dtype=int32)", "(; rows=0)",
                   "(; rows=70, dtype=bool)"}},
      {.name = "tril",
       .sig = "(x: own; k: int = 0) -> same",
       .doc = "The elements of the last two axes on and below the k-th diagonal, zeros above it.",
       .infer = infer_triangle,
       .loops = triangle_loops<true>,
       .vjp = vjp_triangle,
       .samples = {"([3,4])", "([2,3,3]; k=-1)", "([0,3])", "([70,70]:float32; k=2)", "([2,1,2,3,3]:float32)", "([5,5] special) !grad"}},
      {.name = "triu",
       .sig = "(x: own; k: int = 0) -> same",
       .doc = "The elements of the last two axes on and above the k-th diagonal, zeros below it.",
       .infer = infer_triangle,
       .loops = triangle_loops<false>,
       .vjp = vjp_triangle,
       .samples = {"([3,4])", "([2,3,3]; k=-1)", "([0,3])", "([70,70]:float32; k=2)", "([2,1,2,3,3]:float32)", "([5,5] special) !grad"}},
      {.name = "arange",
       .sig = "(; start: float = 0, stop: float, step: float = 1, dtype: dtype = int32) -> custom",
       .doc = "The numbers from start up to, but without, stop.",
       .infer = infer_arange,
       .loops = arange_loops,
       .samples = {"(; stop=5)", "(; start=2, stop=9, step=3, dtype=float32)", "(; start=5, stop=-2, step=-2)", "(; start=3, stop=1)",
                   "(; start=0.5, stop=2, step=0.25, dtype=float64)", "(; stop=100, dtype=int64)"}},
      {.name = "linspace",
       .sig = "(start: float, stop: float; num: int, endpoint: bool = true) -> same",
       .doc = "num evenly spaced numbers from start to stop, along a new first axis; without endpoint the last is one step before stop.",
       .infer = infer_linspace,
       .decompose = decompose_linspace,
       .samples = {"([], []; num=5)", "([], []; num=4, endpoint=false)", "([2,3], [3]; num=3)", "([], []; num=1)", "([], []; num=0)",
                   "([]:float32, []:float32; num=100)"}},
      {.name = "logspace",
       .sig = "(start: float, stop: float; num: int, endpoint: bool = true, base: float = 10) -> same",
       .doc = "base to the powers of linspace(start, stop).",
       .infer = infer_linspace,
       .decompose = decompose_logspace,
       .samples = {"([], []; num=5)", "([], []; num=4, endpoint=false, base=2)", "([2,3], [3]; num=3)", "([], []; num=0)"}},
  };
}

}  // namespace tandem::ops
