// Factorisations: what they promise (products, orthogonality, order, signs) on easy and on awkward matrices. Values against NumPy and
// gradients against finite differences are checked from the rows' samples.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "evaluate.hpp"
#include "ops/factorize.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
namespace {

Matrix random_matrix(int64_t m, int64_t n, unsigned seed) {
  std::mt19937 generator(seed);
  Matrix a(m, n);
  for (double& x : a.v) x = static_cast<double>(generator()) / 2147483648.0 - 1;
  return a;
}

template <class T> MatrixOf<T> multiply(const MatrixOf<T>& a, const MatrixOf<T>& b) {
  MatrixOf<T> c(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t k = 0; k < a.columns; ++k)
      for (int64_t j = 0; j < b.columns; ++j) c(i, j) += a(i, k) * b(k, j);
  return c;
}

Matrix diagonal(const std::vector<double>& d, int64_t rows, int64_t columns) {
  Matrix m(rows, columns);
  for (size_t i = 0; i < d.size(); ++i) m(static_cast<int64_t>(i), static_cast<int64_t>(i)) = d[i];
  return m;
}

template <class T> double distance(const MatrixOf<T>& a, const MatrixOf<T>& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.columns, b.columns);
  double worst = 0;
  for (size_t i = 0; i < a.v.size(); ++i) worst = std::max(worst, std::abs(a.v[i] - b.v[i]));
  return worst;
}

double largest(const Matrix& a) {
  double m = 0;
  for (double x : a.v) m = std::max(m, std::fabs(x));
  return m;
}

void expect_orthonormal_columns(const Matrix& q) { EXPECT_LT(distance(multiply(transposed(q), q), Matrix::identity(q.columns)), 1e-12); }

void expect_svd(const Matrix& a, bool full) {
  const Svd f = svd(a, full);
  const double scale = std::max(largest(a), std::numeric_limits<double>::min());
  EXPECT_TRUE(std::is_sorted(f.s.rbegin(), f.s.rend()));
  for (double s : f.s) EXPECT_GE(s, 0);
  EXPECT_LT(distance(multiply(multiply(f.u, diagonal(f.s, f.u.columns, f.vt.rows)), f.vt), a) / scale, 1e-12);
  expect_orthonormal_columns(f.u);
  expect_orthonormal_columns(transposed(f.vt));
}

void expect_eig(const Matrix& a, double tolerance = 1e-9) {
  const Eig f = eig(a);
  ComplexMatrix c(a.rows, a.columns), d(a.rows, a.columns);
  for (size_t i = 0; i < a.v.size(); ++i) c.v[i] = a.v[i];
  for (int64_t i = 0; i < a.rows; ++i) d(i, i) = f.w[static_cast<size_t>(i)];
  EXPECT_LT(distance(multiply(c, f.v), multiply(f.v, d)) / std::max(largest(a), 1e-300), tolerance);
  for (size_t i = 1; i < f.w.size(); ++i) EXPECT_LE(f.w[i - 1].real(), f.w[i].real());
}

TEST(Factorize, CholeskyAndTriangularSystems) {
  const Matrix b = random_matrix(12, 12, 1), a = multiply(b, transposed(b)), l = cholesky(a);
  EXPECT_LT(distance(multiply(l, transposed(l)), a), 1e-13);
  for (Triangle triangle : {Triangle::Lower, Triangle::Upper})
    for (bool transpose : {false, true})
      for (bool unit : {false, true}) {
        Matrix t = random_matrix(6, 6, 2);
        for (int64_t i = 0; i < 6; ++i) t(i, i) += 3;
        Matrix x = random_matrix(6, 2, 3);
        const Matrix right = x;
        solve_triangular(t, x, triangle, transpose, unit);
        for (int64_t i = 0; i < 6; ++i) {
          if (unit) t(i, i) = 1;
          for (int64_t j = 0; j < 6; ++j)
            if (triangle == Triangle::Lower ? j > i : j < i) t(i, j) = 0;
        }
        EXPECT_LT(distance(multiply(transpose ? transposed(t) : t, x), right), 1e-12);
      }
}

