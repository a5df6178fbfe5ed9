#include "frontend/tracer.hpp"

#include <atomic>

#include "frontend/strings.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/variable_impl.hpp"
#include "ops/table.hpp"

namespace tandem::frontend {

constinit thread_local ThreadState thread_state;

namespace {

std::atomic<uint64_t> tracers{0};
// Graphs inside of graphs are walked by recursion, here and in every pass; a thread's stack bounds how deep.
constexpr int kDeepest = 200;

}  // namespace

uint32_t new_thread_number() {
  static std::atomic<uint32_t> numbers{0};
  return ++numbers;
}

const void* Tracer::External::key() const {
  return variable.defined() ? static_cast<const void*>(variable.impl().get()) : static_cast<const void*>(outer.impl());
}

Tracer::Tracer(std::string name) : Tracer(std::move(name), thread_state.tracer ? thread_state.tracer->precision_ : Precision::Float32) {}

Tracer::Tracer(std::string name, Precision precision)
    : id_(++tracers),
      parent_(thread_state.tracer),
      depth_(parent_ ? parent_->depth_ + 1 : 0),
      name_(std::move(name)),
      precision_(precision),
      builder_(ops::table()) {
  if (depth_ > kDeepest)
    user_error(name_, ": branches and loops are nested ", depth_, " deep, the most is ", kDeepest,
               "\n  hint: a loop instead of recursion, or switch_case instead of one condition inside the other");
}

Tensor Tracer::parameter(const ir::TensorType& type, const std::string& name) {
  TANDEM_CHECK(externals_.empty(), "parameters come first");
  if (type.dtype == kString)
    user_error(name_, ": a parameter is ", type,
               ", and strings cannot be traced\n  hint: a Dataset's map takes such a function as a callback");
  ++parameter_count_;
  return wrap(add_input(type, name));
}

ir::Value Tracer::add_input(const ir::TensorType& type, const std::string& name) {
  const Location here = std::exchange(builder_.location, {});
  const ir::Value v = builder_.input(type, name);
  builder_.location = here;
  return v;
}

Tensor Tracer::wrap(ir::Value v) const { return Tensor::of_impl(new TracedTensor(id_, v, builder_.type(v))); }

bool Tracer::is_inside(uint64_t tracer) const {
  for (const Tracer* t = parent_; t; t = t->parent_)
    if (t->id_ == tracer) return true;
  return false;
}

ir::Value Tracer::value_of(const Tensor& t) {
  const TensorImpl* impl = &defined(t);
  const TracedTensor* value = traced(t);
  if (value && value->tracer == id_) return value->value;
  if (const auto found = external_index_.find(impl); found != external_index_.end()) return externals_[found->second].input;
  if (value && !is_inside(value->tracer)) used_outside(name_, value->type);
  if (strings(t)) refuse_strings(name_, t);
  const ir::Value input = add_input(type_of(t), "");
  external_index_.emplace(impl, externals_.size());
  externals_.push_back({.outer = t, .input = input});
  return input;
}

std::vector<Tensor> Tracer::node(const ir::OpDef& op, std::span<const Tensor> operands, const ir::Attrs& attrs, Location where) {
  builder_.location = named_line(where);
  builder_.device = thread_state.device;
  std::vector<ir::Value> in;
  in.reserve(operands.size());
  for (const Tensor& t : operands) in.push_back(value_of(t));
  std::vector<Tensor> results;
  for (const ir::Value v : builder_.node(op, in, attrs)) results.push_back(wrap(v));
  return results;
}

std::vector<Tensor> Tracer::inlined(const ir::Graph& g, std::span<const Tensor> inputs, Location where) {
  builder_.location = named_line(where);
  builder_.device = thread_state.device;
  std::vector<ir::Value> in;
  for (const Tensor& t : inputs) in.push_back(value_of(t));
  std::vector<Tensor> results;
  for (const ir::Value v : ir::inline_graph(builder_, g, in)) results.push_back(wrap(v));
  return results;
}

Tracer::External& Tracer::external(const Variable& v) {
  if (const auto found = external_index_.find(v.impl().get()); found != external_index_.end()) return externals_[found->second];
  const ir::Value input = add_input({v.dtype(), to_dims(v.shape())}, v.name());
  external_index_.emplace(v.impl().get(), externals_.size());
  return externals_.emplace_back(External{.variable = v, .input = input, .current = wrap(input)});
}

Tensor Tracer::read(const Variable& v) { return external(v).current; }

void Tracer::assign(const Variable& v, const Tensor& value) {
  const ir::Value assigned = value_of(value);  // before the reference below: it may add an input
  External& state = external(v);
  state.current = wrap(assigned);  // a tensor of its own: to a tape, assigning is no step on the way of a gradient
  state.written = true;
}

ir::Graph Tracer::finish(std::span<const Tensor> outputs) {
  std::vector<ir::Value> values;
  for (const Tensor& t : outputs) values.push_back(value_of(t));
  return builder_.finish(std::move(values), name_);
}

}  // namespace tandem::frontend
