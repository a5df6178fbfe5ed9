// Factorisations through the LAPACK inside OpenBLAS, one matrix of a batch a chunk. As the rows say: in float64, rounded once, and with
// the signs and orders of ops/factorize.hpp, whose plain routines also serve what LAPACK should not see (NaN) or does not finish.
#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/text.hpp"
#include "cpu_program.hpp"
#include "openblas.hpp"
#include "ops/factorize.hpp"

namespace tandem::cpu {
namespace {

using ir::HostTensor;
using ops::Matrix;

constexpr int64_t kSmallestSide = 16;  // below, calling a library costs more than it gives

// LAPACK is Fortran: everything by address, matrices by columns. cblas takes rows.
struct Functions {
  void (*potrf)(const char* uplo, const int* n, double* a, const int* lda, int* info);
  void (*getrf)(const int* m, const int* n, double* a, const int* lda, int* pivots, int* info);
  void (*geqrf)(const int* m, const int* n, double* a, const int* lda, double* tau, double* work, const int* lwork, int* info);
  void (*orgqr)(const int* m, const int* n, const int* k, double* a, const int* lda, const double* tau, double* work, const int* lwork,
                int* info);
  void (*gesdd)(const char* job, const int* m, const int* n, double* a, const int* lda, double* s, double* u, const int* ldu, double* vt,
                const int* ldvt, double* work, const int* lwork, int* iwork, int* info);
  void (*syevd)(const char* job, const char* uplo, const int* n, double* a, const int* lda, double* w, double* work, const int* lwork,
                int* iwork, const int* liwork, int* info);
  void (*geev)(const char* left, const char* right, const int* n, double* a, const int* lda, double* wr, double* wi, double* vl,
               const int* ldvl, double* vr, const int* ldvr, double* work, const int* lwork, int* info);
  void (*trsm)(int order, int side, int uplo, int trans, int diag, int m, int n, double alpha, const double* a, int lda, double* b,
               int ldb);

  bool load(std::string& why) {
    return openblas_function("dpotrf_", potrf, why) && openblas_function("dgetrf_", getrf, why) &&
           openblas_function("dgeqrf_", geqrf, why) && openblas_function("dorgqr_", orgqr, why) &&
           openblas_function("dgesdd_", gesdd, why) && openblas_function("dsyevd_", syevd, why) && openblas_function("dgeev_", geev, why) &&
           openblas_function("cblas_dtrsm", trsm, why);
  }
};

int as_int(int64_t n) { return static_cast<int>(n); }

// A routine that first says how much work space it wants, then uses it.
template <class F> int with_work(F call) {
  double wanted = 0;
  int info = 0, size = -1;
  call(&wanted, &size, &info);
  if (info != 0) return info;
  size = static_cast<int>(std::min(wanted, static_cast<double>(INT_MAX)));
  std::vector<double> work(static_cast<size_t>(std::max(size, 1)));
  call(work.data(), &size, &info);
  return info;
}

// By columns, the upper triangle of a symmetric matrix is what rows call the lower one.
Matrix cholesky(const Functions& f, Matrix a) {
  const int n = as_int(a.rows);
  int info = 0;
  f.potrf("U", &n, a.v.data(), &n, &info);
  if (info != 0) return Matrix(n, n, std::numeric_limits<double>::quiet_NaN());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) a(i, j) = 0;
  return a;
}

ops::Lu lu(const Functions& f, const Matrix& a) {
  if (!ops::all_finite(a)) return ops::lu(a);
  Matrix columns = ops::transposed(a);
  const int m = as_int(a.rows), n = as_int(a.columns);
  ops::Lu r;
  r.pivots.resize(static_cast<size_t>(std::min(m, n)));
  int info = 0;
  f.getrf(&m, &n, columns.v.data(), &m, r.pivots.data(), &info);  // info > 0 is a singular matrix, whose factors are as good
  r.permutation.resize(static_cast<size_t>(m));
  std::iota(r.permutation.begin(), r.permutation.end(), 0);
  for (size_t i = 0; i < r.pivots.size(); ++i) std::swap(r.permutation[i], r.permutation[static_cast<size_t>(--r.pivots[i])]);
  r.packed = ops::transposed(columns);
  return r;
}

ops::Qr qr(const Functions& f, const Matrix& a, bool complete) {
  const int64_t steps = std::min(a.rows, a.columns), k = complete ? a.rows : steps;
  const int m = as_int(a.rows), n = as_int(a.columns), q_columns = as_int(k), reflections = as_int(steps);
  Matrix columns = ops::transposed(a);
  std::vector<double> tau(static_cast<size_t>(std::max<int64_t>(steps, 1)));
  int info =
      with_work([&](double* work, int* size, int* status) { f.geqrf(&m, &n, columns.v.data(), &m, tau.data(), work, size, status); });
  ops::Qr r{{}, Matrix(k, a.columns)};
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = i; j < a.columns; ++j) r.r(i, j) = columns(j, i);
  Matrix q(k, a.rows);  // by columns: a.rows x k
  std::copy_n(columns.v.begin(), steps * a.rows, q.v.begin());
  if (info == 0)
    info = with_work([&](double* work, int* size, int* status) {
      f.orgqr(&m, &q_columns, &reflections, q.v.data(), &m, tau.data(), work, size, status);
    });
  if (info != 0) return ops::qr(a, complete);
  r.q = ops::transposed(q);
  return r;
}

