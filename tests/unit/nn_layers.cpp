// Every kind of layer against stored numbers of Keras: configs, outputs, gradients, at once and compiled for any batch.
#include "frontend_support.hpp"
#include "nn_layers_support.hpp"

namespace tandem::nn {
namespace {

class KerasLayer : public testing::TestWithParam<size_t> {
 protected:
  const Config& c() const { return stored_layers()["layers"][GetParam()]; }
  Layer made() const { return layer_from_config(c()["class_name"], c()["config"]); }
  Pass pass() const {
    Pass p;
    p.training = c().value("training", false);
    if (c().contains("mask")) p.masks = {stored_tensor(c()["mask"])};
    if (c().contains("flags")) p.flags = c()["flags"].get<CallFlags>();
    return p;
  }
};

// Names of inner layers differ where Keras numbers them.
void forget_names(Config& c) {
  if (c.is_object()) c.erase("name");
  for (auto& [key, value] : c.items())
    if (value.is_structured()) forget_names(value);
}

TEST_P(KerasLayer, HasKerasConfig) {
  Config wanted = c()["config"], got = made().config();
  EXPECT_EQ(got["name"], wanted["name"]);
  EXPECT_EQ(layer_from_config(c()["class_name"], got).config(), got);
  forget_names(wanted);
  forget_names(got);
  for (const auto& [key, value] : wanted.items()) EXPECT_EQ(got.value(key, Config("missing")), value) << key;
  for (const auto& [key, value] : got.items()) EXPECT_TRUE(wanted.contains(key)) << key << " is not in Keras's config";
}

TEST_P(KerasLayer, GivesKerasOutputs) {
  const Layer layer = made();
  const std::vector<Tensor> inputs = stored_tensors(c()["inputs"]);
  layer(inputs, pass());  // builds
  assign_weights(layer, c()["weights"]);
  expect_stored(layer(inputs, pass()), c()["outputs"], layer.class_name());
  if (c().contains("weights_after")) {
    std::vector<Tensor> after;
    for (const Variable& v : layer.weights()) after.push_back(v.value());
    expect_stored(after, c()["weights_after"], "weights after the call");
    assign_weights(layer, c()["weights"]);
  }
  // Compiled with the batch as a symbol, so that one trace serves all.
  std::vector<Spec> specs;
  for (const Tensor& t : inputs) {
    specs.push_back({t.dtype(), t.dims()});
    specs.back().dims[0] = Dim::symbol("b");
  }
  Pass p = pass();
  std::vector<Tensor> all = inputs;
  if (!p.masks.empty()) {
    all.push_back(p.masks[0]);
    specs.push_back({DType::Bool, p.masks[0].dims()});
    specs.back().dims[0] = Dim::symbol("b");
  }
  const FlatCallable compiled(
      [&](const std::vector<Tensor>& in) {
        if (!p.masks.empty()) p.masks[0] = in.back();
        return layer(std::vector<Tensor>(in.begin(), in.begin() + static_cast<ptrdiff_t>(inputs.size())), p);
      },
      {.name = "layer", .specs = specs});
  expect_stored(compiled(all), c()["outputs"], "compiled " + layer.class_name());
}

TEST_P(KerasLayer, HasKerasGradients) {
  if (!c().contains("input_gradients")) return;
  const Layer layer = made();
  const std::vector<Tensor> inputs = stored_tensors(c()["inputs"]);
  layer(inputs, pass());
  assign_weights(layer, c()["weights"]);
  Tape tape;
  std::vector<Source> sources;
  for (const Variable& v : layer.trainable_weights()) sources.emplace_back(v);
  for (const Tensor& t : inputs)
    if (is_float(t.dtype())) {
      tape.watch(t);
      sources.emplace_back(t);
    }
  Tensor loss = Tensor::scalar(0.f);
  for (const Tensor& y : layer(inputs, pass())) loss += sum(y * reshape(cos(Tensor::arange(0.f, static_cast<float>(y.size()))), y.shape()));
  std::vector<Tensor> g = tape.gradients(loss, sources, {.unconnected = Unconnected::Zero});
  const auto count = static_cast<ptrdiff_t>(layer.trainable_weights().size());
  expect_stored({g.begin(), g.begin() + count}, c()["weight_gradients"], "gradient of weight", 1e-4);
  expect_stored({g.begin() + count, g.end()}, c()["input_gradients"], "gradient of input", 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, KerasLayer, testing::Range(size_t{0}, stored_layers()["layers"].size()), [](const auto& info) {
  const auto number = std::to_string(info.param);
  return stored_layers()["layers"][info.param]["class_name"].template get<std::string>() + "_" + number;
});

TEST(KerasNetwork, GivesKerasOutputsAndConfig) {
  for (const Config& c : stored_layers()["networks"]) {
    const Network model(layer_from_config(c["class_name"], c["config"]));
    std::vector<std::string> names;
    for (const Layer& l : model.layers()) names.push_back(l.name());
    EXPECT_EQ(Config(names), c["layers"]);
    assign_weights(model, c["weights"]);
    expect_stored(model(stored_tensors(c["inputs"])), c["outputs"], model.name());
    const Network again(layer_from_config(c["class_name"], model.config()));
    EXPECT_EQ(again.config(), model.config());
    assign_weights(again, c["weights"]);
    expect_stored(again(stored_tensors(c["inputs"])), c["outputs"], "made again, " + model.name());
    for (const auto& [key, value] : c["config"].items())
      if (key != "layers") EXPECT_EQ(model.config()[key], value) << key;
  }
}

TEST(KerasWeights, RegularizersConstraintsAndInitializers) {
  const Tensor w = stored_tensor(stored_layers()["weight"]);
  for (const Config& c : stored_layers()["regularizers"]) {
    const Regularizer r = Regularizer::from_config(c["config"]);
    EXPECT_EQ(r.config(), c["config"]);
    EXPECT_NEAR(r(w).item<double>(), c["value"].get<double>(), 1e-5) << r.class_name();
  }
  for (const Config& c : stored_layers()["constraints"]) {
    const Constraint k = Constraint::from_config(c["config"]);
    EXPECT_EQ(k.config(), c["config"]);
    expect_stored(k(w), c["value"], k.class_name());
  }
  for (const Config& c : stored_layers()["initializers"]) EXPECT_EQ(Initializer::from_config(c).config(), c);
}

}  // namespace
}  // namespace tandem::nn
