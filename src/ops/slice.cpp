// Slices: a box of a tensor, at places known when the graph is made or only when it runs.
#include <algorithm>

#include "ops/helpers.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
using namespace ir;
namespace {

using Types = std::vector<TensorType>;

// --- slice ---
// The number of elements from start, by step, before limit. What is negative as a number is 0; symbols are taken to be in order.
Dim slice_length(const Dim& start, const Dim& limit, int64_t step) {
  Dim span = step > 0 ? limit - start : start - limit;
  if (span.is_const() && span.value() <= 0) return 0;
  return ceil_div(span, Dim(step > 0 ? step : -step));
}

void check_bounds(const OpCall& call, size_t k, const Dim& start, const Dim& limit, int64_t step) {
  const Dim& size = call.in[0].dims[k];
  if (step == 0) call.fail("the step of axis ", k, " is 0");
  auto outside = [&](const Dim& d, int64_t low, const Dim& high) {
    return d.is_const() && (d.value() < low || (high.is_const() && d.value() > high.value()));
  };
  // Going down, the last element taken may be 0, so the limit below it is -1.
  int64_t lowest = step > 0 ? 0 : -1;
  bool is_empty = slice_length(start, limit, step).is(0);
  bool bad = outside(start, lowest, step > 0 || is_empty ? size : size - Dim(1)) || outside(limit, lowest, size);
  if (bad)
    call.fail("start ", start, " and limit ", limit, " are out of range for axis ", k, " of ", str(call.in[0].dims), " with size ", size);
}

Types infer_slice(const OpCall& call) {
  const TensorType& x = call.in[0];
  const Dims &start = dims_attr(call, "start", x.rank()), &limit = dims_attr(call, "limit", x.rank());
  const Ints& step = call.attrs.get<Ints>("step");
  if (step.size() != x.dims.size()) call.fail("step has ", step.size(), " entries, ", str(x.dims), " has ", x.rank(), " axes");
  Dims dims;
  for (size_t k = 0; k < x.dims.size(); ++k) {
    if (step[k] == INT64_MIN) call.fail("the step ", step[k], " of axis ", k, " is out of range");
    check_bounds(call, k, start[k], limit[k], step[k]);
    dims.push_back(slice_length(start[k], limit[k], step[k]));
  }
  return {{x.dtype, dims}};
}
Loops slice_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType& x = call.in[0];
  const Dims &start = call.attrs.get<Dims>("start"), &limit = call.attrs.get<Dims>("limit");
  const Ints& step = call.attrs.get<Ints>("step");
  std::vector<Scalar> index;
  Scalar valid;
  for (size_t k = 0; k < step.size(); ++k) {
    index.push_back(axis(static_cast<int>(k)) * index_constant(step[k]) + extent(start[k]));
    // Symbols may turn out smaller than the caller thought; then nothing outside may be read.
    bool up = step[k] > 0;
    bool inside = never_negative(up ? start[k] : limit[k] + Dim(1)) && never_negative(x.dims[k] - (up ? limit[k] : start[k] + Dim(1)));
    if (!inside) valid = both(valid, in_range(index[k], extent(x.dims[k])));
  }
  return map_loops(out[0].dims, load_when(0, x.dtype, index, valid));
}
std::vector<Expr> vjp_slice(const GradCall& g) {
  const Attrs& a = g.node.attrs;
  return {g.grad().op("place", {{"shape", g.in[0].dims()}, {"start", a.get<Dims>("start")}, {"step", a.get<Ints>("step")}})};
}

