// Indexing: elements at places that are themselves data. Every index is checked before it is used: the rows that users call put
// check_range in front of a row that only clips.
#include <limits>

#include "ops/classes.hpp"
#include "ops/helpers.hpp"
#include "ops/host.hpp"
#include "ops/scatter.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
using namespace ir;

void index_out_of_range(std::string_view op, int64_t index, int64_t axis, int64_t size, const Shape& shape, int64_t at) {
  user_error(ErrorCode::OutOfRange, op, ": index ", index, " is out of range for axis ", axis, " with size ", size, " (at position ",
             position_of(shape, at), ")");
}

namespace {

using Types = std::vector<TensorType>;

// --- check_range ---
Types infer_check_range(const OpCall& call) {
  const TensorType& indices = call.in[0];
  const Dims& limit = call.attrs.get<Dims>("limit");
  bool fits = limit.size() == 1 || (indices.rank() > 0 && indices.dims.back().is(static_cast<int64_t>(limit.size())));
  if (!fits) call.fail("limit ", str(limit), " does not belong to the last axis of ", str(indices.dims));
  return {indices};
}

template <class I> void check_indices(const HostCall& c, const std::vector<int64_t>& sizes) {
  const I* in = c.in[0].as<I>();
  I* out = c.out[0].as<I>();
  int64_t count = element_count(c.in[0].shape);
  auto width = static_cast<int64_t>(sizes.size());
  int64_t bad = count;  // the first one that is out of range
  for (int64_t a = 0; a < width; ++a) {
    int64_t size = sizes[static_cast<size_t>(a)];
    bool all_good = true;
    for (int64_t i = a; i < count; i += width) {
      int64_t v = in[i];
      all_good &= v >= -size && v < size;
      out[i] = static_cast<I>(v < 0 ? v + size : v);
    }
    if (all_good) continue;
    for (int64_t i = a; i < bad; i += width)
      if (normal_index(in[i], size) < 0) bad = i;
  }
  if (bad == count) return;
  int64_t which = bad % width;
  index_out_of_range(c.attrs.get<std::string>("op"), in[bad], c.attrs.get<int64_t>("axis") + which, sizes[static_cast<size_t>(which)],
                     c.in[0].shape, bad);
}
void evaluate_check_range(const HostCall& c) {
  std::vector<int64_t> sizes;
  for (const Dim& d : c.attrs.get<Dims>("limit")) sizes.push_back(d.value());
  if (sizes.empty()) return;
  if (c.in[0].dtype == DType::I32)
    check_indices<int32_t>(c, sizes);
  else
    check_indices<int64_t>(c, sizes);
}

// --- check_classes ---
Types infer_check_classes(const OpCall& call) {
  const Dims& classes = call.attrs.get<Dims>("classes");
  if (classes.size() != 1) call.fail("classes ", str(classes), " must be one number");
  return {call.in[0]};
}

void evaluate_check_classes(const HostCall& c) {
  const HostTensor& labels = c.in[0];
  const int64_t classes = c.attrs.get<Dims>("classes")[0].value(), count = element_count(labels.shape);
  const int64_t bad = first_non_class(labels.data, labels.dtype, count, classes, c.attrs.get<Ints>("ignored"));
  if (bad < count)
    user_error(c.attrs.get<std::string>("op"), ": the target at ", position_of(labels.shape, bad), " is ",
               label_text(labels.data, labels.dtype, bad), ", there are ", classes, " classes, 0 to ", classes - 1);
  std::copy_n(labels.as<std::byte>(), byte_size(labels.shape, labels.dtype), c.out[0].as<std::byte>());
}

Expr checked(const Expr& indices, Dims limit, const OpCall& call, int64_t axis) {
  return indices.op("check_range", {{"limit", std::move(limit)}, {"op", std::string(call.op.name)}, {"axis", axis}});
}

// --- reading at clipped indices ---
// Collects the index of a load; an axis that may be empty must not be read at all.
struct ClippedIndex {
  std::vector<Scalar> index;
  Scalar valid;
  void add(const Scalar& i) { index.push_back(i); }
  void add_clipped(const Scalar& i, const Dim& size) {
    index.push_back(clamp_index(cast(i, DType::I64), index_constant(0), extent(size - Dim(1))));
    bool never_empty = size.is_const() && size.value() > 0;
    if (!never_empty) valid = both(valid, extent(size) > 0);
  }
  Loops loops(const OpCall& call, std::span<const TensorType> out) const {
    return map_loops(out[0].dims, load_when(0, call.in[0].dtype, index, valid));
  }
};

// The last valid index as a scalar of the type of the indices, to clip them in a graph.
Expr clipped(const Expr& indices, const Dim& size) {
  Expr last = count_of(indices.builder(), size - Dim(1), indices.dtype());
  return maximum(minimum(indices, last), 0);
}

// --- take ---
Types infer_take(const OpCall& call) {
  const TensorType &x = call.in[0], &indices = call.in[1];
  int64_t axis = call.axis("axis", x.rank());
  Dims dims = x.dims;
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, indices.dims.begin(), indices.dims.end());
  return {{x.dtype, dims}};
}
Loops take_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType &x = call.in[0], &indices = call.in[1];
  auto axis_at = static_cast<int>(call.axis("axis", x.rank()));
  ClippedIndex from;
  for (int k = 0; k < x.rank(); ++k) {
    if (k != axis_at) {
      from.add(axis(k < axis_at ? k : k - 1 + indices.rank()));
      continue;
    }
    std::vector<Scalar> at;
    for (int j = 0; j < indices.rank(); ++j) at.push_back(axis(axis_at + j));
    from.add_clipped(load(1, indices.dtype, at), x.dims[static_cast<size_t>(k)]);
  }
  return from.loops(call, out);
}
std::vector<Expr> decompose_take(Builder&, const OpCall& call, std::span<const Expr> in) {
  int64_t axis = call.axis("axis", in[0].rank());
  Expr indices = checked(in[1], {in[0].dims()[static_cast<size_t>(axis)]}, call, axis);
  return {in[0].op("take_clipped", {indices}, {{"axis", axis}})};
}
std::vector<Expr> vjp_take(const GradCall& g) { return {add_at(g.grad(), g.in[1], g.in[0].dims(), grad_axis(g)), Expr()}; }
std::vector<Expr> vjp_take_clipped(const GradCall& g) {
  const Dims& dims = g.in[0].dims();
  int axis = grad_axis(g);
  return {add_at(g.grad(), clipped(g.in[1], dims[static_cast<size_t>(axis)]), dims, axis), Expr()};
}