// Whether the component with the largest magnitude is negative, of `count` numbers `step` apart.
bool points_down(const double* v, int64_t count, int64_t step) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i)
    if (std::fabs(v[i * step]) > std::fabs(largest)) largest = v[i * step];
  return largest < 0;
}
void negate(double* v, int64_t count, int64_t step) {
  for (int64_t i = 0; i < count; ++i) v[i * step] = -v[i * step];
}

// a by rows is a' by columns, and a' = V S U': so LAPACK's U is our V' by rows and its V' our U.
ops::Svd svd(const Functions& f, const Matrix& a, bool full) {
  const int64_t k = std::min(a.rows, a.columns);
  ops::Svd r{Matrix(a.rows, full ? a.rows : k), std::vector<double>(static_cast<size_t>(k)), Matrix(full ? a.columns : k, a.columns)};
  Matrix copy = a;
  const int m = as_int(a.columns), n = as_int(a.rows), ldvt = as_int(r.u.columns);
  std::vector<int> iwork(static_cast<size_t>(8 * k));
  const int info = with_work([&](double* work, int* size, int* status) {
    f.gesdd(full ? "A" : "S", &m, &n, copy.v.data(), &m, r.s.data(), r.vt.v.data(), &m, r.u.v.data(), &ldvt, work, size, iwork.data(),
            status);
  });
  if (info != 0) return ops::svd(a, full);
  for (int64_t j = 0; j < std::max(r.u.columns, r.vt.rows); ++j) {
    const bool in_u = j < r.u.columns, in_v = j < r.vt.rows;
    if (!(in_u ? points_down(&r.u.v[static_cast<size_t>(j)], r.u.rows, r.u.columns) : points_down(&r.vt(j, 0), r.vt.columns, 1))) continue;
    if (in_u) negate(&r.u.v[static_cast<size_t>(j)], r.u.rows, r.u.columns);
    if (in_v && (j < k || !in_u)) negate(&r.vt(j, 0), r.vt.columns, 1);
  }
  return r;
}

ops::Eigh eigh(const Functions& f, const Matrix& a) {
  const int n = as_int(a.rows);
  ops::Eigh r{std::vector<double>(static_cast<size_t>(n)), {}};
  Matrix columns = a;  // symmetric: by rows or by columns is the same
  int iwork_size = 3 + 5 * n;
  std::vector<int> iwork(static_cast<size_t>(iwork_size));
  const int info = with_work([&](double* work, int* size, int* status) {
    f.syevd("V", "U", &n, columns.v.data(), &n, r.w.data(), work, size, iwork.data(), &iwork_size, status);
  });
  if (info != 0) return ops::eigh(a);
  for (int64_t j = 0; j < n; ++j)
    if (points_down(&columns(j, 0), n, 1)) negate(&columns(j, 0), n, 1);
  r.v = ops::transposed(columns);
  return r;
}

