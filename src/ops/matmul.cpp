// Products of matrices: matmul itself, and the products of NumPy that are made of it.
#include <algorithm>

#include "ops/helpers.hpp"
#include "ops/table.hpp"

namespace tandem::ops {

using namespace ir;

namespace {

// A matmul's operands taken apart: batch axes, then rows x inner and inner x columns. A 1-D operand has no rows or no columns.
struct MatmulDims {
  Dims x_batch, y_batch, batch;
  Dim rows, inner, y_inner, columns;
  bool has_rows, has_columns;
};

Dims leading(const Dims& dims, size_t dropped) {
  return {dims.begin(), dims.end() - static_cast<std::ptrdiff_t>(std::min(dropped, dims.size()))};
}

MatmulDims matmul_dims(const OpCall& call) {
  const Dims &x = call.in[0].dims, &y = call.in[1].dims;
  if (x.empty() || y.empty())
    call.fail("needs operands with at least one axis, lhs ", str(x), " x rhs ", str(y), "\n  hint: use multiply for a single number");
  MatmulDims d{leading(x, 2), leading(y, 2), {}, {}, {}, {}, {}, x.size() > 1, y.size() > 1};
  const bool transpose_x = call.attrs.get<bool>("transpose_x"), transpose_y = call.attrs.get<bool>("transpose_y");
  const auto last = [](const Dims& dims, size_t from_end) { return dims[dims.size() - from_end]; };
  d.inner = last(x, d.has_rows && transpose_x ? 2 : 1);
  d.y_inner = last(y, d.has_columns && !transpose_y ? 2 : 1);
  if (d.has_rows) d.rows = last(x, transpose_x ? 1 : 2);
  if (d.has_columns) d.columns = last(y, transpose_y ? 2 : 1);
  return d;
}

std::vector<TensorType> infer_matmul(const OpCall& call) {
  MatmulDims d = matmul_dims(call);
  const std::string lhs = str(call.in[0].dims), rhs = str(call.in[1].dims);
  if (!(d.inner == d.y_inner)) call.fail("inner dimensions differ, lhs ", lhs, " x rhs ", rhs, " (", d.inner, " != ", d.y_inner, ")");
  Dims out;
  try {
    out = broadcast(d.x_batch, d.y_batch);
  } catch (const UserError&) {
    call.fail("batch axes do not broadcast, lhs ", lhs, " x rhs ", rhs, " (", str(d.x_batch), " and ", str(d.y_batch), ")");
  }
  if (d.has_rows) out.push_back(d.rows);
  if (d.has_columns) out.push_back(d.columns);
  return {{product_dtype(call), out}};
}

// The index of an operand's batch axes at a point of the output, whose batch axes come first.
std::vector<Scalar> batch_index(const Dims& batch, const Dims& out, size_t out_batch) {
  std::vector<Scalar> index;
  const size_t shift = out_batch - batch.size();
  for (size_t i = 0; i < batch.size(); ++i)
    index.push_back(batch[i] == out[shift + i] ? axis(static_cast<int>(shift + i)) : index_constant(0));
  return index;
}

Loops matmul_loops(const OpCall& call, std::span<const TensorType> out) {
  const MatmulDims d = matmul_dims(call);
  const DType t = call.in[0].dtype, result = out[0].dtype;
  const DType sum_type = product_sum_type(t, result);
  const size_t rank = out[0].dims.size();
  const size_t batch = rank - (d.has_rows ? 1 : 0) - (d.has_columns ? 1 : 0);
  const Scalar inner = axis(static_cast<int>(rank));
  const auto operand = [&](int k, const Dims& batch_dims, bool matrix, int free_axis, bool inner_first) {
    std::vector<Scalar> index = batch_index(batch_dims, out[0].dims, batch);
    index.push_back(inner);
    if (matrix) index.insert(inner_first ? index.end() : index.end() - 1, axis(free_axis));
    return cast(load(k, t, index), sum_type);
  };
  const Scalar x = operand(0, d.x_batch, d.has_rows, static_cast<int>(batch), call.attrs.get<bool>("transpose_x"));
  const Scalar y = operand(1, d.y_batch, d.has_columns, static_cast<int>(rank) - 1, !call.attrs.get<bool>("transpose_y"));
  return {.extents = out[0].dims, .reduction = fold(Fold::Sum, {d.inner}, x * y), .results = {cast(acc(0, sum_type), result)}};
}

Expr matmul(const Expr& x, const Expr& y, bool transpose_x = false, bool transpose_y = false) {
  return x.op("matmul", {y}, {{"transpose_x", transpose_x}, {"transpose_y", transpose_y}});
}

// [rows, last]: everything but the last axis becomes one.
Expr flatten_rows(const Expr& x) { return x.rank() == 2 ? x : x.reshape({product(leading(x.dims(), 1)), x.dims().back()}); }

std::vector<Expr> matmul_vjp(const GradCall& call) {
  const Expr g0 = call.grad();
  const DType t = call.in[0].dtype();
  bool tx = call.node.attrs.get<bool>("transpose_x"), ty = call.node.attrs.get<bool>("transpose_y");
  Expr x = call.in[0].cast(g0.dtype()), y = call.in[1].cast(g0.dtype()), g = g0;
  // A 1-D operand is a matrix of one row or one column.
  Dims g_dims = g.dims();
  if (y.rank() == 1) {
    y = y.reshape({y.dims()[0], 1});
    g_dims.push_back(1);
    ty = false;
  }
  if (x.rank() == 1) {
    x = x.reshape({1, x.dims()[0]});
    g_dims.insert(g_dims.end() - 1, Dim(1));
    tx = false;
  }
  g = g.reshape(g_dims);
  Dims x_dims = x.dims(), y_dims = y.dims();
  // One matrix for the whole batch (a dense layer): its gradient is one product over all rows instead of a sum of products.
  if (x.rank() > 2 && y.rank() == 2 && !tx) {
    x = flatten_rows(x);
    g = flatten_rows(g);
  }
  std::vector<Expr> grads(2);
  if (call.needed[0]) {
    const Expr gx = tx ? matmul(y, g, ty, true) : matmul(g, y, false, !ty);
    const Expr full = gx.rank() < static_cast<int>(x_dims.size()) ? gx.reshape(x_dims) : gx.sum_to(x_dims);
    grads[0] = full.reshape(call.in[0].dims()).cast(t);
  }
  if (call.needed[1]) {
    const Expr gy = ty ? matmul(g, x, true, tx) : matmul(x, g, !tx, false);
    grads[1] = gy.sum_to(y_dims).reshape(call.in[1].dims()).cast(t);
  }
  return grads;
}

// --- products made of it --------------------------------------------------------------------------------------------------------

// x with the given axes last (in that order), as [free, contracted]; y likewise as [contracted, free].
struct Contraction {
  Ints x_axes, y_axes;  // normalised
  Dims out;
};

Dims without(const Dims& dims, const Ints& axes) {
  Dims kept;
  for (size_t i = 0; i < dims.size(); ++i)
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end()) kept.push_back(dims[i]);
  return kept;
}

Dims picked(const Dims& dims, const Ints& axes) {
  Dims out;
  for (int64_t a : axes) out.push_back(dims[static_cast<size_t>(a)]);
  return out;
}

Ints normalized(const OpCall& call, const Ints& axes, int rank, std::string_view what) {
  Ints out;
  for (int64_t a : axes) {
    out.push_back(normalize_axis(a, rank, cat(call.op.name, ": ", what)));
    if (std::count(out.begin(), out.end(), out.back()) > 1) call.fail(what, " names axis ", out.back(), " twice");
  }
  return out;
}

Contraction contraction(const OpCall& call, const Ints& x_axes, const Ints& y_axes) {
  const Dims &x = call.in[0].dims, &y = call.in[1].dims;
  Contraction c{
      normalized(call, x_axes, static_cast<int>(x.size()), "x_axes"), normalized(call, y_axes, static_cast<int>(y.size()), "y_axes"), {}};
  if (c.x_axes.size() != c.y_axes.size()) call.fail("as many axes of both are needed, got ", c.x_axes.size(), " and ", c.y_axes.size());
  for (size_t i = 0; i < c.x_axes.size(); ++i) {
    const Dim &a = x[static_cast<size_t>(c.x_axes[i])], &b = y[static_cast<size_t>(c.y_axes[i])];
    if (!(a == b))
      call.fail("axis ", c.x_axes[i], " of ", str(x), " and axis ", c.y_axes[i], " of ", str(y), " differ (", a, " != ", b, ")");
  }
  c.out = without(x, c.x_axes);
  const Dims rest = without(y, c.y_axes);
  c.out.insert(c.out.end(), rest.begin(), rest.end());
  return c;
}

Contraction tensordot_contraction(const OpCall& call) {
  const bool x_given = call.attrs.has("x_axes"), y_given = call.attrs.has("y_axes");
  if (x_given != y_given) call.fail("x_axes and y_axes come together");
  if (x_given) return contraction(call, call.attrs.get<Ints>("x_axes"), call.attrs.get<Ints>("y_axes"));
  const int64_t n = call.attrs.get<int64_t>("axes");
  const int64_t x_rank = call.in[0].rank(), y_rank = call.in[1].rank();
  if (n < 0 || n > x_rank || n > y_rank) call.fail("cannot contract ", n, " axes of ", str(call.in[0].dims), " and ", str(call.in[1].dims));
  Ints x_axes, y_axes;
  for (int64_t i = 0; i < n; ++i) {
    x_axes.push_back(x_rank - n + i);
    y_axes.push_back(i);
  }
  return contraction(call, x_axes, y_axes);
}

// NumPy's dot: the last axis of x with the last but one of y. A single number multiplies.
Contraction dot_contraction(const OpCall& call) {
  if (call.in[0].rank() == 0 || call.in[1].rank() == 0) return contraction(call, {}, {});
  return contraction(call, {-1}, {call.in[1].rank() > 1 ? -2 : -1});
}

Contraction inner_contraction(const OpCall& call) {
  if (call.in[0].rank() == 0 || call.in[1].rank() == 0) return contraction(call, {}, {});
  return contraction(call, {-1}, {-1});
}

template <Contraction (*find)(const OpCall&)> std::vector<TensorType> infer_contraction(const OpCall& call) {
  return {{call.in[0].dtype, find(call).out}};
}

// The axes not in `axes`, then `axes` (or before, when `first`).
Ints moved(int rank, const Ints& axes, bool first) {
  Ints perm = first ? axes : Ints{};
  for (int64_t i = 0; i < rank; ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) perm.push_back(i);
  if (!first) perm.insert(perm.end(), axes.begin(), axes.end());
  return perm;
}

template <Contraction (*find)(const OpCall&)> std::vector<Expr> expand_contraction(Builder&, const OpCall& call, std::span<const Expr> in) {
  const Contraction c = find(call);
  const Expr &x = in[0], &y = in[1];
  const Dims x_free = without(x.dims(), c.x_axes), y_free = without(y.dims(), c.y_axes);
  if (c.x_axes.empty()) {  // an outer product: nothing to sum
    Dims x_dims = x_free;
    x_dims.insert(x_dims.end(), y_free.size(), Dim(1));
    return {x.reshape(x_dims) * y};
  }
  const Dim inner = product(picked(x.dims(), c.x_axes));
  const Expr a = x.transpose(moved(x.rank(), c.x_axes, false)).reshape({product(x_free), inner});
  const Expr b = y.transpose(moved(y.rank(), c.y_axes, true)).reshape({inner, product(y_free)});
  return {matmul(a, b).reshape(c.out)};
}

Expr flat(const Expr& x) { return x.reshape({product(x.dims())}); }

std::vector<TensorType> infer_vdot(const OpCall& call) {
  const Dim x = product(call.in[0].dims), y = product(call.in[1].dims);
  if (!(x == y)) call.fail("sizes differ, lhs ", str(call.in[0].dims), " x rhs ", str(call.in[1].dims), " (", x, " != ", y, ")");
  return {{call.in[0].dtype, {}}};
}

std::vector<TensorType> infer_outer(const OpCall& call) {
  return {{call.in[0].dtype, {product(call.in[0].dims), product(call.in[1].dims)}}};
}

// Both shapes with as many axes as the longer one: leading ones.
std::pair<Dims, Dims> aligned(const Dims& x, const Dims& y) {
  Dims a = x, b = y;
  a.insert(a.begin(), std::max(x.size(), y.size()) - x.size(), Dim(1));
  b.insert(b.begin(), a.size() - y.size(), Dim(1));
  return {a, b};
}

std::vector<TensorType> infer_kron(const OpCall& call) {
  const auto [a, b] = aligned(call.in[0].dims, call.in[1].dims);
  if (2 * a.size() > static_cast<size_t>(kMaxRank)) call.fail("takes at most ", kMaxRank / 2, " axes, got ", a.size());
  Dims out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back(a[i] * b[i]);
  return {{call.in[0].dtype, out}};
}

std::vector<Expr> expand_kron(Builder&, const OpCall& call, std::span<const Expr> in) {
  const auto [a, b] = aligned(in[0].dims(), in[1].dims());
  Dims x_dims, y_dims;
  for (size_t i = 0; i < a.size(); ++i) {
    x_dims.insert(x_dims.end(), {a[i], Dim(1)});
    y_dims.insert(y_dims.end(), {Dim(1), b[i]});
  }
  return {(in[0].reshape(x_dims) * in[1].reshape(y_dims)).reshape(infer_kron(call)[0].dims)};
}

}  // namespace