// --- place: the transpose of slice ---
Types infer_place(const OpCall& call) {
  const TensorType& x = call.in[0];
  const Dims &shape = dims_attr(call, "shape", x.rank()), &start = dims_attr(call, "start", x.rank());
  const Ints& step = call.attrs.get<Ints>("step");
  if (step.size() != x.dims.size()) call.fail("step has ", step.size(), " entries, ", str(x.dims), " has ", x.rank(), " axes");
  for (size_t k = 0; k < step.size(); ++k) {
    if (step[k] == 0) call.fail("the step of axis ", k, " is 0");
    if (x.dims[k].is(0)) continue;
    Dim last = start[k] + (x.dims[k] - Dim(1)) * Dim(step[k]);
    for (const Dim& end : {start[k], last})
      if (end.is_const() && shape[k].is_const() && (end.value() < 0 || end.value() >= shape[k].value()))
        call.fail("axis ", k, " of ", str(x.dims), " would reach ", end, ", which is out of range for size ", shape[k]);
  }
  return {{x.dtype, shape}};
}
Loops place_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType& x = call.in[0];
  const Dims& start = call.attrs.get<Dims>("start");
  const Ints& step = call.attrs.get<Ints>("step");
  std::vector<Scalar> index;
  Scalar valid;
  for (size_t k = 0; k < step.size(); ++k) {
    Scalar i = axis(static_cast<int>(k));
    bool whole = step[k] == 1 && start[k].is(0) && x.dims[k] == out[0].dims[k];
    if (!whole) {
      i = step[k] > 0 ? i - extent(start[k]) : extent(start[k]) - i;
      int64_t stride = std::abs(step[k]);
      valid = both(valid, i >= 0);
      if (stride != 1) {
        valid = both(valid, i % index_constant(stride) == 0);
        i = i / index_constant(stride);
      }
      valid = both(valid, i < extent(x.dims[k]));
    }
    index.push_back(i);
  }
  return map_loops(out[0].dims, load_when(0, x.dtype, index, valid));
}
std::vector<Expr> vjp_place(const GradCall& g) {
  const Dims &start = g.node.attrs.get<Dims>("start"), &dims = g.in[0].dims();
  const Ints& step = g.node.attrs.get<Ints>("step");
  Dims limit;
  for (size_t k = 0; k < dims.size(); ++k) {
    // One past the last element in the direction of the step. From an empty axis nothing is taken, from wherever it would begin.
    limit.push_back(dims[k].is(0) ? start[k] : start[k] + (dims[k] - Dim(1)) * Dim(step[k]) + Dim(step[k] > 0 ? 1 : -1));
  }
  return {g.grad().op("slice", {{"start", start}, {"limit", limit}, {"step", step}})};
}

// --- dynamic_slice, dynamic_update_slice ---
void check_starts(const OpCall& call, const TensorType& starts) {
  int rank = call.in[0].rank();
  if (starts.rank() != 1 || !starts.dims[0].is(rank))
    call.fail("starts must be a vector with one entry an axis, [", rank, "], got ", str(starts.dims));
}
void check_fits(const OpCall& call, const Dims& sizes) {
  const Dims& dims = call.in[0].dims;
  for (size_t k = 0; k < dims.size(); ++k) {
    bool bad = sizes[k].is_const() && (sizes[k].value() < 0 || (dims[k].is_const() && sizes[k].value() > dims[k].value()));
    if (bad) call.fail("a box ", str(sizes), " does not fit into ", str(dims), ": axis ", k, " (", sizes[k], " > ", dims[k], ")");
  }
}
// Where the box begins along axis k: as asked for, but moved so far that all of it lies inside, as in XLA.
Scalar box_start(int input, const TensorType& starts, size_t k, const Dim& size, const Dim& box) {
  if (size == box) return index_constant(0);
  Scalar asked = cast(load(input, starts.dtype, {index_constant(static_cast<int64_t>(k))}), DType::I64);
  return clamp_index(asked, index_constant(0), extent(size - box));
}

Types infer_dynamic_slice(const OpCall& call) {
  check_starts(call, call.in[1]);
  const Dims& sizes = dims_attr(call, "sizes", call.in[0].rank());
  check_fits(call, sizes);
  return {{call.in[0].dtype, sizes}};
}
Loops dynamic_slice_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType& x = call.in[0];
  std::vector<Scalar> index = output_axes(x.rank());
  Scalar valid;
  for (size_t k = 0; k < index.size(); ++k) {
    index[k] = index[k] + box_start(1, call.in[1], k, x.dims[k], out[0].dims[k]);
    if (!never_negative(x.dims[k] - out[0].dims[k])) valid = both(valid, index[k] < extent(x.dims[k]));
  }
  return map_loops(out[0].dims, load_when(0, x.dtype, index, valid));
}
std::vector<Expr> vjp_dynamic_slice(const GradCall& g) { return {g.in[0].like(0).op("dynamic_update_slice", {g.grad(), g.in[1]}), Expr()}; }

