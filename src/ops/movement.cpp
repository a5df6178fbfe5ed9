// Movement: the same elements in other places. Each is an index expression over the output; nothing is computed.
#include <algorithm>
#include <numeric>

#include "ops/helpers.hpp"
#include "ops/movement.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
using namespace ir;
namespace {

using Types = std::vector<TensorType>;

Types same_dtype(const OpCall& call, Dims dims) { return {{call.in[0].dtype, std::move(dims)}}; }
Scalar load0(const OpCall& call, std::vector<Scalar> index) { return load(0, call.in[0].dtype, std::move(index)); }

// --- reshape, expand_dims, squeeze ---
Dim inferred_entry(const OpCall& call, const Dims& shape, size_t at) {
  Dim known = 1, quotient, count = product(call.in[0].dims);
  for (size_t k = 0; k < shape.size(); ++k)
    if (k != at) known = known * shape[k];
  if (known.is(0)) call.fail("the entry -1 of ", str(shape), " could be anything, for the others make 0 elements");
  if (!divides_exactly(count, known, quotient))
    call.fail(str(call.in[0].dims), " with ", count, " elements does not fit into ", str(shape), ": ", count, " is not a multiple of ",
              known);
  return quotient;
}

Types infer_reshape(const OpCall& call) {
  Dims shape = call.attrs.get<Dims>("shape");
  size_t open = shape.size();
  for (size_t k = 0; k < shape.size(); ++k) {
    if (!shape[k].is_const() || shape[k].value() >= 0) continue;
    if (shape[k].value() != -1) call.fail("the shape ", str(shape), " has the negative entry ", shape[k]);
    if (open != shape.size()) call.fail("the shape ", str(shape), " has more than one entry -1");
    open = k;
  }
  if (open != shape.size()) shape[open] = inferred_entry(call, shape, open);
  Dim from = product(call.in[0].dims), to = product(shape);
  if (!(from == to)) call.fail(str(call.in[0].dims), " has ", from, " elements, ", str(shape), " has ", to, " (", from, " != ", to, ")");
  return same_dtype(call, shape);
}
Loops any_reshape_loops(const OpCall& call, std::span<const TensorType> out) { return reshape_loops(call.in[0], out[0].dims); }
std::vector<Expr> vjp_reshape(const GradCall& g) { return {g.grad().reshape(g.in[0].dims())}; }

Types infer_expand_dims(const OpCall& call) {
  const Dims& dims = call.in[0].dims;
  int rank = call.in[0].rank() + static_cast<int>(call.attrs.get<Ints>("axis").size());
  Ints axes = call.axes("axis", rank);
  Dims out;
  size_t next = 0;
  for (int64_t k = 0; k < rank; ++k) out.push_back(std::binary_search(axes.begin(), axes.end(), k) ? Dim(1) : dims[next++]);
  return same_dtype(call, out);
}

Types infer_squeeze(const OpCall& call) {
  const Dims& dims = call.in[0].dims;
  Ints axes;
  if (call.attrs.has("axis"))
    axes = call.axes("axis", call.in[0].rank());
  else
    for (size_t k = 0; k < dims.size(); ++k)
      if (dims[k].is(1)) axes.push_back(static_cast<int64_t>(k));
  for (int64_t a : axes)
    if (!dims[static_cast<size_t>(a)].is(1))
      call.fail("axis ", a, " of ", str(dims), " has size ", dims[static_cast<size_t>(a)], ", not 1");
  return same_dtype(call, reduced_dims(dims, axes, false));
}

// --- transpose and its friends ---
Ints permutation(const OpCall& call) {
  int rank = call.in[0].rank();
  Ints perm = all_axes(rank);
  if (!call.attrs.has("perm")) {
    std::reverse(perm.begin(), perm.end());
    return perm;
  }
  const Ints& given = call.attrs.get<Ints>("perm");
  call.axes("perm", rank);  // in range, no repeats
  if (static_cast<int>(given.size()) != rank)
    call.fail("perm ", str(*call.attrs.find("perm")), " has ", given.size(), " entries, ", str(call.in[0].dims), " has ", rank, " axes");
  for (size_t k = 0; k < perm.size(); ++k) perm[k] = given[k] < 0 ? given[k] + rank : given[k];
  return perm;
}
Types infer_transpose(const OpCall& call) {
  Dims dims;
  for (int64_t p : permutation(call)) dims.push_back(call.in[0].dims[static_cast<size_t>(p)]);
  return same_dtype(call, dims);
}
Loops transpose_loops(const OpCall& call, std::span<const TensorType> out) {
  std::vector<Scalar> index;
  for (int64_t from : inverse_permutation(permutation(call))) index.push_back(axis(static_cast<int>(from)));
  return map_loops(out[0].dims, load0(call, index));
}
std::vector<Expr> vjp_transpose(const GradCall& g) {
  const TensorType type = g.in[0].type();
  return {g.grad().transpose(inverse_permutation(permutation(OpCall{*g.node.op, {&type, 1}, g.node.attrs})))};
}

Types infer_moved(const OpCall& call, const Ints& perm) {
  Dims dims;
  for (int64_t p : perm) dims.push_back(call.in[0].dims[static_cast<size_t>(p)]);
  return same_dtype(call, dims);
}
Ints swap_permutation(const OpCall& call) {
  int rank = call.in[0].rank();
  Ints perm = all_axes(rank);
  std::swap(perm[static_cast<size_t>(call.axis("axis1", rank))], perm[static_cast<size_t>(call.axis("axis2", rank))]);
  return perm;
}
Ints move_permutation(const OpCall& call) {
  int rank = call.in[0].rank();
  const Ints &source = call.attrs.get<Ints>("source"), &destination = call.attrs.get<Ints>("destination");
  if (source.size() != destination.size()) call.fail("source has ", source.size(), " axes, destination has ", destination.size());
  Ints rest = other_axes(call.axes("source", rank), rank);
  call.axes("destination", rank);  // in range, no repeats
  Ints perm(static_cast<size_t>(rank), -1);
  for (size_t k = 0; k < source.size(); ++k)
    perm[static_cast<size_t>(normalize_axis(destination[k], rank, call.op.name))] = normalize_axis(source[k], rank, call.op.name);
  size_t next = 0;
  for (int64_t& p : perm)
    if (p < 0) p = rest[next++];
  return perm;
}
template <Ints (*kPermutation)(const OpCall&)> Types infer_permuted(const OpCall& call) { return infer_moved(call, kPermutation(call)); }
template <Ints (*kPermutation)(const OpCall&)>
std::vector<Expr> decompose_permuted(Builder&, const OpCall& call, std::span<const Expr> in) {
  return {in[0].transpose(kPermutation(call))};
}

// --- broadcast_to ---
Types infer_broadcast_to(const OpCall& call) {
  const Dims &from = call.in[0].dims, &to = call.attrs.get<Dims>("shape");
  bool fits = from.size() <= to.size();
  for (size_t k = 0; fits && k < from.size(); ++k) {
    const Dim& target = to[k + to.size() - from.size()];
    fits = from[k] == target || from[k].is(1);
  }
  if (!fits) call.fail(str(from), " cannot be stretched to ", str(to), "\n  hint: from the right, sizes must be equal or 1");
  return same_dtype(call, to);
}
Loops broadcast_loops(const OpCall& call, std::span<const TensorType> out) {
  const Dims& from = call.in[0].dims;
  size_t shift = out[0].dims.size() - from.size();
  std::vector<Scalar> index;
  for (size_t k = 0; k < from.size(); ++k) index.push_back(from[k].is(1) ? index_constant(0) : axis(static_cast<int>(k + shift)));
  return map_loops(out[0].dims, load0(call, index));
}
std::vector<Expr> vjp_broadcast_to(const GradCall& g) { return {g.grad().sum_to(g.in[0].dims())}; }

// --- flip, roll, tile, repeat ---
Types infer_flip(const OpCall& call) {
  call.axes("axis", call.in[0].rank());
  return {call.in[0]};
}
Loops flip_loops(const OpCall& call, std::span<const TensorType> out) {
  std::vector<Scalar> index = output_axes(call.in[0].rank());
  for (int64_t a : call.axes("axis", call.in[0].rank())) {
    auto k = static_cast<size_t>(a);
    index[k] = extent(call.in[0].dims[k] - Dim(1)) - index[k];
  }
  return map_loops(out[0].dims, load0(call, index));
}
std::vector<Expr> vjp_flip(const GradCall& g) { return {g.grad().op("flip", g.node.attrs)}; }

Types infer_roll(const OpCall& call) {
  const Ints &shift = call.attrs.get<Ints>("shift"), &axes = call.attrs.get<Ints>("axis");
  if (shift.size() != axes.size()) call.fail("shift has ", shift.size(), " entries, axis has ", axes.size());
  for (int64_t a : axes) normalize_axis(a, call.in[0].rank(), call.op.name);
  return {call.in[0]};
}
// A shift by s reads i - s, taken around the end; known sizes need no division.
Scalar rolled(const Scalar& i, const Dim& size, int64_t shift) {
  if (!size.is_const()) return floor_mod(i - floor_mod(index_constant(shift), extent(size)), extent(size));
  if (size.is(0)) return i;
  int64_t back = ((shift % size.value()) + size.value()) % size.value();
  if (back == 0) return i;
  return select(i >= index_constant(back), i - index_constant(back), i + index_constant(size.value() - back));
}
Loops roll_loops(const OpCall& call, std::span<const TensorType> out) {
  std::vector<Scalar> index = output_axes(call.in[0].rank());
  const Ints &shift = call.attrs.get<Ints>("shift"), &axes = call.attrs.get<Ints>("axis");
  for (size_t k = 0; k < axes.size(); ++k) {  // an axis may be there twice: the shifts add up
    auto a = static_cast<size_t>(normalize_axis(axes[k], call.in[0].rank(), call.op.name));
    index[a] = rolled(index[a], call.in[0].dims[a], shift[k]);
  }
  return map_loops(out[0].dims, load0(call, index));
}
std::vector<Expr> vjp_roll(const GradCall& g) {
  Ints back = g.node.attrs.get<Ints>("shift");
  for (int64_t& s : back) s = s == INT64_MIN ? s : -s;
  return {g.grad().op("roll", {{"shift", back}, {"axis", g.node.attrs.get<Ints>("axis")}})};
}

// NumPy: the shorter of shape and repeats gets ones in front.
struct Tiling {
  Dims dims;  // of x, with ones in front
  Ints repeats;
};
Tiling tiling(const Dims& dims, const Attrs& attrs) {
  Tiling t{dims, attrs.get<Ints>("repeats")};
  size_t rank = std::max(t.dims.size(), t.repeats.size());
  t.dims.insert(t.dims.begin(), rank - t.dims.size(), Dim(1));
  t.repeats.insert(t.repeats.begin(), rank - t.repeats.size(), 1);
  return t;
}
Types infer_tile(const OpCall& call) {
  Tiling t = tiling(call.in[0].dims, call.attrs);
  for (size_t k = 0; k < t.dims.size(); ++k) {
    if (t.repeats[k] < 0) call.fail("repeats ", str(*call.attrs.find("repeats")), " has the negative entry ", t.repeats[k]);
    t.dims[k] = t.dims[k] * Dim(t.repeats[k]);
  }
  return same_dtype(call, t.dims);
}
Loops tile_loops(const OpCall& call, std::span<const TensorType> out) {
  const Dims& dims = call.in[0].dims;
  size_t shift = out[0].dims.size() - dims.size();
  std::vector<Scalar> index;
  for (size_t k = 0; k < dims.size(); ++k) {
    Scalar i = axis(static_cast<int>(k + shift));
    index.push_back(dims[k] == out[0].dims[k + shift] ? i : i % extent(dims[k]));
  }
  return map_loops(out[0].dims, load0(call, index));
}
// x seen as [before, first, second, after], summed over axis 1 or 2: the gradient of copies along one axis.
Expr sum_copies(const Expr& x, size_t axis, const Dim& first, const Dim& second, int over) {
  Dims dims = x.dims();
  auto at = dims.begin() + static_cast<ptrdiff_t>(axis);
  Dims view{product(Dims(dims.begin(), at)), first, second, product(Dims(at + 1, dims.end()))};
  dims[axis] = over == 1 ? second : first;
  return x.reshape(view).sum({over}).reshape(dims);
}
std::vector<Expr> vjp_tile(const GradCall& g) {
  Tiling t = tiling(g.in[0].dims(), g.node.attrs);
  Expr sum = g.grad();
  for (size_t k = 0; k < t.dims.size(); ++k)
    if (t.repeats[k] != 1) sum = sum_copies(sum, k, t.repeats[k], t.dims[k], 1);
  return {sum.reshape(g.in[0].dims())};
}

Types infer_repeat(const OpCall& call) {
  int64_t repeats = call.attrs.get<int64_t>("repeats");
  if (repeats < 0) call.fail("repeats is ", repeats, ", it must not be negative");
  Dims dims = call.in[0].dims;
  Dim& d = dims[static_cast<size_t>(call.axis("axis", call.in[0].rank()))];
  d = d * Dim(repeats);
  return same_dtype(call, dims);
}
Loops repeat_loops(const OpCall& call, std::span<const TensorType> out) {
  std::vector<Scalar> index = output_axes(call.in[0].rank());
  Scalar& i = index[static_cast<size_t>(call.axis("axis", call.in[0].rank()))];
  i = i / index_constant(call.attrs.get<int64_t>("repeats"));
  return map_loops(out[0].dims, load0(call, index));
}
std::vector<Expr> vjp_repeat(const GradCall& g) {
  auto axis = static_cast<size_t>(grad_axis(g));
  return {sum_copies(g.grad(), axis, g.in[0].dims()[axis], g.node.attrs.get<int64_t>("repeats"), 2)};
}

// --- rot90 ---
Types infer_rot90(const OpCall& call) {
  const Ints& axes = call.attrs.get<Ints>("axes");
  Dims dims = call.in[0].dims;
  if (axes.size() != 2) call.fail("axes must name two axes, got ", str(*call.attrs.find("axes")));
  call.axes("axes", call.in[0].rank());  // in range, no repeats
  if (call.attrs.get<int64_t>("k") % 2 != 0)
    std::swap(dims[static_cast<size_t>(normalize_axis(axes[0], call.in[0].rank(), call.op.name))],
              dims[static_cast<size_t>(normalize_axis(axes[1], call.in[0].rank(), call.op.name))]);
  return same_dtype(call, dims);
}
std::vector<Expr> decompose_rot90(Builder&, const OpCall& call, std::span<const Expr> in) {
  const Expr& x = in[0];
  const Ints& axes = call.attrs.get<Ints>("axes");
  int64_t a = normalize_axis(axes[0], x.rank(), call.op.name), b = normalize_axis(axes[1], x.rank(), call.op.name);
  int64_t turns = ((call.attrs.get<int64_t>("k") % 4) + 4) % 4;
  Attrs flip_b{{"axis", Ints{b}}}, swap{{"axis1", a}, {"axis2", b}};
  if (turns == 0) return {x};
  if (turns == 1) return {x.op("flip", flip_b).op("swapaxes", swap)};
  if (turns == 2) return {x.op("flip", {{"axis", Ints{a, b}}})};
  return {x.op("swapaxes", swap).op("flip", flip_b)};
}

}  // namespace

