// Symbols: how a call of a layer on them becomes a place in a graph.
#include <iterator>
#include <nlohmann/json.hpp>

#include <tandem/nn/layer.hpp>
#include <tandem/nn/layers/core.hpp>

#include "base/text.hpp"
#include "nn/layer_frame.hpp"
#include "nn/shapes_of_training.hpp"

namespace tandem::nn {

std::vector<Symbol> Layer::operator()(const std::vector<Symbol>& inputs, const CallFlags& flags, Where where) const {
  std::vector<Spec> specs;
  for (const Symbol& s : inputs) specs.push_back(s.spec());
  const std::vector<Spec> outputs = in_layer(body(), where, [&] {
    if (inputs.empty()) user_error("it is called without inputs");
    build(specs, where);
    // Traced for the types of its outputs only.
    const Pass pass{.training = as<ShapesOfTraining>() != nullptr, .flags = flags};
    const FlatCallable traced([&](const std::vector<Tensor>& in) { return (*this)(in, pass, where); }, {.name = name()});
    return traced.result_specs(specs);
  });
  const auto origin = std::make_shared<Symbol::Origin>(*this, inputs, flags, body().call_count_++);
  std::vector<Symbol> symbols;
  for (size_t i = 0; i < outputs.size(); ++i) symbols.emplace_back(outputs[i], origin, i);
  return symbols;
}

Symbol Layer::operator()(const Symbol& x, const CallFlags& flags, Where where) const {
  const std::vector<Symbol> results = (*this)(std::vector{x}, flags, where);
  expect_one_output(body(), results.size(), where);
  return results.front();
}

Symbol::Origin::Origin(Layer called, std::vector<Symbol> with, CallFlags told, size_t which)
    : layer(std::move(called)), inputs(std::move(with)), flags(std::move(told)), call(which) {}

// What only this call held would otherwise be destroyed inside each other, one level of the stack for each call behind it.
Symbol::Origin::~Origin() {
  std::vector<Symbol> rest = std::move(inputs);
  while (!rest.empty()) {
    const Symbol s = std::move(rest.back());
    rest.pop_back();
    if (s.origin_.use_count() != 1) continue;
    auto& behind = const_cast<Origin&>(*s.origin_).inputs;  // nobody else has it
    std::move(behind.begin(), behind.end(), std::back_inserter(rest));
    behind.clear();
  }
}

Symbol::operator Layer() const {
  if (!is_input())
    user_error("a result of layer '", origin_->layer.name(), "' is used where a layer is expected\n  hint: only an Input can be");
  return origin_->layer;
}

Symbol Input(const DimList& shape, DType dtype, const std::string& name) {
  const InputLayer layer(shape, {.dtype = dtype, .name = name});
  return layer.symbol();
}

}  // namespace tandem::nn
