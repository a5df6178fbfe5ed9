// Variables: where they live, how they are read, and how an assignment reaches their memory.
#include "frontend/apply.hpp"
#include "frontend/known_value.hpp"
#include "frontend/memory.hpp"
#include "frontend/tape_impl.hpp"
#include "frontend/tracer.hpp"
#include "frontend/variable_impl.hpp"

namespace tandem {
namespace frontend {
namespace {

std::atomic<uint64_t> variables{0};

// A tensor of the variable's own: another identity than what it was made from, and memory that may be written in place one day.
Tensor own(const Tensor& t, int32_t device) {
  const engine::TensorRef& given = numbers_of(t, "a variable's value");
  const engine::Engine& engine = engine::default_engine();
  const engine::TensorRef ref = engine.devices().count() > 1 && device >= 0 ? engine.at(given, device) : given;
  return concrete(ref.layout.is_dense() && is_the_engines(ref) ? ref : dense_copy(ref));
}

int32_t home_of(const Tensor& t) { return engine::default_engine().devices().number_of(*concrete_ref(t)->buffer); }

VariableImpl& impl_of(const Variable& v) {
  if (!v.defined()) user_error("this variable holds nothing\n  hint: it was made by Variable(), without a value");
  return *v.impl();
}

}  // namespace

VariableImpl::VariableImpl(std::string n, bool is_trainable, const Tensor& value)
    : id(++variables),
      name(n.empty() ? cat("variable_", id) : std::move(n)),
      dtype(value.dtype()),
      shape(value.shape()),
      trainable(is_trainable),
      device(thread_state.device),
      value_(own(value, device)) {}

constinit thread_local const std::atomic<uint32_t>* element_reader = nullptr;

void VariableImpl::fail_held() const {
  user_error(ErrorCode::FailedPrecondition, "variable '", name,
             "': a host call asks for it, but the compiled function that makes the call assigns it and holds it until its end",
             "\n  hint: give the value to the call as an operand, and assign what it returns");
}

void VariableImpl::store(const Tensor& value) {
  Tensor mine = own(value, device >= 0 ? device : home_of(load()));
  std::lock_guard guard(*this);
  std::swap(value_, mine);
}

Tensor read_variable(const Variable& v) {
  VariableImpl& impl = impl_of(v);
  Tensor value = thread_state.tracer ? thread_state.tracer->read(v) : impl.load();
  if (thread_state.tape && impl.trainable.load(std::memory_order_relaxed) && is_float(impl.dtype)) TapeImpl::watch_read(v, value);
  return value;
}

}  // namespace frontend

using namespace frontend;

namespace {

// A variable belongs to no trace, so that its value is computed at once, whatever is being traced.
Tensor initial_value(const Operand& initial, const VariableOptions& options) {
  if (initial.kind() != Operand::Kind::Tensor || !initial.tensor().is_traced()) {
    const EagerScope eager;
    return tensor_of(initial, options.dtype);
  }
  const std::optional<Tensor> known = known_value(initial.tensor());
  if (!known)
    user_error(ErrorCode::FailedPrecondition, "Variable: the initial value is a traced tensor ", initial.tensor().type_str(),
               "\n  hint: make variables outside the function that is traced, or of values that do not depend on its arguments");
  const EagerScope eager;
  return options.dtype ? cast_to(*known, *options.dtype, Location::of(initial.where())) : *known;
}

}  // namespace

Variable::Variable(const Operand& initial, const VariableOptions& options) try
    : impl_(std::make_shared<VariableImpl>(options.name, options.trainable, initial_value(initial, options))) {
} catch (...) {
  rethrow_at(Location::of(initial.where()));
}

const std::string& Variable::name() const { return impl_of(*this).name; }
DType Variable::dtype() const { return impl_of(*this).dtype; }
const Shape& Variable::shape() const { return impl_of(*this).shape; }
bool Variable::trainable() const { return impl_of(*this).trainable; }
void Variable::set_trainable(bool trainable) { impl_of(*this).trainable = trainable; }

Tensor Variable::value(Where where) const try { return read_variable(*this); } catch (...) {
  rethrow_at(Location::of(where));
}

void Variable::assign(const Operand& value) const try {
  VariableImpl& impl = impl_of(*this);
  const Location where = Location::of(value.where());
  Tensor t = tensor_of(value, value.is_number() ? std::optional(impl.dtype) : std::nullopt);
  if (t.dtype() != impl.dtype) t = cast_to(t, impl.dtype, where);
  if (!(t.dims() == to_dims(impl.shape)))
    user_error("assign: variable '", impl.name, "' is ", ir::TensorType{impl.dtype, to_dims(impl.shape)}, ", the value is ", t.type_str());
  if (thread_state.tracer)
    thread_state.tracer->assign(*this, t);
  else
    impl.store(t);
} catch (...) {
  rethrow_at(Location::of(value.where()));
}

void Variable::assign_add(const Operand& delta) const {
  const Operand self(*this, delta.where());
  const Tensor sum = self + delta;
  assign(Operand(sum, delta.where()));
}

void Variable::assign_sub(const Operand& delta) const {
  const Operand self(*this, delta.where());
  const Tensor difference = self - delta;
  assign(Operand(difference, delta.where()));
}

}  // namespace tandem
