// Numbers between the user's memory and the device's: copies, views, conversions.
#pragma once
#include <functional>

#include "engine/engine.hpp"

namespace tandem::frontend {

inline engine::Engine& active_engine() { return engine::default_engine(); }

engine::TensorRef allocate(DType dtype, const Shape& shape);  // dense, not filled
engine::TensorRef allocate_on_host(DType dtype, const Shape& shape);
// The device whose memory the host reaches: the engine's own, or the CPU beside it.
device::Device& host_device();
engine::TensorRef upload(const void* data, DType dtype, const Shape& shape);
engine::TensorRef generate(DType dtype, const Shape& shape, const std::function<double(int64_t)>& value);  // value(i) for each element
// The user's memory as a tensor on the host's device; `release` runs once, when nothing uses it any more.
engine::TensorRef borrow(const void* data, DType dtype, const Shape& shape, const Strides& strides, std::function<void()> release);
bool is_borrowed(const engine::TensorRef& t);
// In memory that the engine's own device gave, which a variable may keep and a step write over.
bool is_the_engines(const engine::TensorRef& t);
engine::TensorRef dense_copy(const engine::TensorRef& t);
// Where the host finds the first element; UserError in the name of `what` when the memory is a device's own.
const void* host_address(const engine::TensorRef& t, const char* what);
// All elements in row-major order, converted: integers saturate, NaN becomes 0 in an integer, anything but 0 is true.
void read(const engine::TensorRef& t, DType as, void* to);

}  // namespace tandem::frontend
