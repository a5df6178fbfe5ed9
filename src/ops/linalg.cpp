// Linear algebra on stacks of matrices: the last two axes are a matrix, the others are a batch. The factorisations run on the host in
// float64 and are rounded once; the rest is composed of them. What has no answer gives NaN or infinities and never an error: the
// Cholesky factor of a matrix that is not positive definite, the solution of a singular system, anything of a matrix that holds NaN.
#include "ops/linalg.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/half.hpp"
#include "ops/factorize.hpp"
#include "ops/helpers.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
using namespace ir;

namespace {

using Types = std::vector<TensorType>;

// --- inference -------------------------------------------------------------------------------------------------------------

const Dim& rows_of(const TensorType& t) { return t.dims[t.dims.size() - 2]; }
const Dim& columns_of(const TensorType& t) { return t.dims[t.dims.size() - 1]; }

void check_type(const OpCall& call, const TensorType& x) {
  if (x.dtype != DType::F32 && x.dtype != DType::F64) call.fail("takes float32 and float64, got ", x, "\n  hint: cast to float32 first");
}
void check_matrix(const OpCall& call, const TensorType& x) {
  check_type(call, x);
  if (x.rank() < 2) call.fail("takes matrices (the last two axes of at least two), got ", x);
}
void check_square(const OpCall& call, const TensorType& x) {
  check_matrix(call, x);
  if (!(rows_of(x) == columns_of(x))) call.fail("the matrix must be square, got ", x, " (", rows_of(x), " != ", columns_of(x), ")");
}

// x with its last two axes replaced.
TensorType with_matrix(TensorType x, Dims last) {
  x.dims.resize(x.dims.size() - 2);
  x.dims.insert(x.dims.end(), last.begin(), last.end());
  return x;
}
Dim smaller(const Dim& a, const Dim& b) { return a == b ? a : min(a, b); }

Types infer_square(const OpCall& call) {
  check_square(call, call.in[0]);
  return {call.in[0]};
}

Types infer_triangular_solve(const OpCall& call) {
  const TensorType &a = call.in[0], &b = call.in[1];
  check_square(call, a);
  check_matrix(call, b);
  if (!(rows_of(a) == rows_of(b))) call.fail("a is ", a, ", b is ", b, ": the rows differ (", rows_of(a), " != ", rows_of(b), ")");
  if (!(with_matrix(a, {}) == with_matrix(b, {})))
    call.fail("a is ", a, ", b is ", b, ": the leading axes differ\n  hint: broadcast_to makes them equal");
  return {b};
}

Types infer_lu(const OpCall& call) {
  check_matrix(call, call.in[0]);
  const TensorType& x = call.in[0];
  require_int32(call, rows_of(x));
  TensorType pivots = with_matrix(x, {smaller(rows_of(x), columns_of(x))}), permutation = with_matrix(x, {rows_of(x)});
  pivots.dtype = permutation.dtype = DType::I32;
  return {x, pivots, permutation};
}

bool is_complete(const OpCall& call) {
  const auto& mode = call.attrs.get<std::string>("mode");
  if (mode != "reduced" && mode != "complete") call.fail("mode must be 'reduced' or 'complete', it is '", mode, "'");
  return mode == "complete";
}
Types infer_qr(const OpCall& call) {
  check_matrix(call, call.in[0]);
  const TensorType& x = call.in[0];
  const Dim k = is_complete(call) ? rows_of(x) : smaller(rows_of(x), columns_of(x));
  return {with_matrix(x, {rows_of(x), k}), with_matrix(x, {k, columns_of(x)})};
}

Types infer_svd(const OpCall& call) {
  check_matrix(call, call.in[0]);
  const TensorType& x = call.in[0];
  const bool full = call.attrs.get<bool>("full_matrices");
  const Dim k = smaller(rows_of(x), columns_of(x));
  return {with_matrix(x, {rows_of(x), full ? rows_of(x) : k}), with_matrix(x, {k}),
          with_matrix(x, {full ? columns_of(x) : k, columns_of(x)})};
}

Types infer_eigh(const OpCall& call) {
  check_square(call, call.in[0]);
  return {with_matrix(call.in[0], {columns_of(call.in[0])}), call.in[0]};
}
Types infer_eig(const OpCall& call) {
  const Types t = infer_eigh(call);
  return {t[0], t[0], t[1], t[1]};
}
Types infer_det(const OpCall& call) {
  check_square(call, call.in[0]);
  return {with_matrix(call.in[0], {})};
}
Types infer_slogdet(const OpCall& call) {
  const TensorType t = infer_det(call)[0];
  return {t, t};
}
Types infer_pinv(const OpCall& call) {
  check_matrix(call, call.in[0]);
  return {with_matrix(call.in[0], {columns_of(call.in[0]), rows_of(call.in[0])})};
}
Types infer_rank(const OpCall& call) {
  check_matrix(call, call.in[0]);
  TensorType t = with_matrix(call.in[0], {});
  t.dtype = DType::I32;
  return {t};
}

// b is a stack of vectors when it has one axis less than a, else of matrices.
bool is_vector(const TensorType& a, const TensorType& b) { return b.rank() == a.rank() - 1; }

// The type of x in a x = b.
TensorType solution_type(const OpCall& call) {
  const TensorType &a = call.in[0], &b = call.in[1];
  check_type(call, b);
  TensorType right = b;
  if (is_vector(a, b)) right.dims.push_back(1);
  if (right.rank() < 2) call.fail("b must hold vectors or matrices, got ", b);
  if (!(rows_of(a) == rows_of(right))) call.fail("a is ", a, ", b is ", b, ": the rows differ (", rows_of(a), " != ", rows_of(right), ")");
  TensorType x{b.dtype, broadcast(with_matrix(a, {}).dims, with_matrix(right, {}).dims)};
  x.dims.push_back(columns_of(a));
  if (!is_vector(a, b)) x.dims.push_back(columns_of(right));
  return x;
}
Types infer_solve(const OpCall& call) {
  check_square(call, call.in[0]);
  return {solution_type(call)};
}
Types infer_lstsq(const OpCall& call) {
  check_matrix(call, call.in[0]);
  return {solution_type(call)};
}

// --- host routines ---------------------------------------------------------------------------------------------------------

struct MatrixShape {
  int64_t rows, columns;
};
MatrixShape matrix_shape(const HostTensor& t) { return {t.shape[t.shape.size() - 2], t.shape[t.shape.size() - 1]}; }
int64_t matrix_count(const HostTensor& t) {
  int64_t count = 1;
  for (size_t d = 0; d + 2 < t.shape.size(); ++d) count *= t.shape[d];
  return count;
}

Matrix load_matrix(const HostTensor& t, int64_t index) {
  const MatrixShape shape = matrix_shape(t);
  const int64_t count = shape.rows * shape.columns;
  Matrix m(shape.rows, shape.columns);
  if (t.dtype == DType::F32)
    std::copy_n(t.as<float>() + index * count, count, m.v.begin());
  else
    std::copy_n(t.as<double>() + index * count, count, m.v.begin());
  return m;
}

// Any list of numbers as the index-th part of a tensor.
template <class T> void store(const HostTensor& t, int64_t index, const std::vector<T>& v) {
  const auto count = static_cast<int64_t>(v.size());
  if (t.dtype == DType::F32)
    std::transform(v.begin(), v.end(), t.as<float>() + index * count, [](T x) { return static_cast<float>(x); });
  else if (t.dtype == DType::F64)
    std::copy(v.begin(), v.end(), t.as<double>() + index * count);
  else
    std::transform(v.begin(), v.end(), t.as<int32_t>() + index * count, [](T x) { return static_cast<int32_t>(x); });
}

void store_nan(const HostTensor& t, int64_t index, int64_t count) {
  store(t, index, std::vector<double>(static_cast<size_t>(count), std::numeric_limits<double>::quiet_NaN()));
}

// Calls f(index, matrix) for every matrix of input 0, each on its own; matrices that hold NaN or infinities give NaN in all outputs.
template <class F> void each_matrix(const HostCall& call, F f) {
  const int64_t batch = matrix_count(call.in[0]);
  call.parallel(batch, [&](int64_t index) {
    Matrix a = load_matrix(call.in[0], index);
    if (all_finite(a)) return f(index, std::move(a));
    for (const HostTensor& out : call.out) store_nan(out, index, element_count(out.shape) / batch);
  });
}

void evaluate_cholesky(const HostCall& call) {
  each_matrix(call, [&](int64_t i, const Matrix& a) { store(call.out[0], i, cholesky(symmetric_part(a)).v); });
}

void evaluate_triangular_solve(const HostCall& call) {
  const Triangle triangle = call.attrs.get<bool>("lower") ? Triangle::Lower : Triangle::Upper;
  const bool transpose = call.attrs.get<bool>("transpose"), unit = call.attrs.get<bool>("unit");
  // The other triangle may hold anything, so it is not looked at for NaN either.
  call.parallel(matrix_count(call.in[0]), [&](int64_t i) {
    Matrix b = load_matrix(call.in[1], i);
    solve_triangular(load_matrix(call.in[0], i), b, triangle, transpose, unit);
    store(call.out[0], i, b.v);
  });
}

void evaluate_lu(const HostCall& call) {
  call.parallel(matrix_count(call.in[0]), [&](int64_t i) {  // NaN passes through the packed factors; the pivots are positions all the same
    const Lu f = lu(load_matrix(call.in[0], i));
    store(call.out[0], i, f.packed.v);
    store(call.out[1], i, f.pivots);
    store(call.out[2], i, f.permutation);
  });
}

void evaluate_qr(const HostCall& call) {
  const bool complete = call.attrs.get<std::string>("mode") == "complete";
  each_matrix(call, [&](int64_t i, Matrix a) {
    const Qr f = qr(std::move(a), complete);
    store(call.out[0], i, f.q.v);
    store(call.out[1], i, f.r.v);
  });
}

void evaluate_svd(const HostCall& call) {
  const bool full = call.attrs.get<bool>("full_matrices");
  each_matrix(call, [&](int64_t i, const Matrix& a) {
    const Svd f = svd(a, full);
    store(call.out[0], i, f.u.v);
    store(call.out[1], i, f.s);
    store(call.out[2], i, f.vt.v);
  });
}

void evaluate_eigh(const HostCall& call) {
  each_matrix(call, [&](int64_t i, const Matrix& a) {
    const Eigh f = eigh(symmetric_part(a));
    store(call.out[0], i, f.w);
    store(call.out[1], i, f.v.v);
  });
}

void evaluate_eig(const HostCall& call) {
  each_matrix(call, [&](int64_t index, const Matrix& a) {
    const Eig f = eig(a);
    const auto parts = [&](const std::vector<std::complex<double>>& v, size_t real_output, size_t imaginary_output) {
      std::vector<double> re, im;
      for (const std::complex<double>& x : v) {
        re.push_back(x.real());
        im.push_back(x.imag());
      }
      store(call.out[real_output], index, re);
      store(call.out[imaginary_output], index, im);
    };
    parts(f.w, 0, 1);
    parts(f.v.v, 2, 3);
  });
}

// --- compositions ----------------------------------------------------------------------------------------------------------

Expr diagonal_of(const Expr& x) { return x.op("diagonal", {{"axis1", int64_t{-2}}, {"axis2", int64_t{-1}}}); }

// b as a stack of matrices with the leading axes of a and b broadcast; and a likewise.
struct System {
  Expr a, b;
};
System broadcast_system(const Expr& a, const Expr& b, bool vector) {
  Expr right = b;
  if (vector) {
    Dims column = b.dims();
    column.push_back(1);
    right = b.reshape(column);
  }
  const Dims batch = broadcast(with_matrix(a.type(), {}).dims, with_matrix(right.type(), {}).dims);
  const auto stretched = [&](const Expr& x) {
    Dims dims = batch;
    dims.insert(dims.end(), x.dims().end() - 2, x.dims().end());
    return x.broadcast_to(dims);
  };
  return {stretched(a), stretched(right)};
}
Expr as_vector(const Expr& x, bool vector) { return vector ? x.reshape(Dims(x.dims().begin(), x.dims().end() - 1)) : x; }

std::vector<Expr> decompose_solve(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const bool vector = is_vector(call.in[0], call.in[1]);
  const System s = broadcast_system(in[0], in[1], vector);
  const std::vector<Expr> f = ir::call(b, "lu", {s.a});
  const Expr y = triangular_solve(f[0], permute_rows(s.b, f[2]), {.lower = true, .unit = true});
  return {as_vector(triangular_solve(f[0], y, {.lower = false}), vector)};
}

// a' y = g, then the gradient of a is -y x'. The factors of a serve both: a[p] = l u, so a' = u' l' p.
std::vector<Expr> vjp_solve(const GradCall& g) {
  const bool vector = is_vector(g.in[0].type(), g.in[1].type());
  const System s = broadcast_system(g.in[0], g.grad(), vector);
  const std::vector<Expr> f = call(g.builder, "lu", {s.a});
  const Expr z = triangular_solve(f[0], s.b, {.lower = false, .transpose = true});
  const Expr w = triangular_solve(f[0], z, {.lower = true, .transpose = true, .unit = true});
  const Expr y = permute_rows(w, f[2].op("argsort"));
  const Expr x = broadcast_system(g.in[0], g.out[0], vector).b;
  const Expr grad_a = -y.op("matmul", {x}, {{"transpose_y", true}});
  return {grad_a.sum_to(g.in[0].dims()), as_vector(y, vector).sum_to(g.in[1].dims())};
}

std::vector<Expr> decompose_inverse(Builder&, const OpCall&, std::span<const Expr> in) {
  return {in[0].op("solve", {identity_like(in[0], in[0].dims().back()).broadcast_to(in[0].dims())})};
}

// With the factor f of a = f f' (or f' f when upper): the inverse of a.
std::vector<Expr> decompose_cholesky_inverse(Builder&, const OpCall& call, std::span<const Expr> in) {
  const bool is_upper = call.attrs.get<bool>("upper");
  const Expr identity = identity_like(in[0], in[0].dims().back()).broadcast_to(in[0].dims());
  const Expr y = triangular_solve(in[0], identity, {.lower = !is_upper, .transpose = is_upper});
  return {y.op("matmul", {y}, {{"transpose_x", true}})};
}

// -1 for an odd number of row exchanges, else 1, as the type of the factors.
Expr exchange_sign(const Expr& pivots, DType t) {
  const Expr own = iota(pivots.builder(), {pivots.dims().back()}, 0, DType::I32);
  const Expr odd = not_equal(pivots, own).cast(DType::I32).sum({-1}).op("remainder", {pivots.number(2)});
  return 1 - odd.cast(t) * 2;
}

std::vector<Expr> decompose_det(Builder& b, const OpCall&, std::span<const Expr> in) {
  const std::vector<Expr> f = call(b, "lu", {in[0]});
  return {diagonal_of(f[0]).op("prod", {{"axis", Ints{-1}}}) * exchange_sign(f[1], in[0].dtype())};
}

std::vector<Expr> decompose_slogdet(Builder& b, const OpCall&, std::span<const Expr> in) {
  const std::vector<Expr> f = call(b, "lu", {in[0]});
  const Expr d = diagonal_of(f[0]);
  const Expr sign = d.op("sign").op("prod", {{"axis", Ints{-1}}}) * exchange_sign(f[1], in[0].dtype());
  return {sign, log(d.op("absolute")).sum({-1})};
}

// The cut below which singular values [..., k] count as zero, as [..., 1]: a part of the largest, by default max(m, n) roundings.
Expr cutoff(const OpCall& call, const Expr& s, std::string_view attr) {
  const TensorType& x = call.in[0];
  if (s.dims().back().is(0)) return s.number(0);
  const Expr largest = s.max({-1}, true);
  if (call.attrs.has(attr)) return largest * call.attrs.get<double>(attr);
  const Dim &m = rows_of(x), &n = columns_of(x);
  const double eps = s.dtype() == DType::F32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  return largest * eps * count_of(s.builder(), m == n ? m : max(m, n), s.dtype());
}

std::vector<Expr> decompose_pinv(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const std::vector<Expr> f = ir::call(b, "svd", {in[0]}, {{"full_matrices", false}});
  const Expr keep = f[1] > cutoff(call, f[1], "rcond"), inverse = where(keep, 1 / where(keep, f[1], 1), 0);
  Dims row = inverse.dims();
  row.insert(row.end() - 1, 1);
  return {(swap_last(f[2]) * inverse.reshape(row)).op("matmul", {f[0]}, {{"transpose_y", true}})};
}

std::vector<Expr> decompose_rank(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const Expr s = ir::call(b, "svd", {in[0]}, {{"full_matrices", false}})[1];
  const Expr limit = call.attrs.has("tol") ? s.number(call.attrs.get<double>("tol")) : cutoff(call, s, "tol");
  return {(s > limit).cast(DType::I32).sum({-1})};
}

std::vector<Expr> decompose_lstsq(Builder&, const OpCall& call, std::span<const Expr> in) {
  const bool vector = is_vector(call.in[0], call.in[1]);
  Attrs attrs;
  attrs.set("rcond", *call.attrs.find("rcond"));
  const System s = broadcast_system(in[0].op("pinv", attrs), in[1], vector);
  return {as_vector(s.a.op("matmul", {s.b}), vector)};
}

std::vector<Expr> decompose_power(Builder&, const OpCall& call, std::span<const Expr> in) {
  const int64_t n = call.attrs.get<int64_t>("n");
  const Expr identity = identity_like(in[0], in[0].dims().back()).broadcast_to(in[0].dims());
  if (n == 0) return {identity};
  Expr base = n < 0 ? in[0].op("inverse") : in[0], result;
  for (uint64_t left = n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n); left; left >>= 1) {
    if (left & 1) result = result ? result.op("matmul", {base}) : base;
    if (left > 1) base = base.op("matmul", {base});
  }
  return {result};
}

