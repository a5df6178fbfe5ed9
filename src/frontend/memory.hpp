// Numbers between the user's memory and the device's: copies, views, conversions.
#pragma once
#include <functional>

#include "engine/engine.hpp"
#include "frontend/thread_state.hpp"

namespace tandem::frontend {

engine::TensorRef allocate(DType dtype, const Shape& shape);  // dense, not filled; on the device that this thread asks for
engine::TensorRef allocate(DType dtype, const Shape& shape, int32_t device);
engine::TensorRef allocate_on_host(DType dtype, const Shape& shape);
// The device whose memory the host reaches, on which pipelines run.
device::Device& host_device();
engine::TensorRef upload(const void* data, DType dtype, const Shape& shape);
engine::TensorRef generate(DType dtype, const Shape& shape, const std::function<double(int64_t)>& value);  // value(i) for each element
// While it lives, this thread works on the host's device, whatever scope it is in: as all pipelines do.
class HostScope : public WishScope {
 public:
  HostScope() : WishScope(engine::default_engine().devices().host) {}
};
// The user's memory as a tensor on the host's device; `release` runs once, when nothing uses it any more.
engine::TensorRef borrow(const void* data, DType dtype, const Shape& shape, const Strides& strides, std::function<void()> release);
bool is_borrowed(const engine::TensorRef& t);
// In memory that one of the engine's devices gave, which a variable may keep and a step write over.
bool is_the_engines(const engine::TensorRef& t);
engine::TensorRef dense_copy(const engine::TensorRef& t);  // on the device that it belongs to
// Where the host finds the first element; UserError in the name of `what` when the memory is a device's own.
const void* host_address(const engine::TensorRef& t, const char* what);
// All elements in row-major order, converted: integers saturate, NaN becomes 0 in an integer, anything but 0 is true.
void read(const engine::TensorRef& t, DType as, void* to);

}  // namespace tandem::frontend
