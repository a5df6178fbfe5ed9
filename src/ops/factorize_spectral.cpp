// Eigenvalues and singular values. Jacobi's methods (Golub and Van Loan, 8.5 and 8.6) are slow but short and as exact as any; general
// matrices go through a complex Schur form by shifted QR steps on a Hessenberg matrix (7.5).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/factorize.hpp"

namespace tandem::ops {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr int kSweeps = 60;  // convergence takes about ten; the limit is for what never converges

// cos and sin of the rotation that makes the off-diagonal element of [[p, off], [off, q]] zero.
struct Rotation {
  double c, s;
};
Rotation jacobi_rotation(double p, double off, double q) {
  const double theta = (q - p) / (2 * off);
  const double t = std::copysign(1.0, theta) / (std::fabs(theta) + std::hypot(theta, 1.0));
  const double c = 1 / std::hypot(t, 1.0);
  return {c, t * c};
}
void rotate(double& x, double& y, Rotation r) {
  const double old = x;
  x = r.c * old - r.s * y;
  y = r.s * old + r.c * y;
}

double column_dot(const Matrix& a, int64_t i, int64_t j) {
  double s = 0;
  for (int64_t k = 0; k < a.rows; ++k) s += a(k, i) * a(k, j);
  return s;
}

Matrix picked_columns(const Matrix& a, const std::vector<int64_t>& order) {
  Matrix b(a.rows, a.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j) b(i, j) = a(i, order[static_cast<size_t>(j)]);
  return b;
}

// Whether the component of a column with the largest magnitude (the first of several) is negative.
bool points_down(const Matrix& a, int64_t column) {
  double largest = 0;
  for (int64_t i = 0; i < a.rows; ++i)
    if (std::fabs(a(i, column)) > std::fabs(largest)) largest = a(i, column);
  return largest < 0;
}
void negate_column(Matrix& a, int64_t j) {
  for (int64_t i = 0; i < a.rows; ++i) a(i, j) = -a(i, j);
}

// Column j becomes a unit vector at right angles to the columns before it.
void complete_column(Matrix& a, int64_t j) {
  std::vector<double> best;
  double best_length = -1;
  for (int64_t axis = 0; axis < a.rows && best_length < 0.5; ++axis) {
    std::vector<double> x(static_cast<size_t>(a.rows));
    x[static_cast<size_t>(axis)] = 1;
    for (int pass = 0; pass < 2; ++pass)  // the second pass removes what rounding left over from the first
      for (int64_t k = 0; k < j; ++k) {
        double along = 0;
        for (int64_t i = 0; i < a.rows; ++i) along += a(i, k) * x[static_cast<size_t>(i)];
        for (int64_t i = 0; i < a.rows; ++i) x[static_cast<size_t>(i)] -= along * a(i, k);
      }
    const double length = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
    if (length > best_length) {
      best_length = length;
      best = std::move(x);
    }
  }
  for (int64_t i = 0; i < a.rows; ++i) a(i, j) = best[static_cast<size_t>(i)] / best_length;
}

// The first `known` columns of a and enough more to make it square and orthogonal.
Matrix completed(const Matrix& a, int64_t known, int64_t columns) {
  Matrix q(a.rows, columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < known; ++j) q(i, j) = a(i, j);
  for (int64_t j = known; j < columns; ++j) complete_column(q, j);
  return q;
}

// Turns the columns of a until they are at right angles to each other, and v along with them.
void orthogonalize_columns(Matrix& a, Matrix& v) {
  bool turned = true;
  for (int sweep = 0; sweep < kSweeps && turned; ++sweep) {
    turned = false;
    for (int64_t p = 0; p < a.columns; ++p)
      for (int64_t q = p + 1; q < a.columns; ++q) {
        const double pp = column_dot(a, p, p), qq = column_dot(a, q, q), pq = column_dot(a, p, q);
        if (!(std::fabs(pq) > 4 * kEps * std::sqrt(pp * qq))) continue;
        turned = true;
        const Rotation r = jacobi_rotation(pp, pq, qq);
        for (int64_t i = 0; i < a.rows; ++i) rotate(a(i, p), a(i, q), r);
        for (int64_t i = 0; i < v.rows; ++i) rotate(v(i, p), v(i, q), r);
      }
  }
}

// Singular values and vectors of a matrix with at least as many rows as columns; u has `columns` of them.
struct TallSvd {
  Matrix u;
  std::vector<double> s;
  Matrix v;
};
TallSvd tall_svd(Matrix a, int64_t columns) {
  const int64_t n = a.columns;
  // Scaled so that squares of elements neither overflow nor vanish.
  double scale = 0;
  for (double x : a.v) scale = std::max(scale, std::fabs(x));
  if (scale > 0)
    for (double& x : a.v) x /= scale;
  Matrix v = Matrix::identity(n);
  orthogonalize_columns(a, v);

  std::vector<double> lengths(static_cast<size_t>(n));
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t j = 0; j < n; ++j) lengths[static_cast<size_t>(j)] = std::sqrt(column_dot(a, j, j));
  std::ranges::stable_sort(order, [&](int64_t i, int64_t j) { return lengths[static_cast<size_t>(i)] > lengths[static_cast<size_t>(j)]; });
  a = picked_columns(a, order);
  TallSvd result{{}, {}, picked_columns(v, order)};
  int64_t rank = 0;
  for (int64_t j = 0; j < n; ++j) {
    const double s = lengths[static_cast<size_t>(order[static_cast<size_t>(j)])];
    result.s.push_back(s * scale);
    // Below this, a column is rounding noise of the others, and its direction means nothing.
    if (s <= kEps * lengths[static_cast<size_t>(order[0])] || s == 0) continue;
    rank = j + 1;
    for (int64_t i = 0; i < a.rows; ++i) a(i, j) /= s;
  }
  result.u = completed(a, rank, columns);
  return result;
}

}  // namespace