// --- take_along_axis ---
Types infer_take_along_axis(const OpCall& call) {
  const TensorType &x = call.in[0], &indices = call.in[1];
  if (x.rank() != indices.rank())
    call.fail("the indices ", str(indices.dims), " must have as many axes as ", str(x.dims), " (", indices.rank(), " != ", x.rank(), ")");
  auto axis = static_cast<size_t>(call.axis("axis", x.rank()));
  Dims dims;
  for (size_t k = 0; k < x.dims.size(); ++k) {
    const Dim &a = x.dims[k], &b = indices.dims[k];
    if (k == axis || a.is(1) || a == b)
      dims.push_back(b);
    else if (b.is(1))
      dims.push_back(a);
    else
      call.fail(str(x.dims), " and indices ", str(indices.dims), " differ on axis ", k, " (", a, " != ", b, ")");
  }
  return {{x.dtype, dims}};
}
Loops take_along_axis_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType &x = call.in[0], &indices = call.in[1];
  auto along = static_cast<size_t>(call.axis("axis", x.rank()));
  auto stretched = [](const Dims& dims, size_t k) { return dims[k].is(1) ? index_constant(0) : axis(static_cast<int>(k)); };
  std::vector<Scalar> at;
  for (size_t k = 0; k < indices.dims.size(); ++k) at.push_back(stretched(indices.dims, k));
  ClippedIndex from;
  for (size_t k = 0; k < x.dims.size(); ++k) {
    if (k == along)
      from.add_clipped(load(1, indices.dtype, at), x.dims[k]);
    else
      from.add(stretched(x.dims, k));
  }
  return from.loops(call, out);
}
std::vector<Expr> decompose_take_along_axis(Builder&, const OpCall& call, std::span<const Expr> in) {
  int64_t axis = call.axis("axis", in[0].rank());
  Expr indices = checked(in[1], {in[0].dims()[static_cast<size_t>(axis)]}, call, axis);
  return {in[0].op("take_along_axis_clipped", {indices}, {{"axis", axis}})};
}
std::vector<Expr> vjp_take_along(const GradCall& g, const Expr& indices) {
  auto axis = static_cast<size_t>(grad_axis(g));
  Expr grad = g.grad();
  Dims wide = grad.dims();
  wide[axis] = g.in[0].dims()[axis];
  Expr zeros = filled(g.builder, {grad.dtype(), wide}, 0);
  Expr sum = zeros.op("put_along_axis", {indices.broadcast_to(grad.dims()), grad}, {{"axis", static_cast<int64_t>(axis)}, {"mode", "add"}});
  return {sum.sum_to(g.in[0].dims()), Expr()};
}
std::vector<Expr> vjp_take_along_axis(const GradCall& g) { return vjp_take_along(g, g.in[1]); }
std::vector<Expr> vjp_take_along_axis_clipped(const GradCall& g) {
  return vjp_take_along(g, clipped(g.in[1], g.in[0].dims()[static_cast<size_t>(grad_axis(g))]));
}

