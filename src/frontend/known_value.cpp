#include "frontend/known_value.hpp"

#include <algorithm>

#include "frontend/memory.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/tracer.hpp"
#include "frontend/variable_impl.hpp"
#include "ops/table.hpp"

namespace tandem::frontend {
namespace {

const Tracer* tracer_of(const TracedTensor& t) {
  const Tracer* tracer = thread_state.tracer;
  while (tracer && tracer->id() != t.tracer) tracer = tracer->parent();
  return tracer;
}

std::optional<Tensor> known_input(const Tracer& tracer, ir::Value input) {
  const auto found = std::ranges::find(tracer.externals(), input, &Tracer::External::input);
  if (found == tracer.externals().end()) return {};  // an argument
  return found->variable.defined() ? found->variable.impl()->load() : known_value(found->outer);
}

std::vector<bool> needed_nodes(const ir::Graph& g, ir::Value result) {
  std::vector<bool> needed(g.nodes.size());
  needed[static_cast<size_t>(result.node)] = true;
  for (auto i = static_cast<size_t>(result.node) + 1; i-- > 0;)
    if (needed[i])
      for (const ir::Value v : g.nodes[i].inputs) needed[static_cast<size_t>(v.node)] = true;
  return needed;
}

bool has_numbers(const ir::Node& n) {
  return std::ranges::all_of(n.types, [](const ir::TensorType& t) { return std::ranges::all_of(t.dims, &Dim::is_const); });
}

}  // namespace

std::optional<Tensor> known_value(const Tensor& t) {
  const TracedTensor* value = traced(t);
  if (!value) return t;
  const Tracer* tracer = tracer_of(*value);
  if (!tracer) return {};
  const ir::Graph& g = tracer->graph();
  const std::vector<bool> needed = needed_nodes(g, value->value);
  ir::Builder b(ops::table());
  std::vector<Tensor> inputs;
  std::vector<std::vector<ir::Value>> made(g.nodes.size());
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    if (!needed[i]) continue;
    const ir::Node& n = g.nodes[i];
    if (!has_numbers(n)) return {};
    if (n.op->name == "input") {
      std::optional<Tensor> known = known_input(*tracer, {static_cast<int32_t>(i), 0});
      if (!known) return {};
      made[i] = {b.input(n.types[0])};
      inputs.push_back(std::move(*known));
      continue;
    }
    std::vector<ir::Value> in;
    for (const ir::Value v : n.inputs) in.push_back(made[static_cast<size_t>(v.node)][static_cast<size_t>(v.out)]);
    b.location = n.location;
    made[i] = b.node(*n.op, in, n.attrs);
  }
  const ir::Value result = made[static_cast<size_t>(value->value.node)][static_cast<size_t>(value->value.out)];
  std::vector<const engine::TensorRef*> refs;
  for (const Tensor& input : inputs) refs.push_back(&numbers_of(input, "a known value"));
  std::vector<engine::TensorRef> out;
  engine::default_engine().compile(b.finish({result}, "known_value"))->run(refs, out);
  return concrete(std::move(out.front()));
}

}  // namespace tandem::frontend