Svd svd(const Matrix& a, bool full) {
  const bool wide = a.rows < a.columns;
  const int64_t k = std::min(a.rows, a.columns);
  TallSvd t = tall_svd(wide ? transposed(a) : a, full ? std::max(a.rows, a.columns) : k);
  if (wide) std::swap(t.u, t.v);
  for (int64_t j = 0; j < std::max(t.u.columns, t.v.columns); ++j) {
    const bool in_u = j < t.u.columns, in_v = j < t.v.columns;
    if (!(in_u ? points_down(t.u, j) : points_down(t.v, j))) continue;
    const bool paired = j < k;
    if (in_u) negate_column(t.u, j);
    if (in_v && (paired || !in_u)) negate_column(t.v, j);
  }
  return {std::move(t.u), std::move(t.s), transposed(t.v)};
}

Eigh eigh(Matrix a) {
  const int64_t n = a.rows;
  Matrix v = Matrix::identity(n);
  double scale = 0;
  for (double x : a.v) scale = std::max(scale, std::fabs(x));
  bool turned = true;
  for (int sweep = 0; sweep < kSweeps && turned; ++sweep) {
    turned = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        if (std::fabs(a(p, q)) <= 0.01 * kEps * scale) continue;
        turned = true;
        const Rotation r = jacobi_rotation(a(p, p), a(p, q), a(q, q));
        for (int64_t i = 0; i < n; ++i) rotate(a(i, p), a(i, q), r);
        for (int64_t i = 0; i < n; ++i) rotate(a(p, i), a(q, i), r);
        a(p, q) = a(q, p) = 0;
        for (int64_t i = 0; i < n; ++i) rotate(v(i, p), v(i, q), r);
      }
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t i, int64_t j) { return a(i, i) < a(j, j); });
  Eigh result{{}, picked_columns(v, order)};
  for (int64_t j = 0; j < n; ++j) {
    result.w.push_back(a(order[static_cast<size_t>(j)], order[static_cast<size_t>(j)]));
    if (points_down(result.v, j)) negate_column(result.v, j);
  }
  return result;
}