TEST(Factorize, Lu) {
  for (auto [m, n] : {std::pair{7, 7}, {4, 9}, {9, 4}, {1, 1}, {0, 0}}) {
    const Matrix a = random_matrix(m, n, 4);
    const Lu f = lu(a);
    const int64_t k = std::min(m, n);
    Matrix l(m, k), u(k, n), permuted(m, n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        if (j < i && j < k) l(i, j) = f.packed(i, j);
        if (j >= i) u(i, j) = f.packed(i, j);
        permuted(i, j) = a(f.permutation[static_cast<size_t>(i)], j);
      }
    for (int64_t i = 0; i < k; ++i) l(i, i) = 1;
    EXPECT_LT(distance(multiply(l, u), permuted), 1e-13);
  }
}

TEST(Factorize, Qr) {
  for (auto [m, n] : {std::pair{7, 7}, {4, 9}, {9, 4}, {1, 3}, {3, 1}})
    for (bool complete : {false, true}) {
      const Matrix a = random_matrix(m, n, 5);
      const Qr f = qr(a, complete);
      EXPECT_LT(distance(multiply(f.q, f.r), a), 1e-13);
      expect_orthonormal_columns(f.q);
      for (int64_t i = 0; i < f.r.rows; ++i)
        for (int64_t j = 0; j < std::min(i, f.r.columns); ++j) EXPECT_EQ(f.r(i, j), 0);
    }
  const Qr zero = qr(Matrix(3, 2), false);
  EXPECT_EQ(largest(zero.r), 0);
  expect_orthonormal_columns(zero.q);
}

TEST(Factorize, Svd) {
  for (bool full : {false, true}) {
    for (auto [m, n] : {std::pair{6, 6}, {30, 11}, {11, 30}, {1, 4}, {4, 1}}) expect_svd(random_matrix(m, n, 6), full);
    Matrix low = multiply(random_matrix(8, 2, 7), random_matrix(2, 5, 8));  // rank 2
    expect_svd(low, full);
    EXPECT_LT(svd(low, full).s[2], 1e-14);
    expect_svd(Matrix(4, 3), full);
    expect_svd(Matrix::identity(5), full);
    Matrix graded = random_matrix(5, 4, 9);
    for (int64_t j = 0; j < 4; ++j)
      for (int64_t i = 0; i < 5; ++i) graded(i, j) *= std::pow(10, -40 * static_cast<double>(j));
    expect_svd(graded, full);
    for (double scale : {1e-300, 1e300}) {
      Matrix extreme = random_matrix(4, 4, 10);
      for (double& x : extreme.v) x *= scale;
      expect_svd(extreme, full);
    }
  }
}

TEST(Factorize, SignsOfVectorsAreFixed) {
  const Svd f = svd(random_matrix(6, 4, 11), true);
  const Eigh e = eigh(symmetric_part(random_matrix(6, 6, 12)));
  for (const Matrix* v : {&f.u, &e.v})
    for (int64_t j = 0; j < v->columns; ++j) {
      double top = 0;
      for (int64_t i = 0; i < v->rows; ++i)
        if (std::fabs((*v)(i, j)) > std::fabs(top)) top = (*v)(i, j);
      EXPECT_GT(top, 0);
    }
}

TEST(Factorize, Eigh) {
  Matrix repeated = Matrix::identity(6);
  repeated(2, 2) = 4;
  for (const Matrix& a : {symmetric_part(random_matrix(20, 20, 13)), Matrix::identity(4), repeated, Matrix(3, 3), Matrix(1, 1, -2.0)}) {
    const Eigh f = eigh(a);
    EXPECT_TRUE(std::is_sorted(f.w.begin(), f.w.end()));
    EXPECT_LT(distance(multiply(multiply(f.v, diagonal(f.w, a.rows, a.rows)), transposed(f.v)), a), 1e-12);
    expect_orthonormal_columns(f.v);
  }
}