// --- gather_nd ---
Types infer_gather_nd(const OpCall& call) {
  const TensorType &x = call.in[0], &indices = call.in[1];
  int64_t depth = index_depth(call, indices, x);
  Dims dims(indices.dims.begin(), indices.dims.end() - 1);
  dims.insert(dims.end(), x.dims.begin() + depth, x.dims.end());
  return {{x.dtype, dims}};
}
Loops gather_nd_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType &x = call.in[0], &indices = call.in[1];
  int64_t depth = index_depth(call, indices, x);
  std::vector<Scalar> at = output_axes(indices.rank());
  ClippedIndex from;
  for (int64_t k = 0; k < x.rank(); ++k) {
    if (k < depth) {
      at.back() = index_constant(k);
      from.add_clipped(load(1, indices.dtype, at), x.dims[static_cast<size_t>(k)]);
    } else {
      from.add(axis(static_cast<int>(indices.rank() - 1 + k - depth)));
    }
  }
  return from.loops(call, out);
}
std::vector<Expr> decompose_gather_nd(Builder&, const OpCall& call, std::span<const Expr> in) {
  int64_t depth = index_depth(call, call.in[1], call.in[0]);
  const Dims& dims = in[0].dims();
  Expr indices = depth == 0 ? in[1] : checked(in[1], Dims(dims.begin(), dims.begin() + depth), call, 0);
  return {in[0].op("gather_nd_clipped", {indices})};
}
std::vector<Expr> vjp_gather(const GradCall& g, const Expr& indices) {
  return {g.in[0].like(0).op("scatter", {indices, g.grad()}, {{"mode", "add"}}), Expr()};
}
std::vector<Expr> vjp_gather_nd(const GradCall& g) { return vjp_gather(g, g.in[1]); }
std::vector<Expr> vjp_gather_nd_clipped(const GradCall& g) {
  // One limit a column: stacked, they clip all tuples at once.
  const Expr& indices = g.in[1];
  const Dims dims = g.in[0].dims();
  auto depth = static_cast<size_t>(indices.dims().back().value());
  if (depth == 0) return vjp_gather(g, indices);
  std::vector<Expr> last;
  for (size_t k = 0; k < depth; ++k) last.push_back(count_of(g.builder, dims[k] - Dim(1), indices.dtype()));
  return vjp_gather(g, maximum(minimum(indices, ir::call(g.builder, "stack", last)[0]), 0));
}

// --- one_hot ---
Types infer_one_hot(const OpCall& call) {
  int64_t classes = call.attrs.get<int64_t>("classes");
  if (classes < 0) call.fail("classes is ", classes, ", it must not be negative");
  Dims dims = call.in[0].dims;
  dims.insert(dims.begin() + call.axis("axis", call.in[0].rank() + 1), classes);
  return {{call.attrs.get<DType>("dtype"), dims}};
}
Loops one_hot_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType& indices = call.in[0];
  auto along = static_cast<size_t>(call.axis("axis", out[0].rank()));
  std::vector<Scalar> at = output_axes(out[0].rank());
  Scalar here = at[along];
  at.erase(at.begin() + static_cast<ptrdiff_t>(along));
  Scalar hit = cast(load(0, indices.dtype, at), DType::I64) == here;
  return map_loops(out[0].dims, select(hit, constant(out[0].dtype, 1), constant(out[0].dtype, 0)));
}

}  // namespace

int64_t index_depth(const OpCall& call, const TensorType& indices, const TensorType& x) {
  if (indices.rank() == 0) call.fail("the indices need a last axis with one entry for each axis that they address, got []");
  int64_t depth = axis_extent(call, indices.dims, indices.rank() - 1);
  if (depth > x.rank()) call.fail("the indices ", str(indices.dims), " address ", depth, " axes, ", str(x.dims), " has ", x.rank());
  return depth;
}

