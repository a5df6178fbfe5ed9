// Diagonals: taken out of the plane of two axes, put into zeros, summed.
#include <algorithm>

#include "ops/helpers.hpp"
#include "ops/movement.hpp"

namespace tandem::ops {
using namespace ir;
namespace {

using Types = std::vector<TensorType>;

struct Plane {
  size_t row_axis, column_axis;
  int64_t row_begin, column_begin;  // where the diagonal begins
  Dim length;
};

Plane plane_of(const OpCall& call) {
  const TensorType& x = call.in[0];
  if (x.rank() < 2) call.fail("at least two axes are needed, got ", str(x.dims));
  int64_t a = call.axis("axis1", x.rank()), b = call.axis("axis2", x.rank()), offset = diagonal_attr(call, "offset");
  if (a == b) call.fail("axis1 and axis2 are both ", a, ", they must differ");
  Plane p{static_cast<size_t>(a), static_cast<size_t>(b), std::max<int64_t>(-offset, 0), std::max<int64_t>(offset, 0), 0};
  Dim rows = x.dims[p.row_axis] - Dim(p.row_begin), columns = x.dims[p.column_axis] - Dim(p.column_begin);
  p.length = rows == columns ? rows : min(rows, columns);
  bool may_be_negative = offset != 0 || p.length.is_const();
  if (may_be_negative) p.length = max(p.length, 0);
  return p;
}

// The other axes, then the diagonal.
Types infer_diagonal(const OpCall& call) {
  Plane p = plane_of(call);
  Dims dims;
  for (size_t k = 0; k < call.in[0].dims.size(); ++k)
    if (k != p.row_axis && k != p.column_axis) dims.push_back(call.in[0].dims[k]);
  dims.push_back(p.length);
  return {{call.in[0].dtype, dims}};
}
Loops diagonal_loops(const OpCall& call, std::span<const TensorType> out) {
  Plane p = plane_of(call);
  std::vector<Scalar> index;
  Scalar along = axis(out[0].rank() - 1);
  int next = 0;
  for (size_t k = 0; k < call.in[0].dims.size(); ++k) {
    if (k == p.row_axis)
      index.push_back(along + index_constant(p.row_begin));
    else if (k == p.column_axis)
      index.push_back(along + index_constant(p.column_begin));
    else
      index.push_back(axis(next++));
  }
  return map_loops(out[0].dims, load(0, call.in[0].dtype, index));
}
std::vector<Expr> vjp_diagonal(const GradCall& g) {
  const TensorType type = g.in[0].type();
  Plane p = plane_of(OpCall{*g.node.op, {&type, 1}, g.node.attrs});
  Expr planes = g.grad().op("embed_diagonal", {{"shape", Dims{type.dims[p.row_axis], type.dims[p.column_axis]}},
                                               {"offset", g.node.attrs.get<int64_t>("offset")}});
  Ints order;  // of the axes of x in the gradient: others, row, column
  for (size_t k = 0; k < type.dims.size(); ++k)
    if (k != p.row_axis && k != p.column_axis) order.push_back(static_cast<int64_t>(k));
  order.push_back(static_cast<int64_t>(p.row_axis));
  order.push_back(static_cast<int64_t>(p.column_axis));
  return {planes.transpose(inverse_permutation(order))};
}

Types infer_embed(const OpCall& call) {
  const TensorType& x = call.in[0];
  const Dims& shape = dims_attr(call, "shape", 2);
  if (x.rank() == 0) call.fail("at least one axis is needed, got []");
  Dims dims(x.dims.begin(), x.dims.end() - 1);
  dims.insert(dims.end(), shape.begin(), shape.end());
  return {{x.dtype, dims}};
}
Loops embed_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType& x = call.in[0];
  int64_t offset = diagonal_attr(call, "offset");
  int rank = out[0].rank();
  Scalar row = axis(rank - 2), column = axis(rank - 1);
  std::vector<Scalar> index = output_axes(rank - 2);
  Scalar along = offset >= 0 ? row : column;
  index.push_back(along);
  Scalar valid = (column == row + index_constant(offset)) & (along < extent(x.dims.back()));
  return map_loops(out[0].dims, load_if(0, x.dtype, index, valid, constant(x.dtype, 0)));
}
std::vector<Expr> vjp_embed(const GradCall& g) {
  // The diagonal may be longer than what was put there, or shorter.
  Expr diagonal = g.grad().op("diagonal", {{"offset", g.node.attrs.get<int64_t>("offset")}, {"axis1", -2}, {"axis2", -1}});
  const Dim &have = diagonal.dims().back(), &want = g.in[0].dims().back();
  if (have == want) return {diagonal};
  Dims low(diagonal.dims().size(), 0), high = low;
  high.back() = want - have;
  return {diagonal.op("pad", {diagonal.number(0)}, {{"low", low}, {"high", high}})};
}

// --- diag, trace ---
Types infer_diag(const OpCall& call) {
  const TensorType& x = call.in[0];
  int64_t k = diagonal_attr(call, "k");
  if (x.rank() != 1 && x.rank() != 2) call.fail("one or two axes are needed, got ", str(x.dims));
  if (x.rank() == 1) {
    Dim size = x.dims[0] + Dim(std::abs(k));
    return {{x.dtype, {size, size}}};
  }
  Attrs attrs{{"offset", k}, {"axis1", int64_t{0}}, {"axis2", int64_t{1}}};
  return infer_diagonal(OpCall{call.op, call.in, attrs});
}
std::vector<Expr> decompose_diag(Builder&, const OpCall& call, std::span<const Expr> in) {
  int64_t k = diagonal_attr(call, "k");
  if (in[0].rank() == 2) return {in[0].op("diagonal", {{"offset", k}})};
  return {in[0].op("embed_diagonal", {{"shape", infer_diag(call)[0].dims}, {"offset", k}})};
}

Types infer_trace(const OpCall& call) {
  Types types = infer_diagonal(call);
  types[0].dims.pop_back();
  types[0].dtype = sum_type(types[0].dtype);
  return types;
}
std::vector<Expr> decompose_trace(Builder&, const OpCall& call, std::span<const Expr> in) {
  Expr diagonal = in[0].op("diagonal", call.attrs);
  return {diagonal.op("sum", {{"axis", Ints{-1}}})};
}

}  // namespace

