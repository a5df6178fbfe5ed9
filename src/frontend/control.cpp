// Control flow: run at once, or traced into sub-graphs.
#include <tandem/control.hpp>

#include <algorithm>

#include "frontend/apply.hpp"
#include "frontend/host_token.hpp"
#include "frontend/part.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/tracer.hpp"
#include "frontend/variable_impl.hpp"

namespace tandem {

using namespace frontend;

namespace {

// --- checks ----------------------------------------------------------------------------------------------------------------------

void check_same(std::string_view op, const std::string& first, std::span<const Tensor> a, const std::string& second,
                std::span<const Tensor> b) {
  if (a.size() != b.size()) user_error(op, ": ", first, " gives ", a.size(), " tensors, ", second, " gives ", b.size());
  for (size_t i = 0; i < a.size(); ++i)
    if (!(type_of(a[i]) == type_of(b[i])))
      user_error(op, ": result ", i, " is ", type_of(a[i]), " in ", first, " and ", type_of(b[i]), " in ", second,
                 "\n  hint: both must have the same element type and shape; cast() or reshape() one of them");
}

void check_carry(std::string_view op, std::span<const Tensor> before, std::span<const Tensor> after) {
  if (before.size() != after.size()) user_error(op, ": the state is ", before.size(), " tensors, the body gives ", after.size());
  for (size_t i = 0; i < before.size(); ++i)
    if (!(type_of(before[i]) == type_of(after[i])))
      user_error(op, ": part ", i, " of the state is ", type_of(before[i]), ", the body turns it into ", type_of(after[i]),
                 "\n  hint: the state keeps its element types and shapes from step to step");
}

void check_predicate(std::string_view op, const Tensor& t) {
  const ir::TensorType type = type_of(t);
  if (type.dtype != DType::Bool || type.rank() != 0)
    user_error(op, ": the condition must be bool[], it is ", type, "\n  hint: compare, and reduce with all() or any()");
}

// --- branches --------------------------------------------------------------------------------------------------------------------

std::vector<Tensor> traced_branches(std::string_view op, const Tensor& index, std::span<const std::string> names,
                                    std::span<const flat::Thunk> branches, Location where) {
  std::vector<Part> parts;
  for (size_t i = 0; i < branches.size(); ++i)
    parts.push_back(traced_part(names[i], {}, [&](const std::vector<Tensor>&) { return branches[i](); }));
  for (size_t i = 1; i < parts.size(); ++i) check_same(op, names[i], parts[i].outputs, names[0], parts[0].outputs);

  std::vector<Part*> pointers;
  for (Part& p : parts) pointers.push_back(&p);
  const Externals externals(pointers);
  const std::vector<Variable> written = externals.written();
  const size_t count = parts[0].outputs.size();
  const std::vector<const Tracer::External*> order = externals.all();
  ir::Graphs graphs;
  for (Part& p : parts) {
    for (const Variable& v : written) p.outputs.push_back(p.tracer->read(v));
    graphs.push_back(arranged(p, p.outputs, 0, order, {}));
  }

  static const ir::OpDef& branch = row("branch");
  std::vector<Tensor> operands{index};
  append(operands, outside(order));
  std::vector<Tensor> results = call_final(branch, operands, {{"branches", graphs}}, where);
  assign_all(written, std::span(results).subspan(count));
  results.resize(count);
  return results;
}

// --- loops -----------------------------------------------------------------------------------------------------------------------

std::vector<Tensor> traced_while(const flat::Condition& condition, const FlatFunction& body, const std::vector<Tensor>& state,
                                 std::optional<int64_t> max_trips, Location where);

// A condition that calls the host program is asked once before the loop and then at the end of each step, since only a step has state.
std::vector<Tensor> traced_while_of_calls(const flat::Condition& condition, const FlatFunction& body, std::vector<Tensor> state,
                                          std::optional<int64_t> max_trips, Location where) {
  state.push_back(condition(state));
  std::vector<Tensor> last = traced_while([](const std::vector<Tensor>& s) { return s.back(); },
                                          [&](const std::vector<Tensor>& s) {
                                            std::vector<Tensor> next = body({s.begin(), s.end() - 1});
                                            next.push_back(condition(next));
                                            return next;
                                          },
                                          state, max_trips, where);
  last.pop_back();
  return last;
}

std::vector<Tensor> traced_while(const flat::Condition& condition, const FlatFunction& body, const std::vector<Tensor>& state,
                                 std::optional<int64_t> max_trips, Location where) {
  const std::vector<ir::TensorType> types = types_of(state);
  Part test = traced_part("condition", types, [&](const std::vector<Tensor>& s) { return std::vector<Tensor>{condition(s)}; });
  check_predicate("while_loop", test.outputs[0]);
  if (makes_host_calls(*test.tracer)) return traced_while_of_calls(condition, body, state, max_trips, where);
  for (const Tracer::External& e : test.tracer->externals())
    if (e.written) user_error("while_loop: the condition assigns variable '", e.variable.name(), "'\n  hint: only the body may assign");
  Part step = traced_part("body", types, body);
  check_carry("while_loop", state, step.outputs);

  // All that comes from outside is carried along; what is not assigned stays as it is.
  Part* const parts[] = {&test, &step};
  const Externals externals(parts);
  const std::vector<const Tracer::External*> order = externals.all();
  for (const Tracer::External* e : order) step.outputs.push_back(e->variable.defined() ? step.tracer->read(e->variable) : e->outer);
  const ir::GraphRef test_graph = arranged(test, test.outputs, types.size(), order, {});
  const ir::GraphRef step_graph = arranged(step, step.outputs, types.size(), order, {});

  static const ir::OpDef& loop = row("while");
  std::vector<Tensor> operands = state;
  append(operands, outside(order));
  std::vector<Tensor> results =
      call_final(loop, operands,
                 {{"functions", ir::Graphs{test_graph, step_graph}}, {"max_trips", max_trips ? ir::Attr(*max_trips) : ir::Attr()}}, where);
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i]->written) thread_state.tracer->assign(order[i]->variable, results[state.size() + i]);
  results.resize(state.size());
  return results;
}

