// Products of matrices through OpenBLAS, cut into blocks for the engine's threads. How they are cut depends on the shapes alone.
#include <algorithm>
#include <climits>
#include <optional>

#include "base/text.hpp"
#include "codegen/product.hpp"
#include "cpu_program.hpp"
#include "epilogue.hpp"
#include "openblas.hpp"
#include "scratch.hpp"
#include "work.hpp"

namespace tandem::cpu {
namespace {

using codegen::Matrix;
using codegen::Product;
using codegen::take_apart;

// cblas.h's numbers.
enum Order : int { kRowMajor = 101 };
enum Transpose : int { kPlain = 111, kTransposed = 112 };
template <class T>
using Gemm = void (*)(Order, Transpose, Transpose, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, T beta, T* c,
                      int ldc);
template <class T>
using Gemv = void (*)(Order, Transpose, int m, int n, T alpha, const T* a, int lda, const T* x, int incx, T beta, T* y, int incy);

constexpr double kChunkGemmWork = 1e6;    // multiplications a chunk should have at the least
constexpr double kChunkGemvWork = 65536;  // a product with a vector only reads memory
constexpr int64_t kMostChunks = 16;       // a matrix; more would only pack operands more often
constexpr int64_t kShortestEdge = 64, kEdgeUnit = 16;

// How BLAS is told of a matrix: rows or columns must be contiguous, and what lies between them must be no less than their length.
struct BlasMatrix {
  Transpose transpose = kPlain;
  int64_t leading = 1;
};
std::optional<BlasMatrix> blas_matrix(const Matrix& m, int64_t rows, int64_t columns) {
  const auto fits = [](int64_t step, int64_t count, int64_t length) { return count <= 1 || (step >= length && step <= INT_MAX); };
  const int64_t longest = std::max<int64_t>({rows, columns, 1});
  if ((m.column_step == 1 || columns <= 1) && fits(m.row_step, rows, columns)) return BlasMatrix{kPlain, rows <= 1 ? longest : m.row_step};
  if ((m.row_step == 1 || rows <= 1) && fits(m.column_step, columns, rows))
    return BlasMatrix{kTransposed, columns <= 1 ? longest : m.column_step};
  return {};
}

// Edges of the blocks that one product is cut into.
struct Blocks {
  int64_t rows, columns;  // of a block
  int64_t row_count, column_count;
};
Blocks cut(const Product& p) {
  const bool vector = p.m == 1 || p.n == 1;
  const double wanted = std::min<double>(kMostChunks, p.work() / (vector ? kChunkGemvWork : kChunkGemmWork));
  int64_t row_cuts = 1, column_cuts = 1;
  while (static_cast<double>(row_cuts * column_cuts * 2) <= wanted) {
    const int64_t height = p.m / row_cuts, width = p.n / column_cuts;
    if (std::max(height, width) < 2 * kShortestEdge) break;
    (height >= width ? row_cuts : column_cuts) *= 2;
  }
  const auto edge = [](int64_t n, int64_t cuts) { return cuts == 1 ? n : ((n + cuts - 1) / cuts + kEdgeUnit - 1) / kEdgeUnit * kEdgeUnit; };
  Blocks b{edge(p.m, row_cuts), edge(p.n, column_cuts), 1, 1};
  b.row_count = (p.m + b.rows - 1) / b.rows;
  b.column_count = (p.n + b.columns - 1) / b.columns;
  return b;
}

template <class T> class GemmProgram final : public CpuProgram {
 public:
  GemmProgram(const codegen::Kernel& kernel, Toolbox& tools, Product p, BlasMatrix x, BlasMatrix y, Gemm<T> gemm, Gemv<T> gemv)
      : p_(std::move(p)), x_(x), y_(y), blocks_(cut(p_)), inputs_(kernel.in.size()), gemm_(gemm), gemv_(gemv) {
    if (kernel.epilogue) {
      epilogue_ = CompiledEpilogue(kernel, blocks_.columns, tools);
      scratch_ = WorkerScratch(static_cast<size_t>(blocks_.rows * blocks_.columns) * sizeof(T), tools.threads);
    }
    // Small products of a batch go together.
    if (blocks_.row_count * blocks_.column_count == 1)
      batches_per_chunk_ = std::clamp<int64_t>(static_cast<int64_t>(kChunkGemmWork / 4 / p_.work()), 1, std::max<int64_t>(p_.batches, 1));
  }
  std::string_view kernel_name() const override { return "gemm/openblas"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    const int64_t per_product = blocks_.row_count * blocks_.column_count;
    if (per_product > 1) {
      pool.run(p_.batches * per_product, [&](int64_t i) { block(args, i / per_product, i % per_product); });
      return;
    }
    const int64_t chunks = (p_.batches + batches_per_chunk_ - 1) / batches_per_chunk_;
    pool.run(chunks, [&](int64_t i) {
      for (int64_t b = i * batches_per_chunk_; b < std::min(p_.batches, (i + 1) * batches_per_chunk_); ++b) block(args, b, 0);
    });
  }

 private:
  void block(const device::LaunchArgs& args, int64_t batch, int64_t index) const {
    const int64_t row = index / blocks_.column_count * blocks_.rows, column = index % blocks_.column_count * blocks_.columns;
    const auto m = static_cast<int>(std::min(blocks_.rows, p_.m - row)), n = static_cast<int>(std::min(blocks_.columns, p_.n - column));
    const auto k = static_cast<int>(p_.k);
    const T* a = static_cast<const T*>(args.pointers[p_.x_input]) + p_.offset(p_.x, batch) + row * p_.x.row_step;
    const T* b = static_cast<const T*>(args.pointers[p_.y_input]) + p_.offset(p_.y, batch) + column * p_.y.column_step;
    T* c = static_cast<T*>(args.pointers[inputs_]) + (batch * p_.m + row) * p_.n + column;
    auto ldc = static_cast<int>(p_.n);
    if (epilogue_) {
      c = static_cast<T*>(scratch_.mine(args.scratch));
      ldc = static_cast<int>(blocks_.columns);
    }
    const auto lda = static_cast<int>(x_.leading), ldb = static_cast<int>(y_.leading);
    // As BLAS sees it, a transposed matrix has its stored rows and columns.
    if (p_.n == 1)
      gemv_(kRowMajor, x_.transpose, x_.transpose == kPlain ? m : k, x_.transpose == kPlain ? k : m, T(1), a, lda, b,
            vector_step(p_.y.row_step), T(0), c, 1);
    else if (p_.m == 1)
      gemv_(kRowMajor, y_.transpose == kPlain ? kTransposed : kPlain, y_.transpose == kPlain ? k : n, y_.transpose == kPlain ? n : k, T(1),
            b, ldb, a, vector_step(p_.x.column_step), T(0), c, 1);
    else
      gemm_(kRowMajor, x_.transpose, y_.transpose, m, n, k, T(1), a, lda, b, ldb, T(0), c, ldc);
    if (epilogue_) epilogue_.run(args, c, batch * p_.m + row, batch * p_.m + row + m, column, column + n);
  }
  int vector_step(int64_t step) const { return p_.k == 1 ? 1 : static_cast<int>(step); }

  Product p_;
  BlasMatrix x_, y_;
  Blocks blocks_;
  size_t inputs_;
  Gemm<T> gemm_;
  Gemv<T> gemv_;
  int64_t batches_per_chunk_ = 1;
  CompiledEpilogue epilogue_;
  WorkerScratch scratch_;
};

template <class T>
std::shared_ptr<const CpuProgram> make(const codegen::Kernel& kernel, Toolbox& tools, const char* gemm_name, const char* gemv_name,
                                       std::string& refusal) {
  Product p = take_apart(kernel);
  if (p.work() < kTinyWork || p.batches == 0) {  // also what is empty
    refusal = cat("too small, ", p.m, "x", p.k, "x", p.n);
    return nullptr;
  }
  if (p.m == 1 && p.n == 1) {
    refusal = "a product of two vectors is a sum";
    return nullptr;
  }
  if (std::max({p.m, p.n, p.k}) > INT_MAX) {
    refusal = cat("a size is beyond 32 bits, ", p.m, "x", p.k, "x", p.n);
    return nullptr;
  }
  const auto x = blas_matrix(p.x, p.m, p.k), y = blas_matrix(p.y, p.k, p.n);
  // A vector that lies at equal steps will do, one that is repeated will not.
  const bool x_vector = p.m == 1 && p.x.column_step > 0 && p.x.column_step <= INT_MAX,
             y_vector = p.n == 1 && p.y.row_step > 0 && p.y.row_step <= INT_MAX;
  if ((!x && !x_vector) || (!y && !y_vector)) {
    refusal = "neither rows nor columns of an operand are contiguous";
    return nullptr;
  }
  Gemm<T> gemm;
  Gemv<T> gemv;
  if (!openblas_function(gemm_name, gemm, refusal) || !openblas_function(gemv_name, gemv, refusal)) return nullptr;
  return std::make_shared<GemmProgram<T>>(kernel, tools, std::move(p), x.value_or(BlasMatrix{}), y.value_or(BlasMatrix{}), gemm, gemv);
}

}  // namespace

std::shared_ptr<const CpuProgram> make_gemm_openblas(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  if (kernel.op->name != "matmul") return nullptr;
  const DType t = kernel.in[0].dtype, result = (kernel.epilogue ? kernel.epilogue->product : kernel.out[0]).dtype;
  if ((t != DType::F32 && t != DType::F64) || result != t) {
    refusal = cat("takes float32 and float64, not ", name(t == result ? t : result));
    return nullptr;
  }
  return t == DType::F32 ? make<float>(kernel, tools, "cblas_sgemm", "cblas_sgemv", refusal)
                         : make<double>(kernel, tools, "cblas_dgemm", "cblas_dgemv", refusal);
}

}  // namespace tandem::cpu
