// Function: traced once for each signature, then called with little more than the compiled graph's own cost.
#include <tandem/device.hpp>
#include <tandem/function.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/lru_cache.hpp"
#include "base/thread_kept.hpp"
#include "frontend/apply.hpp"
#include "frontend/host_token.hpp"
#include "frontend/memory.hpp"
#include "frontend/tape_impl.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/traced_step.hpp"
#include "frontend/tracer.hpp"
#include "frontend/variable_impl.hpp"
#include "ir/print.hpp"
#include "profile/recorder.hpp"

namespace tandem {
namespace frontend {
namespace {

// Of one function. Each is a graph with its plans.
constexpr size_t kMostTraces = 256, kMostNodes = size_t{1} << 18;

ir::TensorType type_of(const Spec& s) { return {s.dtype, s.dims}; }

// A signature's extents as numbers, so that a call compares without looking at expressions: n >= 0 is the number n, -1-k symbol k.
struct Argument {
  static constexpr int64_t kExpression = INT64_MIN;
  DType dtype;
  std::vector<int64_t> extents;
};

class Signature {
 public:
  explicit Signature(std::vector<ir::TensorType> types) : types_(std::move(types)) {
    std::vector<std::string> symbols;
    for (const ir::TensorType& t : types_) {
      Argument a{t.dtype, {}};
      for (const Dim& d : t.dims) a.extents.push_back(code(d, symbols));
      arguments_.push_back(std::move(a));
    }
  }

  const std::vector<ir::TensorType>& types() const { return types_; }

  bool matches(std::span<const Tensor* const> arguments) const {
    if (arguments.size() != arguments_.size()) return false;
    int64_t few[kFewSymbols];
    std::fill_n(few, kFewSymbols, -1);
    for (size_t i = 0; i < arguments.size(); ++i) {
      const engine::TensorRef* ref = concrete_ref(*arguments[i]);
      if (!ref || !matches(arguments_[i], ref->layout, few)) return false;
    }
    return true;
  }

  // Says why it does not match.
  void check(std::string_view function, std::span<const Tensor* const> arguments) const {
    if (arguments.size() != types_.size()) user_error(function, ": takes ", types_.size(), " tensors, got ", arguments.size());
    Bindings bindings;
    for (size_t i = 0; i < types_.size(); ++i) {
      const ir::TensorType& t = types_[i];
      const ir::TensorType given = frontend::type_of(*arguments[i]);
      if (given.dtype != t.dtype || given.rank() != t.rank()) user_error(function, ": argument ", i, " is ", given, ", its spec is ", t);
      if (concrete_ref(*arguments[i])) unify(t.dims, arguments[i]->shape(), bindings, cat(function, ": argument ", i));
    }
  }

 private:
  static constexpr size_t kFewSymbols = 8;

  int64_t code(const Dim& d, std::vector<std::string>& symbols) const {
    if (d.is_const()) return d.value();
    std::vector<std::string> mine;
    d.collect_symbols(mine);
    if (mine.size() != 1 || !(d == Dim::symbol(mine[0]))) return Argument::kExpression;
    const auto found = std::ranges::find(symbols, mine[0]);
    const auto index = found - symbols.begin();
    if (found == symbols.end()) symbols.push_back(mine[0]);
    return static_cast<size_t>(index) < kFewSymbols ? -1 - index : Argument::kExpression;
  }

  // An expression is left to the engine, which binds all symbols and checks them.
  static bool matches(const Argument& a, const codegen::Layout& o, int64_t* symbols) {
    if (o.dtype != a.dtype || o.shape.size() != a.extents.size()) return false;
    for (size_t i = 0; i < a.extents.size(); ++i) {
      const int64_t code = a.extents[i], extent = o.shape[i];
      if (code == Argument::kExpression) continue;
      if (code < 0 && symbols[-1 - code] < 0) symbols[-1 - code] = extent;
      if ((code >= 0 ? code : symbols[-1 - code]) != extent) return false;
    }
    return true;
  }

