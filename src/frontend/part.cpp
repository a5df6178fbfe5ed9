#include "frontend/part.hpp"

#include <algorithm>

#include "frontend/tensor_impl.hpp"
#include "frontend/variable_impl.hpp"
#include "ops/table.hpp"

namespace tandem::frontend {

Part traced_part(std::string name, std::span<const ir::TensorType> parameters, const FlatFunction& f) {
  Part p;
  p.tracer = std::make_unique<Tracer>(std::move(name));
  for (const ir::TensorType& t : parameters) p.parameters.push_back(p.tracer->parameter(t));
  const TraceScope scope(*p.tracer);
  p.outputs = f(p.parameters);
  for (const Tensor& t : p.outputs) p.tracer->value_of(t);  // one from outside is an external from now on
  return p;
}

std::vector<ir::TensorType> types_of(std::span<const Tensor> tensors) {
  std::vector<ir::TensorType> types;
  for (const Tensor& t : tensors) types.push_back(type_of(t));
  return types;
}

Externals::Externals(std::span<Part* const> parts) {
  for (const Part* p : parts) add(*p->tracer);
  // A callable that leaves a variable alone still gives its value when another one assigns it.
  for (Part* p : parts)
    for (const Tracer::External& e : all_)
      if (e.written) p->tracer->read(e.variable);
}

std::vector<Variable> Externals::written() const {
  std::vector<Variable> variables;
  for (const Tracer::External& e : all_)
    if (e.written) variables.push_back(e.variable);
  return variables;
}

Externals::Pointers Externals::all() const {
  Pointers pointers;
  for (const Tracer::External& e : all_) pointers.push_back(&e);
  return pointers;
}

void Externals::add(const Tracer& t) {
  for (const Tracer::External& e : t.externals()) {
    const auto found = std::ranges::find(all_, e.key(), &Tracer::External::key);
    if (found == all_.end())
      all_.push_back(e);
    else
      found->written |= e.written;
  }
}

Externals::Pointers Externals::chosen(bool written) const {
  Pointers pointers = all();
  std::erase_if(pointers, [&](const Tracer::External* e) { return e->written != written; });
  return pointers;
}

ir::TensorType external_type(const Tracer::External& e) {
  return e.variable.defined() ? ir::TensorType{e.variable.dtype(), to_dims(e.variable.shape())} : type_of(e.outer);
}

std::vector<Tensor> outside(std::span<const Tracer::External* const> externals) {
  std::vector<Tensor> tensors;
  for (const Tracer::External* e : externals) tensors.push_back(e->variable.defined() ? read_variable(e->variable) : e->outer);
  return tensors;
}

ir::GraphRef arranged(Part& p, std::span<const Tensor> outputs, size_t split, std::span<const Tracer::External* const> middle,
                      std::span<const Tracer::External* const> last) {
  for (const Tensor& t : outputs) p.tracer->value_of(t);
  const std::vector<Tracer::External> own = p.tracer->externals();
  const ir::Graph g = p.tracer->finish(outputs);
  const std::vector<ir::TensorType> inputs = g.input_types();
  ir::Builder b(ops::table());
  std::vector<ir::Value> given(g.inputs.size());
  const auto add = [&](std::span<const Tracer::External* const> externals) {
    for (const Tracer::External* e : externals) {
      const ir::Value v = b.input(external_type(*e));
      const auto found = std::ranges::find(own, e->key(), &Tracer::External::key);
      if (found != own.end()) given[p.parameters.size() + static_cast<size_t>(found - own.begin())] = v;
    }
  };
  for (size_t i = 0; i < split; ++i) given[i] = b.input(inputs[i]);
  add(middle);
  for (size_t i = split; i < p.parameters.size(); ++i) given[i] = b.input(inputs[i]);
  add(last);
  std::vector<ir::Value> results = ir::inline_graph(b, g, given);
  return std::make_shared<const ir::Graph>(b.finish(std::move(results), g.name));
}

void assign_all(std::span<const Variable> variables, std::span<const Tensor> values) {
  for (size_t i = 0; i < variables.size(); ++i) {
    if (thread_state.tracer)
      thread_state.tracer->assign(variables[i], values[i]);
    else
      variables[i].impl()->store(values[i]);
  }
}

}  // namespace tandem::frontend
