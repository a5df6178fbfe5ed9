// Tapes: what is recorded, and when.
#include <tandem/tape.hpp>

#include <algorithm>
#include <utility>

#include "base/thread_kept.hpp"
#include "frontend/apply.hpp"
#include "frontend/gradient.hpp"
#include "frontend/tape_impl.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/tracer.hpp"
#include "frontend/variable_impl.hpp"

namespace tandem {
namespace frontend {
namespace {

uint64_t present_tracer() { return thread_state.tracer ? thread_state.tracer->id() : 0; }

void check_gradients_given(std::span<const Tensor> targets, const std::vector<Tensor>& given) {
  if (given.empty()) return;
  if (given.size() != targets.size()) user_error("gradient: ", given.size(), " output gradients for ", targets.size(), " targets");
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i].defined() && !(type_of(given[i]) == type_of(targets[i])))
      user_error("gradient: output gradient ", i, " is ", given[i].type_str(), ", its target is ", targets[i].type_str());
}

}  // namespace

// --- recording -------------------------------------------------------------------------------------------------------------------

// When the thread ends, its list lets go of what other threads still hold.
struct TapeImpl::ListEnd {
  ~ListEnd() {
    for (TapeImpl* t = std::exchange(thread_state.tape, nullptr); t;) {
      TapeImpl* next = t->outer_;
      std::exchange(t->self_, nullptr).reset();
      t = next;
    }
  }
};

TapeImpl::TapeImpl(const TapeOptions& options) : options_(options), tracer_(present_tracer()) {}

std::shared_ptr<TapeImpl> TapeImpl::start(const TapeOptions& options) {
  thread_kept<ListEnd>();
  auto tape = std::make_shared<TapeImpl>(options);
  tape->self_ = tape;
  tape->outer_ = first();
  thread_state.tape = tape.get();
  return tape;
}

void TapeImpl::stop() {
  stopped_.store(true, std::memory_order_release);
  first();
}

void TapeImpl::resume(const std::shared_ptr<TapeImpl>& tape) {
  if (tape->tracer_ != present_tracer()) user_error("resume: the tape belongs to another trace than the present one");
  first();
  if (!tape->stopped_.exchange(false, std::memory_order_acq_rel)) return;
  tape->self_ = tape;
  tape->outer_ = thread_state.tape;
  thread_state.tape = tape.get();
}

void TapeImpl::reset() {
  entries_.clear();
  watched_.clear();
  followed_.clear();
  variables_.clear();
  read_.clear();
  used_ = false;
}

TapeImpl* TapeImpl::first() {
  for (TapeImpl** at = &thread_state.tape; *at;) {
    if (!(*at)->stopped_.load(std::memory_order_acquire)) {
      at = &(*at)->outer_;
      continue;
    }
    const std::shared_ptr<TapeImpl> removed = std::move((*at)->self_);  // may be its last owner
    *at = removed->outer_;
  }
  return thread_state.tape;
}

bool TapeImpl::is_recording() const { return paused == 0 && tracer_ == present_tracer(); }

bool TapeImpl::any_records() {
  for (const TapeImpl* t = first(); t; t = t->outer_)
    if (t->is_recording()) return true;
  return false;
}

bool TapeImpl::any_records_outside() {
  for (const TapeImpl* t = first(); t; t = t->outer_)
    if (t->paused == 0 && t->tracer_ == 0) return true;
  return false;
}

void TapeImpl::watch(const Tensor& t) {
  if (!is_float(dtype_of(t))) user_error("watch: only floating tensors have gradients, this one is ", t.type_str());
  if (followed_.insert(t.impl()).second) watched_.push_back(t);
}

void TapeImpl::watch(const Variable& v, const Tensor& value) {
  watch(value);
  std::vector<Tensor>& values = variables_[v.impl()->id];
  if (values.empty()) read_.push_back(v);
  if (std::ranges::none_of(values, [&](const Tensor& t) { return t.impl() == value.impl(); })) values.push_back(value);
}

void TapeImpl::watch_read(const Variable& v, const Tensor& value) {
  for (TapeImpl* t = first(); t; t = t->outer_)
    if (t->options_.watch_variables && t->is_recording()) t->watch(v, value);
}

bool TapeImpl::follows(std::span<const Tensor> inputs) const {
  return std::ranges::any_of(inputs, [&](const Tensor& t) { return followed_.contains(t.impl()); });
}

void TapeImpl::record(TapeEntry entry) {
  if (!keeps_entries) return;
  for (const Tensor& t : entry.outputs)
    if (t.defined() && is_float(dtype_of(t))) followed_.insert(t.impl());  // no gradient flows through an integer
  entries_.push_back(std::move(entry));
}

void TapeImpl::record_op(const ir::OpDef& op, std::span<const Tensor> inputs, std::span<const Tensor> outputs, const ir::Attrs& attrs,
                         Location where) {
  for (TapeImpl* t = first(); t; t = t->outer_)
    if (t->is_recording() && t->follows(inputs))
      t->record(
          {&op, nullptr, attrs, {inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}, where, nullptr, thread_state.device});
}