  std::vector<ir::TensorType> types_;
  std::vector<Argument> arguments_;
};

// One traced and compiled version. Inputs: arguments, then externals. Outputs: results, then the variables that are written, then the token
// of host calls, if there are any.
struct Trace {
  Signature signature;
  ir::GraphRef graph;
  std::shared_ptr<engine::Executable> executable;
  std::vector<Tracer::External> externals;
  std::vector<size_t> locked;  // externals that are variables, in the order in which they are locked
  const engine::Engine* engine = nullptr;
  int32_t wish = -1;            // the device that was asked for around it
  std::vector<size_t> written;  // externals whose new values are the last outputs; a part of `locked`
  size_t result_count = 0;
};

}  // namespace

class FunctionImpl {
 public:
  FunctionImpl(FlatFunction body, FunctionOptions options) : body_(std::move(body)), options_(std::move(options)) {
    name(options_.precision);  // UserError when there is no such precision
    if (!options_.specs.empty()) {
      std::vector<ir::TensorType> types;
      for (const Spec& s : options_.specs) types.push_back(type_of(s));
      specs_.emplace(std::move(types));
    }
  }

  void call(std::span<const Tensor* const> arguments, std::vector<Tensor>& results) {
    if (thread_state.tracer) return inline_call(arguments, results);
    std::shared_ptr<Trace> t = last();
    if (!t || t->wish != thread_state.device || !t->signature.matches(arguments)) t = find_or_trace(arguments);
    run(*t, arguments, results);
  }

  void prepare() {
    if (!specs_) user_error(options_.name, ": prepare: the function has no specs, so each call's arguments decide its types");
    std::lock_guard tracing(tracing_);
    if (!last()) keep(0, trace(*specs_));
  }

  std::vector<Spec> result_specs(const std::vector<Spec>& arguments) {
    std::vector<ir::TensorType> types;
    for (const Spec& s : arguments) types.push_back(type_of(s));
    Tracer tracer(options_.name, options_.precision);
    std::vector<Spec> specs;
    for (const Tensor& t : traced_body(tracer, types)) specs.push_back({t.dtype(), t.dims()});
    return specs;
  }

  static const std::shared_ptr<FunctionImpl>& of(const FlatCallable& function) { return function.impl_; }
  TracedStep traced_step(const std::vector<Spec>& arguments) {
    std::vector<ir::TensorType> types;
    for (const Spec& s : arguments) types.push_back(type_of(s));
    std::lock_guard tracing(tracing_);
    Trace t{Signature(std::move(types))};
    TracedStep step;
    step.donations = capture(t).donations;
    step.graph = *t.graph;
    step.argument_count = t.signature.types().size();
    step.precision = options_.precision;
    for (const Tracer::External& e : t.externals) step.externals.push_back({e.variable, e.written});
    return step;
  }

  size_t trace_count() const { return count_; }
  std::vector<plan::BudgetReport> budgets() const {
    std::vector<plan::BudgetReport> most;
    std::lock_guard lock(mutex_);
    traces_.for_each([&](const std::shared_ptr<Trace>& t) {
      if (t->executable) plan::keep_largest(most, t->executable->budgets());
    });
    return most;
  }

  // The one that was used last; null when there is none.
  std::shared_ptr<Trace> last() const {
    std::lock_guard guard(mutex_);
    const auto* newest = traces_.newest();
    return newest ? *newest : nullptr;
  }

 private:
  // Called inside another trace: part of that. Its specs hold as far as extents are known.
  void inline_call(std::span<const Tensor* const> arguments, std::vector<Tensor>& results) {
    if (specs_) specs_->check(options_.name, arguments);
    const Tracer& outer = *thread_state.tracer;
    if (options_.precision != Precision::Float32 && options_.precision != outer.precision())
      user_error(options_.name, ": asks for ", options_.precision, ", but becomes part of ", outer.name(), ", which computes in ",
                 outer.precision(), "\n  hint: give the outer function the precision");
    std::vector<Tensor> in;
    for (const Tensor* t : arguments) in.push_back(*t);
    results = body_(in);
  }

  // A function with specs has one trace, for all arguments.
  size_t hash(std::span<const Tensor* const> arguments) const {
    size_t h = static_cast<size_t>(thread_state.device + 1);
    if (!specs_)
      for (const Tensor* a : arguments)
        for (const int64_t extent : numbers_of(*a, options_.name).layout.shape) h = ir::hash_combine(h, static_cast<size_t>(extent));
    return h;
  }

  std::shared_ptr<Trace> find(size_t hash, std::span<const Tensor* const> arguments) {
    std::lock_guard guard(mutex_);
    const auto* found = traces_.find(
        hash, [&](const std::shared_ptr<Trace>& t) { return t->wish == thread_state.device && t->signature.matches(arguments); });
    return found ? *found : nullptr;
  }