// --- norms -----------------------------------------------------------------------------------------------------------------

// The order of a norm: 'fro', 'nuc', or a number, where 'inf' and '-inf' are numbers too.
std::optional<double> numeric_order(const OpCall& call) {
  const auto& text = call.attrs.get<std::string>("ord");
  if (text == "fro" || text == "nuc") return {};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || std::isnan(value))
    call.fail("ord must be 'fro', 'nuc' or a number like '1', '2', 'inf', '-inf', it is '", text, "'");
  return value;
}

void check_norm_order(const OpCall& call, const TensorType& x, size_t axes) {
  if (!call.attrs.has("ord")) return;
  const std::optional<double> order = numeric_order(call);
  const auto& text = call.attrs.get<std::string>("ord");
  if (axes == 0 || axes > 2) call.fail("ord '", text, "' needs one axis (vectors) or two (matrices), there are ", axes, " in ", x);
  if (axes == 1 && !order) call.fail("ord '", text, "' is for matrices, but there is one axis");
  const bool known = !order || std::isinf(*order) || std::fabs(*order) == 1 || std::fabs(*order) == 2;
  if (axes == 2 && !known) call.fail("matrices have norms of ord 'fro', 'nuc', 1, -1, 2, -2, inf and -inf, not '", text, "'");
  if (axes == 2 && (text == "nuc" || (order && std::fabs(*order) == 2))) check_type(call, x);
}