flat::Step traced_scan(const flat::ScanBody& body, const std::vector<Tensor>& carry, const std::vector<Tensor>& sequences,
                       const Dim& length, bool reverse, Location where) {
  std::vector<ir::TensorType> types = types_of(carry);
  for (const Tensor& t : sequences) {
    ir::TensorType slice = type_of(t);
    slice.dims.erase(slice.dims.begin());
    types.push_back(std::move(slice));
  }
  Part step = traced_part("body", types, [&](const std::vector<Tensor>& in) {
    const auto middle = in.begin() + static_cast<ptrdiff_t>(carry.size());
    flat::Step s = body({in.begin(), middle}, {middle, in.end()});
    check_carry("scan", carry, s.carry);
    append(s.carry, s.outputs);
    return s.carry;
  });
  Part* const parts[] = {&step};
  const Externals externals(parts);
  const std::vector<Variable> written = externals.written();
  std::vector<Tensor> states;
  for (const Variable& v : written) states.push_back(step.tracer->read(v));
  step.outputs.insert(step.outputs.begin() + static_cast<ptrdiff_t>(carry.size()), states.begin(), states.end());
  const ir::GraphRef graph = arranged(step, step.outputs, carry.size(), externals.states(), externals.constants());

  static const ir::OpDef& loop = row("scan");
  std::vector<Tensor> operands = carry;
  append(operands, outside(externals.states()));
  append(operands, sequences);
  append(operands, outside(externals.constants()));
  const std::vector<Tensor> results = call_final(loop, operands,
                                                 {{"functions", ir::Graphs{graph}},
                                                  {"carries", static_cast<int64_t>(carry.size() + written.size())},
                                                  {"sequences", static_cast<int64_t>(sequences.size())},
                                                  {"length", Dims{length}},
                                                  {"reverse", reverse}},
                                                 where);
  const auto at = [&](size_t i) { return results.begin() + static_cast<ptrdiff_t>(i); };
  assign_all(written, std::span(results).subspan(carry.size(), written.size()));
  return {{at(0), at(carry.size())}, {at(carry.size() + written.size()), results.end()}};
}

Dim scan_length(const std::vector<Tensor>& sequences, const std::optional<Dim>& given) {
  if (sequences.empty() && !given) user_error("scan: without sequences the number of steps must be given");
  for (size_t i = 0; i < sequences.size(); ++i)
    if (sequences[i].rank() == 0)
      user_error("scan: sequence ", i, " is ", sequences[i].type_str(), ", it needs a first axis to walk along");
  const Dim length = given ? *given : sequences[0].dims()[0];
  for (size_t i = 0; i < sequences.size(); ++i)
    if (!(sequences[i].dims()[0] == length))
      user_error("scan: sequence ", i, " has ", sequences[i].dims()[0], " steps, there are to be ", length);
  return length;
}

// Run at once: the slices and the stacking are ops like others, so a tape sees all of it.
flat::Step eager_scan(const flat::ScanBody& body, const std::vector<Tensor>& carry, const std::vector<Tensor>& sequences, int64_t length,
                      bool reverse, Location where) {
  flat::Step state{carry, {}};
  std::vector<std::vector<Tensor>> outputs;
  for (int64_t n = 0; n < length; ++n) {
    const int64_t at = reverse ? length - 1 - n : n;
    std::vector<Tensor> slices;
    for (const Tensor& t : sequences) slices.push_back(t[at]);
    flat::Step next = body(state.carry, slices);
    check_carry("scan", state.carry, next.carry);
    state.carry = std::move(next.carry);
    outputs.push_back(std::move(next.outputs));
  }
  if (outputs.empty()) return state;
  if (reverse) std::ranges::reverse(outputs);
  static const ir::OpDef& stack = row("stack");
  for (size_t k = 0; k < outputs[0].size(); ++k) {
    std::vector<Tensor> all;
    for (const std::vector<Tensor>& o : outputs) all.push_back(o.at(k));
    state.outputs.push_back(call_final(stack, all, {{"axis", int64_t{0}}}, where).front());
  }
  return state;
}