  std::shared_ptr<Trace> find_or_trace(std::span<const Tensor* const> arguments) {
    std::vector<ir::TensorType> types;
    for (size_t i = 0; i < arguments.size(); ++i) {
      numbers_of(*arguments[i], cat(options_.name, ": argument ", i));
      types.push_back(frontend::type_of(*arguments[i]));
    }
    const size_t h = hash(arguments);
    if (auto found = find(h, arguments)) return found;
    std::lock_guard tracing(tracing_);
    if (auto found = find(h, arguments)) return found;  // another thread has made it meanwhile
    if (specs_) specs_->check(options_.name, arguments);
    return keep(h, trace(specs_ ? *specs_ : Signature(std::move(types))));
  }

  std::shared_ptr<Trace> keep(size_t hash, const std::shared_ptr<Trace>& made) {
    std::lock_guard guard(mutex_);
    return traces_.add(hash, made->graph->nodes.size() + 1, made);
  }

  std::vector<Tensor> traced_body(Tracer& tracer, const std::vector<ir::TensorType>& types) {
    std::vector<Tensor> parameters;
    for (const ir::TensorType& t : types) parameters.push_back(tracer.parameter(t));
    const TraceScope scope(tracer);
    std::vector<Tensor> results = body_(parameters);
    for (size_t i = 0; i < results.size(); ++i)
      if (!results[i].defined())
        user_error(options_.name, ": result ", i,
                   " holds nothing\n  hint: a default-made Tensor, or the gradient of something unconnected");
    return results;
  }

  std::shared_ptr<Trace> trace(Signature signature) {
    const profile::Span compiling(profile::Kind::Compile, options_.name);
    auto t = std::make_shared<Trace>(Trace{std::move(signature)});
    auto [donations, is_state] = capture(*t);
    t->executable = engine::default_engine().compile(*t->graph, donations, options_.precision, std::move(is_state));
    ++count_;
    return t;
  }

  // A variable comes in once and goes out at most once (I5).
  struct Captured {
    std::vector<int32_t> donations;  // one an output: the input whose place it may take, or -1
    std::vector<bool> is_state;      // one an input: it may move to another device for good
  };
  // All of a trace but the executable.
  Captured capture(Trace& trace) {
    Trace* const t = &trace;
    Tracer tracer(options_.name, options_.precision);
    std::vector<Tensor> outputs = traced_body(tracer, t->signature.types());
    t->result_count = outputs.size();
    for (const Tensor& result : outputs) tracer.value_of(result);  // a tensor from outside may be a result: then it is an external too
    t->externals = tracer.externals();

    std::vector<int32_t> donations(outputs.size(), -1);
    Tensor calls;  // the token behind the last host call: an output that nobody reads, so that all of them are made
    for (size_t i = 0; i < t->externals.size(); ++i) {
      const Tracer::External& e = t->externals[i];
      if (is_host_token(e.variable)) {
        calls = e.current;
        continue;
      }
      if (e.variable.defined()) t->locked.push_back(i);
      if (!e.written) continue;
      t->written.push_back(i);
      outputs.push_back(e.current);
      donations.push_back(static_cast<int32_t>(tracer.parameter_count() + i));
    }
    if (calls.defined()) {
      outputs.push_back(calls);
      donations.push_back(-1);
    }
    std::ranges::sort(t->locked, {}, [&](size_t i) { return t->externals[i].variable.impl()->id; });
    t->graph = std::make_shared<const ir::Graph>(tracer.finish(outputs));
    t->wish = thread_state.device;
    t->engine = &engine::default_engine();
    // A variable that no device was asked for goes where the step wants it.
    std::vector<bool> is_state(tracer.parameter_count());
    for (const Tracer::External& e : t->externals)
      is_state.push_back(e.variable.defined() && !is_host_token(e.variable) && e.variable.impl()->device < 0);
    for (Tracer::External& e : t->externals) e.current = Tensor();
    return {std::move(donations), std::move(is_state)};
  }

  // --- running -------------------------------------------------------------------------------------------------------------------

  // What a call needs besides the arguments, kept by the thread for its memory.
  struct Frame {
    std::vector<const engine::TensorRef*> inputs;
    std::vector<engine::TensorRef> outputs;
    std::vector<Tensor> held;
    std::vector<device::BufferRef> guards;
    void clear() {
      inputs.clear();
      outputs.clear();
      held.clear();
      guards.clear();
    }
  };
  class FrameScope {
   public:
    FrameScope() { exchange(); }
    ~FrameScope() {
      frame.clear();
      exchange();
    }
    FrameScope(const FrameScope&) = delete;
    FrameScope& operator=(const FrameScope&) = delete;
    Frame frame;