namespace {

using Complex = std::complex<double>;

// A unitary 2 x 2 matrix [[c, s], [-conj(s), c]] that turns (x, y) into (r, 0); c is real.
struct Givens {
  double c;
  Complex s;
};
Givens givens(Complex x, Complex y) {
  const double length = std::hypot(std::abs(x), std::abs(y));
  if (length == 0) return {1, 0};
  if (std::abs(x) == 0) return {0, std::conj(y) / std::abs(y)};
  const Complex phase = x / std::abs(x);
  return {std::abs(x) / length, phase * std::conj(y) / length};
}
void turn_rows(ComplexMatrix& a, int64_t i, int64_t first, Givens g) {
  for (int64_t j = first; j < a.columns; ++j) {
    const Complex x = a(i, j), y = a(i + 1, j);
    a(i, j) = g.c * x + g.s * y;
    a(i + 1, j) = -std::conj(g.s) * x + g.c * y;
  }
}
void turn_columns(ComplexMatrix& a, int64_t j, int64_t end, Givens g) {  // by the inverse
  for (int64_t i = 0; i < end; ++i) {
    const Complex x = a(i, j), y = a(i, j + 1);
    a(i, j) = g.c * x + std::conj(g.s) * y;
    a(i, j + 1) = -g.s * x + g.c * y;
  }
}

// a becomes upper Hessenberg by similarity, accumulated in q: rotations of neighbouring rows, each undone on the columns.
void to_hessenberg(ComplexMatrix& a, ComplexMatrix& q) {
  const int64_t n = a.rows;
  for (int64_t j = 0; j + 2 < n; ++j)
    for (int64_t i = n - 2; i > j; --i) {
      const Givens g = givens(a(i, j), a(i + 1, j));
      turn_rows(a, i, j, g);
      turn_columns(a, i, n, g);
      turn_columns(q, i, n, g);
    }
}

// The eigenvalue of the trailing 2 x 2 block that is nearer to its last element.
Complex wilkinson_shift(const ComplexMatrix& a, int64_t last) {
  const Complex p = a(last - 1, last - 1), q = a(last - 1, last), r = a(last, last - 1), s = a(last, last);
  const Complex half = 0.5 * (p - s), root = std::sqrt(half * half + q * r);
  const Complex near = std::abs(half + root) > std::abs(half - root) ? half + root : half - root;
  return near == Complex{} ? s : s - q * r / near;
}

// a, upper Hessenberg, becomes upper triangular by similarity, accumulated in q.
void to_triangular(ComplexMatrix& a, ComplexMatrix& q) {
  const int64_t n = a.rows;
  int64_t last = n - 1;
  int tries = 0;
  while (last > 0) {
    int64_t first = last;
    while (first > 0) {
      const double size = std::abs(a(first - 1, first - 1)) + std::abs(a(first, first));
      if (std::abs(a(first, first - 1)) <= kEps * size) break;
      --first;
    }
    if (first == last || ++tries > kSweeps * 5) {  // the limit is never met by finite matrices; it bounds the loop all the same
      a(last, last - 1) = 0;
      --last;
      tries = 0;
      continue;
    }
    if (first > 0) a(first, first - 1) = 0;
    Complex shift = wilkinson_shift(a, last);
    if (tries % 10 == 0) shift = std::abs(a(last, last - 1)) + a(last, last);  // breaks the rare cycles
    std::vector<Givens> turns;
    for (int64_t i = first; i <= last; ++i) a(i, i) -= shift;
    for (int64_t i = first; i < last; ++i) {
      turns.push_back(givens(a(i, i), a(i + 1, i)));
      turn_rows(a, i, i, turns.back());
    }
    for (int64_t i = first; i < last; ++i) {
      const Givens& g = turns[static_cast<size_t>(i - first)];
      turn_columns(a, i, std::min(last, i + 1) + 1, g);
      turn_columns(q, i, n, g);
    }
    for (int64_t i = first; i <= last; ++i) a(i, i) += shift;
  }
}

// Eigenvectors of an upper triangular matrix by back substitution; nearly equal eigenvalues are taken apart by a rounding error.
ComplexMatrix triangular_vectors(const ComplexMatrix& t, double size) {
  const int64_t n = t.rows;
  ComplexMatrix x(n, n);
  for (int64_t k = 0; k < n; ++k) {
    x(k, k) = 1;
    for (int64_t i = k; i-- > 0;) {
      Complex s = 0;
      for (int64_t j = i + 1; j <= k; ++j) s += t(i, j) * x(j, k);
      Complex gap = t(k, k) - t(i, i);
      const double least = std::max(kEps * size, std::numeric_limits<double>::min());
      if (std::abs(gap) < least) gap = least;
      x(i, k) = s / gap;
    }
  }
  return x;
}

// Length 1, and the component with the largest magnitude (the first of several) real and positive.
void normalize_column(ComplexMatrix& v, int64_t j) {
  double length = 0;
  for (int64_t i = 0; i < v.rows; ++i) length = std::hypot(length, std::abs(v(i, j)));
  Complex largest = 0;
  // A little room, so that rounding does not decide between components of equal size.
  for (int64_t i = 0; i < v.rows; ++i)
    if (std::abs(v(i, j)) > std::abs(largest) + 1e-10 * length) largest = v(i, j);
  if (largest == Complex{}) return;
  const Complex factor = std::conj(largest) / std::abs(largest) / length;
  for (int64_t i = 0; i < v.rows; ++i) v(i, j) *= factor;
}

// The matrix was real: imaginary parts that are rounding noise go, and the others come in pairs that are exact conjugates.
void pair_conjugates(std::vector<Complex>& w, ComplexMatrix& v, double size) {
  std::vector<bool> paired(w.size());
  for (Complex& x : w)
    if (std::fabs(x.imag()) <= 10 * kEps * size) x = x.real();
  for (size_t i = 0; i < w.size(); ++i) {
    if (w[i].imag() <= 0) continue;
    size_t partner = i;
    for (size_t j = 0; j < w.size(); ++j) {
      if (w[j].imag() >= 0 || paired[j]) continue;
      if (partner == i || std::abs(w[j] - std::conj(w[i])) < std::abs(w[partner] - std::conj(w[i]))) partner = j;
    }
    if (partner == i) continue;
    paired[partner] = true;
    w[i] = 0.5 * (w[i] + std::conj(w[partner]));
    w[partner] = std::conj(w[i]);
    for (int64_t row = 0; row < v.rows; ++row) v(row, static_cast<int64_t>(partner)) = std::conj(v(row, static_cast<int64_t>(i)));
  }
}

}  // namespace

