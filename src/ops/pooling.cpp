// Pooling over windows, channels last. The gradients are gathers too: every input looks at the windows that it lies in, so that
// nothing is added to one place from two sides and the order of sums is fixed.
#include "ops/table.hpp"
#include "ops/windows.hpp"

namespace tandem::ops {

using namespace ir;

namespace {

// The attributes pool_size, strides and padding against the spatial extents of an input.
struct Pool {
  Ints size, strides;
  std::vector<Window> windows;  // one a spatial axis
  Dims inputs;                  // spatial extents of what is pooled
};

Pool pool_of(const OpCall& call, const Dims& inputs) {
  const int axes = static_cast<int>(inputs.size());
  Pool p{.size = spatial_ints(call, "pool_size", axes, 1), .inputs = inputs};
  p.strides = call.attrs.has("strides") ? spatial_ints(call, "strides", axes, 1) : p.size;
  const Padding padding = padding_of(call, axes);
  if (padding == Padding::Causal) call.fail("padding must be 'valid' or 'same', got 'causal'");
  for (size_t i = 0; i < inputs.size(); ++i) p.windows.push_back(place_windows(call, padding, inputs[i], p.size[i], p.strides[i]));
  return p;
}

Dims spatial_part(const TensorType& x) { return {x.dims.begin() + 1, x.dims.end() - 1}; }

// Of a row whose operand 0 is what is pooled.
Pool input_pool(const OpCall& call) {
  spatial_axes(call, call.in[0]);
  return pool_of(call, spatial_part(call.in[0]));
}

// Of a row whose operand 0 has one element a window; the attribute `extents` says what was pooled.
Pool output_pool(const OpCall& call) {
  const int axes = spatial_axes(call, call.in[0]);
  return pool_of(call, dims_attr(call, "extents", axes));
}

Dims pooled_dims(const TensorType& x, const Pool& p) {
  Dims out{x.dims.front()};
  for (const Window& w : p.windows) out.push_back(w.count);
  out.push_back(x.dims.back());
  return out;
}

Dims window_extents(const Pool& p) { return {p.size.begin(), p.size.end()}; }

// --- index arithmetic -----------------------------------------------------------------------------------------------------------

struct Position {
  std::vector<Scalar> index;
  Scalar valid;  // empty: always
};

// Where window output axis i begins; may lie before the input.
Scalar window_start(const Pool& p, size_t i) {
  return axis(static_cast<int>(i) + 1) * index_constant(p.strides[i]) - extent(p.windows[i].low);
}

// The input under the reduce axes of a window.
Position in_window(const Pool& p) {
  const int rank = static_cast<int>(p.size.size()) + 2;
  Position at{{axis(0)}, {}};
  for (size_t i = 0; i < p.size.size(); ++i) {
    const Scalar position = window_start(p, i) + axis(rank + static_cast<int>(i));
    if (!never_pads(p.windows[i].low)) require(at.valid, position >= 0);
    if (!never_pads(p.windows[i].high)) require(at.valid, position < extent(p.inputs[i]));
    at.index.push_back(position);
  }
  at.index.push_back(axis(rank - 1));
  return at;
}

Scalar guarded_load(int input, DType t, const Position& at, const Scalar& otherwise) {
  return load_where(input, t, at.index, at.valid, otherwise);
}

// The same of what is no load.
Scalar guarded(const Scalar& x, const Position& at, const Scalar& otherwise) { return at.valid ? select(at.valid, x, otherwise) : x; }

// Whether every input lies in exactly one window along a spatial axis.
bool tiles_input(const Pool& p, size_t i) {
  const Dim covered = p.windows[i].count * p.strides[i];
  return p.size[i] == p.strides[i] && never_pads(p.windows[i].low) && covered == p.inputs[i];
}

// The windows that an input lies in: along each axis the last one that begins at or before it, and those before it as far as they
// reach. The reduce axes count them.
struct Covering {
  Dims extents;
  Position window;
  std::vector<Scalar> offset;  // of the input within the window
};

Covering covering_windows(const Pool& p) {
  const int rank = static_cast<int>(p.size.size()) + 2;
  Covering c{{}, {{axis(0)}, {}}, {}};
  for (size_t i = 0; i < p.size.size(); ++i) {
    const Scalar stride = index_constant(p.strides[i]);
    const Scalar position = axis(static_cast<int>(i) + 1) + extent(p.windows[i].low);
    const Scalar window = position / stride - axis(rank + static_cast<int>(i));
    const Scalar offset = position - window * stride;
    if (!tiles_input(p, i)) require(c.window.valid, in_range(window, extent(p.windows[i].count)));
    // Only where the size is no multiple of the stride does the last candidate sometimes end before the input.
    if (p.size[i] % p.strides[i] != 0) require(c.window.valid, offset < index_constant(p.size[i]));
    c.extents.push_back(ceil_div(p.size[i], p.strides[i]));
    c.window.index.push_back(window);
    c.offset.push_back(offset);
  }
  c.window.index.push_back(axis(rank - 1));
  return c;
}

// Positions within a window counted in row-major order.
Scalar flat_offset(const Pool& p, const std::vector<Scalar>& offset) {
  Scalar flat = offset[0];
  for (size_t i = 1; i < offset.size(); ++i) flat = flat * index_constant(p.size[i]) + offset[i];
  return flat;
}

// --- max ------------------------------------------------------------------------------------------------------------------------

std::vector<TensorType> infer_pool(const OpCall& call) { return {{call.in[0].dtype, pooled_dims(call.in[0], input_pool(call))}}; }

Loops max_pool_loops(const OpCall& call, std::span<const TensorType> out) {
  const Pool p = input_pool(call);
  const DType t = call.in[0].dtype;
  const Scalar element = guarded_load(0, t, in_window(p), identity_of(Fold::Max, t));
  return {.extents = out[0].dims, .reduction = fold(Fold::Max, window_extents(p), element), .results = {acc(0, t)}};
}

std::vector<TensorType> infer_max_pool_index(const OpCall& call) {
  const Pool p = input_pool(call);
  Dim count = 1;
  for (int64_t s : p.size) count = count * s;
  require_int32(call, count);
  return {{DType::I32, pooled_dims(call.in[0], p)}};
}

// The offset of the first maximum; padding loses even against -inf.
Loops max_pool_index_loops(const OpCall& call, std::span<const TensorType> out) {
  const Pool p = input_pool(call);
  const DType t = call.in[0].dtype;
  const int rank = out[0].rank();
  std::vector<Scalar> offset;
  for (size_t i = 0; i < p.size.size(); ++i) offset.push_back(axis(rank + static_cast<int>(i)));
  const Position at = in_window(p);
  const Scalar value = guarded_load(0, t, at, identity_of(Fold::Max, t)), place = cast(flat_offset(p, offset), DType::I32);
  const Scalar position = guarded(place, at, constant_int(DType::I32, kNowhere));
  Reduction best = fold_position(Fold::Max, window_extents(p), value, position);
  return {.extents = out[0].dims, .reduction = std::move(best), .results = {acc(1, DType::I32)}};
}

// What the rows of one pooling say to each other.
Attrs pool_attrs(const Attrs& attrs) {
  return {{"pool_size", *attrs.find("pool_size")}, {"strides", *attrs.find("strides")}, {"padding", *attrs.find("padding")}};
}

Attrs pool_attrs_over(const Attrs& attrs, const Expr& x) {
  Attrs a = pool_attrs(attrs);
  a.set("extents", spatial_part(x.type()));
  return a;
}

std::vector<Expr> max_pool_vjp(const GradCall& call) {
  const Expr& x = call.in[0];
  const Expr index = x.op("max_pool_index", pool_attrs(call.node.attrs));
  return {call.grad().op("max_pool_grad", {index}, pool_attrs_over(call.node.attrs, x))};
}

void check_pooled(const OpCall& call, const Pool& p) {
  const Dims expected = pooled_dims(call.in[0], p);
  if (!(call.in[0].dims == expected))
    call.fail("pooling ", str(p.inputs), " gives ", str(expected), ", the operand is ", str(call.in[0].dims));
}

std::vector<TensorType> infer_pool_grad(const OpCall& call) {
  const Pool p = output_pool(call);
  check_pooled(call, p);
  if (call.in.size() > 1 && !(call.in[1].dims == call.in[0].dims))
    call.fail("gradient and index differ, ", str(call.in[0].dims), " and ", str(call.in[1].dims));
  Dims out{call.in[0].dims.front()};
  out.insert(out.end(), p.inputs.begin(), p.inputs.end());
  out.push_back(call.in[0].dims.back());
  return {{call.in[0].dtype, out}};
}

Loops max_pool_grad_loops(const OpCall& call, std::span<const TensorType> out) {
  const Pool p = output_pool(call);
  const DType t = call.in[0].dtype, sum_type = accumulator_type(t);
  const Covering c = covering_windows(p);
  const DType index_type = call.in[1].dtype;
  const Scalar winner = guarded_load(1, index_type, c.window, constant_int(index_type, -1));
  const Scalar gradient = guarded_load(0, t, c.window, constant(t, 0));
  const Scalar is_winner = winner == cast(flat_offset(p, c.offset), index_type);
  const Scalar g = cast(select(is_winner, gradient, constant(t, 0)), sum_type);
  return {.extents = out[0].dims, .reduction = fold(Fold::Sum, c.extents, g), .results = {cast(acc(0, sum_type), t)}};
}

std::vector<Expr> max_pool_grad_vjp(const GradCall& call) {
  return {call.grad().op("max_pool_pick", {call.in[1]}, pool_attrs(call.node.attrs)), {}};
}

std::vector<TensorType> infer_max_pool_pick(const OpCall& call) {
  const Dims expected = pooled_dims(call.in[0], input_pool(call));
  if (!(call.in[1].dims == expected))
    call.fail("pooling ", str(call.in[0].dims), " gives ", str(expected), ", the index is ", str(call.in[1].dims));
  return {{call.in[0].dtype, expected}};
}

Loops max_pool_pick_loops(const OpCall& call, std::span<const TensorType> out) {
  const Pool p = input_pool(call);
  const DType t = call.in[0].dtype;
  Scalar rest = cast(load(1, call.in[1].dtype, output_axes(out[0].rank())), DType::I64);
  Position at{{axis(out[0].rank() - 1)}, rest >= 0};
  for (size_t i = p.size.size(); i-- > 0;) {
    const Scalar size = index_constant(p.size[i]);
    const Scalar position = window_start(p, i) + (i == 0 ? rest : rest % size);
    rest = rest / size;
    // An index is data: what it names is checked, whoever made it.
    require(at.valid, in_range(position, extent(p.inputs[i])));
    at.index.insert(at.index.begin(), position);
  }
  at.index.insert(at.index.begin(), axis(0));
  return map_loops(out[0].dims, guarded_load(0, t, at, constant(t, 0)));
}

std::vector<Expr> max_pool_pick_vjp(const GradCall& call) {
  return {call.grad().op("max_pool_grad", {call.in[1]}, pool_attrs_over(call.node.attrs, call.in[0])), {}};
}

// --- average --------------------------------------------------------------------------------------------------------------------

// The inputs in a window that begins at start(axis): padding does not count.
template <class F> Scalar window_size(const Pool& p, DType t, F start) {
  Scalar count = index_constant(1);
  for (size_t i = 0; i < p.size.size(); ++i) {
    const Scalar first = start(i), size = index_constant(p.size[i]);
    const bool full = never_pads(p.windows[i].low) && never_pads(p.windows[i].high);
    count = count * (full ? size : min(first + size, extent(p.inputs[i])) - max(first, index_constant(0)));
  }
  return cast(count, t);
}

Loops average_pool_loops(const OpCall& call, std::span<const TensorType> out) {
  const Pool p = input_pool(call);
  const DType t = call.in[0].dtype, sum_type = accumulator_type(t);
  const Scalar element = cast(guarded_load(0, t, in_window(p), constant(t, 0)), sum_type);
  const Scalar count = window_size(p, sum_type, [&](size_t i) { return window_start(p, i); });
  return {.extents = out[0].dims, .reduction = fold(Fold::Sum, window_extents(p), element), .results = {cast(acc(0, sum_type) / count, t)}};
}

Loops average_pool_grad_loops(const OpCall& call, std::span<const TensorType> out) {
  const Pool p = output_pool(call);
  const DType t = call.in[0].dtype, sum_type = accumulator_type(t);
  const Covering c = covering_windows(p);
  const Scalar count =
      window_size(p, sum_type, [&](size_t i) { return c.window.index[i + 1] * index_constant(p.strides[i]) - extent(p.windows[i].low); });
  const Scalar g = cast(guarded_load(0, t, c.window, constant(t, 0)), sum_type);
  // A window outside the output holds no input: 0 / 0 must not reach the sum.
  const Scalar share = guarded(g / count, c.window, constant(sum_type, 0));
  return {.extents = out[0].dims, .reduction = fold(Fold::Sum, c.extents, share), .results = {cast(acc(0, sum_type), t)}};
}

std::vector<Expr> average_pool_vjp(const GradCall& call) {
  return {call.grad().op("average_pool_grad", pool_attrs_over(call.node.attrs, call.in[0]))};
}

std::vector<Expr> average_pool_grad_vjp(const GradCall& call) { return {call.grad().op("average_pool", pool_attrs(call.node.attrs))}; }

// --- the whole of each channel --------------------------------------------------------------------------------------------------

Ints spatial_list(const TensorType& x) { return consecutive(1, x.rank() - 2); }

std::vector<TensorType> infer_global(const OpCall& call) {
  spatial_axes(call, call.in[0]);
  require_elements(call, call.in[0].dims, spatial_list(call.in[0]));
  return {{call.in[0].dtype, reduced_dims(call.in[0].dims, spatial_list(call.in[0]), call.attrs.get<bool>("keepdims"))}};
}

std::vector<Expr> expand_global(const OpCall& call, const Expr& x, std::string_view reduction) {
  return {x.op(reduction, {{"axis", spatial_list(x.type())}, {"keepdims", call.attrs.get<bool>("keepdims")}})};
}

}  // namespace

Rows pooling_rows() {
  return {
      {.name = "max_pool",
       .sig = "(x: number; pool_size: ints, strides: ints? = none, padding: string = 'valid') -> same",
       .doc = "The maximum of each window, in one to three spatial axes, channels last; without strides the windows lie side by side. The "
              "gradient goes to the first maximum of a window.",
       .infer = infer_pool,
       .loops = max_pool_loops,
       .vjp = max_pool_vjp,
       .samples = {"([2,6,3] distinct; pool_size=[2])", "([2,7,3] distinct; pool_size=[3], strides=[2], padding='same')",
                   "([2,6,7,2] distinct; pool_size=[2,2])", "([1,7,8,2] distinct; pool_size=[3,2], strides=[2,3], padding='same')",
                   "([1,5,5,2] distinct; pool_size=[3], strides=[1], padding='same')", "([1,4,4,4,2] distinct; pool_size=[2,2,2])",
                   "([1,5,4,3,2] distinct; pool_size=[2,3,2], strides=[1,2,3], padding='same')", "([0,4,4,2]; pool_size=[2])",
                   "([1,6,6,2] special; pool_size=[2]) !grad", "([1,8,8,67] distinct; pool_size=[2])",
                   "([1,6,6,2] special; pool_size=[3], strides=[2], padding='same') !grad"}},
      {.name = "max_pool_index",
       .sig = "(x: number; pool_size: ints, strides: ints? = none, padding: string = 'valid') -> int32",
       .doc = "Where in each window of max_pool the first maximum lies: its offset within the window in row-major order.",
       .traits = kZeroGradient,
       .infer = infer_max_pool_index,
       .loops = max_pool_index_loops,
       .samples = {"([2,6,3]; pool_size=[2])", "([2,7,3]; pool_size=[3], strides=[2], padding='same')",
                   "([1,6,7,2] distinct; pool_size=[2,3])", "([1,5,4,3,2]; pool_size=[2,3,2], strides=[1,2,3], padding='same')",
                   "([1,6,6,2] special; pool_size=[2])", "([0,4,4,2]; pool_size=[2])", "([1,8,8,67]; pool_size=[2])"}},
      {.name = "max_pool_grad",
       .sig = "(g: number, index: index; extents: shape, pool_size: ints, strides: ints? = none, padding: string = 'valid') -> same",
       .doc =
           "Each window's number brought back to the input that `index` (from max_pool_index) names, and summed there; `extents` are the "
           "spatial extents of that input.",
       .infer = infer_pool_grad,
       .loops = max_pool_grad_loops,
       .vjp = max_pool_grad_vjp,
       .samples = {"([1,3,2], {{{0,1},{1,0},{1,1}}}:int32; extents=[6], pool_size=[2])",
                   "([1,3,2], {{{0,1},{2,0},{1,1}}}:int32; extents=[6], pool_size=[3], strides=[2], padding='same')"}},
      {.name = "max_pool_pick",
       .sig = "(x: number, index: index; pool_size: ints, strides: ints? = none, padding: string = 'valid') -> same",
       .doc = "The element of each window that `index` (an offset within the window, as max_pool_index gives it) names; 0 where it names "
              "none.",
       .infer = infer_max_pool_pick,
       .loops = max_pool_pick_loops,
       .vjp = max_pool_pick_vjp,
       .samples = {"([1,6,2], {{{0,1},{1,0},{1,1}}}:int32; pool_size=[2])",
                   "([1,6,2], {{{0,1},{2,0},{1,1}}}:int32; pool_size=[3], strides=[2], padding='same')"}},
      {.name = "average_pool",
       .sig = "(x: float; pool_size: ints, strides: ints? = none, padding: string = 'valid') -> same",
       .doc = "The mean of each window, in one to three spatial axes, channels last; padding does not count as inputs.",
       .infer = infer_pool,
       .loops = average_pool_loops,
       .vjp = average_pool_vjp,
       .samples = {"([2,6,3]; pool_size=[2])", "([2,7,3]; pool_size=[3], strides=[2], padding='same')", "([2,6,7,2]; pool_size=[2,2])",
                   "([1,7,8,2]; pool_size=[3,2], strides=[2,3], padding='same')", "([1,5,5,2]; pool_size=[3], strides=[1], padding='same')",
                   "([1,4,4,4,2]; pool_size=[2,2,2])", "([1,5,4,3,2]; pool_size=[2,3,2], strides=[1,2,3], padding='same')",
                   "([0,4,4,2]; pool_size=[2])", "([1,8,8,67]; pool_size=[2])",
                   "({{{1},{inf},{nan},{2},{-inf},{3}}}; pool_size=[2], strides=[1], padding='same') !grad"}},
      {.name = "average_pool_grad",
       .sig = "(g: float; extents: shape, pool_size: ints, strides: ints? = none, padding: string = 'valid') -> same",
       .doc = "Each window's number shared out among its inputs; `extents` are the spatial extents of that input.",
       .infer = infer_pool_grad,
       .loops = average_pool_grad_loops,
       .vjp = average_pool_grad_vjp,
       .samples = {"([2,3,3]; extents=[6], pool_size=[2])", "([2,4,3]; extents=[7], pool_size=[3], strides=[2], padding='same')",
                   "([1,4,3,2]; extents=[7,8], pool_size=[3,2], strides=[2,3], padding='same')",
                   "([1,2,2,1,2]; extents=[4,5,3], pool_size=[2])", "([1,4,4,67]; extents=[8,8], pool_size=[2])"}},
      {.name = "global_max_pool",
       .sig = "(x: number; keepdims: bool = false) -> same",
       .doc = "The maximum of each channel over all spatial axes, channels last.",
       .infer = infer_global,
       .decompose = [](Builder&, const OpCall& call, std::span<const Expr> in) { return expand_global(call, in[0], "max"); },
       .samples = {"([2,6,3] distinct)", "([2,5,4,3] distinct; keepdims=true)", "([1,3,2,2,2] distinct)", "([0,4,4,2])",
                   "([1,3,4,2] special) !grad"}},
      {.name = "global_average_pool",
       .sig = "(x: float; keepdims: bool = false) -> same",
       .doc = "The mean of each channel over all spatial axes, channels last.",
       .infer = infer_global,
       .decompose = [](Builder&, const OpCall& call, std::span<const Expr> in) { return expand_global(call, in[0], "mean"); },
       .samples = {"([2,6,3])", "([2,5,4,3]; keepdims=true)", "([1,3,2,2,2])", "([0,4,4,2])", "([2,9,9,5])"}},
  };
}

}  // namespace tandem::ops