   private:
    void exchange() {
      if (Frame* kept = thread_kept<Frame>()) std::swap(frame, *kept);
    }
  };

  // Takes the variables in one fixed order. Those that are written stay locked until the end, so that nobody reads half a value; of the
  // others the present value is held, so that several threads may read at once.
  class Locks {
   public:
    Locks(const Trace& t, Frame& f) : trace_(t) {
      const size_t first = f.inputs.size() - t.externals.size();
      f.held.reserve(t.locked.size());  // before the first lock: nothing may throw while locks are taken
      f.guards.reserve(t.locked.size());
      if (thread_state.host_calls > 0)
        for (const size_t i : t.locked) t.externals[i].variable.impl()->check_not_held_here();
      for (const size_t i : t.locked) {
        VariableImpl& v = *t.externals[i].variable.impl();
        v.lock();
        f.inputs[first + i] = concrete_ref(v.value());
        if (t.externals[i].written) {
          // Somebody holds this tensor: its memory must not be written. One more owner of the buffer tells the engine so.
          if (!v.value().impl()->is_unique()) f.guards.push_back(concrete_ref(v.value())->buffer);
        } else {
          f.held.push_back(v.value());
          v.unlock();
        }
      }
    }
    ~Locks() {
      for (const size_t i : trace_.written) trace_.externals[i].variable.impl()->unlock();
    }
    Locks(const Locks&) = delete;
    Locks& operator=(const Locks&) = delete;

   private:
    const Trace& trace_;
  };

  static void run(Trace& t, std::span<const Tensor* const> arguments, std::vector<Tensor>& results) {
    const bool is_recorded = thread_state.tape && TapeImpl::any_records();
    std::vector<Tensor> recorded;
    if (is_recorded) recorded = recorded_inputs(t, arguments);
    FrameScope scope;
    Frame& f = scope.frame;
    for (const Tensor* a : arguments) f.inputs.push_back(concrete_ref(*a));
    for (const Tracer::External& e : t.externals)  // the token never changes, and nobody locks it; other variables come with their locks
      f.inputs.push_back(concrete_ref(is_host_token(e.variable) ? e.variable.impl()->value() : e.outer));
    {
      const Locks locks(t, f);
      if (t.engine->devices().count() > 1) move_state(t, f);
      t.executable->run(f.inputs, f.outputs);
      f.guards.clear();
      for (size_t k = 0; k < t.written.size(); ++k)
        store(*t.externals[t.written[k]].variable.impl(), std::move(f.outputs[t.result_count + k]));
    }
    results.clear();
    results.reserve(t.result_count);
    for (size_t i = 0; i < t.result_count; ++i) results.push_back(concrete(std::move(f.outputs[i])));
    if (is_recorded) TapeImpl::record_graph(t.graph, recorded, results, {});
  }

  // State goes to where the graph wants it, once: its variables live there from now on. With the locks of those that are written.
  static void move_state(const Trace& t, Frame& f) {
    const engine::Engine& engine = engine::default_engine();
    const std::shared_ptr<const engine::Placed> placed = t.executable->placed(f.inputs);
    if (placed->homes.empty()) return;
    const size_t first = f.inputs.size() - t.externals.size();
    for (const size_t i : t.locked) {
      const int32_t home = placed->homes[first + i];
      if (home < 0 || &engine.devices().at(home) == &f.inputs[first + i]->buffer->home()) continue;
      VariableImpl& v = *t.externals[i].variable.impl();
      const bool is_written = t.externals[i].written;
      const Tensor moved = concrete(engine.at(*f.inputs[first + i], home));
      if (!is_written) v.lock();
      // Somebody may have assigned meanwhile: then the next call moves it.
      if (is_written || concrete_ref(v.value()) == f.inputs[first + i]) v.value() = moved;
      if (!is_written) v.unlock();
      f.inputs[first + i] = concrete_ref(moved);
      if (!is_written) f.held.push_back(moved);
    }
  }

