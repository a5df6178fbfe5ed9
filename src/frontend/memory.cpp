#include "frontend/memory.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/half.hpp"
#include "base/text.hpp"
#include "profile/recorder.hpp"

namespace tandem::frontend {
namespace {

class BorrowedBuffer final : public device::Buffer {
 public:
  BorrowedBuffer(device::Device& owner, void* memory, size_t bytes, std::function<void()> release)
      : Buffer(owner, memory, bytes), release_(std::move(release)) {}
  ~BorrowedBuffer() override {
    if (release_) release_();
  }

 private:
  std::function<void()> release_;
};

template <class T> auto widened(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return static_cast<float>(x);
  else
    return x;
}

template <class To, class From> To converted(From x) {
  const auto v = widened(x);
  using V = decltype(v);
  if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != 0;
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<std::remove_const_t<V>>) {
    if (std::isnan(v)) return 0;
    // The largest integer rounds up to a power of two as a double, so anything at or beyond it saturates.
    if (static_cast<double>(v) >= static_cast<double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    if (static_cast<double>(v) <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(v);
  } else if constexpr (std::is_integral_v<To> && !std::is_same_v<std::remove_const_t<V>, bool>) {
    if (std::in_range<To>(v)) return static_cast<To>(v);
    return v < 0 ? std::numeric_limits<To>::min() : std::numeric_limits<To>::max();
  } else {
    return static_cast<To>(v);
  }
}

// f(offset) for each element in row-major order; offsets in elements.
template <class F> void for_each_offset(const Shape& shape, const Strides& strides, F&& f) {
  const int64_t count = element_count(shape);
  Extents at;
  for (int i = 0; i < shape.rank(); ++i) at.push_back(0);
  int64_t offset = 0;
  for (int64_t n = 0; n < count; ++n) {
    f(offset);
    for (size_t axis = shape.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++at[axis] < shape[axis]) break;
      offset -= strides[axis] * shape[axis];
      at[axis] = 0;
    }
  }
}

template <class From, class To> void copy_converted(const codegen::Layout& layout, const From* from, To* to) {
  for_each_offset(layout.shape, layout.strides, [&](int64_t offset) { *to++ = converted<To>(from[offset]); });
}

bool has_host_memory(const engine::TensorRef& t) { return t.buffer->device().info().host_memory; }

// All bytes of a new, dense tensor, which the host has already.
void put(const engine::TensorRef& t, const void* host) {
  const size_t bytes = byte_size(t.layout.shape, t.layout.dtype);
  if (bytes == 0) return;
  if (has_host_memory(t)) {
    std::memcpy(t.data(), host, bytes);
  } else {
    const profile::Doing doing("a tensor that the program makes", host, bytes);
    t.buffer->device().stream(device::StreamKind::Compute).upload(t.data(), host, bytes);
  }
}

// Has `write` write them: in place, or into memory of the host that goes up then.
template <class Write> void fill(const engine::TensorRef& t, Write&& write) {
  if (has_host_memory(t)) return write(static_cast<std::byte*>(t.data()));
  std::vector<std::byte> host(byte_size(t.layout.shape, t.layout.dtype));
  write(host.data());
  put(t, host.data());
}

// The lowest and highest element offsets that a view reaches.
std::pair<int64_t, int64_t> reach(const Shape& shape, const Strides& strides) {
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return {0, -1};
    (strides[i] < 0 ? low : high) += strides[i] * (shape[i] - 1);
  }
  return {low, high};
}

}  // namespace

device::Device& host_device() {
  const engine::Devices& all = engine::default_engine().devices();
  return all.at(all.host);
}

engine::TensorRef allocate(DType dtype, const Shape& shape, int32_t device) {
  return {engine::default_engine().allocate(byte_size(shape, dtype), device), codegen::Layout::dense(dtype, shape), 0};
}

engine::TensorRef allocate(DType dtype, const Shape& shape) {
  return allocate(dtype, shape, engine::default_engine().devices().for_new(thread_state.device));
}

engine::TensorRef allocate_on_host(DType dtype, const Shape& shape) {
  return allocate(dtype, shape, engine::default_engine().devices().host);
}

engine::TensorRef upload(const void* data, DType dtype, const Shape& shape) {
  engine::TensorRef t = allocate(dtype, shape);
  put(t, data);
  return t;
}

engine::TensorRef generate(DType dtype, const Shape& shape, const std::function<double(int64_t)>& value) {
  engine::TensorRef t = allocate(dtype, shape);
  fill(t, [&](std::byte* to) {
    for (int64_t i = 0; i < element_count(shape); ++i) ir::store_number(dtype, to + i * static_cast<int64_t>(size_of(dtype)), value(i));
  });
  return t;
}

engine::TensorRef borrow(const void* data, DType dtype, const Shape& shape, const Strides& strides, std::function<void()> release) {
  const auto [low, high] = reach(shape, strides);
  const auto size = static_cast<int64_t>(size_of(dtype));
  char* start = static_cast<char*>(const_cast<void*>(data)) + low * size;  // never written: see is_borrowed()
  device::BufferRef buffer(new BorrowedBuffer(host_device(), start, static_cast<size_t>((high - low + 1) * size), std::move(release)));
  return {std::move(buffer), {dtype, shape, strides}, static_cast<size_t>(-low * size)};
}

bool is_borrowed(const engine::TensorRef& t) { return dynamic_cast<const BorrowedBuffer*>(t.buffer.get()) != nullptr; }

bool is_the_engines(const engine::TensorRef& t) {
  return !is_borrowed(t) && engine::default_engine().devices().find(t.buffer->home()) >= 0;
}

engine::TensorRef dense_copy(const engine::TensorRef& t) {
  engine::TensorRef copy = allocate(t.layout.dtype, t.layout.shape, engine::default_engine().devices().number_of(*t.buffer));
  fill(copy, [&](std::byte* to) { read(t, t.layout.dtype, to); });
  return copy;
}

const void* host_address(const engine::TensorRef& t, const char* what) {
  const device::DeviceInfo& info = t.buffer->device().info();
  if (!info.host_memory)
    user_error(what, ": the tensor's memory is on device ", info.name,
               ", which the host does not reach\n  hint: to_vector() copies the numbers");
  return t.data();
}

void read(const engine::TensorRef& t, DType as, void* to) {
  const codegen::Layout& o = t.layout;
  const size_t bytes = byte_size(o.shape, o.dtype);
  if (bytes == 0) return;
  device::check_not_lost(*t.buffer, "read");
  const void* from = t.data();
  std::vector<std::byte> host;
  if (!t.buffer->device().info().host_memory) {
    TANDEM_CHECK(o.is_dense(), "memory of a device is read as it lies, which must be dense");
    host.resize(bytes);
    const profile::Doing doing("a tensor that the program reads");
    device::Device& device = t.buffer->device();
    device.stream(device::StreamKind::Compute).download(host.data(), from, bytes);
    device.finish();
    from = host.data();
  }
  if (as == o.dtype && o.is_dense()) {
    std::memcpy(to, from, bytes);
    return;
  }
  dispatch(o.dtype, [&](auto source) {
    dispatch(as, [&](auto target) { copy_converted(o, static_cast<const decltype(source)*>(from), static_cast<decltype(target)*>(to)); });
  });
}

}  // namespace tandem::frontend