// Length 1, and the component with the largest magnitude (the first of several) real and positive.
void normalize_column(ops::ComplexMatrix& v, int64_t j) {
  double length = 0;
  for (int64_t i = 0; i < v.rows; ++i) length = std::hypot(length, std::abs(v(i, j)));
  std::complex<double> largest = 0;
  for (int64_t i = 0; i < v.rows; ++i)
    if (std::abs(v(i, j)) > std::abs(largest) + 1e-10 * length) largest = v(i, j);
  if (largest == std::complex<double>{}) return;
  const std::complex<double> factor = std::conj(largest) / std::abs(largest) / length;
  for (int64_t i = 0; i < v.rows; ++i) v(i, j) *= factor;
}

ops::Eig eig(const Functions& f, const Matrix& a) {
  const int n = as_int(a.rows);
  const auto count = static_cast<size_t>(n);
  Matrix columns = ops::transposed(a), vectors(n, n);
  std::vector<double> re(count), im(count);
  const int one = 1;
  double unused = 0;
  const int info = with_work([&](double* work, int* size, int* status) {
    f.geev("N", "V", &n, columns.v.data(), &n, re.data(), im.data(), &unused, &one, vectors.v.data(), &n, work, size, status);
  });
  if (info != 0) return ops::eig(a);
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t i, size_t j) { return re[i] != re[j] ? re[i] < re[j] : im[i] < im[j]; });
  ops::Eig r{{}, ops::ComplexMatrix(n, n)};
  for (int64_t j = 0; j < n; ++j) {
    const size_t from = order[static_cast<size_t>(j)];
    r.w.emplace_back(re[from], im[from]);
    // Of a conjugate pair, which stands together, the first column is the real part and the second the imaginary part of the first.
    const auto first = static_cast<int64_t>(im[from] < 0 ? from - 1 : from);
    for (int64_t i = 0; i < n; ++i) {
      const double imaginary = im[from] == 0 ? 0 : vectors(first + 1, i);
      r.v(i, j) = {vectors(first, i), im[from] < 0 ? -imaginary : imaginary};
    }
    normalize_column(r.v, j);
  }
  return r;
}

void solve_triangular(const Functions& f, const Matrix& a, Matrix& b, const ir::Attrs& attrs) {
  constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112, kUpper = 121, kLower = 122, kNonUnit = 131, kUnit = 132, kLeft = 141;
  f.trsm(kRowMajor, kLeft, attrs.get<bool>("lower") ? kLower : kUpper, attrs.get<bool>("transpose") ? kTransposed : kPlain,
         attrs.get<bool>("unit") ? kUnit : kNonUnit, as_int(b.rows), as_int(b.columns), 1, a.v.data(), as_int(a.columns), b.v.data(),
         as_int(b.columns));
}

// ---- in and out of tensors ----

Matrix load_matrix(const HostTensor& t, int64_t index) {
  Matrix m(t.shape[t.shape.size() - 2], t.shape[t.shape.size() - 1]);
  const auto count = static_cast<int64_t>(m.v.size());
  if (t.dtype == DType::F32)
    std::copy_n(t.as<float>() + index * count, count, m.v.begin());
  else
    std::copy_n(t.as<double>() + index * count, count, m.v.begin());
  return m;
}

template <class T> void store(const HostTensor& t, int64_t index, const std::vector<T>& v) {
  const auto put = [&](auto* to) {
    using To = std::remove_pointer_t<decltype(to)>;
    std::transform(v.begin(), v.end(), to + index * static_cast<int64_t>(v.size()), [](T x) { return static_cast<To>(x); });
  };
  if (t.dtype == DType::F32)
    put(t.as<float>());
  else if (t.dtype == DType::F64)
    put(t.as<double>());
  else
    put(t.as<int32_t>());
}

enum class Op : uint8_t { Cholesky, TriangularSolve, Lu, Qr, Svd, Eigh, Eig };
constexpr std::pair<std::string_view, Op> kOps[] = {{"cholesky", Op::Cholesky},
                                                    {"triangular_solve", Op::TriangularSolve},
                                                    {"lu", Op::Lu},
                                                    {"qr", Op::Qr},
                                                    {"svd", Op::Svd},
                                                    {"eigh", Op::Eigh},
                                                    {"eig", Op::Eig}};

