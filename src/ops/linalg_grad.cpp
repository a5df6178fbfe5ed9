// Gradients of factorisations. Formulas: Giles, "Collected matrix derivative results" (2008); Murray, "Differentiation of the Cholesky
// decomposition" (2016); Townsend, "Differentiating the singular value decomposition" (2016); Walter and Lehmann (2018) for QR.
#include "ops/helpers.hpp"
#include "ops/linalg.hpp"

namespace tandem::ops {
using namespace ir;

Expr swap_last(const Expr& x) {
  Ints perm = all_axes(x.rank());
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return x.transpose(perm);
}

Expr identity_like(const Expr& x, const Dim& n) {
  Builder& b = x.builder();
  return {b, b.op("eye", {}, {{"rows", Dims{n}}, {"dtype", x.dtype()}})};
}

Expr take_columns(const Expr& x, const Dim& begin, const Dim& end) {
  Dims start(x.dims().size(), 0), limit = x.dims();
  if (begin.is(0) && limit.back() == end) return x;
  start.back() = begin;
  limit.back() = end;
  return x.op("slice", {{"start", start}, {"limit", limit}, {"step", Ints(start.size(), 1)}});
}

Expr permute_rows(const Expr& b, const Expr& permutation) {
  Dims column = permutation.dims();
  column.push_back(1);
  return b.op("take_along_axis_clipped", {permutation.reshape(column).broadcast_to(b.dims())}, {{"axis", int64_t{-2}}});
}

Expr triangular_solve(const Expr& a, const Expr& b, TriangularKind kind) {
  return a.op("triangular_solve", {b}, {{"lower", kind.lower}, {"transpose", kind.transpose}, {"unit", kind.unit}});
}

namespace {

enum class Turn : uint8_t { None, First, Second, Both };
Expr product(const Expr& a, const Expr& b, Turn turn = Turn::None) {
  return a.op("matmul", {b},
              {{"transpose_x", turn == Turn::First || turn == Turn::Both}, {"transpose_y", turn == Turn::Second || turn == Turn::Both}});
}
Expr lower(const Expr& x, int64_t k = 0) { return x.op("tril", {{"k", k}}); }
Expr upper(const Expr& x, int64_t k = 0) { return x.op("triu", {{"k", k}}); }
Expr diagonal_of(const Expr& x) { return x.op("diagonal", {{"axis1", int64_t{-2}}, {"axis2", int64_t{-1}}}); }
Expr diagonal_matrix(const Expr& d) { return d.op("embed_diagonal", {{"shape", Dims{d.dims().back(), d.dims().back()}}}); }
Expr symmetric(const Expr& x) { return (x + swap_last(x)) * 0.5; }
// Scales column j by d[..., j].
Expr times_columns(const Expr& x, const Expr& d) {
  Dims row = d.dims();
  row.insert(row.end() - 1, 1);
  return x * d.reshape(row);
}
Expr times_rows(const Expr& d, const Expr& x) {
  Dims column = d.dims();
  column.push_back(1);
  return x * d.reshape(column);
}
// x over the axes of a matrix: [...] -> [...,1,1].
Expr per_matrix(const Expr& x) {
  Dims dims = x.dims();
  dims.insert(dims.end(), 2, 1);
  return x.reshape(dims);
}

// 1 / (d_j - d_i), and 0 where the two are equal: there the vectors, and so their gradients, are not determined.
Expr inverse_gaps(const Expr& d) {
  Dims row = d.dims(), column = d.dims();
  row.insert(row.end() - 1, 1);
  column.push_back(1);
  const Expr gap = d.reshape(row) - d.reshape(column), none = equal(gap, 0);
  return where(none, 0, 1 / where(none, 1, gap));
}

Expr inverse_or_zero(const Expr& d) {
  const Expr none = equal(d, 0);
  return where(none, 0, 1 / where(none, 1, d));
}

}  // namespace

// The row reads (x + x')/2, so the gradient is symmetric.
std::vector<Expr> vjp_cholesky(const GradCall& g) {
  const Expr &l = g.out[0], p = lower(product(l, lower(g.grad()), Turn::First));
  const Expr half = p - diagonal_matrix(diagonal_of(p)) * 0.5;
  const TriangularKind kind{.lower = true, .transpose = true};
  const Expr left = triangular_solve(l, half, kind), s = triangular_solve(l, swap_last(left), kind);
  return {symmetric(s)};
}

std::vector<Expr> vjp_triangular_solve(const GradCall& g) {
  const Attrs& a = g.node.attrs;
  const TriangularKind kind{a.get<bool>("lower"), a.get<bool>("transpose"), a.get<bool>("unit")};
  const Expr grad_b = triangular_solve(g.in[0], g.grad(), {kind.lower, !kind.transpose, kind.unit});
  if (!g.needed[0]) return {Expr(), grad_b};
  const Expr full = kind.transpose ? -product(g.out[0], grad_b, Turn::Second) : -product(grad_b, g.out[0], Turn::Second);
  const int64_t skip = kind.unit ? 1 : 0;  // the diagonal is taken as ones, whatever is there
  return {kind.lower ? lower(full, -skip) : upper(full, skip), grad_b};
}

std::vector<Expr> vjp_lu(const GradCall& g) {
  const Dims dims = g.in[0].dims();
  if (!(dims[dims.size() - 1] == dims[dims.size() - 2])) user_error("lu: has a gradient only for square matrices, got ", g.in[0].type());
  const Expr &packed = g.out[0], grad = g.grad();
  const Expr l = lower(packed, -1) + identity_like(packed, dims.back()), u = upper(packed);
  const Expr middle = lower(product(l, lower(grad, -1), Turn::First), -1) + upper(product(upper(grad), u, Turn::Second));
  const Expr left = triangular_solve(packed, middle, {.lower = true, .transpose = true, .unit = true});
  const Expr permuted = swap_last(triangular_solve(packed, swap_last(left), {.lower = false}));
  return {permute_rows(permuted, g.out[2].op("argsort"))};
}

namespace {

// For at least as many rows as columns.
Expr tall_qr_grad(const Expr& q, const Expr& r, const Expr& grad_q, const Expr& grad_r) {
  const Expr m = product(r, grad_r, Turn::Second) - product(grad_q, q, Turn::First);
  const Expr mirrored = lower(m) + swap_last(lower(m, -1));
  const Expr right = grad_q + product(q, mirrored);
  return swap_last(triangular_solve(r, swap_last(right), {.lower = false}));
}

}  // namespace

std::vector<Expr> vjp_qr(const GradCall& g) {
  const Dims dims = g.in[0].dims();
  const Dim &m = dims[dims.size() - 2], &n = dims[dims.size() - 1];
  const Expr &q = g.out[0], &r = g.out[1], grad_q = g.grad(0), grad_r = upper(g.grad(1));
  const bool known = m.is_const() && n.is_const(), wide = known && m.value() < n.value();
  if (!known && !(r.dims()[dims.size() - 2] == n))
    user_error("qr: the gradient depends on whether there are more rows than columns, which ", g.in[0].type(), " does not say");
  if (!wide && !(r.dims()[dims.size() - 2] == n))
    user_error("qr: has a gradient in mode 'complete' only for matrices with no more rows than columns, got ", g.in[0].type(),
               "\n  hint: mode 'reduced' has one");
  if (!wide) return {tall_qr_grad(q, r, grad_q, grad_r)};
  // [x | y] = q [u | v]: x = q u is square, and y = q v depends on q and v.
  const Expr y = take_columns(g.in[0], m, n), u = take_columns(r, 0, m);
  const Expr grad_u = take_columns(grad_r, 0, m), grad_v = take_columns(grad_r, m, n);
  const Expr grad_x = tall_qr_grad(q, u, grad_q + product(y, grad_v, Turn::Second), grad_u);
  return {grad_x.op("concatenate", {product(q, grad_v)}, {{"axis", int64_t{-1}}})};
}

std::vector<Expr> vjp_svd(const GradCall& g) {
  const Expr& s = g.out[1];
  const bool vectors = g.grads[0] || g.grads[2], full = g.node.attrs.get<bool>("full_matrices");
  const Dims dims = g.in[0].dims();
  if (full && vectors && !(dims[dims.size() - 1] == dims[dims.size() - 2]))
    user_error("svd: with full_matrices the vectors have no gradient unless the matrix is square, got ", g.in[0].type(),
               "\n  hint: full_matrices = false has one");
  const Dim k = s.dims().back();
  const Expr u = take_columns(g.out[0], 0, k), v = take_columns(swap_last(g.out[2]), 0, k);
  Expr middle = diagonal_matrix(g.grad(1)), sum;
  const auto add = [&](const Expr& part) { sum = sum ? sum + part : part; };
  const Expr f = inverse_gaps(s * s);
  if (g.grads[0]) {
    const Expr &grad = g.grads[0], inner = product(u, grad, Turn::First);
    middle = middle + times_columns(f * (inner - swap_last(inner)), s);
    const Expr outside = times_columns(grad - product(u, inner), inverse_or_zero(s));
    add(product(outside, v, Turn::Second));
  }
  if (g.grads[2]) {
    const Expr grad = swap_last(g.grads[2]), inner = product(v, grad, Turn::First);
    middle = middle + times_rows(s, f * (inner - swap_last(inner)));
    const Expr outside = times_columns(grad - product(v, inner), inverse_or_zero(s));
    add(product(u, outside, Turn::Second));
  }
  add(product(product(u, middle), v, Turn::Second));
  return {sum};
}

// The row reads (x + x')/2, so the gradient is symmetric.
std::vector<Expr> vjp_eigh(const GradCall& g) {
  const Expr &w = g.out[0], &v = g.out[1];
  Expr middle = diagonal_matrix(g.grad(0));
  if (g.grads[1]) middle = middle + inverse_gaps(w) * product(v, g.grads[1], Turn::First);
  return {symmetric(product(product(v, middle), v, Turn::Second))};
}

std::vector<Expr> vjp_inverse(const GradCall& g) {
  const Expr& y = g.out[0];
  return {-product(product(y, g.grad(), Turn::First), y, Turn::Second)};
}

std::vector<Expr> vjp_det(const GradCall& g) { return {per_matrix(g.grad() * g.out[0]) * swap_last(g.in[0].op("inverse"))}; }

std::vector<Expr> vjp_slogdet(const GradCall& g) { return {per_matrix(g.grad(1)) * swap_last(g.in[0].op("inverse"))}; }

// Golub and Pereyra (1973), for matrices whose rank does not change.
std::vector<Expr> vjp_pinv(const GradCall& g) {
  const Expr &a = g.in[0], &p = g.out[0], grad = swap_last(g.grad());
  const Dims dims = a.dims();
  const Expr rows = identity_like(a, dims[dims.size() - 2]) - product(a, p), columns = identity_like(a, dims.back()) - product(p, a);
  const Expr inside = -product(product(p, g.grad(), Turn::First), p, Turn::Second);
  const Expr left = product(product(rows, grad), product(p, p, Turn::Second));
  const Expr right = product(product(p, p, Turn::First), product(grad, columns));
  return {inside + left + right};
}

}  // namespace tandem::ops
