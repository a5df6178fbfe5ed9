// Dense factorisations of one small matrix in float64, written plainly: what the linear algebra rows mean. Devices may have faster ones.
#pragma once
#include <complex>
#include <cstdint>
#include <vector>

namespace tandem::ops {

// Row-major.
template <class T> struct MatrixOf {
  int64_t rows = 0, columns = 0;
  std::vector<T> v;
  MatrixOf() = default;
  MatrixOf(int64_t r, int64_t c, T fill = T{}) : rows(r), columns(c), v(static_cast<size_t>(r * c), fill) {}
  T& operator()(int64_t i, int64_t j) { return v[static_cast<size_t>(i * columns + j)]; }
  const T& operator()(int64_t i, int64_t j) const { return v[static_cast<size_t>(i * columns + j)]; }
  static MatrixOf identity(int64_t n) {
    MatrixOf m(n, n);
    for (int64_t i = 0; i < n; ++i) m(i, i) = 1;
    return m;
  }
};
using Matrix = MatrixOf<double>;
using ComplexMatrix = MatrixOf<std::complex<double>>;

Matrix transposed(const Matrix& a);
bool all_finite(const Matrix& a);
Matrix symmetric_part(const Matrix& a);  // (a + a') / 2

// The lower factor L of a = L L'; all NaN when a is not positive definite. Reads the lower triangle.
Matrix cholesky(Matrix a);

enum class Triangle : uint8_t { Lower, Upper };
// Solves a x = b, or a' x = b, in place of b; reads one triangle of a. A zero on the diagonal gives infinities and NaN.
void solve_triangular(const Matrix& a, Matrix& b, Triangle triangle, bool transpose, bool unit_diagonal);

// Row i was exchanged with row pivots[i], in order; permutation[i] is the row of the input that ended up in row i.
struct Lu {
  Matrix packed;
  std::vector<int32_t> pivots, permutation;
};
Lu lu(Matrix a);

// Householder's QR with LAPACK's signs. q is m x k and r is k x n, where k is min(m, n), or m when complete.
struct Qr {
  Matrix q, r;
};
Qr qr(Matrix a, bool complete);

// a = u diag(s) vt with s descending. Signs: the largest component of each column of u is positive (then of the rows of vt beyond).
struct Svd {
  Matrix u;
  std::vector<double> s;
  Matrix vt;
};
Svd svd(const Matrix& a, bool full);

// a = v diag(w) v' with w ascending; a is symmetric. Signs: the largest component of each column of v is positive.
struct Eigh {
  std::vector<double> w;
  Matrix v;
};
Eigh eigh(Matrix a);

// a v = v diag(w), w in ascending order of real, then imaginary part; columns of v have length 1 and a real positive largest component.
struct Eig {
  std::vector<std::complex<double>> w;
  ComplexMatrix v;
};
Eig eig(const Matrix& a);

}  // namespace tandem::ops