class LapackProgram final : public CpuProgram {
 public:
  LapackProgram(const codegen::Kernel& k, Op op, const Functions& functions)
      : op_(op), attrs_(k.attrs), in_(k.in), out_(k.out), f_(functions) {
    for (size_t d = 0; d + 2 < in_[0].shape.size(); ++d) batch_ *= in_[0].shape[d];
  }
  std::string_view kernel_name() const override { return "linalg/lapack"; }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    std::vector<HostTensor> in, out;
    for (size_t i = 0; i < in_.size(); ++i) in.push_back({in_[i].dtype, in_[i].shape, args.pointers[i]});
    for (size_t i = 0; i < out_.size(); ++i) out.push_back({out_[i].dtype, out_[i].shape, args.pointers[in_.size() + i]});
    pool.run(batch_, [&](int64_t i) { factorize(in, out, i); });
  }

 private:
  void factorize(std::span<const HostTensor> in, std::span<const HostTensor> out, int64_t i) const {
    const Matrix a = load_matrix(in[0], i);
    if (op_ == Op::TriangularSolve) {
      Matrix b = load_matrix(in[1], i);
      solve_triangular(f_, a, b, attrs_);
      return store(out[0], i, b.v);
    }
    if (op_ == Op::Lu) {
      const ops::Lu r = lu(f_, a);
      store(out[0], i, r.packed.v);
      store(out[1], i, r.pivots);
      return store(out[2], i, r.permutation);
    }
    if (!ops::all_finite(a)) {
      for (const HostTensor& t : out)
        store(t, i, std::vector<double>(static_cast<size_t>(element_count(t.shape) / batch_), std::numeric_limits<double>::quiet_NaN()));
      return;
    }
    decompose(a, out, i);
  }

  void decompose(const Matrix& a, std::span<const HostTensor> out, int64_t i) const {
    if (op_ == Op::Cholesky) {
      store(out[0], i, cholesky(f_, ops::symmetric_part(a)).v);
    } else if (op_ == Op::Qr) {
      const ops::Qr r = qr(f_, a, attrs_.get<std::string>("mode") == "complete");
      store(out[0], i, r.q.v);
      store(out[1], i, r.r.v);
    } else if (op_ == Op::Svd) {
      const ops::Svd r = svd(f_, a, attrs_.get<bool>("full_matrices"));
      store(out[0], i, r.u.v);
      store(out[1], i, r.s);
      store(out[2], i, r.vt.v);
    } else if (op_ == Op::Eigh) {
      const ops::Eigh r = eigh(f_, ops::symmetric_part(a));
      store(out[0], i, r.w);
      store(out[1], i, r.v.v);
    } else {
      const ops::Eig r = eig(f_, a);
      store_complex(out[0], out[1], i, r.w);
      store_complex(out[2], out[3], i, r.v.v);
    }
  }
  static void store_complex(const HostTensor& real, const HostTensor& imaginary, int64_t i, const std::vector<std::complex<double>>& v) {
    std::vector<double> re, im;
    for (const std::complex<double>& x : v) {
      re.push_back(x.real());
      im.push_back(x.imag());
    }
    store(real, i, re);
    store(imaginary, i, im);
  }

  Op op_;
  ir::Attrs attrs_;
  std::vector<codegen::Layout> in_, out_;
  Functions f_;
  int64_t batch_ = 1;
};

}  // namespace

std::shared_ptr<const CpuProgram> make_lapack(const codegen::Kernel& kernel, Toolbox&, std::string& refusal) {
  const auto* entry = std::ranges::find(kOps, kernel.op->name, &std::pair<std::string_view, Op>::first);
  if (entry == std::end(kOps)) return nullptr;
  const Shape& shape = kernel.in[0].shape;
  const int64_t m = shape[shape.size() - 2], n = shape[shape.size() - 1];
  if (std::min(m, n) < kSmallestSide) {
    refusal = cat("too small, ", m, "x", n);
    return nullptr;
  }
  // The work space of the largest routine grows with the square of the side and is counted in 32 bits.
  if (std::max(m, n) > 1 << 14) {
    refusal = cat("too large for 32-bit sizes, ", m, "x", n);
    return nullptr;
  }
  if (!std::ranges::all_of(kernel.in, [](const codegen::Layout& o) { return o.is_dense(); })) {
    refusal = "an operand is not dense";
    return nullptr;
  }
  Functions functions;
  if (!functions.load(refusal)) return nullptr;
  return std::make_shared<LapackProgram>(kernel, entry->second, functions);
}

}  // namespace tandem::cpu
