#include "frontend/rows.hpp"

#include "frontend/memory.hpp"
#include "frontend/tensor_impl.hpp"

namespace tandem::frontend {
namespace {

int64_t row_step_bytes(const engine::TensorRef& array) {
  return array.layout.strides[0] * static_cast<int64_t>(size_of(array.layout.dtype));
}

engine::TensorRef& ref_of(const Tensor& own) { return static_cast<ConcreteTensor*>(own.impl())->ref; }

}  // namespace

RowWindow::RowWindow(Tensor array) : array_(std::move(array)), window_(concrete(*concrete_ref(array_))) {}

const Tensor& RowWindow::show(int64_t first, int64_t count) {
  const engine::TensorRef& array = *concrete_ref(array_);
  if (!window_.impl()->is_unique()) window_ = concrete(array);
  engine::TensorRef& view = ref_of(window_);
  view.layout.shape[0] = count;
  view.offset = array.offset + static_cast<size_t>(first * row_step_bytes(array));
  return window_;
}

RowBuffer::RowBuffer(Tensor array, int64_t first, int64_t most_rows)
    : array_(std::move(array)), first_(first), most_rows_(most_rows), buffer_(made()) {}

Tensor RowBuffer::made() const {
  const codegen::Layout& layout = concrete_ref(array_)->layout;
  Shape shape = layout.shape;
  shape[0] = most_rows_;
  return concrete(allocate_on_host(layout.dtype, shape));
}

// The tensor itself, or its memory.
bool RowBuffer::is_kept() const { return !buffer_.impl()->is_unique() || !ref_of(buffer_).buffer->unique(); }

const Tensor& RowBuffer::fill(std::span<const int64_t> rows, device::Stream& stream) {
  const engine::TensorRef& array = *concrete_ref(array_);
  if (is_kept()) buffer_ = made();
  engine::TensorRef& buffer = ref_of(buffer_);
  buffer.layout.shape[0] = std::ssize(rows);
  Shape row = array.layout.shape;
  row[0] = 1;
  const int64_t step = row_step_bytes(array);
  const auto* first = static_cast<const char*>(array.data()) + first_ * step;
  stream.upload_rows(buffer.data(), {first, step, byte_size(row, array.layout.dtype), rows});
  return buffer_;
}

}  // namespace tandem::frontend
