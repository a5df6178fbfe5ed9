#include "nn/network.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>

#include "nn/layers/input.hpp"

#include "base/text.hpp"
#include "frontend/apply.hpp"
#include "nn/names.hpp"
#include "nn/op_layer.hpp"

namespace tandem::nn {
namespace {

using Origin = Symbol::Origin;

// What tells two calls apart: an InputLayer is called once, whichever symbol it was reached through.
const void* key_of(const Origin& o) { return o.inputs.empty() ? static_cast<const void*>(&o.layer.body()) : &o; }

struct Walk {
  std::vector<std::shared_ptr<const Origin>> calls;  // what a call uses comes before it
  std::vector<Layer> met;                            // in the order in which they are met on the way from the outputs
};

// Depth first from the outputs, without recursion: networks may be deep.
Walk walk_from(const std::vector<Symbol>& outputs) {
  Walk walk;
  std::set<const void*> seen;
  std::set<const LayerBody*> met;
  struct Frame {
    std::shared_ptr<const Origin> origin;
    size_t next = 0;
  };
  std::vector<Frame> stack;
  const auto enter = [&](const Symbol& s) {
    if (!seen.insert(key_of(*s.origin())).second) return;
    if (met.insert(&s.origin()->layer.body()).second) walk.met.push_back(s.origin()->layer);
    stack.push_back({s.origin()});
  };
  for (const Symbol& output : outputs) {
    enter(output);
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next < top.origin->inputs.size()) {
        const Symbol input = top.origin->inputs[top.next++];
        enter(input);
      } else {
        walk.calls.push_back(top.origin);
        stack.pop_back();
      }
    }
  }
  return walk;
}

// Keras's order: farthest from the outputs first; of those at the same distance, the first one met.
std::vector<Layer> in_keras_order(const Walk& walk) {
  std::map<const void*, size_t> call_depth;
  std::map<const LayerBody*, size_t> layer_depth;
  for (size_t i = walk.calls.size(); i-- > 0;) {
    const Origin& o = *walk.calls[i];
    size_t& depth = layer_depth[&o.layer.body()];
    depth = std::max(depth, call_depth[key_of(o)]);
    for (const Symbol& s : o.inputs) {
      size_t& before = call_depth[key_of(*s.origin())];
      before = std::max(before, depth + 1);
    }
  }
  std::vector<Layer> layers = walk.met;
  std::stable_sort(layers.begin(), layers.end(),
                   [&](const Layer& a, const Layer& b) { return layer_depth[&a.body()] > layer_depth[&b.body()]; });
  return layers;
}

bool fits(const Spec& got, const Spec& wanted) {
  if (got.dims.size() != wanted.dims.size()) return false;
  for (size_t i = 0; i < got.dims.size(); ++i)
    if (got.dims[i].is_const() && wanted.dims[i].is_const() && !(got.dims[i] == wanted.dims[i])) return false;
  return true;
}

}  // namespace

NetworkBody::NetworkBody(std::vector<Symbol> inputs, std::vector<Symbol> outputs) : sequential_(false) {
  keep_input_types();
  hide_lines();
  if (inputs.empty() || outputs.empty()) user_error("a model needs inputs and outputs, got ", inputs.size(), " and ", outputs.size());
  make_graph(std::move(inputs), std::move(outputs));
}

NetworkBody::NetworkBody(std::vector<Layer> sequence) : sequential_(true) {
  keep_input_types();
  hide_lines();
  if (!sequence.empty() && sequence.front().as<InputLayerBody>()) {
    input_layer_ = sequence.front();
    sequence.erase(sequence.begin());
  }
  adopt(std::move(sequence));
  if (input_layer_ && !layers_.empty()) chain(input_symbol(input_layer_));
}

void NetworkBody::adopt(std::vector<Layer> layers) {
  std::set<std::string> names;
  std::set<const LayerBody*> own;
  std::map<std::string, int> counts;
  for (const Layer& layer : layers) {
    if (!own.insert(&layer.body()).second) continue;  // a sequence may hold a layer twice
    if (!names.insert(layer.name()).second)
      user_error("two layers of one model are named '", layer.name(), "'\n  hint: give one of them another name");
    if (layer.as<OpNode>()) continue;  // nothing of it is trained or kept, and Keras does not count it
    const std::string base = snake_case(layer.class_name());
    const int count = counts[base]++;
    add_child(cat("layers/", base, count == 0 ? "" : cat("_", count)), layer);
  }
  layers_ = std::move(layers);
}

void NetworkBody::make_graph(std::vector<Symbol> inputs, std::vector<Symbol> outputs) {
  const Walk walk = walk_from(outputs);
  std::unordered_set<const void*> given;
  for (const Symbol& s : inputs) given.insert(key_of(*s.origin()));
  std::unordered_map<const void*, size_t> at;
  std::unordered_map<const LayerBody*, std::vector<size_t>> calls_of;
  std::vector<LayerCall> steps;
  for (const auto& origin : walk.calls) {
    if (origin->inputs.empty() && !given.contains(key_of(*origin)))
      user_error("the outputs of the model depend on input '", origin->layer.name(), "', which is not one of its inputs");
    at[key_of(*origin)] = steps.size();
    calls_of[&origin->layer.body()].push_back(steps.size());
    LayerCall step{origin, {}};
    for (const Symbol& s : origin->inputs) step.inputs.push_back({at.at(key_of(*s.origin())), s.output()});
    steps.push_back(std::move(step));
  }
  for (const Symbol& s : inputs) {
    if (!s.is_input())
      user_error("an input of a model is a result of layer '", s.origin()->layer.name(), "'\n  hint: inputs are made by Input");
    if (!at.contains(key_of(*s.origin()))) user_error("the outputs of the model do not depend on input '", s.origin()->layer.name(), "'");
  }
  if (!sequential_) adopt(in_keras_order(walk));
  steps_ = std::move(steps);
  step_at_ = std::move(at);
  calls_of_ = std::move(calls_of);
  inputs_ = std::move(inputs);
  outputs_ = std::move(outputs);
}