// No step runs, but the outputs' shapes are those that steps would give: the body is traced and thrown away.
flat::Step empty_scan(const flat::ScanBody& body, const std::vector<Tensor>& carry, const std::vector<Tensor>& sequences) {
  Tracer tracer("scan");
  std::vector<ir::TensorType> types;
  {
    std::vector<Tensor> in, slices;
    for (const Tensor& t : carry) in.push_back(tracer.parameter(type_of(t)));
    for (const Tensor& t : sequences) {
      ir::TensorType slice = type_of(t);
      slice.dims.erase(slice.dims.begin());
      slices.push_back(tracer.parameter(slice));
    }
    const TraceScope scope(tracer);
    types = types_of(body(in, slices).outputs);
  }
  flat::Step end{carry, {}};
  for (ir::TensorType& t : types) {
    t.dims.insert(t.dims.begin(), Dim(0));
    end.outputs.push_back(Tensor::zeros(t.dims, t.dtype));
  }
  return end;
}

}  // namespace

namespace flat {

std::vector<Tensor> cond(const Operand& predicate, const Thunk& then, const Thunk& otherwise) {
  const Location where = Location::of(predicate.where());
  try {
    if (predicate.is_number()) return predicate.as_float() != 0 ? then() : otherwise();
    const Tensor p = tensor_of(predicate);
    check_predicate("cond", p);
    if (!thread_state.tracer) return p.item<bool>() ? then() : otherwise();
    const std::string names[] = {"the 'else' branch", "the 'then' branch"};
    const Thunk branches[] = {otherwise, then};
    return traced_branches("cond", cast_to(p, DType::I32, where), names, branches, where);
  } catch (...) {
    rethrow_at(where);
  }
}

std::vector<Tensor> switch_case(const Operand& index, const std::vector<Thunk>& branches) {
  const Location where = Location::of(index.where());
  try {
    if (branches.empty()) user_error("switch_case: there must be at least one branch");
    const Tensor i = tensor_of(index);
    if (!is_int(i.dtype()) || i.rank() != 0) user_error("switch_case: the index must be an integer without axes, it is ", i.type_str());
    if (!thread_state.tracer || index.is_number()) {
      const int64_t at = index.is_number() ? index.as_int() : i.item<int64_t>();
      return branches[static_cast<size_t>(std::clamp<int64_t>(at, 0, static_cast<int64_t>(branches.size()) - 1))]();
    }
    std::vector<std::string> names;
    for (size_t k = 0; k < branches.size(); ++k) names.push_back(cat("branch ", k));
    static const ir::OpDef& clip = row("clip");
    const Operand inside(i, index.where()), low(0, index.where()), high(branches.size() - 1, index.where());
    const Tensor clipped = call(clip, {&inside, &low, &high});
    return traced_branches("switch_case", cast_to(clipped, i.dtype() == DType::I64 ? DType::I64 : DType::I32, where), names, branches,
                           where);
  } catch (...) {
    rethrow_at(where);
  }
}

std::vector<Tensor> while_loop(const Condition& condition, const FlatFunction& body, const std::vector<Tensor>& state,
                               std::optional<int64_t> max_trips, Where where) try {
  if (max_trips && *max_trips < 0) user_error("while_loop: max_trips must not be negative, it is ", *max_trips);
  if (thread_state.tracer) return traced_while(condition, body, state, max_trips, Location::of(where));
  std::vector<Tensor> now = state;
  for (int64_t trip = 0; !max_trips || trip < *max_trips; ++trip) {
    const Tensor more = condition(now);
    check_predicate("while_loop", more);
    if (!more.item<bool>()) break;
    std::vector<Tensor> next = body(now);
    check_carry("while_loop", now, next);
    now = std::move(next);
  }
  return now;
} catch (...) {
  rethrow_at(Location::of(where));
}

Step scan(const ScanBody& body, const std::vector<Tensor>& carry, const std::vector<Tensor>& sequences, const std::optional<Dim>& given,
          bool reverse, Where where) try {
  const Dim length = scan_length(sequences, given);
  if (thread_state.tracer) return traced_scan(body, carry, sequences, length, reverse, Location::of(where));
  if (!length.is_const()) user_error("scan: the number of steps ", length, " is not known outside a traced function");
  return length.is(0) ? empty_scan(body, carry, sequences)
                      : eager_scan(body, carry, sequences, length.value(), reverse, Location::of(where));
} catch (...) {
  rethrow_at(Location::of(where));
}

}  // namespace flat
}  // namespace tandem
