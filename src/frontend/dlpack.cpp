// DLPack: other libraries' memory as ours, ours as theirs.
#include <tandem/dlpack.hpp>

#include <memory>
#include <vector>

#include "frontend/memory.hpp"
#include "frontend/tensor_impl.hpp"

namespace tandem::dlpack {
namespace {

using namespace frontend;

DataType type_to(DType t) {
  const auto bits = static_cast<uint8_t>(8 * size_of(t));
  const Code code = t == DType::Bool ? kBool : t == DType::BF16 ? kBfloat : is_float(t) ? kFloat : is_signed(t) ? kInt : kUInt;
  return {code, bits, 1};
}

DType type_from(DataType t) {
  if (t.lanes != 1) user_error("dlpack: elements of ", t.lanes, " lanes are not taken, only of 1");
  for (int i = 0; i < kDTypeCount; ++i) {
    const DataType known = type_to(static_cast<DType>(i));
    if (known.code == t.code && known.bits == t.bits) return static_cast<DType>(i);
  }
  user_error("dlpack: there is no element type for code ", t.code, " with ", t.bits, " bits");
}

Tensor view_of(const View& v, std::function<void()> release) {
  if (v.device.type != kCpu)
    user_error("dlpack: the tensor lies on device type ", v.device.type, ", only memory of the CPU (", kCpu, ") is taken");
  if (v.ndim < 0) user_error("dlpack: the number of axes is ", v.ndim);
  const DType dtype = type_from(v.dtype);
  const auto rank = static_cast<size_t>(v.ndim);
  const Shape shape(std::span<const int64_t>(v.shape, rank));
  for (const int64_t extent : shape)
    if (extent < 0) user_error("dlpack: the shape ", shape, " has a negative extent");
  std::optional<Strides> strides;
  if (v.strides && rank > 0) strides.emplace(std::span<const int64_t>(v.strides, rank));
  return Tensor::view(static_cast<const char*>(v.data) + v.byte_offset, dtype, shape, strides, std::move(release));
}

template <class M> Tensor import_any(M* tensor) {
  if (!tensor) user_error("dlpack: a null pointer");
  return view_of(tensor->tensor, [tensor] {
    if (tensor->deleter) tensor->deleter(tensor);
  });
}

// What an exported tensor keeps alive: the tensor, and the lists that its view points to.
template <class M> struct Exported {
  M managed;
  Tensor tensor;
  std::vector<int64_t> shape, strides;
};

template <class M> M* export_any(const Tensor& t) {
  const engine::TensorRef& ref = numbers_of(t, "dlpack");
  if (const device::DeviceInfo& info = ref.buffer->device().info(); !info.host_memory)
    user_error("dlpack: the tensor's memory is on device ", info.name, ", not on the CPU");
  auto e = std::make_unique<Exported<M>>();
  e->tensor = t;
  e->shape.assign(ref.layout.shape.begin(), ref.layout.shape.end());
  e->strides.assign(ref.layout.strides.begin(), ref.layout.strides.end());
  e->managed = {};
  e->managed.context = e.get();
  e->managed.deleter = [](M* self) { delete static_cast<Exported<M>*>(self->context); };
  e->managed.tensor = {ref.data(), {kCpu, 0}, ref.layout.shape.rank(), type_to(ref.layout.dtype), e->shape.data(), e->strides.data(), 0};
  return &e.release()->managed;
}

}  // namespace

Tensor import_tensor(Managed* tensor) { return import_any(tensor); }

Tensor import_tensor(ManagedVersioned* tensor) {
  if (tensor && tensor->version.major != kMajorVersion)
    user_error("dlpack: the tensor has version ", tensor->version.major, ".", tensor->version.minor, ", version ", kMajorVersion,
               ".x is taken");
  return import_any(tensor);
}

Managed* export_tensor(const Tensor& t) { return export_any<Managed>(t); }

ManagedVersioned* export_versioned(const Tensor& t) {
  ManagedVersioned* m = export_any<ManagedVersioned>(t);
  m->version = {kMajorVersion, kMinorVersion};
  m->flags = kReadOnly;
  return m;
}

}  // namespace tandem::dlpack