Rows matmul_rows() {
  return {
      {.name = "matmul",
       .sig = "(x: number, y: number; transpose_x: bool = false, transpose_y: bool = false, dtype: dtype? = none) -> custom",
       .doc =
           "The matrix product over the last two axes, with the batch axes broadcast; a 1-D operand is a row on the left and a column on "
           "the right. `dtype` widens the result, so that int8 products may be summed in int32.",
       .traits = kProduct,
       .infer = infer_matmul,
       .loops = matmul_loops,
       .vjp = matmul_vjp,
       .samples = {"([3,4], [4,5])",
                   "([4,3], [4,5]; transpose_x=true)",
                   "([3,4], [5,4]; transpose_y=true)",
                   "([4,3], [5,4]; transpose_x=true, transpose_y=true)",
                   "([4], [4])",
                   "([4], [4,3])",
                   "([2,3,4], [4])",
                   "([4], [2,4,3])",
                   "([2,3,4], [4,5])",
                   "([2,1,3,4], [5,4,2])",
                   "([3,4], [2,4,2])",
                   "([2,4,3], [2,5,4]; transpose_x=true, transpose_y=true)",
                   "([2,2,2,3,4], [1,2,1,4,3])",
                   "([0,3], [3,2])",
                   "([2,0], [0,3])",
                   "([2,3,0], [0,2])",
                   "([3,4]:int8, [4,2]:int8; dtype=int32)",
                   "([3,4]:float16, [4,2]:float16; dtype=float32)",
                   "([17,70] in -1..1, [70,67] in -1..1)",
                   "({{1,nan,2},{0,inf,1},{-inf,1,0}}, {{1,0},{0,2},{3,1}}) !grad",
                   "([3,8]:int32 special, [8,4]:int32 special)"}},
      {.name = "dot",
       .sig = "(x: number, y: number) -> same",
       .doc = "NumPy's dot: the sum of products over the last axis of x and the last but one of y; a single number multiplies.",
       .infer = infer_contraction<dot_contraction>,
       .decompose = expand_contraction<dot_contraction>,
       .samples = {"([4], [4])", "([3,4], [4,5])", "([2,3,4], [5,4,2])", "([], [3,2])", "([3], [])", "([2,3,4], [4])", "([0,3], [3,2])"}},
      {.name = "vdot",
       .sig = "(x: number, y: number) -> same",
       .doc = "The sum of the products of all elements of x and y, taken in order whatever their shapes.",
       .infer = infer_vdot,
       .decompose = [](Builder&, const OpCall&, std::span<const Expr> in) { return std::vector<Expr>{matmul(flat(in[0]), flat(in[1]))}; },
       .samples = {"([4], [4])", "([2,3], [3,2])", "([], [])", "([0,3], [3,0])", "([10,13], [130])"}},
      {.name = "inner",
       .sig = "(x: number, y: number) -> same",
       .doc = "The sum of products over the last axes of x and y; a single number multiplies.",
       .infer = infer_contraction<inner_contraction>,
       .decompose = expand_contraction<inner_contraction>,
       .samples = {"([4], [4])", "([3,4], [5,4])", "([2,3,4], [4])", "([], [3])", "([2,1,3], [2,2,3])", "([0], [0])", "([2,0], [3,0])"}},
      {.name = "outer",
       .sig = "(x: number, y: number) -> same",
       .doc = "Every element of x times every element of y, as a matrix of one row an element of x.",
       .infer = infer_outer,
       .decompose = [](Builder&, const OpCall&,
                       std::span<const Expr> in) { return std::vector<Expr>{in[0].reshape({product(in[0].dims()), 1}) * flat(in[1])}; },
       .samples = {"([3], [4])", "([2,3], [4,2])", "([], [3])", "([0], [3])", "([9], [70])"}},
      {.name = "tensordot",
       .sig = "(x: number, y: number; axes: int = 2, x_axes: ints? = none, y_axes: ints? = none) -> same",
       .doc = "The sum of products over the last `axes` axes of x and the first ones of y, or over the pairs that x_axes and y_axes name.",
       .infer = infer_contraction<tensordot_contraction>,
       .decompose = expand_contraction<tensordot_contraction>,
       .samples = {"([2,3,4], [3,4,5])", "([3,4], [4,5]; axes=1)", "([2,3], [4]; axes=0)", "([3,4,5], [4,3,2]; x_axes=[1,0], y_axes=[0,1])",
                   "([2,3,4], [5,4,2]; x_axes=[-1,0], y_axes=[1,-1])", "([2,2,3,2,4], [4,3,2]; x_axes=[4,2], y_axes=[0,1])",
                   "([2,0], [0,3]; axes=1)"}},
      {.name = "kron",
       .sig = "(x: number, y: number) -> same",
       .doc = "The Kronecker product: each element of x replaced by itself times y.",
       .infer = infer_kron,
       .decompose = expand_kron,
       .samples = {"([2,3], [4,2])", "([3], [2,2])", "([], [3])", "([0,2], [3,1])", "([2,1,3], [1,2,2])"}},
  };
}

}  // namespace tandem::ops