TEST(Factorize, Eig) {
  for (unsigned seed = 0; seed < 20; ++seed) expect_eig(random_matrix(1 + seed, 1 + seed, 20 + seed));
  Matrix rotation(2, 2);
  rotation(0, 1) = -1;
  rotation(1, 0) = 1;
  const Eig f = eig(rotation);
  EXPECT_NEAR(f.w[0].imag(), -1, 1e-15);
  EXPECT_EQ(f.w[1], std::conj(f.w[0]));
  Matrix cycle(4, 4);  // unshifted steps would turn in circles
  for (int64_t i = 0; i < 4; ++i) cycle((i + 1) % 4, i) = 1;
  expect_eig(cycle);
  Matrix defective(3, 3);
  for (int64_t i = 0; i < 3; ++i) defective(i, i) = 2;
  defective(0, 1) = defective(1, 2) = 1;
  expect_eig(defective, 1e-7);
  expect_eig(Matrix(3, 3));
  Matrix triangular = random_matrix(6, 6, 50);
  for (int64_t i = 0; i < 6; ++i)
    for (int64_t j = 0; j < i; ++j) triangular(i, j) = 0;
  expect_eig(triangular);
}

// --- rows ------------------------------------------------------------------------------------------------------------------

using test::Array;

std::vector<Array> run(std::string_view op, const std::vector<Array>& in, const ir::Attrs& attrs = {}) {
  ir::Builder b(table());
  std::vector<ir::Value> operands;
  for (const Array& a : in) operands.push_back(b.input({a.dtype, to_dims(a.shape)}));
  return test::evaluate(table(), b.finish(b.nodes(op, operands, attrs)), in);
}

bool all_nan(const Array& a) {
  const auto v = a.values();
  return std::all_of(v.begin(), v.end(), [](double x) { return std::isnan(x); });
}

TEST(Linalg, WhatHasNoAnswerIsNotAnError) {
  const Array negative = Array::of(DType::F32, {2, 2}, {1, 2, 2, 1}), singular = Array::of(DType::F64, {2, 2}, {1, 2, 2, 4});
  EXPECT_TRUE(all_nan(run("cholesky", {negative})[0]));
  for (double x : run("inverse", {singular})[0].values()) EXPECT_FALSE(std::isfinite(x));
  EXPECT_EQ(run("det", {singular})[0].at(0), 0);
  const auto logdet = run("slogdet", {singular});
  EXPECT_EQ(logdet[0].at(0), 0);
  EXPECT_EQ(logdet[1].at(0), -INFINITY);
  EXPECT_EQ(run("matrix_rank", {singular})[0].at(0), 1);
  const Array bad = Array::of(DType::F64, {2, 2}, {1, NAN, 2, INFINITY});
  for (const char* op : {"cholesky", "qr", "svd", "eigh", "eig"})
    for (const Array& out : run(op, {bad})) EXPECT_TRUE(all_nan(out)) << op;
  run("lu", {bad});
  run("solve", {bad, singular});
}

TEST(Linalg, OneBadMatrixOfABatchLeavesTheOthersAlone) {
  const Array two = Array::of(DType::F64, {2, 2, 2}, {4, 0, 0, 9, 1, 2, 2, 1});
  const auto v = run("cholesky", {two})[0].values();
  EXPECT_EQ((std::vector<double>(v.begin(), v.begin() + 4)), (std::vector<double>{2, 0, 0, 3}));
  EXPECT_TRUE(std::isnan(v[4]));
}

TEST(Linalg, Errors) {
  const auto error = [](std::string_view op, const std::vector<Array>& in, const ir::Attrs& attrs = {}) -> std::string {
    try {
      run(op, in, attrs);
    } catch (const UserError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("cholesky", {Array(DType::F32, {2, 3})}), "cholesky: the matrix must be square, got float32[2,3] (2 != 3)");
  EXPECT_EQ(error("qr", {Array(DType::F16, {3, 3})}), "qr: takes float32 and float64, got float16[3,3]\n  hint: cast to float32 first");
  EXPECT_EQ(error("solve", {Array(DType::F32, {3, 3}), Array(DType::F32, {4, 2})}),
            "solve: a is float32[3,3], b is float32[4,2]: the rows differ (3 != 4)");
  EXPECT_EQ(error("det", {Array(DType::F32, {3})}), "det: takes matrices (the last two axes of at least two), got float32[3]");
  EXPECT_EQ(error("norm", {Array(DType::F32, {3, 3})}, {{"ord", std::string("p")}}),
            "norm: ord must be 'fro', 'nuc' or a number like '1', '2', 'inf', '-inf', it is 'p'");
  EXPECT_EQ(error("qr", {Array(DType::F32, {3, 3})}, {{"mode", std::string("r")}}), "qr: mode must be 'reduced' or 'complete', it is 'r'");
}

}  // namespace
}  // namespace tandem::ops