Rows diagonal_rows() {
  return {
      {.name = "diagonal",
       .sig = "(x: own; offset: int = 0, axis1: int = 0, axis2: int = 1) -> same",
       .doc = "The diagonals of the planes of two axes, as a new last axis; offset is to the right (or, negative, below).",
       .infer = infer_diagonal,
       .loops = diagonal_loops,
       .vjp = vjp_diagonal,
       .samples = {"([3,4])", "([3,4]; offset=2)", "([4,3]; offset=-1)", "([3,2,4]:float32; axis1=2, axis2=0)", "([2,3]; offset=5)",
                   "([0,3])", "([70,70]:float32)", "([2,3,2,3,2]:float32; axis1=1, axis2=-2)"}},
      {.name = "embed_diagonal",
       .sig = "(x: own; shape: shape, offset: int = 0) -> same",
       .doc = "Zeros of the given two sizes with the last axis of x on a diagonal.",
       .infer = infer_embed,
       .loops = embed_loops,
       .vjp = vjp_embed,
       .samples = {"([3]; shape=[3,3])", "([2,3]; shape=[3,5], offset=2)", "([2,3]; shape=[5,4], offset=-1)", "([3]; shape=[2,2])",
                   "([0]; shape=[2,3])", "([70]:float32; shape=[70,70])"}},
      {.name = "diag",
       .sig = "(x: own; k: int = 0) -> same",
       .doc = "A vector becomes a matrix with it on the k-th diagonal; a matrix gives that diagonal.",
       .infer = infer_diag,
       .decompose = decompose_diag,
       .samples = {"([3])", "([3]; k=1)", "([2]; k=-2)", "([3,4])", "([3,4]; k=-1)", "([0])"}},
      {.name = "trace",
       .sig = "(x: any; offset: int = 0, axis1: int = 0, axis2: int = 1) -> custom",
       .doc = "The sum of the diagonal of the plane of two axes; the same types as sum.",
       .infer = infer_trace,
       .decompose = decompose_trace,
       .samples = {"([3,4])", "([3,4]; offset=1)", "([3,2,4]:float32; axis1=2, axis2=0)", "([0,3])"}},
  };
}

}  // namespace tandem::ops
