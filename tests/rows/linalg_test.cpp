// Factorisations by what they promise, on every device that computes: their factors multiply to the matrix, orthogonal ones are
// orthogonal, solutions solve. Signs and phases are free here; values are compared with NumPy's where the rows fix them.
#include <complex>

#include "support.hpp"

namespace tandem::testing {
namespace {

using Number = std::complex<double>;

struct Matrix {
  size_t rows = 0, columns = 0;
  std::vector<Number> values;
  Matrix(size_t r, size_t c) : rows(r), columns(c), values(r * c) {}
  Number& operator()(size_t i, size_t j) { return values[i * columns + j]; }
  const Number& operator()(size_t i, size_t j) const { return values[i * columns + j]; }
};

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (size_t i = 0; i < c.rows; ++i)
    for (size_t j = 0; j < c.columns; ++j)
      for (size_t k = 0; k < a.columns; ++k) c(i, j) += a(i, k) * b(k, j);
  return c;
}
Matrix transposed(const Matrix& a) {
  Matrix t(a.columns, a.rows);
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < a.columns; ++j) t(j, i) = a(i, j);
  return t;
}
Matrix identity(size_t n) {
  Matrix m(n, n);
  for (size_t i = 0; i < n; ++i) m(i, i) = 1;
  return m;
}
Matrix diagonal(const Matrix& vector, size_t rows, size_t columns) {
  Matrix m(rows, columns);
  for (size_t i = 0; i < vector.rows; ++i) m(i, i) = vector(i, 0);
  return m;
}
// The part on and below the diagonal (lower), or on and above it; with ones on it when `unit`.
Matrix triangle(const Matrix& a, bool lower, bool unit, size_t rows, size_t columns) {
  Matrix t(rows, columns);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      if (lower ? j <= i : j >= i) t(i, j) = unit && i == j ? Number(1) : a(i, j);
  return t;
}

// Matrix `index` of a stack whose last `axes` axes are a matrix (2), or a vector (1) that becomes one column.
Matrix taken(const ir::Literal& l, size_t index, int axes = 2) {
  const Shape& s = l.shape;
  const auto last = static_cast<size_t>(s.back());
  Matrix m = axes == 2 ? Matrix(static_cast<size_t>(s[s.size() - 2]), last) : Matrix(last, 1);
  for (size_t i = 0; i < m.values.size(); ++i) m.values[i] = at(l, index * m.values.size() + i);
  return m;
}

void expect_equal(const Matrix& a, const Matrix& b, double slack, const std::string& what) {
  ASSERT_EQ(a.rows, b.rows) << what;
  ASSERT_EQ(a.columns, b.columns) << what;
  for (size_t i = 0; i < a.values.size(); ++i) ASSERT_LE(std::abs(a.values[i] - b.values[i]), slack) << what << ", element " << i;
}

struct Case {
  const ir::Sample& sample;
  const std::vector<ir::Literal>&in, &out;
  double slack;
  std::string what;

  size_t count() const {  // of matrices in operand 0
    const Shape& s = in[0].shape;
    size_t n = 1;
    for (size_t k = 0; k + 2 < s.size(); ++k) n *= static_cast<size_t>(s[k]);
    return n;
  }
  void same(const Matrix& a, const Matrix& b, const std::string& claim) const { expect_equal(a, b, slack, what + ": " + claim); }
  void orthonormal_columns(const Matrix& q, const std::string& name) const {
    same(transposed(q) * q, identity(q.columns), name + " has orthonormal columns");
  }
  void ordered(const Matrix& w, bool ascending) const {
    for (size_t i = 1; i < w.rows; ++i) EXPECT_LE(0, (ascending ? 1 : -1) * (w(i, 0).real() - w(i - 1, 0).real())) << what << ": in order";
  }
};

Matrix symmetric_part(const Matrix& a) {
  Matrix s = transposed(a);
  for (size_t i = 0; i < s.values.size(); ++i) s.values[i] = (s.values[i] + a.values[i]) / 2.0;
  return s;
}

void check_cholesky(const Case& c, size_t i) {
  const Matrix a = taken(c.in[0], i), l = taken(c.out[0], i);
  c.same(l, triangle(l, true, false, l.rows, l.columns), "L is lower triangular");
  c.same(l * transposed(l), symmetric_part(a), "L L' is the matrix");
}

void check_lu(const Case& c, size_t i) {
  const Matrix a = taken(c.in[0], i), packed = taken(c.out[0], i), pivots = taken(c.out[1], i, 1), order = taken(c.out[2], i, 1);
  const size_t inner = std::min(a.rows, a.columns);
  const Matrix l = triangle(packed, true, true, a.rows, inner), u = triangle(packed, false, false, inner, a.columns);
  Matrix permuted(a.rows, a.columns);
  std::vector<size_t> rows(a.rows);
  for (size_t r = 0; r < a.rows; ++r) rows[r] = r;
  for (size_t r = 0; r < pivots.rows; ++r) std::swap(rows[r], rows[static_cast<size_t>(pivots(r, 0).real())]);
  for (size_t r = 0; r < a.rows; ++r) {
    EXPECT_EQ(static_cast<double>(rows[r]), order(r, 0).real()) << c.what << ": pivots and permutation agree";
    for (size_t j = 0; j < a.columns; ++j) permuted(r, j) = a(rows[r], j);
  }
  c.same(l * u, permuted, "L U is the permuted matrix");
  for (const Number& x : l.values) EXPECT_LE(std::abs(x), 1 + c.slack) << c.what << ": pivots are the largest";
}