void NetworkBody::chain(const Symbol& input) {
  std::vector<Symbol> now{input};
  for (const Layer& layer : layers_) now = layer(now);
  make_graph({input}, now);
}

NetworkBody::Source NetworkBody::source_of(const Symbol& s) const {
  const auto found = step_at_.find(key_of(*s.origin()));
  TANDEM_CHECK(found != step_at_.end(), "a symbol is not in its network");
  return {found->second, s.output()};
}

const std::vector<size_t>& NetworkBody::steps_of(const Layer& layer) const {
  static const std::vector<size_t> none;
  const auto found = calls_of_.find(&layer.body());
  return found == calls_of_.end() ? none : found->second;
}

const std::vector<Symbol>& NetworkBody::inputs() const {
  if (!has_graph())
    user_error("the input of '", name(), "' is not known yet\n  hint: begin the sequence with an Input, or call it on data first");
  return inputs_;
}

const std::vector<Symbol>& NetworkBody::outputs() const {
  inputs();
  return outputs_;
}

void NetworkBody::check(const std::vector<Spec>& inputs) const {
  if (!has_graph()) {
    if (inputs.size() != 1) user_error("takes one input, got ", inputs.size());
    return;
  }
  if (inputs.size() != inputs_.size())
    user_error("takes ", inputs_.size(), inputs_.size() == 1 ? " input" : " inputs", ", got ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!fits(inputs[i], inputs_[i].spec()))
      user_error("input '", inputs_[i].origin()->layer.name(), "' takes ", inputs_[i].spec().str(), ", got ", inputs[i].str());
}

void NetworkBody::build(const std::vector<Spec>& inputs) {
  if (has_graph()) return;
  if (layers_.empty()) user_error("has no layers");
  if (inputs.front().dims.empty()) user_error("takes an input with a batch axis, got ", inputs.front().str());
  const Spec& x = inputs.front();
  chain(Input(Dims(x.dims.begin() + 1, x.dims.end()), x.dtype));
}

Results NetworkBody::run(const std::vector<Tensor>& inputs, const Pass& pass) {
  std::vector<Results> done(steps_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const DType wanted = inputs_[i].spec().dtype;
    Results& r = done[source_of(inputs_[i]).step];
    r.values = {inputs[i].dtype() == wanted ? inputs[i] : inputs[i].cast(wanted)};
    r.masks = {i < pass.masks.size() ? pass.masks[i] : Tensor()};
  }
  const auto value = [&](const Source& s) -> const Tensor& { return done[s.step].values.at(s.output); };
  const auto mask = [&](const Source& s) -> const Tensor& { return done[s.step].masks.at(s.output); };
  for (size_t i = 0; i < steps_.size(); ++i) {
    const LayerCall& step = steps_[i];
    if (step.inputs.empty()) continue;
    std::vector<Tensor> in;
    Pass inner{.training = pass.training, .flags = step.origin->flags, .losses = pass.losses};
    for (const Source& s : step.inputs) {
      in.push_back(value(s));
      inner.masks.push_back(mask(s));
    }
    done[i] = step.origin->layer.run(in, inner);
  }
  Results all;
  for (const Symbol& s : outputs_) {
    all.values.push_back(value(source_of(s)));
    all.masks.push_back(mask(source_of(s)));
  }
  return all;
}

// --- the handle --------------------------------------------------------------------------------------------------------------------

Network::Network(std::vector<Symbol> inputs, std::vector<Symbol> outputs, const std::string& name, Where where)
    : Layer(frontend::for_caller(where, [&] { return std::make_shared<NetworkBody>(std::move(inputs), std::move(outputs)); }), name) {}

Network::Network(const Layer& layer) : Layer(layer) { network(); }

Network Network::sequential(std::vector<Layer> layers, const std::string& name, Where where) {
  return Network(Layer(frontend::for_caller(where, [&] { return std::make_shared<NetworkBody>(std::move(layers)); }), name));
}

NetworkBody& Network::network() const {
  if (auto* found = as<NetworkBody>()) return *found;
  user_error("layer '", name(), "' (", class_name(), ") is not a model of layers");
}

const std::vector<Layer>& Network::layers() const { return network().layers(); }
const std::vector<Symbol>& Network::inputs() const { return network().inputs(); }
const std::vector<Symbol>& Network::outputs() const { return network().outputs(); }
bool Network::is_sequential() const { return network().sequential(); }

Layer Network::layer(const std::string& name) const {
  std::vector<std::string> names;
  for (const Layer& l : layers()) {
    if (l.name() == name) return l;
    names.push_back(l.name());
  }
  unknown_name("layer", name, names);
}

}  // namespace tandem::nn
