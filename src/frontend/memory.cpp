#include "frontend/memory.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/half.hpp"
#include "base/text.hpp"

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

template <class From, class To> void copy_converted(const codegen::Operand& layout, const From* from, To* to) {
  for_each_offset(layout.shape, layout.strides, [&](int64_t offset) { *to++ = converted<To>(from[offset]); });
}

bool has_host_memory() { return active_engine().device().info().host_memory; }

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

engine::TensorRef allocate(DType dtype, const Shape& shape) {
  return {active_engine().allocate(byte_size(shape, dtype)), codegen::Operand::dense(dtype, shape), 0};
}

engine::TensorRef upload(const void* data, DType dtype, const Shape& shape) {
  engine::TensorRef t = allocate(dtype, shape);
  const size_t bytes = byte_size(shape, dtype);
  if (bytes == 0) return t;
  if (has_host_memory()) {
    std::memcpy(t.data(), data, bytes);
  } else {
    const auto stream = active_engine().device().make_stream();
    stream->upload(t.data(), data, bytes);
    stream->synchronize();
  }
  return t;
}

engine::TensorRef generate(DType dtype, const Shape& shape, const std::function<double(int64_t)>& value) {
  engine::TensorRef t = allocate(dtype, shape);  // first: a size that there is no memory for must be refused by the device
  std::vector<std::byte> host(has_host_memory() ? 0 : byte_size(shape, dtype));
  std::byte* to = has_host_memory() ? static_cast<std::byte*>(t.data()) : host.data();
  for (int64_t i = 0; i < element_count(shape); ++i) ir::store_number(dtype, to + i * static_cast<int64_t>(size_of(dtype)), value(i));
  return has_host_memory() ? t : upload(host.data(), dtype, shape);
}

engine::TensorRef borrow(const void* data, DType dtype, const Shape& shape, const Strides& strides, std::function<void()> release) {
  const auto [low, high] = reach(shape, strides);
  const auto size = static_cast<int64_t>(size_of(dtype));
  char* start = static_cast<char*>(const_cast<void*>(data)) + low * size;  // never written: see is_borrowed()
  device::BufferRef buffer(
      new BorrowedBuffer(active_engine().device(), start, static_cast<size_t>((high - low + 1) * size), std::move(release)));
  engine::TensorRef t{std::move(buffer), {dtype, shape, strides}, static_cast<size_t>(-low * size)};
  if (has_host_memory()) return t;
  std::vector<std::byte> dense(byte_size(shape, dtype));
  read(t, dtype, dense.data());
  return upload(dense.data(), dtype, shape);
}

bool is_borrowed(const engine::TensorRef& t) { return dynamic_cast<const BorrowedBuffer*>(t.buffer.get()) != nullptr; }

engine::TensorRef dense_copy(const engine::TensorRef& t) {
  const codegen::Operand& o = t.layout;
  engine::TensorRef copy = allocate(o.dtype, o.shape);
  if (has_host_memory()) {
    read(t, o.dtype, copy.data());
  } else {
    std::vector<std::byte> dense(byte_size(o.shape, o.dtype));
    read(t, o.dtype, dense.data());
    copy = upload(dense.data(), o.dtype, o.shape);
  }
  return copy;
}

void read(const engine::TensorRef& t, DType as, void* to) {
  const codegen::Operand& o = t.layout;
  const size_t bytes = byte_size(o.shape, o.dtype);
  if (bytes == 0) return;
  const void* from = t.data();
  std::vector<std::byte> host;
  if (!has_host_memory() && !is_borrowed(t)) {
    TANDEM_CHECK(o.is_dense(), "memory of a device is read as it lies, which must be dense");
    host.resize(bytes);
    const auto stream = active_engine().device().make_stream();
    stream->download(host.data(), from, bytes);
    stream->synchronize();
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
