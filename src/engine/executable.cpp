#include <optional>

#include "base/env.hpp"
#include "base/log.hpp"
#include "base/thread_kept.hpp"
#include "engine/engine.hpp"
#include "exec/run.hpp"

namespace tandem::engine {
namespace {

// Of one executable. A step takes a few hundred bytes, so this is some tens of megabytes at the most.
constexpr size_t kMostPlans = 256, kMostSteps = size_t{1} << 16;

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

// The thread's memory for pointers. Taken out while it is used: a host call may run another graph inside this one.
class ManyPointers {
 public:
  explicit ManyPointers(size_t n) {
    if (auto* kept = thread_kept<std::vector<void*>, Bound>()) std::swap(pointers_, *kept);
    if (pointers_.size() < n) pointers_.resize(n);
  }
  ~ManyPointers() {
    if (auto* kept = thread_kept<std::vector<void*>, Bound>(); kept && kept->size() < pointers_.size()) std::swap(pointers_, *kept);
  }
  ManyPointers(const ManyPointers&) = delete;
  ManyPointers& operator=(const ManyPointers&) = delete;
  void** data() { return pointers_.data(); }

 private:
  std::vector<void*> pointers_;
};

}  // namespace

Bound::Bound(plan::Plan plan, Memory& memory) : plan_(std::move(plan)), memory_(memory), stream_(memory.device().make_stream()) {
  for (const codegen::Operand& o : plan_.outputs) output_bytes_.push_back(byte_size(o.shape, o.dtype));
}

void Bound::run(TensorRefs inputs, std::vector<TensorRef>& outputs) {
  // Few tensors live on the stack: this is the path of every eager op. For more of them the thread keeps memory: a step allocates nothing.
  constexpr size_t kFew = 16;
  void* few[2 * kFew];
  const size_t n = inputs.size(), m = plan_.outputs.size();
  std::optional<ManyPointers> many;
  if (n + m > 2 * kFew) many.emplace(n + m);
  void** pointers = many ? many->data() : few;
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
        out.buffer = memory_.allocate(output_bytes_[k]);
        stream_->copy(out.buffer->data(), given.data(), output_bytes_[k]);
        pointers[j] = out.buffer->data();
      }
    } else {
      out.buffer = memory_.allocate(output_bytes_[k]);
    }
    results[k] = out.data();
  }
  const Memory::Arena arena(memory_, plan_.arena_bytes);
  exec::run(plan_, *stream_, arena.data(), pointers, results);
}

Executable::Executable(ir::Graph graph, Memory& memory, std::vector<int32_t> donations)
    : graph_(std::move(graph)),
      memory_(memory),
      donations_(std::move(donations)),
      input_types_(graph_.input_types()),
      bound_({kMostPlans, kMostSteps}) {}

std::shared_ptr<Bound> Executable::find(size_t hash, TensorRefs inputs) {
  std::lock_guard lock(mutex_);
  const auto* found = bound_.find(hash, [&](const std::shared_ptr<Bound>& b) { return same_layouts(b->plan(), inputs); });
  return found ? *found : nullptr;
}

std::shared_ptr<Bound> Executable::bind(TensorRefs inputs) {
  {
    std::lock_guard lock(mutex_);
    if (const auto* last = bound_.newest(); last && same_layouts((*last)->plan(), inputs)) return *last;
  }
  const size_t hash = layouts_hash(inputs.size(), inputs);
  if (auto found = find(hash, inputs)) return found;
  std::lock_guard planning(planning_);
  if (auto found = find(hash, inputs)) return found;  // another thread has made it meanwhile
  auto bound = std::make_shared<Bound>(planned(inputs), memory_);
  std::lock_guard lock(mutex_);
  return bound_.add(hash, bound->plan().steps.size() + 1, bound);
}

plan::Plan Executable::planned(TensorRefs inputs) const {
  if (inputs.size() != input_types_.size()) user_error("call: ", inputs.size(), " tensors for ", input_types_.size(), " inputs");
  Bindings bindings;
  std::vector<codegen::Operand> layouts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const codegen::Operand& o = inputs[i]->layout;
    if (o.dtype != input_types_[i].dtype) user_error("call: input ", i, " is ", name(o.dtype), ", the graph wants ", input_types_[i]);
    unify(input_types_[i].dims, o.shape, bindings, cat("input ", i));
    layouts.push_back(o);
  }
  plan::Plan p = plan::make_plan({graph_, memory_.device(), bindings, std::move(layouts), donations_});
  if (verify_plans()) plan::verify(p);
  if (log::enabled(log::Topic::Plan)) log::write(log::Topic::Plan, p.str());
  return p;
}

size_t Executable::plan_count() const {
  std::lock_guard lock(mutex_);
  return bound_.size();
}

void Executable::drop_plans() {
  std::lock_guard lock(mutex_);
  bound_.clear();
}

}  // namespace tandem::engine
