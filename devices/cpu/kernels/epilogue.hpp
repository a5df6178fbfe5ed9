// The epilogue of a product, run on each finished block while it is still in the cache.
#pragma once
#include "generated.hpp"
#include "prefetch.hpp"

namespace tandem::cpu {

class CompiledEpilogue {
 public:
  CompiledEpilogue() = default;  // nothing to do: the product itself is the result
  // `row_step`: how many elements lie between the rows of the blocks that run() is given.
  CompiledEpilogue(const codegen::Kernel& kernel, int64_t row_step, Toolbox& tools);
  explicit operator bool() const { return stage_.function != nullptr; }

  // Rows are all axes of the result but the last, counted through; columns are the last one. `block` points at element (row0, column0)
  // of the product. Writes the kernel's outputs; any thread may call it for its own block.
  void run(const device::LaunchArgs& args, const void* block, int64_t row0, int64_t row1, int64_t column0, int64_t column1) const;
  // What run() will read and write elementwise there and no cache has, to be prefetched while the product is still computed.
  void add_to(const device::LaunchArgs& args, int64_t row, int64_t rows, int64_t column, int64_t columns, Prefetch& prefetch) const;

 private:
  Stage stage_;
  size_t inputs_ = 0, outputs_ = 0;
  int64_t row_step_ = 0;
  size_t element_bytes_ = 0;
  // Operands that lie as the result does; outputs come behind inputs.
  struct Stream {
    size_t pointer, element_bytes;
  };
  std::vector<Stream> streams_;
  int64_t columns_ = 0;
  int64_t line_ = 0;  // elements along which the code runs when a row has only one; 0: it runs along the rows
};

}  // namespace tandem::cpu
