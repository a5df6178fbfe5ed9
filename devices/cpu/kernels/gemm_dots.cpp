// A matrix whose rows lie contiguously times a vector: one dot product a row.
#include <algorithm>
#include <utility>

#include "cpu_program.hpp"
#include "epilogue.hpp"
#include "gemm_blocking.hpp"
#include "scratch.hpp"

namespace tandem::cpu {
namespace {

using codegen::Product;

constexpr double kChunkDotWork = 65536;  // multiplications of a chunk: a product with a vector only reads memory

class Dots final : public CpuProgram {
 public:
  Dots(const codegen::Kernel& kernel, Product p, Toolbox& tools)
      : p_(std::move(p)), set_(tiles(tools.target.wide)), inputs_(kernel.in.size()) {
    rows_are_columns_ = p_.m == 1;
    if (rows_are_columns_) codegen::swap_sides(p_);
    const auto rows = static_cast<int64_t>(kChunkDotWork / static_cast<double>(p_.k));
    chunk_rows_ = std::clamp<int64_t>(rows, 1, p_.m);
    copied_ = p_.y.row_step != 1;
    if (kernel.epilogue) epilogue_ = CompiledEpilogue(kernel, rows_are_columns_ ? chunk_rows_ : 1, tools);
    const int64_t floats = (copied_ ? round_up(p_.k, 16) : 0) + (epilogue_ ? chunk_rows_ : 0);
    scratch_ = WorkerScratch(static_cast<size_t>(floats) * sizeof(float), tools.threads);
  }
  std::string_view kernel_name() const override { return "gemm/dots"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    const auto* matrix = static_cast<const float*>(args.pointers[p_.x_input]);
    const auto* vector = static_cast<const float*>(args.pointers[p_.y_input]);
    const int64_t each = parts(p_.m, chunk_rows_), batch_chunk = std::max<int64_t>(1, static_cast<int64_t>(kChunkDotWork / p_.work()));
    pool.run(parts(p_.batches * each, batch_chunk), [&](int64_t chunk) {
      for (int64_t i = chunk * batch_chunk; i < std::min(p_.batches * each, (chunk + 1) * batch_chunk); ++i) {
        const int64_t b = i / each, row = i % each * chunk_rows_;
        rows_of(args, matrix + p_.offset(p_.x, b) + row * p_.x.row_step, vector + p_.offset(p_.y, b), b, row);
      }
    });
  }

 private:
  void rows_of(const device::LaunchArgs& args, const float* matrix, const float* vector, int64_t batch, int64_t row) const {
    const int64_t rows = std::min(chunk_rows_, p_.m - row);
    auto* scratch = static_cast<float*>(scratch_.mine(args.scratch));
    if (copied_) {
      for (int64_t k = 0; k < p_.k; ++k) scratch[k] = vector[k * p_.y.row_step];
      vector = scratch;
      scratch += round_up(p_.k, 16);
    }
    float* c = epilogue_ ? scratch : static_cast<float*>(args.pointers[inputs_]) + batch * p_.m + row;
    set_.dots(matrix, p_.x.row_step, vector, rows, p_.k, c);
    if (!epilogue_) return;
    if (rows_are_columns_)
      epilogue_.run(args, c, batch, batch + 1, row, row + rows);
    else
      epilogue_.run(args, c, batch * p_.m + row, batch * p_.m + row + rows, 0, 1);
  }

  Product p_;
  const TileSet& set_;
  size_t inputs_;
  bool rows_are_columns_ = false, copied_ = false;
  int64_t chunk_rows_ = 1;
  CompiledEpilogue epilogue_;
  WorkerScratch scratch_;
};

}  // namespace

std::shared_ptr<const CpuProgram> make_gemm_dots(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  std::optional<Product> p = product_for_tiles(kernel, refusal);
  if (!p) return nullptr;
  const bool rows = p->n == 1 && p->x.column_step == 1, columns = p->m == 1 && p->y.row_step == 1 && p->y.column_step != 1;
  if (kernel.in[0].dtype != DType::F32 || (!rows && !columns)) {
    refusal = "no float32 matrix with contiguous rows times a vector";
    return nullptr;
  }
  return std::make_shared<Dots>(kernel, *std::move(p), tools);
}

}  // namespace tandem::cpu
