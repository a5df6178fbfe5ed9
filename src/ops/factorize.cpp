// Cholesky, triangular systems, LU, QR. The textbook is Golub and Van Loan, "Matrix Computations".
#include "ops/factorize.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tandem::ops {

Matrix transposed(const Matrix& a) {
  Matrix t(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j) t(j, i) = a(i, j);
  return t;
}

bool all_finite(const Matrix& a) {
  return std::ranges::all_of(a.v, [](double x) { return std::isfinite(x); });
}

Matrix symmetric_part(const Matrix& a) {
  Matrix s = a;
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j) s(i, j) = 0.5 * a(i, j) + 0.5 * a(j, i);
  return s;
}

Matrix cholesky(Matrix a) {
  const int64_t n = a.rows;
  for (int64_t j = 0; j < n; ++j) {
    double d = a(j, j);
    for (int64_t k = 0; k < j; ++k) d -= a(j, k) * a(j, k);
    if (!(d > 0)) return Matrix(n, n, std::numeric_limits<double>::quiet_NaN());
    a(j, j) = std::sqrt(d);
    for (int64_t i = j + 1; i < n; ++i) {
      double s = a(i, j);
      for (int64_t k = 0; k < j; ++k) s -= a(i, k) * a(j, k);
      a(i, j) = s / a(j, j);
    }
    for (int64_t k = j + 1; k < n; ++k) a(j, k) = 0;
  }
  return a;
}

void solve_triangular(const Matrix& a, Matrix& b, Triangle triangle, bool transpose, bool unit_diagonal) {
  const int64_t n = a.rows;
  const bool forward = (triangle == Triangle::Lower) != transpose;  // the first unknown comes first
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = forward ? step : n - 1 - step;
    const int64_t begin = forward ? 0 : i + 1, end = forward ? i : n;  // the unknowns that are known by now
    for (int64_t k = begin; k < end; ++k) {
      const double factor = transpose ? a(k, i) : a(i, k);
      for (int64_t j = 0; j < b.columns; ++j) b(i, j) -= factor * b(k, j);
    }
    if (unit_diagonal) continue;
    for (int64_t j = 0; j < b.columns; ++j) b(i, j) /= a(i, i);
  }
}

Lu lu(Matrix a) {
  const int64_t m = a.rows, n = a.columns, k = std::min(m, n);
  Lu result;
  result.permutation.resize(static_cast<size_t>(m));
  std::iota(result.permutation.begin(), result.permutation.end(), 0);
  for (int64_t j = 0; j < k; ++j) {
    int64_t pivot = j;
    for (int64_t i = j + 1; i < m; ++i)
      if (std::fabs(a(i, j)) > std::fabs(a(pivot, j))) pivot = i;
    result.pivots.push_back(static_cast<int32_t>(pivot));
    if (pivot != j) {
      std::swap_ranges(&a(j, 0), &a(j, 0) + n, &a(pivot, 0));
      std::swap(result.permutation[static_cast<size_t>(j)], result.permutation[static_cast<size_t>(pivot)]);
    }
    if (a(j, j) == 0) continue;  // singular: the column is zero already
    for (int64_t i = j + 1; i < m; ++i) {
      const double factor = a(i, j) /= a(j, j);
      for (int64_t c = j + 1; c < n; ++c) a(i, c) -= factor * a(j, c);
    }
  }
  result.packed = std::move(a);
  return result;
}

namespace {

// Makes a(j+1…, j) zero by the reflection I - tau v v' with v(j) = 1; leaves the rest of v below the diagonal and returns tau.
double reflect_column(Matrix& a, int64_t j) {
  double below = 0;
  for (int64_t i = j + 1; i < a.rows; ++i) below = std::hypot(below, a(i, j));
  if (below == 0) return 0;
  const double alpha = a(j, j), beta = -std::copysign(std::hypot(alpha, below), alpha);
  for (int64_t i = j + 1; i < a.rows; ++i) a(i, j) /= alpha - beta;
  a(j, j) = beta;
  return (beta - alpha) / beta;
}

// c(j…, first…) becomes (I - tau v v') c, with v as reflect_column left it in column j of a.
void apply_reflection(const Matrix& a, int64_t j, double tau, Matrix& c, int64_t first) {
  for (int64_t col = first; col < c.columns; ++col) {
    double s = c(j, col);
    for (int64_t i = j + 1; i < a.rows; ++i) s += a(i, j) * c(i, col);
    s *= tau;
    c(j, col) -= s;
    for (int64_t i = j + 1; i < a.rows; ++i) c(i, col) -= s * a(i, j);
  }
}

}  // namespace

Qr qr(Matrix a, bool complete) {
  const int64_t m = a.rows, n = a.columns, steps = std::min(m, n), k = complete ? m : steps;
  std::vector<double> taus;
  for (int64_t j = 0; j < steps; ++j) {
    taus.push_back(reflect_column(a, j));
    apply_reflection(a, j, taus.back(), a, j + 1);
  }
  Qr result{Matrix(m, k), Matrix(k, n)};
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = i; j < n; ++j) result.r(i, j) = a(i, j);
  for (int64_t i = 0; i < k; ++i) result.q(i, i) = 1;
  for (int64_t j = steps; j-- > 0;) apply_reflection(a, j, taus[static_cast<size_t>(j)], result.q, j);
  return result;
}

}  // namespace tandem::ops