Types infer_dynamic_update_slice(const OpCall& call) {
  check_starts(call, call.in[2]);
  if (call.in[1].rank() != call.in[0].rank())
    call.fail("the update ", str(call.in[1].dims), " must have as many axes as ", str(call.in[0].dims), " (", call.in[1].rank(),
              " != ", call.in[0].rank(), ")");
  check_fits(call, call.in[1].dims);
  return {call.in[0]};
}
Loops dynamic_update_slice_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType &x = call.in[0], &update = call.in[1];
  std::vector<Scalar> here = output_axes(x.rank()), index;
  Scalar valid;
  for (size_t k = 0; k < here.size(); ++k) {
    index.push_back(here[k] - box_start(2, call.in[2], k, x.dims[k], update.dims[k]));
    if (x.dims[k] == update.dims[k]) continue;
    valid = both(valid, in_range(index[k], extent(update.dims[k])));
  }
  if (!valid) return map_loops(out[0].dims, load(1, x.dtype, index));
  return map_loops(out[0].dims, load_if(1, x.dtype, index, valid, load(0, x.dtype, here)));
}
std::vector<Expr> vjp_dynamic_update_slice(const GradCall& g) {
  const Expr &update = g.in[1], &starts = g.in[2];
  Expr x_grad, update_grad;
  if (g.needed[0]) x_grad = g.grad().op("dynamic_update_slice", {update.like(0), starts});
  if (g.needed[1]) update_grad = g.grad().op("dynamic_slice", {starts}, {{"sizes", update.dims()}});
  return {x_grad, update_grad, Expr()};
}

}  // namespace

Rows slice_rows() {
  return {
      {.name = "slice",
       .sig = "(x: own; start: shape, limit: shape, step: ints) -> same",
       .doc = "The elements from start, by step, up to but without limit along each axis. A negative step goes down; its limit may be -1.",
       .infer = infer_slice,
       .loops = slice_loops,
       .vjp = vjp_slice,
       .samples = {"([4,5]; start=[1,0], limit=[3,5], step=[1,2])", "([4,5]; start=[3,4], limit=[-1,0], step=[-1,-2])",
                   "([4]; start=[2], limit=[2], step=[1])", "([]; start=[], limit=[], step=[])",
                   "([0,3]; start=[0,1], limit=[0,3], step=[1,1])", "([100]:float32; start=[3], limit=[98], step=[1])",
                   "([100]:float32; start=[99], limit=[-1], step=[-1])",
                   "([2,3,2,3,2]:float32; start=[0,2,0,1,0], limit=[2,-1,1,3,2], step=[1,-1,1,1,1])"}},
      {.name = "place",
       .sig = "(x: own; shape: shape, start: shape, step: ints) -> same",
       .doc = "Zeros with the elements of x at start, start + step, … along each axis: what slice took, put back.",
       .infer = infer_place,
       .loops = place_loops,
       .vjp = vjp_place,
       .samples = {"([2,3]; shape=[4,5], start=[1,0], step=[1,2])", "([4,2]; shape=[4,5], start=[3,4], step=[-1,-2])",
                   "([0,2]; shape=[2,2], start=[0,0], step=[1,1])", "([]; shape=[], start=[], step=[])",
                   "([70]:float32; shape=[100], start=[3], step=[1])"}},
      {.name = "dynamic_slice",
       .sig = "(x: own, starts: index; sizes: shape) -> same",
       .doc = "A box of the given sizes from a place that is computed. A box that would reach outside is moved inside.",
       .infer = infer_dynamic_slice,
       .loops = dynamic_slice_loops,
       .vjp = vjp_dynamic_slice,
       .samples = {"([4,5], {1,2}; sizes=[2,3])", "([4,5]:float32, {3,-2}; sizes=[2,5])", "([], [0]; sizes=[])",
                   "([0,3], {0,1}; sizes=[0,2])", "([100]:float32, {20}; sizes=[70])"}},
      {.name = "dynamic_update_slice",
       .sig = "(x: any, update: any, starts: index) -> same",
       .doc = "x with a box of it replaced, at a place that is computed. A box that would reach outside is moved inside.",
       .infer = infer_dynamic_update_slice,
       .loops = dynamic_update_slice_loops,
       .vjp = vjp_dynamic_update_slice,
       .samples = {"([4,5], [2,3], {1,2})", "([4,5]:float32, [2,5]:float32, {3,-2})", "([], [], [0])", "([0,3], [0,2], {0,1})",
                   "([100]:float32, [70]:float32, {20})"}},
  };
}

}  // namespace tandem::ops
