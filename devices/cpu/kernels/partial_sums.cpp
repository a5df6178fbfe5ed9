#include "partial_sums.hpp"

#include <algorithm>

#include "tile_table.hpp"

namespace tandem::cpu {

static constexpr int64_t kSumRows = 64;  // that a chunk of the sum has

PartialSums::PartialSums(const codegen::Kernel& kernel, int64_t parts, int64_t rows, int64_t columns, Toolbox& tools)
    : parts_(parts), rows_(rows), columns_(columns), inputs_(kernel.in.size()) {
  if (kernel.epilogue) epilogue_ = CompiledEpilogue(kernel, columns, tools);
}

size_t PartialSums::scratch_bytes() const {
  return in_place() ? 0 : codegen::align_up(static_cast<size_t>(parts_ * rows_ * columns_) * sizeof(float));
}

float* PartialSums::part(const device::LaunchArgs& args, int64_t index) const {
  return in_place() ? result(args) : static_cast<float*>(args.scratch) + index * rows_ * columns_;
}

void PartialSums::finish(const device::LaunchArgs& args, ThreadPool& pool) const {
  if (in_place()) return;
  pool.run(cpu::parts(rows_, kSumRows), [&](int64_t i) {
    const int64_t row0 = i * kSumRows, row1 = std::min(rows_, row0 + kSumRows);
    float* sum = epilogue_ ? part(args, 0) : result(args);
    add(part(args, 0), row0 * columns_, row1 * columns_, sum);
    if (epilogue_) epilogue_.run(args, sum + row0 * columns_, row0, row1, 0, columns_);
  });
}

// `to` may be the first part.
void PartialSums::add(const float* partial, int64_t begin, int64_t end, float* to) const {
  if (to != partial) std::copy(partial + begin, partial + end, to + begin);
  for (int64_t p = 1; p < parts_; ++p) {
    const float* from = partial + p * rows_ * columns_;
    for (int64_t i = begin; i < end; ++i) to[i] += from[i];
  }
}

}  // namespace tandem::cpu