void check_qr(const Case& c, size_t i) {
  const Matrix a = taken(c.in[0], i), q = taken(c.out[0], i), r = taken(c.out[1], i);
  c.same(q * r, a, "Q R is the matrix");
  c.orthonormal_columns(q, "Q");
  c.same(r, triangle(r, false, false, r.rows, r.columns), "R is upper triangular");
}

void check_svd(const Case& c, size_t i) {
  const Matrix a = taken(c.in[0], i), u = taken(c.out[0], i), s = taken(c.out[1], i, 1), vh = taken(c.out[2], i);
  c.same(u * diagonal(s, u.columns, vh.rows) * vh, a, "U diag(s) V' is the matrix");
  c.orthonormal_columns(u, "U");
  c.orthonormal_columns(transposed(vh), "V");
  c.ordered(s, false);
  for (const Number& x : s.values) EXPECT_GE(x.real(), 0) << c.what;
}

void check_eigh(const Case& c, size_t i) {
  const Matrix a = symmetric_part(taken(c.in[0], i)), w = taken(c.out[0], i, 1), v = taken(c.out[1], i);
  c.same(a * v, v * diagonal(w, w.rows, w.rows), "A V is V diag(w)");
  c.orthonormal_columns(v, "V");
  c.ordered(w, true);
}

void check_eig(const Case& c, size_t i) {
  const auto joined = [](Matrix re, const Matrix& im) {
    for (size_t k = 0; k < re.values.size(); ++k) re.values[k] += Number(0, 1) * im.values[k];
    return re;
  };
  const Matrix a = taken(c.in[0], i), w = joined(taken(c.out[0], i, 1), taken(c.out[1], i, 1));
  const Matrix v = joined(taken(c.out[2], i), taken(c.out[3], i));
  c.same(a * v, v * diagonal(w, w.rows, w.rows), "A V is V diag(w)");
  c.ordered(w, true);
  for (size_t j = 0; j < v.columns; ++j) {
    double length = 0;
    for (size_t k = 0; k < v.rows; ++k) length += std::norm(v(k, j));
    EXPECT_NEAR(length, 1, c.slack) << c.what << ": vectors have length 1";
  }
  Number trace = 0, sum = 0;
  for (size_t k = 0; k < a.rows; ++k) trace += a(k, k), sum += w(k, 0);
  EXPECT_LE(std::abs(trace - sum), c.slack) << c.what << ": all eigenvalues are there";
}

void check_triangular_solve(const Case& c, size_t i) {
  const auto flag = [&](const char* name) { return c.sample.attrs.get<bool>(name); };
  const Matrix a = taken(c.in[0], i);
  const Matrix t = triangle(a, flag("lower"), flag("unit"), a.rows, a.columns);
  c.same((flag("transpose") ? transposed(t) : t) * taken(c.out[0], i), taken(c.in[1], i), "the solution solves");
}

void check_inverse(const Case& c, size_t i) {
  c.same(taken(c.in[0], i) * taken(c.out[0], i), identity(taken(c.in[0], i).rows), "A A^-1 is 1");
}

// Leading axes broadcast, so it is the solutions that are counted. A stack of one serves all.
void check_solve(const Case& c) {
  const int axes = c.in[1].shape.size() + 1 == c.in[0].shape.size() ? 1 : 2;
  const auto stack = [](const ir::Literal& l, int matrix_axes) {
    size_t n = 1;
    for (size_t k = 0; k + static_cast<size_t>(matrix_axes) < l.shape.size(); ++k) n *= static_cast<size_t>(l.shape[k]);
    return n;
  };
  for (size_t i = 0; i < stack(c.out[0], axes); ++i)
    c.same(taken(c.in[0], i % stack(c.in[0], 2)) * taken(c.out[0], i, axes), taken(c.in[1], i % stack(c.in[1], axes), axes), "A x is b");
}

struct Property {
  const char* op;
  void (*check)(const Case&, size_t matrix);
  void (*check_all)(const Case&) = nullptr;
};
constexpr Property kProperties[] = {
    {"cholesky", check_cholesky},   {"lu", check_lu},   {"qr", check_qr},           {"svd", check_svd},
    {"eigh", check_eigh},           {"eig", check_eig}, {"inverse", check_inverse}, {"triangular_solve", check_triangular_solve},
    {"solve", nullptr, check_solve}};

class Factorization : public ::testing::TestWithParam<Property> {};

TEST_P(Factorization, KeepsItsPromise) {
  const ir::OpDef& op = ops::table().at(GetParam().op);
  for (const char* device : {"cpu", "ref"})
    for_each_sample(op,
                    [&](const ir::Sample& s, const std::vector<DType>& types, const std::vector<ir::Literal>& in, const std::string& what) {
                      const auto out = run_eager(engine_on(device), op, s.attrs, in);
                      const Case c{s, in, out, types[0] == DType::F64 ? 1e-11 : 2e-5, what + " on " + device};
                      if (GetParam().check_all) return GetParam().check_all(c);
                      for (size_t i = 0; i < c.count(); ++i) GetParam().check(c, i);
                    });
}

INSTANTIATE_TEST_SUITE_P(Linalg, Factorization, ::testing::ValuesIn(kProperties), [](const auto& i) { return std::string(i.param.op); });

}  // namespace
}  // namespace tandem::testing
