// Tensors made from numbers, and what they tell about themselves.
#include <cmath>
#include <ostream>

#include "frontend/apply.hpp"
#include "frontend/device_names.hpp"
#include "frontend/memory.hpp"
#include "frontend/strings.hpp"
#include "frontend/tape_impl.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/thread_state.hpp"
#include "frontend/tracer.hpp"

namespace tandem {
namespace frontend {

void retain(TensorImpl* impl) noexcept { impl->references_.fetch_add(1, std::memory_order_relaxed); }
void release(TensorImpl* impl) noexcept {
  if (impl->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete impl;
}

ir::TensorType type_of(const Tensor& t) {
  if (const TracedTensor* value = traced(t)) return value->type;
  if (const StringTensor* s = strings(t)) return {kString, to_dims(s->shape)};
  defined(t);
  const codegen::Layout& o = concrete_ref(t)->layout;
  return {o.dtype, to_dims(o.shape)};
}

void used_outside(std::string_view what, const ir::TensorType& type) {
  user_error(what, ": a tensor ", type, " is used outside the function that it was traced in",
             "\n  hint: return it from the function; what is kept from a trace has no numbers");
}

const engine::TensorRef& numbers_of(const Tensor& t, std::string_view what) {
  defined(t);
  const engine::TensorRef* ref = concrete_ref(t);
  if (strings(t)) refuse_strings(what, t);
  if (!ref && !thread_state.tracer) used_outside(what, type_of(t));
  if (!ref)
    user_error(what, ": a traced tensor ", type_of(t), " has no numbers yet",
               "\n  hint: return it from the function and read the result; choose by numbers with cond() or where()");
  return *ref;
}

}  // namespace frontend

using namespace frontend;

namespace {

// A shape that must be numbers now.
Shape bound(const Dims& dims, std::string_view what) {
  for (const Dim& d : dims)
    if (!d.is_const())
      user_error(what, ": the extents ", str(dims),
                 " are not all known\n  hint: symbols get their values when the traced function is called");
  return bind(dims, {});
}

Tensor filled(const DimList& shape, double value, DType dtype, Location where) try {
  static const ir::OpDef& full = row("full");
  const Tensor scalar = number(Operand(value), dtype, "full");
  return call_final(full, {&scalar, 1}, {{"shape", shape.dims()}}, where).front();
} catch (...) {
  rethrow_at(where);
}

}  // namespace

OperandList::OperandList(std::span<const Tensor> tensors, Where where) : where_(where) {
  operands_.reserve(tensors.size());
  for (const Tensor& t : tensors) operands_.emplace_back(t, where);
}
OperandList::OperandList(const std::vector<Tensor>& tensors, Where where) : OperandList(std::span<const Tensor>(tensors), where) {}

void Tensor::check_count(size_t count, const Shape& shape) {
  if (static_cast<int64_t>(count) != element_count(shape))
    user_error("Tensor::from: ", count, " values for the shape ", shape, " of ", element_count(shape));
}

Tensor Tensor::from_bytes(const void* data, DType dtype, const Shape& shape) { return concrete(upload(data, dtype, shape)); }

Tensor Tensor::from(const std::vector<bool>& values, const Shape& shape) {
  check_count(values.size(), shape);
  const std::vector<uint8_t> bytes(values.begin(), values.end());
  return from_bytes(bytes.data(), DType::Bool, shape);
}

Tensor Tensor::full(const DimList& shape, const Operand& value, std::optional<DType> dtype) {
  static const ir::OpDef& op = row("full");
  const Location where = Location::of(value.where());
  try {
    const Tensor scalar = tensor_of(value, dtype);
    return call_final(op, {&scalar, 1}, {{"shape", shape.dims()}}, where).front();
  } catch (...) {
    rethrow_at(where);
  }
}
Tensor Tensor::zeros(const DimList& shape, DType dtype, Where where) { return filled(shape, 0, dtype, Location::of(where)); }
Tensor Tensor::ones(const DimList& shape, DType dtype, Where where) { return filled(shape, 1, dtype, Location::of(where)); }

// Made here and not by the op `arange`: its ends are part of the graph, so every other length would be another compilation.
Tensor Tensor::arange_of(double start, double stop, double step, DType dtype) {
  if (step == 0 || !std::isfinite((stop - start) / step))
    user_error("arange: no numbers from ", start, " to ", stop, " in steps of ", step);
  const auto count = static_cast<int64_t>(std::max(0.0, std::ceil((stop - start) / step)));
  return concrete(generate(dtype, {count}, [&](int64_t i) { return start + static_cast<double>(i) * step; }));
}

Tensor Tensor::view(const void* data, DType dtype, const Shape& shape, const std::optional<Strides>& strides,
                    std::function<void()> release) {
  const int64_t count = element_count(shape);
  if (strides && strides->rank() != shape.rank()) user_error("Tensor::view: ", strides->rank(), " strides for ", shape.rank(), " axes");
  if (!data && count != 0) user_error("Tensor::view: a null pointer for ", count, " elements");
  if (reinterpret_cast<uintptr_t>(data) % size_of(dtype) != 0)
    user_error("Tensor::view: the memory of ", name(dtype), " elements must begin at a multiple of ", size_of(dtype), " bytes",
               "\n  hint: copy it with Tensor::from_bytes");
  return concrete(borrow(data, dtype, shape, strides ? *strides : contiguous_strides(shape), std::move(release)));
}

bool Tensor::is_traced() const { return traced(*this) != nullptr; }
DType Tensor::dtype() const { return dtype_of(*this); }
int Tensor::rank() const {
  const engine::TensorRef* ref = concrete_ref(*this);
  return ref ? ref->layout.shape.rank() : type_of(*this).rank();
}
Dims Tensor::dims() const { return type_of(*this).dims; }
Shape Tensor::shape(Where where) const try {
  const engine::TensorRef* ref = concrete_ref(*this);
  return ref ? ref->layout.shape : bound(type_of(*this).dims, "shape");
} catch (...) {
  rethrow_at(Location::of(where));
}
int64_t Tensor::size(Where where) const { return element_count(shape(where)); }
Strides Tensor::strides() const {
  const engine::TensorRef* ref = concrete_ref(*this);
  return ref ? ref->layout.strides : contiguous_strides(shape());
}
bool Tensor::is_contiguous() const {
  const engine::TensorRef* ref = concrete_ref(*this);
  return !ref || ref->layout.is_dense();
}
std::string Tensor::device() const {
  const engine::TensorRef* ref = concrete_ref(*this);
  if (ref) return ref->buffer->home().info().name;
  const TracedTensor* value = traced(*this);
  const int32_t wish = value && thread_state.tracer && thread_state.tracer->id() == value->tracer
                           ? thread_state.tracer->graph().node(value->value).device
                           : -1;
  return wish < 0 ? "" : engine::default_engine().devices().at(wish).info().name;
}

Tensor Tensor::to(std::string_view device, Where where) const try {
  static const ir::OpDef& op = row("identity");
  const int32_t number = device_number(device);
  if (number < 0 || strings(*this)) return *this;
  if (const engine::TensorRef* ref = concrete_ref(*this); ref && !thread_state.tracer) {
    engine::TensorRef there = engine::default_engine().at(*ref, number);
    if (there.buffer.get() == ref->buffer.get()) return *this;
    Tensor moved = concrete(std::move(there));
    if (thread_state.tape) TapeImpl::record_op(op, {this, 1}, {&moved, 1}, {}, Location::of(where));
    return moved;
  }
  const WishScope wish(number);
  return call_final(op, {this, 1}, {}, Location::of(where)).front();
} catch (...) {
  rethrow_at(Location::of(where));
}

std::string Tensor::type_str() const { return impl_ ? type_of(*this).str() : "undefined"; }

const void* Tensor::raw_data() const { return host_address(numbers_of(*this, "data"), "data"); }

const void* Tensor::data(DType wanted, const Where& where) const try {
  const engine::TensorRef& ref = numbers_of(*this, "data");
  if (ref.layout.dtype != wanted)
    user_error("data: the elements are ", ref.layout.dtype, ", asked for as ", wanted, "\n  hint: cast(), or to_vector()");
  if (!ref.layout.is_dense())
    user_error("data: the tensor ", type_str(), " is not contiguous, its strides are ", ref.layout.strides,
               "\n  hint: contiguous().data()");
  return host_address(ref, "data");
} catch (...) {
  rethrow_at(Location::of(where));
}

Tensor Tensor::contiguous() const {
  const engine::TensorRef* ref = concrete_ref(*this);
  return !ref || ref->layout.is_dense() ? *this : concrete(dense_copy(*ref));
}

void Tensor::read_one(DType as, void* to, const Where& where) const try {
  const engine::TensorRef& ref = numbers_of(*this, "item");
  if (element_count(ref.layout.shape) != 1)
    user_error("item: the tensor ", type_str(), " has ", element_count(ref.layout.shape),
               " elements, not 1\n  hint: to_vector(), or index it first");
  read(ref, as, to);
} catch (...) {
  rethrow_at(Location::of(where));
}

int64_t Tensor::readable_size(const Where& where) const try {
  return element_count(numbers_of(*this, "to_vector").layout.shape);
} catch (...) {
  rethrow_at(Location::of(where));
}

void Tensor::read_all(DType as, void* to) const { read(numbers_of(*this, "to_vector"), as, to); }

std::ostream& operator<<(std::ostream& os, const Tensor& t) { return os << t.str(); }

}  // namespace tandem