  // The inputs as tensors for the tapes. Reading a variable tells them that it is watched.
  static std::vector<Tensor> recorded_inputs(const Trace& t, std::span<const Tensor* const> arguments) {
    std::vector<Tensor> inputs;
    for (const Tensor* a : arguments) inputs.push_back(*a);
    for (const Tracer::External& e : t.externals) inputs.push_back(e.variable.defined() ? read_variable(e.variable) : e.outer);
    return inputs;
  }

  // With the lock held. The variable's tensor object is used again when nobody else has it. What was assigned may be an argument as it
  // is, in the caller's own memory: a variable has memory of its own.
  static void store(VariableImpl& v, engine::TensorRef value) {
    if (!is_the_engines(value)) value = dense_copy(value);
    if (v.value().impl()->is_unique())
      static_cast<ConcreteTensor*>(v.value().impl())->ref = std::move(value);
    else
      v.value() = concrete(std::move(value));
  }

  const FlatFunction body_;
  const FunctionOptions options_;
  std::optional<Signature> specs_;
  std::recursive_mutex tracing_;  // held while tracing; the body may call this very function outside of the trace
  mutable std::mutex mutex_;      // of traces_, held for a moment only
  LruCache<std::shared_ptr<Trace>> traces_{{kMostTraces, kMostNodes}};
  std::atomic<size_t> count_{0};
};

TracedStep traced_step(const FlatCallable& function, const std::vector<Spec>& arguments) {
  const std::shared_ptr<FunctionImpl>& impl = FunctionImpl::of(function);
  if (!impl) user_error("this function holds nothing\n  hint: it was made by its default constructor");
  return impl->traced_step(arguments);
}

}  // namespace frontend

using namespace frontend;

namespace {
FunctionImpl& impl_of(const std::shared_ptr<FunctionImpl>& impl) {
  if (!impl) user_error("this function holds nothing\n  hint: it was made by its default constructor");
  return *impl;
}
}  // namespace

std::string Spec::str() const { return ir::TensorType{dtype, dims}.str(); }

FlatCallable::FlatCallable(FlatFunction body, FunctionOptions options)
    : impl_(std::make_shared<FunctionImpl>(std::move(body), std::move(options))) {}

std::vector<Tensor> FlatCallable::operator()(const std::vector<Tensor>& arguments, Where where) const {
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : arguments) pointers.push_back(&t);
  std::vector<Tensor> results;
  call(pointers, results, where);
  return results;
}

void FlatCallable::call(std::span<const Tensor* const> arguments, std::vector<Tensor>& results, const Where& where) const try {
  impl_of(impl_).call(arguments, results);
} catch (...) {
  rethrow_at(Location::of(where));
}
void FlatCallable::prepare(Where where) const try { impl_of(impl_).prepare(); } catch (...) {
  rethrow_at(Location::of(where));
}

size_t FlatCallable::trace_count() const { return impl_of(impl_).trace_count(); }
std::vector<Spec> FlatCallable::result_specs(const std::vector<Spec>& arguments) const { return impl_of(impl_).result_specs(arguments); }

std::vector<PlacementRow> explain(const FlatCallable& function) {
  const auto last = impl_of(function.impl_).last();
  if (!last)
    user_error(ErrorCode::FailedPrecondition, "explain: the function was not called yet\n  hint: its first call decides where it runs");
  const engine::Devices& all = engine::default_engine().devices();
  std::vector<PlacementRow> rows;
  for (const engine::Estimate::Row& r : last->executable->explain().rows)
    rows.push_back({r.label, all.at(r.device).info().name, std::string(engine::words(r.why)), r.seconds, r.moved_bytes,
                    r.location ? r.location.str() : ""});
  return rows;
}

std::string FlatCallable::graph_str() const {
  const auto last = impl_of(impl_).last();
  return last ? ir::print(*last->graph) : "";
}

std::string FlatCallable::budget_summary() const {
  std::string text;
  for (const plan::BudgetReport& r : impl_of(impl_).budgets())
    text += cat(text.empty() ? "" : "\n", plan::summary(r, engine::default_engine().devices().at(r.device).info().name));
  return text;
}

double FlatCallable::predicted_seconds() const {
  const auto last = impl_of(impl_).last();
  return last && last->executable ? last->executable->run_seconds() : 0;
}

std::vector<Variable> FlatCallable::variables() const {
  std::vector<Variable> all;
  if (const auto last = impl_of(impl_).last())
    for (const size_t i : last->locked) all.push_back(last->externals[i].variable);
  return all;
}

}  // namespace tandem