Types infer_norm(const OpCall& call) {
  const TensorType& x = call.in[0];
  const Ints axes = call.axes("axis", x.rank());
  check_norm_order(call, x, axes.size());
  return {{x.dtype, reduced_dims(x.dims, axes, call.attrs.get<bool>("keepdims"))}};
}

Expr reduce(const Expr& x, std::string_view op, const Ints& axes) { return x.op(op, {{"axis", axes}, {"keepdims", true}}); }

Expr vector_norm(const Expr& x, double order, const Ints& axes) {
  const Expr size = x.op("absolute");
  if (order == 0) return reduce(not_equal(x, 0).cast(x.dtype()), "sum", axes);
  if (std::isinf(order)) return reduce(size, order > 0 ? "max" : "min", axes);
  if (order == 1) return reduce(size, "sum", axes);
  if (order == 2) return reduce(x, "norm2", axes);
  return power(reduce(power(size, order), "sum", axes), 1 / order);
}

// Over the plane of two axes, which numpy takes in the order given: rows first.
Expr matrix_norm(const Expr& x, std::optional<double> order, const Ints& planes, const Ints& sorted) {
  if (order && (std::isinf(*order) || std::fabs(*order) == 1)) {
    const bool by_columns = std::fabs(*order) == 1;  // sums over rows, one a column
    const Expr sums = reduce(x.op("absolute"), "sum", {planes[by_columns ? 0 : 1]});
    return reduce(sums, *order > 0 ? "max" : "min", {planes[by_columns ? 1 : 0]});
  }
  Ints perm = other_axes(sorted, x.rank());
  perm.insert(perm.end(), planes.begin(), planes.end());
  const Expr s = call(x.builder(), "svd", {x.transpose(perm)}, {{"full_matrices", false}})[1];
  const Expr found = s.op(!order ? "sum" : *order > 0 ? "max" : "min", {{"axis", Ints{-1}}});
  return found.reshape(reduced_dims(x.dims(), sorted, true));
}

