#include "base/env.hpp"
#include "base/log.hpp"
#include "engine/engine.hpp"
#include "exec/run.hpp"

namespace tandem::engine {
namespace {

bool same_layout(const codegen::Operand& a, const codegen::Operand& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides;
}

bool same_layouts(const plan::Plan& p, TensorRefs inputs) {
  if (p.inputs.size() != inputs.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!same_layout(p.inputs[i], inputs[i]->layout)) return false;
  return true;
}

bool verify_plans() {
#ifdef NDEBUG
  return env::get_flag("TANDEM_VERIFY");
#else
  return true;
#endif
}

}  // namespace

Bound::Bound(plan::Plan plan, device::Device& device) : plan_(std::move(plan)), device_(device), stream_(device.make_stream()) {
  for (const codegen::Operand& o : plan_.outputs) output_bytes_.push_back(byte_size(o.shape, o.dtype));
}

Bound::~Bound() {
  if (device::Buffer* b = spare_arena_.exchange(nullptr)) b->release();
}

void Bound::run(TensorRefs inputs, std::vector<TensorRef>& outputs) {
  // Few tensors live on the stack: this is the path of every eager op. For more of them the thread keeps memory: a step allocates nothing.
  constexpr size_t kFew = 16;
  void* few[2 * kFew];
  thread_local std::vector<void*> many;
  const size_t n = inputs.size(), m = plan_.outputs.size();
  void** pointers = few;
  if (n + m > 2 * kFew) {
    if (many.size() < n + m) many.resize(n + m);
    pointers = many.data();
  }
  void** results = pointers + n;
  for (size_t i = 0; i < n; ++i) pointers[i] = inputs[i]->data();

  outputs.clear();
  outputs.reserve(m);
  for (size_t k = 0; k < m; ++k) {
    const plan::OutputAlias& alias = plan_.aliases[k];
    TensorRef& out = outputs.emplace_back();
    out.layout = plan_.outputs[k];
    if (alias.input >= 0) {
      out.buffer = inputs[static_cast<size_t>(alias.input)]->buffer;
      out.offset = inputs[static_cast<size_t>(alias.input)]->offset + alias.offset;
    } else if (alias.constant >= 0) {
      out.buffer = plan_.constants[static_cast<size_t>(alias.constant)];
      out.offset = alias.offset;
    } else if (const int32_t j = plan_.donated[k]; j >= 0) {
      const TensorRef& given = *inputs[static_cast<size_t>(j)];
      if (given.buffer->unique()) {
        out.buffer = given.buffer;
        out.offset = given.offset;
      } else {  // somebody still looks at the old value
        out.buffer = device_.allocate(output_bytes_[k]);
        stream_->copy(out.buffer->data(), given.data(), output_bytes_[k]);
        pointers[j] = out.buffer->data();
      }
    } else {
      out.buffer = device_.allocate(output_bytes_[k]);
    }
    results[k] = out.data();
  }
  if (plan_.arena_bytes == 0) return exec::run(plan_, *stream_, nullptr, pointers, results);

  device::BufferRef arena;
  if (device::Buffer* spare = spare_arena_.exchange(nullptr)) {
    arena = device::BufferRef(spare);
    spare->release();  // the reference that the slot held
  } else {
    arena = device_.allocate(plan_.arena_bytes);
  }
  exec::run(plan_, *stream_, arena->data(), pointers, results);
  arena->retain();
  if (device::Buffer* other = spare_arena_.exchange(arena.get())) other->release();
}

Executable::Executable(ir::Graph graph, device::Device& device, std::vector<int32_t> donations)
    : graph_(std::move(graph)), device_(device), donations_(std::move(donations)), input_types_(graph_.input_types()) {}

Bound& Executable::bind(TensorRefs inputs) {
  if (Bound* last = last_.load(std::memory_order_acquire); last && same_layouts(last->plan(), inputs)) return *last;
  if (inputs.size() != input_types_.size()) user_error("call: ", inputs.size(), " tensors for ", input_types_.size(), " inputs");
  std::lock_guard lock(mutex_);
  for (const auto& b : bound_)
    if (same_layouts(b->plan(), inputs)) {
      last_.store(b.get(), std::memory_order_release);
      return *b;
    }
  Bindings bindings;
  std::vector<codegen::Operand> layouts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const codegen::Operand& o = inputs[i]->layout;
    if (o.dtype != input_types_[i].dtype) user_error("call: input ", i, " is ", name(o.dtype), ", the graph wants ", input_types_[i]);
    unify(input_types_[i].dims, o.shape, bindings, cat("input ", i));
    layouts.push_back(o);
  }
  plan::Plan p = plan::make_plan({graph_, device_, bindings, std::move(layouts), donations_});
  if (verify_plans()) plan::verify(p);
  if (log::enabled(log::Topic::Plan)) log::write(log::Topic::Plan, p.str());
  bound_.push_back(std::make_unique<Bound>(std::move(p), device_));
  last_.store(bound_.back().get(), std::memory_order_release);
  return *bound_.back();
}

void Executable::run(TensorRefs inputs, std::vector<TensorRef>& outputs) { bind(inputs).run(inputs, outputs); }

size_t Executable::plan_count() const {
  std::lock_guard lock(mutex_);
  return bound_.size();
}

}  // namespace tandem::engine
