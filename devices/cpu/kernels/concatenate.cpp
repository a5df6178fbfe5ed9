// Tensors one behind the other: runs of bytes are copied, where generated code would ask for each element which operand it comes from.
#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "cpu_program.hpp"

namespace tandem::cpu {
namespace {

constexpr size_t kShortestRun = 64;        // bytes: below, a call of memcpy costs more than it moves
constexpr size_t kChunkBytes = 256 << 10;  // about 10 us of copying

class Concatenate final : public CpuProgram {
 public:
  Concatenate(std::vector<size_t> runs, int64_t rows) : runs_(std::move(runs)), rows_(rows) {
    for (size_t r : runs_) row_bytes_ += r;
    rows_per_chunk_ = std::max<int64_t>(1, static_cast<int64_t>(kChunkBytes / std::max<size_t>(row_bytes_, 1)));
  }
  std::string_view kernel_name() const override { return "concatenate/copy"; }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    pool.run((rows_ + rows_per_chunk_ - 1) / rows_per_chunk_, [&](int64_t chunk) {
      const int64_t end = std::min(rows_, (chunk + 1) * rows_per_chunk_);
      for (int64_t row = chunk * rows_per_chunk_; row < end; ++row) {
        char* to = static_cast<char*>(args.pointers[runs_.size()]) + static_cast<size_t>(row) * row_bytes_;
        for (size_t i = 0; i < runs_.size(); to += runs_[i], ++i)
          if (runs_[i]) std::memcpy(to, static_cast<const char*>(args.pointers[i]) + static_cast<size_t>(row) * runs_[i], runs_[i]);
      }
    });
  }

 private:
  std::vector<size_t> runs_;  // bytes that each operand gives to a row
  int64_t rows_;
  size_t row_bytes_ = 0;
  int64_t rows_per_chunk_ = 1;
};

}  // namespace

std::shared_ptr<const CpuProgram> make_concatenate(const codegen::Kernel& kernel, Toolbox&, std::string& refusal) {
  if (kernel.op->name != "concatenate_few") return nullptr;
  const auto axis = static_cast<size_t>(normalize_axis(kernel.attrs.get<int64_t>("axis"), kernel.out[0].shape.rank(), kernel.op->name));
  int64_t rows = 1;
  for (size_t j = 0; j < axis; ++j) rows *= kernel.out[0].shape[j];
  std::vector<size_t> runs;
  for (const codegen::Layout& o : kernel.in) {
    if (!o.is_dense()) {
      refusal = "an operand is not contiguous";
      return nullptr;
    }
    size_t run = size_of(o.dtype);
    for (size_t j = axis; j < o.shape.size(); ++j) run *= static_cast<size_t>(o.shape[j]);
    if (run > 0 && run < kShortestRun && rows > 1) {
      refusal = cat("runs of ", run, " bytes are too short");
      return nullptr;
    }
    runs.push_back(run);
  }
  return std::make_shared<Concatenate>(std::move(runs), rows);
}

}  // namespace tandem::cpu