std::vector<Expr> decompose_norm(Builder&, const OpCall& call, std::span<const Expr> in) {
  const Expr& x = in[0];
  const Ints axes = call.axes("axis", x.rank());
  const bool plain = !call.attrs.has("ord") || call.attrs.get<std::string>("ord") == "fro";
  Expr found;
  if (plain) {
    found = x.op("norm2", {{"axis", axes}, {"keepdims", true}});
  } else if (axes.size() == 1) {
    found = vector_norm(x, *numeric_order(call), axes);
  } else {
    Ints planes = axes;
    if (call.attrs.has("axis"))
      for (size_t i = 0; i < 2; ++i) planes[i] = normalize_axis(call.attrs.get<Ints>("axis")[i], x.rank(), "norm");
    found = matrix_norm(x, numeric_order(call), planes, axes);
  }
  return {found.reshape(reduced_dims(x.dims(), axes, call.attrs.get<bool>("keepdims")))};
}

}  // namespace

Rows linalg_rows() {
  constexpr Tolerance kLoose{1e-4, 1e-5};
  return {
      {.name = "cholesky",
       .sig = "(x: float) -> same",
       .doc = "The lower triangular L with L L' = (x + x')/2 for positive definite matrices; NaN for others.",
       .infer = infer_square,
       .evaluate = evaluate_cholesky,
       .vjp = vjp_cholesky,
       .samples = {"([3,3]:float32 posdef)", "([2,4,4]:float64 posdef)", "([70,70]:float64 posdef) !grad", "([0,0]:float32)",
                   "([1,1]:float64 in 1..2)", "([0,3,3]:float32)"},
       .tolerance = kLoose},
      {.name = "triangular_solve",
       .sig = "(a: float, b: float; lower: bool = true, transpose: bool = false, unit: bool = false) -> same",
       .doc = "The x with a x = b, or a' x = b with `transpose`, reading only the lower or the upper triangle of a; with `unit` its "
              "diagonal counts as ones. A zero on the diagonal gives infinities and NaN.",
       .infer = infer_triangular_solve,
       .evaluate = evaluate_triangular_solve,
       .vjp = vjp_triangular_solve,
       .samples = {"([3,3]:float64 posdef, [3,2]:float64)", "([2,3,3]:float32 posdef, [2,3,2]:float32; lower=false)",
                   "([3,3]:float64 posdef, [3,2]:float64; transpose=true, unit=true)",
                   "([3,3]:float64 posdef, [3,1]:float64; lower=false, transpose=true)", "([0,0]:float32, [0,2]:float32)"},
       .tolerance = kLoose},
      {.name = "lu",
       .sig = "(x: float) -> same, int32, int32",
       .doc = "LU factors by partial pivoting, packed into one matrix (the ones on the diagonal of L are left out); the row that each row "
              "was exchanged with; and the permutation p with x[p] = L U.",
       .infer = infer_lu,
       .evaluate = evaluate_lu,
       .vjp = vjp_lu,
       .samples = {"([4,4]:float64)", "([2,3,5]:float32) !grad", "([5,3]:float32) !grad", "([0,0]:float32)", "([1,1]:float64)"},
       .tolerance = kLoose},
      {.name = "qr",
       .sig = "(x: float; mode: string = 'reduced') -> same, same",
       .doc = "x = Q R with orthonormal columns in Q and an upper triangular R; mode 'complete' makes Q square. Signs are LAPACK's.",
       .infer = infer_qr,
       .evaluate = evaluate_qr,
       .vjp = vjp_qr,
       .samples = {"([4,3]:float64)", "([2,3,3]:float32)", "([3,5]:float64)", "([4,3]:float32; mode='complete') !grad",
                   "([0,3]:float32) !grad", "([3,0]:float32) !grad"},
       .tolerance = kLoose},
      {.name = "svd",
       .sig = "(x: float; full_matrices: bool = true) -> same, same, same",
       .doc = "x = U diag(s) V' with s in descending order: U, s and V'. The largest component of each column of U is positive.",
       .infer = infer_svd,
       .evaluate = evaluate_svd,
       .vjp = vjp_svd,
       .samples = {"([4,3]:float64; full_matrices=false)", "([2,2,4]:float32; full_matrices=false)", "([3,3]:float64)",
                   "([3,2]:float32) !grad", "([0,3]:float32; full_matrices=false) !grad"},
       .tolerance = kLoose},
      {.name = "eigh",
       .sig = "(x: float) -> same, same",
       .doc = "Eigenvalues in ascending order and eigenvectors, as columns, of the symmetric matrix (x + x')/2. The largest component of "
              "each vector is positive.",
       .infer = infer_eigh,
       .evaluate = evaluate_eigh,
       .vjp = vjp_eigh,
       .samples = {"([3,3]:float64 symmetric)", "([2,4,4]:float32 symmetric)", "([1,1]:float64)", "([0,0]:float32)"},
       .tolerance = kLoose},
      {.name = "eig",
       .sig = "(x: float) -> same, same, same, same",
       .doc = "Eigenvalues of a general square matrix, real and imaginary parts, in ascending order of the real, then of the imaginary "
              "part; and eigenvectors of length 1, as columns, real and imaginary parts.",
       .traits = kNotDifferentiable,
       .infer = infer_eig,
       .evaluate = evaluate_eig,
       .samples = {"([3,3]:float64) !numpy", "([2,4,4]:float32) !numpy", "([1,1]:float64) !numpy", "([0,0]:float32) !numpy"},
       .tolerance = {1e-3, 1e-4}},
      {.name = "solve",
       .sig = "(a: float, b: float) -> same",
       .doc = "The x with a x = b. b holds vectors when it has one axis less than a, else matrices; leading axes broadcast. A singular a "
              "gives infinities and NaN.",
       .infer = infer_solve,
       .decompose = decompose_solve,
       .vjp = vjp_solve,
       .samples = {"([3,3]:float64 posdef, [3,2]:float64)", "([3,3]:float64 posdef, [3]:float64)",
                   "([2,3,3]:float32 posdef, [2,3]:float32)", "([3,3]:float64 posdef, [2,3,2]:float64)",
                   "([2,3,3]:float64 posdef, [1,3,2]:float64)", "([0,0]:float32, [0,2]:float32)"},
       .tolerance = kLoose},
      {.name = "inverse",
       .sig = "(x: float) -> same",
       .doc = "The inverse matrix; infinities and NaN where there is none.",
       .infer = infer_square,
       .decompose = decompose_inverse,
       .vjp = vjp_inverse,
       .samples = {"([3,3]:float64 posdef)", "([2,4,4]:float32 posdef)", "([0,0]:float32)"},
       .tolerance = kLoose},
      {.name = "cholesky_inverse",
       .sig = "(x: float; upper: bool = false) -> same",
       .doc = "The inverse of a matrix whose Cholesky factor x is.",
       .infer = infer_square,
       .decompose = decompose_cholesky_inverse,
       .samples = {"([3,3]:float64 posdef)", "([2,3,3]:float32 posdef; upper=true)"},
       .tolerance = kLoose},
      {.name = "det",
       .sig = "(x: float) -> same",
       .doc = "The determinant. Its gradient needs the inverse, so it is NaN for a singular matrix.",
       .infer = infer_det,
       .decompose = decompose_det,
       .vjp = vjp_det,
       .samples = {"([3,3]:float64)", "([2,4,4]:float32 posdef)", "([1,1]:float64)", "([0,0]:float32)"},
       .tolerance = kLoose},
      {.name = "slogdet",
       .sig = "(x: float) -> same, same",
       .doc = "The sign of the determinant and the logarithm of its magnitude.",
       .infer = infer_slogdet,
       .decompose = decompose_slogdet,
       .vjp = vjp_slogdet,
       .samples = {"([3,3]:float64)", "([2,4,4]:float32 posdef)", "([0,0]:float32)"},
       .tolerance = kLoose},
      {.name = "pinv",
       .sig = "(x: float; rcond: float? = none) -> same",
       .doc = "The Moore-Penrose inverse. Singular values up to rcond times the largest count as zero; by default max(m, n) roundings.",
       .infer = infer_pinv,
       .decompose = decompose_pinv,
       .vjp = vjp_pinv,
       .samples = {"([4,3]:float64)", "([2,2,3]:float32)", "([3,3]:float64 posdef; rcond=0.000001)", "([0,3]:float32)"},
       .tolerance = kLoose},
      {.name = "matrix_rank",
       .sig = "(x: float; tol: float? = none) -> int32",
       .doc = "How many singular values exceed tol, by default max(m, n) roundings of the largest.",
       .infer = infer_rank,
       .decompose = decompose_rank,
       .samples = {"([4,3]:float64)", "([2,3,3]:float32 posdef)", "([3,4]:float64; tol=100.0)", "([2,3,0]:float32)",
                   "({{1,2},{2,4}}:float64)"}},
      {.name = "lstsq",
       .sig = "(a: float, b: float; rcond: float? = none) -> same",
       .doc = "The x of least length that makes the length of a x - b least, for vectors or matrices b; rcond as in pinv.",
       .infer = infer_lstsq,
       .decompose = decompose_lstsq,
       .samples = {"([4,3]:float64, [4]:float64)", "([4,3]:float32, [4,2]:float32)", "([2,3,4]:float64, [2,3,1]:float64)",
                   "([0,3]:float32, [0]:float32)"},
       .tolerance = kLoose},
      {.name = "matrix_power",
       .sig = "(x: float; n: int) -> same",
       .doc = "The product of n copies of a square matrix; of its inverse where n is negative.",
       .infer = infer_square,
       .decompose = decompose_power,
       .samples = {"([3,3]:float64; n=5)", "([2,3,3]:float32; n=0)", "([3,3]:float64 posdef; n=-2)", "([3,3]:float32; n=1)",
                   "([0,0]:float32; n=3)"},
       .tolerance = kLoose},
      {.name = "norm",
       .sig = "(x: float; ord: string? = none, axis: ints? = none, keepdims: bool = false) -> same",
       .doc =
           "The norm of vectors (one axis) or matrices (two axes): by default the root of the sum of squares over all axes given. ord is "
           "'fro', 'nuc' or a number written as text, such as '1' or 'inf'.",
       .infer = infer_norm,
       .decompose = decompose_norm,
       .samples = {"([3,4])", "([3,4]; axis=[1])", "([3,4]; ord='1', axis=[-1], keepdims=true)", "([3,4]; ord='inf', axis=[0])",
                   "([3,4]; ord='-inf', axis=[0])", "([3,4]; ord='3', axis=[0])", "([3,4]:float32; ord='0', axis=[0])",
                   "([3,4]; ord='fro')", "([2,3,4]:float64; ord='nuc', axis=[1,2])",
                   "([2,3,4]:float64; ord='2', axis=[0,2], keepdims=true)", "([3,4]:float64; ord='-2')", "([3,4]; ord='1')",
                   "([2,3,4]; ord='-1', axis=[2,0])", "([3,4]; ord='inf', axis=[1,0])", "([])", "([0,3])",
                   "([11] special; ord='inf', axis=[0]) !grad", "({{1,nan},{2,3}}; ord='1', axis=[0,1]) !grad"},
       .tolerance = kLoose},
  };
}

}  // namespace tandem::ops