Rows index_rows() {
  Rows rows = {
      {.name = "check_range",
       .sig = "(indices: index; limit: shape, op: string, axis: int = 0) -> same",
       .doc = "The indices made non-negative, or an error in the name of `op` that says which one is out of range. With several limits the "
              "last "
              "axis of the indices has one entry for each. `axis` is the axis that the first limit belongs to.",
       .traits = kZeroGradient,
       .infer = infer_check_range,
       .evaluate = evaluate_check_range,
       .samples = {"([2,3] in -5..4; limit=[5], op='take')", "({{0,-1},{1,2}}; limit=[2,3], op='gather_nd')",
                   "([0,2]; limit=[1,1], op='gather_nd')", "([]; limit=[6], op='take')", "([200] in -9..8; limit=[9], op='take', axis=1)"}},
      {.name = "check_classes",
       .sig = "(labels: own; classes: shape, op: string, ignored: ints = []) -> same",
       .doc = "The labels, or an error in the name of `op` that says which one is neither a whole number in [0, classes) nor ignored.",
       .traits = kZeroGradient,
       .infer = infer_check_classes,
       .evaluate = evaluate_check_classes,
       .samples = {"({0,2,1,0}; classes=[3], op='loss') !grad", "({0,2,5}; classes=[3], op='loss', ignored=[5]) !grad",
                   "([2,3]:int32 in 0..8; classes=[9], op='loss')", "([0,2]; classes=[1], op='loss')",
                   "([200]:bool; classes=[2], op='loss')"}},
      {.name = "take",
       .sig = "(x: own, indices: index; axis: int = 0) -> same",
       .doc = "The slices of x at the indices along an axis; the axes of the indices take its place. Negative indices count from the end.",
       .infer = infer_take,
       .decompose = decompose_take,
       .vjp = vjp_take,
       .samples = {"([4,3], {0,3,-1,0})", "([3,4,2], [2,2] in -4..3; axis=1)", "([5], [])", "([5]:float32, [0])", "([2,0], {1}; axis=0)",
                   "([10,70]:float32, [9]:int32 in 0..9)", "([2,3,4]:float32, {1,-2}; axis=-1)"}},
      {.name = "take_clipped",
       .sig = "(x: own, indices: index; axis: int = 0) -> same",
       .doc = "take with indices below 0 read as 0 and indices beyond the end as the last one.",
       .infer = infer_take,
       .loops = take_loops,
       .vjp = vjp_take_clipped,
       .samples = {"([4,3], {0,3,-7,9})", "([3,4,2]:float32, [2,2] in 0..3; axis=1)", "([100]:float32, [100] in 0..99)"}},
      {.name = "take_along_axis",
       .sig = "(x: own, indices: index; axis: int = -1) -> same",
       .doc = "For each line along an axis the elements at that line's own indices; other axes broadcast.",
       .infer = infer_take_along_axis,
       .decompose = decompose_take_along_axis,
       .vjp = vjp_take_along_axis,
       .samples = {"([2,4], [2,3] in -4..3)", "([4,2], {{0,1},{-1,0}}; axis=0)", "([2,4]:float32, {{1,2}})",
                   "([1,4]:float32, [3,2] in 0..3)", "([0,3], [0,2])", "([3,100]:float32, [3,70]:int32 in 0..99)"}},
      {.name = "take_along_axis_clipped",
       .sig = "(x: own, indices: index; axis: int = -1) -> same",
       .doc = "take_along_axis with indices below 0 read as 0 and indices beyond the end as the last one.",
       .infer = infer_take_along_axis,
       .loops = take_along_axis_loops,
       .vjp = vjp_take_along_axis_clipped,
       .samples = {"([2,4], [2,3] in -1..5)", "([4,2]:float32, {{0,1}}; axis=0)", "([3,100]:float32, [3,70] in 0..99)"}},
      {.name = "gather_nd",
       .sig = "(x: own, indices: index) -> same",
       .doc = "The slices of x at tuples of indices: the last axis of the indices addresses the first axes of x.",
       .infer = infer_gather_nd,
       .decompose = decompose_gather_nd,
       .vjp = vjp_gather_nd,
       .samples = {"([3,4], {{0,1},{-1,3},{0,1}})", "([3,4], [2,1] in 0..2)", "([3,4], {1,2})", "([3,4,2]:float32, [2,2,2] in 0..2)",
                   "([3]:float32, [2,0])", "([3,2], [0,2])", "([9,70]:float32, [5,1]:int32 in 0..8)", "([], [0])"}},
      {.name = "gather_nd_clipped",
       .sig = "(x: own, indices: index) -> same",
       .doc = "gather_nd with each index moved into its range.",
       .infer = infer_gather_nd,
       .loops = gather_nd_loops,
       .vjp = vjp_gather_nd_clipped,
       .samples = {"([3,4], {{0,1},{-1,9},{0,1}})", "([3,4]:float32, [2,1] in 0..2)"}},
      {.name = "one_hot",
       .sig = "(indices: index; classes: int, axis: int = -1, dtype: dtype = float32) -> custom",
       .doc = "A new axis that is 1 at the index and 0 elsewhere; all 0 for an index that is no class.",
       .traits = kZeroGradient,
       .infer = infer_one_hot,
       .loops = one_hot_loops,
       .samples = {"([4] in 0..2; classes=3)", "([2,3] in -1..4; classes=4, axis=0)", "([]; classes=5, dtype=int32)", "([0,2]; classes=3)",
                   "([9] in 0..69; classes=70, dtype=bool)", "([2,2] in 0..2; classes=3, axis=1, dtype=float16)"}},
  };
  for (OpDef& row : scatter_rows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace tandem::ops