Rows movement_rows() {
  Rows rows = {
      {.name = "reshape",
       .sig = "(x: own; shape: shape) -> same",
       .doc = "The same elements in row-major order under another shape; one entry may be -1 and is then whatever is left.",
       .traits = kView,
       .infer = infer_reshape,
       .loops = any_reshape_loops,
       .vjp = vjp_reshape,
       .samples = {"([2,3]; shape=[3,2])", "([2,3,4]; shape=[2,-1])", "([]; shape=[1,1])", "([0,3]; shape=[3,0])", "([6]; shape=[-1,2])",
                   "([10,13]:float32; shape=[13,10])", "([2,3,2,3,2]:float32; shape=[6,2,6])", "([4,1,6]:float32; shape=[2,2,3,2,1])"}},
      {.name = "expand_dims",
       .sig = "(x: own; axis: ints) -> same",
       .doc = "Adds axes of size 1 at the given places of the result.",
       .traits = kView,
       .infer = infer_expand_dims,
       .loops = any_reshape_loops,
       .vjp = vjp_reshape,
       .samples = {"([2,3]; axis=[1])", "([2,3]; axis=[0,-1])", "([]; axis=[0])", "([0,3]; axis=[2])", "([100]:float32; axis=[0])"}},
      {.name = "squeeze",
       .sig = "(x: own; axis: ints? = none) -> same",
       .doc = "Removes axes of size 1: the given ones, or all.",
       .traits = kView,
       .infer = infer_squeeze,
       .loops = any_reshape_loops,
       .vjp = vjp_reshape,
       .samples = {"([1,3,1])", "([1,3,1]; axis=[-1])", "([])", "([0,1,3]; axis=[1])", "([1,100]:float32)"}},
      {.name = "transpose",
       .sig = "(x: own; perm: ints? = none) -> same",
       .doc = "Axis k of the result is axis perm[k] of x; without perm the order is reversed.",
       .infer = infer_transpose,
       .loops = transpose_loops,
       .vjp = vjp_transpose,
       .samples = {"([2,3])", "([2,3,4]; perm=[1,2,0])", "([2,3,4]; perm=[0,-1,1])", "([])", "([0,3])", "([70,65]:float32)",
                   "([2,3,2,3,2]; perm=[4,0,3,1,2])"}},
      {.name = "swapaxes",
       .sig = "(x: own; axis1: int, axis2: int) -> same",
       .doc = "Exchanges two axes.",
       .infer = infer_permuted<swap_permutation>,
       .decompose = decompose_permuted<swap_permutation>,
       .samples = {"([2,3]; axis1=0, axis2=1)", "([2,3,4]:float32; axis1=-1, axis2=0)", "([0,3]; axis1=0, axis2=0)"}},
      {.name = "moveaxis",
       .sig = "(x: own; source: ints, destination: ints) -> same",
       .doc = "Moves axes to other places; the others keep their order.",
       .infer = infer_permuted<move_permutation>,
       .decompose = decompose_permuted<move_permutation>,
       .samples = {"([2,3]; source=0, destination=1)", "([2,3,4]:float32; source=[0,1], destination=[-1,0])",
                   "([2,3,2,3,2]:float32; source=[4,2], destination=[0,1])", "([0,3]; source=[], destination=[])"}},
      {.name = "broadcast_to",
       .sig = "(x: own; shape: shape) -> same",
       .doc = "Repeats axes of size 1, and adds axes in front, so that the result has the given shape.",
       .infer = infer_broadcast_to,
       .loops = broadcast_loops,
       .vjp = vjp_broadcast_to,
       .samples = {"([3]; shape=[2,3])", "([2,1,3]; shape=[2,4,3])", "([]; shape=[2,2])", "([1,3]; shape=[0,3])", "([]; shape=[])",
                   "([1,70]:float32; shape=[3,70])", "([3,1,2]:float32; shape=[2,2,3,3,2])"}},
      {.name = "flip",
       .sig = "(x: own; axis: ints? = none) -> same",
       .doc = "Reverses the order along some axes or all.",
       .infer = infer_flip,
       .loops = flip_loops,
       .vjp = vjp_flip,
       .samples = {"([2,3])", "([2,3,4]; axis=[-1])", "([])", "([0,3]; axis=[0])", "([100]:float32)", "([2,3,2,3,2]; axis=[1,3])"}},
      {.name = "roll",
       .sig = "(x: own; shift: ints, axis: ints) -> same",
       .doc = "Moves elements along axes; what leaves at one end comes in at the other.",
       .infer = infer_roll,
       .loops = roll_loops,
       .vjp = vjp_roll,
       .samples = {"([5]; shift=[2], axis=[0])", "([2,5]; shift=[-8,1], axis=[1,0])", "([2,5]; shift=[1,1], axis=[-1,-1])",
                   "([0,3]; shift=[1], axis=[0])", "([]; shift=[], axis=[])", "([100]:float32; shift=[33], axis=[0])"}},
      {.name = "tile",
       .sig = "(x: own; repeats: ints) -> same",
       .doc = "Copies of the whole tensor side by side, so many along each axis; a shorter list counts from the last axis.",
       .infer = infer_tile,
       .loops = tile_loops,
       .vjp = vjp_tile,
       .samples = {"([2,3]; repeats=[2,2])", "([3]; repeats=[2,1,3])", "([2,3]; repeats=[2])", "([]; repeats=[3])",
                   "([0,3]; repeats=[2,2])", "([2,3]; repeats=[0,1])", "([50]:float32; repeats=[3])",
                   "([2,1,2,1,2]:float32; repeats=[1,2,1,2,2])"}},
      {.name = "repeat",
       .sig = "(x: own; repeats: int, axis: int) -> same",
       .doc = "Each element so many times one after the other along an axis.",
       .infer = infer_repeat,
       .loops = repeat_loops,
       .vjp = vjp_repeat,
       .samples = {"([2,3]; repeats=2, axis=1)", "([2,3]; repeats=3, axis=-2)", "([0,3]; repeats=2, axis=0)", "([2,3]; repeats=0, axis=1)",
                   "([50]:float32; repeats=3, axis=0)", "([2,2,2,2,2]:float32; repeats=2, axis=2)"}},
      {.name = "rot90",
       .sig = "(x: own; k: int = 1, axes: ints = [0,1]) -> same",
       .doc = "Turns the plane of two axes by k quarters, from the first axis towards the second.",
       .infer = infer_rot90,
       .decompose = decompose_rot90,
       .samples = {"([2,3])", "([2,3]; k=2)", "([2,3,4]:float32; k=-1, axes=[1,-1])", "([0,3]; k=3)", "([2,3]; k=8)"}},
  };
  for (auto more : {joining_rows, padding_rows, diagonal_rows})
    for (OpDef& row : more()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace tandem::ops
