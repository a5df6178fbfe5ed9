// The three things a Tensor can be, each a class of its own: numbers in memory, strings in memory, or a value of a graph that is being
// traced.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tandem/strings.hpp>
#include <tandem/tensor.hpp>

#include "base/text.hpp"
#include "engine/engine.hpp"
#include "ir/graph.hpp"

namespace tandem::frontend {

// Its address is the tensor's identity: tapes and traces know tensors by it. Counted by hand: a Tensor is one pointer.
class TensorImpl {
 public:
  enum class Role : uint8_t { Concrete, Traced, Strings };
  TensorImpl(const TensorImpl&) = delete;
  TensorImpl& operator=(const TensorImpl&) = delete;
  Role role() const { return role_; }
  bool is_concrete() const { return role_ == Role::Concrete; }
  bool is_unique() const { return references_.load(std::memory_order_acquire) == 1; }

 protected:
  explicit TensorImpl(Role role) : role_(role) {}
  virtual ~TensorImpl() = default;

 private:
  friend void retain(TensorImpl* impl) noexcept;
  friend void release(TensorImpl* impl) noexcept;
  std::atomic<uint32_t> references_{0};
  const Role role_;
};

class ConcreteTensor final : public TensorImpl {
 public:
  explicit ConcreteTensor(engine::TensorRef r) : TensorImpl(Role::Concrete), ref(std::move(r)) {}
  engine::TensorRef ref;  // changed only by the variable that owns it, when nobody else holds this object
};

class TracedTensor final : public TensorImpl {
 public:
  TracedTensor(uint64_t tracer_id, ir::Value v, ir::TensorType t)
      : TensorImpl(Role::Traced), tracer(tracer_id), value(v), type(std::move(t)) {}
  const uint64_t tracer;  // which Tracer; it may have ended
  const ir::Value value;
  const ir::TensorType type;
};

// Row-major; several tensors may be parts of one storage, as rows of a table are.
class StringTensor final : public TensorImpl {
 public:
  using Storage = std::shared_ptr<const std::vector<std::string>>;
  StringTensor(Shape s, Storage all, size_t from) : TensorImpl(Role::Strings), shape(std::move(s)), storage(std::move(all)), first(from) {}
  const Shape shape;
  const Storage storage;
  const size_t first;  // where its elements begin in it
};

inline Tensor concrete(engine::TensorRef ref) { return Tensor::of_impl(new ConcreteTensor(std::move(ref))); }

inline TensorImpl& defined(const Tensor& t) {
  if (!t.impl())
    user_error("this tensor holds nothing\n  hint: a default-made Tensor, or the gradient of something that the target does not depend on");
  return *t.impl();
}
inline const engine::TensorRef* concrete_ref(const Tensor& t) {
  return t.impl() && t.impl()->is_concrete() ? &static_cast<const ConcreteTensor*>(t.impl())->ref : nullptr;
}
inline const TracedTensor* traced(const Tensor& t) {
  return t.impl() && t.impl()->role() == TensorImpl::Role::Traced ? static_cast<const TracedTensor*>(t.impl()) : nullptr;
}
inline const StringTensor* strings(const Tensor& t) {
  return t.impl() && t.impl()->role() == TensorImpl::Role::Strings ? static_cast<const StringTensor*>(t.impl()) : nullptr;
}
[[noreturn]] void used_outside(std::string_view what, const ir::TensorType& type);  // a tensor that outlived its trace
// UserError with a hint when it is traced, or holds strings.
const engine::TensorRef& numbers_of(const Tensor& t, std::string_view what);

inline DType dtype_of(const Tensor& t) {
  const TensorImpl& impl = defined(t);
  if (impl.is_concrete()) return static_cast<const ConcreteTensor&>(impl).ref.layout.dtype;
  return impl.role() == TensorImpl::Role::Traced ? static_cast<const TracedTensor&>(impl).type.dtype : kString;
}
ir::TensorType type_of(const Tensor& t);

}  // namespace tandem::frontend
