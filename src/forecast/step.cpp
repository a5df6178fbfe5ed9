#include "forecast/step.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "nn/losses_table.hpp"
#include "nn/network.hpp"
#include "nn/training/training.hpp"

namespace tandem::forecast {
namespace {

constexpr char kBatch[] = "b";

bool is_one_of(const Variable& v, std::span<const Variable> list) {
  return std::ranges::any_of(list, [&](const Variable& x) { return x.impl() == v.impl(); });
}

std::vector<Spec> input_specs(const nn::Model& model, const ModelOptions& options, TrainingStep& step) {
  std::vector<Spec> specs;
  for (const nn::Symbol& input : model.inputs()) {
    Spec s = input.spec();
    if (s.dims.empty()) user_error("plan: input '", input.origin()->layer.name(), "' is ", s.str(), ", it has no axis of examples");
    for (size_t axis = 0; axis < s.dims.size(); ++axis) {
      if (axis == 0) {
        s.dims[axis] = Dim::symbol(kBatch);
      } else if (!s.dims[axis].is_const()) {
        if (!options.length)
          user_error("plan: input '", input.origin()->layer.name(), "' is ", input.spec().str(), ", and its axis ", axis,
                     " has no extent\n  hint: --length 128 says how long such axes are");
        s.dims[axis] = Dim(*options.length);
        const std::string note = cat("axes that the model leaves open have length ", *options.length);
        if (std::ranges::find(step.notes, note) == step.notes.end()) step.notes.push_back(note);
      }
    }
    specs.push_back(std::move(s));
  }
  return specs;
}

// What is usual for an output that nobody named a loss for.
std::string usual_loss(const nn::Layer& layer) {
  const nn::Config config = layer.config();
  const std::string activation = config.contains("activation") && config["activation"].is_string() ? config["activation"] : "";
  return activation == "softmax" ? "sparse_categorical_crossentropy" : activation == "sigmoid" ? "binary_crossentropy" : "mse";
}

nn::CompileOptions compile_options(const nn::Model& model, const ModelOptions& options, TrainingStep& step) {
  nn::CompileOptions o = model.compiled() ? model.compile_options() : nn::CompileOptions{.optimizer = "adam"};
  if (!model.compiled() && !options.optimizer) step.notes.emplace_back("the model was not compiled: the optimizer is adam");
  if (options.optimizer) o.optimizer = nn::Optimizer(*options.optimizer);
  if (options.loss) {
    o.loss = {nn::Loss(*options.loss)};
  } else if (std::ranges::none_of(o.loss, [](const nn::Loss& l) { return static_cast<bool>(l); })) {
    o.loss.clear();
    for (const nn::Symbol& output : model.outputs()) {
      o.loss.emplace_back(usual_loss(output.origin()->layer));
      step.notes.push_back(cat("no loss is given: that of output '", output.origin()->layer.name(), "' is ", o.loss.back().name()));
    }
  }
  return o;
}

// Targets as the loss wants them beside an output.
Spec target_spec(const nn::Loss& loss, const Spec& output, const std::string& name) {
  const nn::LossKind* kind = loss ? nn::find_loss_kind(loss.class_name()) : nullptr;
  if (!kind) return {DType::F32, output.dims};
  switch (kind->targets) {
    case nn::Targets::Classes: {
      Spec s{DType::I32, output.dims};
      if (!s.dims.empty()) s.dims.pop_back();
      return s;
    }
    case nn::Targets::ClassSequences:
      user_error("plan: loss ", loss.name(), " of output '", name, "' takes sequences of classes, whose length nothing says",
                 "\n  hint: tandem run --plan-only PROGRAM.py plans the step with the program's own data");
    default: return {DType::F32, output.dims};
  }
}

}  // namespace

const char* name(Role role) {
  static constexpr const char* kNames[] = {"weights",   "optimizer state", "gradients of weights", "activations and their gradients",
                                           "workspace", "batch",           "metrics, constants",   "gaps between values"};
  return kNames[static_cast<size_t>(role)];
}
const char* key(Role role) {
  static constexpr const char* kKeys[] = {"weights", "optimizer_state", "gradients", "activations", "workspace", "batch", "other", "gaps"};
  return kKeys[static_cast<size_t>(role)];
}

TrainingStep step_of(const frontend::TracedStep& traced, std::span<const Variable> weights, std::span<const Variable> optimizer) {
  TrainingStep step;
  step.name = traced.graph.name;
  step.graph = traced.graph;
  step.donations = traced.donations;
  step.precision = traced.precision;
  for (size_t i = 0; i < traced.argument_count; ++i) step.inputs.push_back({cat("batch ", i), Role::Batch});
  for (const auto& e : traced.externals) {
    if (!e.variable.defined()) {
      step.inputs.push_back({"a tensor from outside", Role::Other});
      continue;
    }
    const Role role = is_one_of(e.variable, weights) ? Role::Weight : is_one_of(e.variable, optimizer) ? Role::OptimizerState : Role::Other;
    step.inputs.push_back({e.variable.name(), role});
  }
  for (size_t i = 0; i < traced.argument_count; ++i) {
    const Dims& dims = traced.graph.type(traced.graph.inputs[i]).dims;
    if (dims.empty()) continue;
    if (dims[0].is_const()) {
      step.batch = dims[0].value();
    } else {
      std::vector<std::string> symbols;
      dims[0].collect_symbols(symbols);
      if (symbols.size() == 1 && dims[0] == Dim::symbol(symbols[0])) step.batch_symbol = symbols[0];
    }
    break;
  }
  return step;
}

TrainingStep step_of(const nn::Model& model, const ModelOptions& options) {
  if (!dynamic_cast<nn::NetworkBody&>(model.body()).has_graph())
    user_error("plan: model '", model.name(),
               "' does not say the shape of its input\n  hint: begin it with an Input, or call it once, and save it again");
  TrainingStep noted;
  const std::vector<Spec> inputs = input_specs(model, options, noted);
  model.compile(compile_options(model, options, noted));
  const FlatCallable forward([&](const std::vector<Tensor>& x) { return model(nn::model_inputs(model, x), nn::Pass{}); },
                             {.name = "forward"});
  const std::vector<Spec> outputs = forward.result_specs(inputs);
  const std::vector<nn::Loss>& loss = model.compile_options().loss;
  std::vector<Spec> specs = inputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const nn::Loss& l = loss.empty() ? nn::Loss() : loss[std::min(i, loss.size() - 1)];
    specs.push_back(target_spec(l, outputs[i], model.outputs()[i].origin()->layer.name()));
  }
  nn::Training& training = nn::compiled_training(model);
  const nn::Training::Parts parts{.inputs = inputs.size(), .targets = outputs.size()};
  const nn::Training::Compiled& compiled = training.step(model, nn::Run::Kind::Train, specs, parts);
  TrainingStep step = step_of(frontend::traced_step(compiled.function, specs), model.weights(), model.optimizer().variables());
  for (size_t i = 0; i < inputs.size(); ++i) step.inputs[i].name = model.inputs()[i].origin()->layer.name();
  for (size_t i = 0; i < outputs.size(); ++i)
    step.inputs[inputs.size() + i].name = cat("targets of ", model.outputs()[i].origin()->layer.name());
  step.name = model.name();
  step.notes = std::move(noted.notes);
  step.has_lines = false;
  return step;
}

}  // namespace tandem::forecast
