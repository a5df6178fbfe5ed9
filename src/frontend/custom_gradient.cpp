#include <tandem/custom_gradient.hpp>

#include <algorithm>
#include <memory>

#include "frontend/apply.hpp"
#include "frontend/host_token.hpp"
#include "frontend/part.hpp"
#include "frontend/tape_impl.hpp"
#include "frontend/tensor_impl.hpp"

namespace tandem {

using namespace frontend;

namespace {

void check_gradients(std::span<const Tensor> found, std::span<const ir::TensorType> inputs, const std::vector<Variable>& variables) {
  const size_t own = inputs.size() - variables.size();
  if (found.size() != inputs.size()) {
    if (variables.empty()) user_error("custom_gradient: backward gives ", found.size(), " gradients for ", own, " inputs");
    std::string names;
    for (const Variable& v : variables) names += cat(names.empty() ? "'" : ", '", v.name(), "'");
    user_error("custom_gradient: backward gives ", found.size(), " gradients for ", own, " inputs and ", variables.size(), " variables (",
               names, ")\n  hint: the function reads these trainable variables; give a gradient for each behind those of the inputs");
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined() || !is_float(inputs[i].dtype) || type_of(found[i]) == inputs[i]) continue;
    const std::string what = i < own ? cat("input ", i) : cat("variable '", variables[i - own].name(), "'");
    user_error("custom_gradient: the gradient of ", what, " is ", type_of(found[i]), ", the ", i < own ? "input" : "variable", " is ",
               inputs[i]);
  }
}

// --- under a tape: the tape calls back ---------------------------------------------------------------------------------------------

// While it lives, hears which trainable variables are read.
class Listener {
 public:
  Listener() : tape_(TapeImpl::start({})) { tape_->keeps_entries = false; }
  ~Listener() { tape_->stop(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  const TapeImpl& heard() const { return *tape_; }

 private:
  std::shared_ptr<TapeImpl> tape_;
};

// The same value as another tensor: to a tape, another way leads to it.
Tensor renamed(const Tensor& t) {
  if (Tracer* tracer = thread_state.tracer) return tracer->wrap(tracer->value_of(t));
  return concrete(numbers_of(t, "custom_gradient"));
}

// What f computes is recorded too: its tensors may be used by backward, and a second derivative goes through them. The first one does not,
// for the outputs that the caller sees are others than f's.
std::vector<Tensor> recorded(const flat::DifferentiableFunction& f, const std::vector<Tensor>& inputs, Location where) {
  flat::Differentiable made;
  TapeEntry entry{.op = nullptr, .graph = nullptr, .attrs = {}, .inputs = inputs, .outputs = {}, .location = named_line(where)};
  std::vector<Variable> variables;
  {
    const Listener listener;
    made = f(inputs);
    for (const Variable& v : listener.heard().watched_variables()) {
      const Tensor& value = listener.heard().first_value(v);
      if (std::ranges::any_of(inputs, [&](const Tensor& t) { return t.impl() == value.impl(); })) continue;
      variables.push_back(v);
      entry.inputs.push_back(value);
    }
  }
  for (const Tensor& t : made.outputs) entry.outputs.push_back(renamed(t));
  entry.backward =
      std::make_shared<const Backward>([backward = std::move(made.backward), variables = std::move(variables),
                                        types = types_of(entry.inputs), where = entry.location](const std::vector<Tensor>& gradients) {
        try {
          std::vector<Tensor> found = backward(gradients, variables);
          check_gradients(found, types, variables);
          return found;
        } catch (...) {
          rethrow_at(where);
        }
      });
  TapeImpl::record_custom(entry);
  return entry.outputs;
}

// --- traced, for a tape that may look at the function later: a node with two graphs ---------------------------------------------------

std::vector<Variable> trainable_of(const Tracer& t) {
  std::vector<Variable> variables;
  for (const Tracer::External& e : t.externals())
    if (e.variable.defined() && e.variable.trainable() && is_float(e.variable.dtype())) variables.push_back(e.variable);
  return variables;
}

std::vector<Tensor> as_node(const flat::DifferentiableFunction& f, const std::vector<Tensor>& inputs, Location where) {
  const std::vector<ir::TensorType> types = types_of(inputs);
  Part compute = traced_part("forward", types, [&](const std::vector<Tensor>& in) { return f(in).outputs; });
  // Host calls in f: their token is one more output. Those in the way back live as long as their results do, so their token may end there.
  const auto count = static_cast<ptrdiff_t>(compute.outputs.size());
  const bool calls_host = makes_host_calls(*compute.tracer);
  if (calls_host) compute.outputs.push_back(compute.tracer->read(host_token()));
  const std::vector<Variable> variables = trainable_of(*compute.tracer);
  std::vector<ir::TensorType> wanted = types, seen = types;
  for (const Variable& v : variables) wanted.push_back({v.dtype(), to_dims(v.shape())});
  const std::vector<ir::TensorType> results = types_of(compute.outputs);
  append(seen, results);
  append(seen, results);
  // The closure uses tensors of f, so f is part of this graph too. The compiler finds that both compute the same.
  Part differentiate = traced_part("backward", seen, [&](const std::vector<Tensor>& in) {
    const auto own = in.begin() + static_cast<ptrdiff_t>(inputs.size());
    const auto upstream = own + static_cast<ptrdiff_t>(results.size());
    std::vector<Tensor> found = f({in.begin(), own}).backward({upstream, upstream + count}, variables);
    check_gradients(found, wanted, variables);
    for (size_t i = 0; i < found.size(); ++i)
      if (!found[i].defined() || !is_float(wanted[i].dtype)) found[i] = Tensor::zeros(wanted[i].dims, wanted[i].dtype);
    return found;
  });

  Part* const parts[] = {&compute, &differentiate};
  const Externals externals(parts);
  for (const Variable& v : externals.written())
    if (!is_host_token(v))
      user_error("custom_gradient: variable '", v.name(), "' is assigned inside\n  hint: return the new value and assign it outside");
  const Externals::Pointers order = externals.all();
  std::vector<Tensor> gradients(differentiate.outputs.begin(), differentiate.outputs.begin() + static_cast<ptrdiff_t>(inputs.size()));
  {
    // What comes from outside counts as constant, but for those variables.
    const TraceScope scope(*differentiate.tracer);
    for (const Tracer::External* e : order) {
      const auto found = std::ranges::find_if(variables, [&](const Variable& v) { return v.impl() == e->variable.impl(); });
      gradients.push_back(found == variables.end() || !e->variable.defined()
                              ? Tensor::zeros(external_type(*e).dims, external_type(*e).dtype)
                              : differentiate.outputs[inputs.size() + static_cast<size_t>(found - variables.begin())]);
    }
  }
  const ir::GraphRef forward = arranged(compute, compute.outputs, inputs.size(), order, {});
  // Backward sees the inputs (ours, then those from outside), the outputs, their gradients.
  const ir::GraphRef backward = arranged(differentiate, gradients, inputs.size(), order, {});

  static const ir::OpDef& op = row("custom_gradient");
  std::vector<Tensor> operands = inputs;
  append(operands, outside(order));
  std::vector<Tensor> found = call_final(op, operands, {{"forward", ir::Graphs{forward}}, {"backward", ir::Graphs{backward}}}, where);
  if (calls_host) {
    thread_state.tracer->assign(host_token(), found.back());
    found.pop_back();
  }
  return found;
}

}  // namespace

namespace flat {

std::vector<Tensor> custom_gradient(const DifferentiableFunction& f, const std::vector<Tensor>& inputs, std::source_location where) try {
  if (TapeImpl::any_records()) return recorded(f, inputs, Location::of(where));
  return thread_state.tracer ? as_node(f, inputs, Location::of(where)) : f(inputs).outputs;
} catch (...) {
  rethrow_at(Location::of(where));
}

std::vector<Tensor> remat(const FlatFunction& f, const std::vector<Tensor>& inputs, std::source_location where) try {
  if (!thread_state.tracer && !TapeImpl::any_records()) return f(inputs);
  Part body = traced_part("remat", types_of(inputs), f);
  const size_t count = body.outputs.size();
  Part* const parts[] = {&body};
  const Externals externals(parts);
  const std::vector<Variable> written = externals.written();
  for (const Variable& v : written) body.outputs.push_back(body.tracer->read(v));
  const Externals::Pointers order = externals.all();
  const ir::GraphRef graph = arranged(body, body.outputs, inputs.size(), order, {});

  static const ir::OpDef& op = row("remat");
  std::vector<Tensor> operands = inputs;
  append(operands, outside(order));
  std::vector<Tensor> results = call_final(op, operands, {{"body", ir::Graphs{graph}}}, Location::of(where));
  assign_all(written, std::span(results).subspan(count));
  results.resize(count);
  return results;
} catch (...) {
  rethrow_at(Location::of(where));
}

}  // namespace flat
}  // namespace tandem