Eig eig(const Matrix& a) {
  const int64_t n = a.rows;
  ComplexMatrix t(n, n), q = ComplexMatrix::identity(n);
  double size = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      t(i, j) = a(i, j);
      size = std::hypot(size, a(i, j));
    }
  to_hessenberg(t, q);
  to_triangular(t, q);
  const ComplexMatrix x = triangular_vectors(t, size);
  ComplexMatrix v(n, n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < n; ++k)
      for (int64_t j = 0; j <= k; ++j) v(i, k) += q(i, j) * x(j, k);

  std::vector<Complex> w;
  for (int64_t i = 0; i < n; ++i) w.push_back(t(i, i));
  pair_conjugates(w, v, size);
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t i, int64_t j) {
    const Complex p = w[static_cast<size_t>(i)], r = w[static_cast<size_t>(j)];
    return p.real() != r.real() ? p.real() < r.real() : p.imag() < r.imag();
  });
  Eig result{{}, ComplexMatrix(n, n)};
  for (int64_t j = 0; j < n; ++j) {
    result.w.push_back(w[static_cast<size_t>(order[static_cast<size_t>(j)])]);
    for (int64_t i = 0; i < n; ++i) result.v(i, j) = v(i, order[static_cast<size_t>(j)]);
    normalize_column(result.v, j);
  }
  return result;
}

}  // namespace tandem::ops