void TapeImpl::record_graph(const ir::GraphRef& graph, std::span<const Tensor> inputs, std::span<const Tensor> outputs, Location where) {
  for (TapeImpl* t = first(); t; t = t->outer_)
    if (t->is_recording() && t->follows(inputs))
      t->record(
          {nullptr, graph, {}, {inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}, where, nullptr, thread_state.device});
}

void TapeImpl::record_custom(const TapeEntry& entry) {
  for (TapeImpl* t = first(); t; t = t->outer_)
    if (t->is_recording() && t->follows(entry.inputs)) t->record(entry);
}

const Tensor& TapeImpl::first_value(const Variable& v) const { return variables_.at(v.impl()->id).front(); }

// --- gradients -------------------------------------------------------------------------------------------------------------------

std::vector<Tensor> TapeImpl::flattened(std::span<const Source> sources, std::vector<size_t>& counts) const {
  std::vector<Tensor> flat;
  for (const Source& s : sources) {
    const size_t before = flat.size();
    if (!s.is_variable()) {
      if (followed_.contains(&defined(s.tensor()))) flat.push_back(s.tensor());
    } else if (const auto read = variables_.find(s.variable().impl()->id); read != variables_.end()) {
      flat.insert(flat.end(), read->second.begin(), read->second.end());
    }
    counts.push_back(flat.size() - before);
  }
  return flat;
}

void TapeImpl::begin_gradient(std::span<const Tensor> targets) {
  if (used_ && !options_.persistent)
    user_error("gradient: this tape has already given its gradient",
               "\n  hint: ask for all gradients at once with gradients(), or make the tape with TapeOptions{.persistent = true}");
  for (const Tensor& t : targets)
    if (!is_float(dtype_of(t))) user_error("gradient: a target must be floating, this one is ", t.type_str());
  used_ = true;
  if (!options_.persistent) stop();
}

void TapeImpl::end_gradient() {
  if (options_.persistent) return;
  entries_.clear();
  watched_.clear();
  variables_.clear();
}

std::vector<Tensor> TapeImpl::gradients(std::span<const Tensor> targets, std::span<const Source> sources, const GradientOptions& options,
                                        Location where) {
  check_gradients_given(targets, options.output_gradients);
  begin_gradient(targets);
  std::vector<size_t> counts;
  const std::vector<Tensor> wanted = flattened(sources, counts);
  const std::vector<Tensor> made = run_gradient({entries_, targets, options.output_gradients, wanted, counts, where});
  end_gradient();

  std::vector<Tensor> gradients;
  for (size_t i = 0; i < sources.size(); ++i) {
    const Source& s = sources[i];
    if (made[i].defined()) {
      gradients.push_back(made[i]);
    } else if (options.unconnected == Unconnected::Zero) {
      const bool is_variable = s.is_variable();
      gradients.push_back(Tensor::zeros(is_variable ? to_dims(s.variable().shape()) : s.tensor().dims(),
                                        is_variable ? s.variable().dtype() : s.tensor().dtype()));
    } else {
      gradients.emplace_back();
    }
  }
  return gradients;
}

}  // namespace frontend

using namespace frontend;

Tape::Tape(const TapeOptions& options) : impl_(TapeImpl::start(options)) {}
Tape::~Tape() {
  if (impl_) impl_->stop();
}
Tape::Tape(Tape&&) noexcept = default;
Tape& Tape::operator=(Tape&& other) noexcept {
  if (this == &other) return *this;
  if (impl_) impl_->stop();
  impl_ = std::move(other.impl_);
  return *this;
}

void Tape::watch(const Tensor& t, Where where) try { impl_->watch(t); } catch (...) {
  rethrow_at(Location::of(where));
}

void Tape::watch(const Variable& v, Where where) try {
  impl_->watch(v, thread_state.tracer ? thread_state.tracer->read(v) : v.impl()->load());
} catch (...) {
  rethrow_at(Location::of(where));
}

std::vector<Tensor> Tape::gradients(const std::vector<Tensor>& targets, const Sources& sources, const GradientOptions& options,
                                    Where where) try {
  return impl_->gradients(targets, sources.list(), options, named_line(Location::of(where)));
} catch (...) {
  rethrow_at(Location::of(where));
}

Tensor Tape::gradient(const Tensor& target, const Source& source, const GradientOptions& options, Where where) {
  return gradients(std::vector<Tensor>{target}, Sources{source}, options, where).front();
}

void Tape::stop() { impl_->stop(); }
void Tape::resume() { TapeImpl::resume(impl_); }
void Tape::reset() { impl_->reset(); }
std::vector<Variable> Tape::watched_variables() const { return impl_->watched_variables(); }

Tape::Pause::Pause(const Tape& tape) : impl_(tape.impl_) { ++impl_->paused; }
Tape::Pause::~Pause() { --impl_->paused; }

}  // namespace tandem
