// Tensors that show some rows of an array, again and again, without allocating: a window that moves along it, and a buffer that rows are
// copied into. Who was given one may keep it (a step returns it, or puts it into a variable); then the next rows are another tensor.
#pragma once
#include <tandem/tensor.hpp>

#include "device/stream.hpp"

namespace tandem::frontend {

// A view of rows that lie one behind the other.
class RowWindow {
 public:
  explicit RowWindow(Tensor array);
  const Tensor& show(int64_t first, int64_t count);

 private:
  Tensor array_, window_;
};

// Rows in any order, copied. The array's rows are dense, in memory that the host reaches.
class RowBuffer {
 public:
  RowBuffer(Tensor array, int64_t first, int64_t most_rows);
  // Rows by number, counted from `first`. They are there when the stream has come to them; `rows` stay as they are until then.
  const Tensor& fill(std::span<const int64_t> rows, device::Stream& stream);

 private:
  Tensor made() const;
  bool is_kept() const;

  Tensor array_;
  int64_t first_, most_rows_;
  Tensor buffer_;
};

}  // namespace tandem::frontend
