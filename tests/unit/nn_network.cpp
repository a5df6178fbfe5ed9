// Networks of layers: building, sharing, nesting, masks, configs, errors.
#include <nlohmann/json.hpp>

#include <tandem/nn/layers.hpp>
#include <tandem/nn/network.hpp>

#include "frontend_support.hpp"

namespace tandem {
namespace {

TEST(Network, ASequenceIsItsLayersOneAfterTheOther) {
  const nn::Network m = nn::Network::sequential({nn::Input({4}), nn::Dense(3, {.activation = "relu"}), nn::Dropout(0.5), nn::Dense(2)});
  ASSERT_EQ(m.layers().size(), 3u);
  EXPECT_EQ(m.weights().size(), 4u);
  EXPECT_EQ(m.outputs()[0].spec().str(), "float32[b,2]");
  const Tensor x = Tensor::arange(0.f, 8.f).reshape({2, 4});
  const auto w = m.weights();
  const Tensor wanted = matmul(relu(matmul(x, w[0]) + w[1]), w[2]) + w[3];
  expect_near(m(x), floats(wanted));
  // One trace serves any batch.
  Function f([&](Tensor t) { return m(t); }, {Spec{DType::F32, {Dim::symbol("b"), 4}}});
  expect_near(f(x), floats(wanted));
  EXPECT_EQ(f(Tensor::zeros({5, 4})).shape(), (Shape{5, 2}));
  EXPECT_EQ(f.trace_count(), 1u);
}

TEST(Network, ASequenceWithoutInputLearnsItFromTheFirstCall) {
  const nn::Network m = nn::Network::sequential({nn::Flatten(), nn::Dense(2)});
  EXPECT_FALSE(m.built());
  EXPECT_EQ(m(Tensor::zeros({7, 3, 2})).shape(), (Shape{7, 2}));
  EXPECT_EQ(m.inputs()[0].spec().str(), "float32[b,3,2]");
  EXPECT_EQ(m(Tensor::zeros({1, 3, 2})).shape(), (Shape{1, 2}));
}

TEST(Network, AGraphHasSeveralInputsAndOutputsAndSharesLayers) {
  const nn::Symbol a = nn::Input({4}, DType::F32, "a"), b = nn::Input({4}, DType::F32, "b");
  const nn::Dense shared(3);
  const nn::Symbol sum = nn::Add()({shared(a), shared(b)})[0];
  const nn::Symbol out = nn::Dense(2)(sum);
  const nn::Network m({a, b}, {out, sum});
  EXPECT_EQ(m.weights().size(), 4u);  // the shared ones once
  const Tensor x = Tensor::ones({2, 4}), y = Tensor::full({2, 4}, 2.0);
  const std::vector<Tensor> results = m({x, y});
  ASSERT_EQ(results.size(), 2u);
  expect_near(results[1], floats(shared(x) + shared(y)));
  EXPECT_EQ(m.layer("a").class_name(), "InputLayer");
}

TEST(Network, ANetworkIsALayerOfAnother) {
  const nn::Network inner = nn::Network::sequential({nn::Input({4}), nn::Dense(3, {.activation = "relu"})});
  const nn::Symbol x = nn::Input({4});
  const nn::Network outer({x}, {nn::Dense(1)(inner(x))});
  EXPECT_EQ(outer.weights().size(), 4u);
  inner.set_trainable(false);
  EXPECT_EQ(outer.trainable_weights().size(), 2u);
  EXPECT_EQ(outer(Tensor::ones({3, 4})).shape(), (Shape{3, 1}));
}

// --- masks -------------------------------------------------------------------------------------------------------------------------

TEST(Network, MasksReachTheLayersBehind) {
  const nn::Embedding embedding(5, 3, {.mask_zero = true});
  const nn::LSTM lstm(4);
  const nn::Network m = nn::Network::sequential({embedding, nn::Dropout(0.1), lstm});
  const Tensor padded = Tensor::of({{1, 2, 0, 0}}), whole = Tensor::of({{1, 2}});
  expect_near(m(padded), floats(lstm(embedding(whole))));
  const nn::Results r = embedding.run({padded}, {});
  EXPECT_EQ(ints(r.masks[0]), (I{1, 1, 0, 0}));
}

// --- training ------------------------------------------------------------------------------------------------------------------------

TEST(Layers, DropoutAndNoiseOnlyWhileTraining) {
  const Tensor x = Tensor::ones({50, 40});
  for (const nn::Layer& layer : std::vector<nn::Layer>{nn::Dropout(0.25), nn::GaussianNoise(0.5), nn::GaussianDropout(0.2)}) {
    EXPECT_EQ(floats(layer(x)), floats(x));
    const Tensor a = layer(x, {.training = true}), b = layer(x, {.training = true});
    EXPECT_NE(floats(a), floats(b)) << layer.class_name();
    EXPECT_NEAR(a.mean().item<float>(), 1, 0.05) << layer.class_name();
  }
  const F dropped = floats(nn::Dropout(0.25)(x, {.training = true}));
  EXPECT_NEAR(static_cast<double>(std::count(dropped.begin(), dropped.end(), 0.f)), 500, 80);
  const Tensor channels = nn::SpatialDropout1D(0.5)(Tensor::ones({4, 6, 8}), {.training = true});
  expect_near(channels.max({1}), floats(channels.min({1})));  // whole channels or nothing
  // The same in a compiled function, which draws anew at each call.
  const nn::Dropout dropout(0.5, {.seed = 3});
  Function f([&](Tensor t) { return dropout(t, {.training = true}); });
  EXPECT_NE(floats(f(x)), floats(f(x)));
}

TEST(Layers, AugmentationsKeepShapesAndChangeWhileTraining) {
  const Tensor x = Tensor::arange(0.f, 288.f).reshape({2, 6, 8, 3});
  const std::vector<nn::Layer> all{nn::RandomFlip(),          nn::RandomRotation(0.2), nn::RandomZoom(0.3), nn::RandomTranslation(0.3, 0.3),
                                   nn::RandomBrightness(0.5), nn::RandomContrast(0.5)};
  for (const nn::Layer& layer : all) {
    EXPECT_EQ(floats(layer(x)), floats(x)) << layer.class_name();
    bool changed = false;
    for (int i = 0; i < 5; ++i) {
      const Tensor y = layer(x, {.training = true});
      EXPECT_EQ(y.shape(), x.shape());
      EXPECT_GE(y.min().item<float>(), -0.01f);
      changed |= floats(y) != floats(x);
    }
    EXPECT_TRUE(changed) << layer.class_name();
  }
  const nn::RandomCrop crop(3, 4);
  EXPECT_EQ(crop(x, {.training = true}).shape(), (Shape{2, 3, 4, 3}));
  EXPECT_EQ(floats(crop(x)), floats(x));
  // Keras 3.15's numbers for pictures too small to choose from.
  const auto small = [](int64_t h, int64_t w) {
    return floats(nn::RandomCrop(3, 4)(Tensor::arange(0.f, static_cast<float>(h * w)).reshape({1, h, w, 1}), {.training = true}));
  };
  EXPECT_EQ(small(3, 7), (std::vector<float>{1, 2, 3, 4, 8, 9, 10, 11, 15, 16, 17, 18}));
  EXPECT_EQ(small(2, 8), (std::vector<float>{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
  EXPECT_EQ(small(5, 3), (std::vector<float>{3, 3.625, 4.375, 5, 6, 6.625, 7.375, 8, 9, 9.625, 10.375, 11}));
  EXPECT_EQ(small(2, 2), (std::vector<float>{0, 0.25, 0.75, 1, 1, 1.25, 1.75, 2, 2, 2.25, 2.75, 3}));
  // Layers behind it are built for what training gives.
  const nn::Symbol input = nn::Input({6, 8, 3});
  EXPECT_EQ(crop(input).spec().str(), "float32[b,3,4,3]");
}

TEST(Layers, RecurrentDropoutDropsTheSameAtEveryStep) {
  const Tensor x = Tensor::ones({2, 5, 3});
  for (const double recurrent : {0.0, 0.4}) {
    const nn::LSTM lstm(4, {.dropout = 0.5, .recurrent_dropout = recurrent});
    EXPECT_NE(floats(lstm(x, {.training = true})), floats(lstm(x, {.training = true})));
    EXPECT_EQ(floats(lstm(x)), floats(lstm(x)));
    EXPECT_EQ(nn::GRU(4, {.dropout = 0.5, .recurrent_dropout = recurrent})(x, {.training = true}).shape(), (Shape{2, 4}));
  }
}

TEST(Layers, LossesAndConstraints) {
  const nn::Dense layer(2, {.kernel_initializer = "ones",
                            .kernel_regularizer = "l2",
                            .activity_regularizer = nn::regularizers::L1(0.5),
                            .kernel_constraint = nn::constraints::MaxNorm(1.0)});
  std::vector<Tensor> losses;
  layer(Tensor::of({{1.f, 1.f}, {1.f, 1.f}}), {.losses = &losses});
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_NEAR(losses[0].item<float>(), 0.5 * 8 / 2, 1e-5);  // |2| four times, for each of two examples
  ASSERT_EQ(layer.losses().size(), 1u);
  EXPECT_NEAR(layer.losses()[0].item<float>(), 0.04, 1e-6);
  layer.apply_constraints();
  expect_near(layer.weights()[0].value(), F(4, std::sqrt(0.5f)), 1e-4f);
}

TEST(Layers, NormalizationAdapts) {
  const nn::Normalization layer;
  const Tensor x = Tensor::of({{1.f, 10.f}, {3.f, 30.f}});
  layer.adapt(x);
  expect_near(layer(x), {-1, -1, 1, 1});
  EXPECT_EQ(layer.weights().size(), 3u);  // mean, variance, count
  const std::string given = error_of([] { nn::Normalization({.mean = 0.0, .variance = 1.0, .name = "n"}).adapt(Tensor::ones({2, 2})); });
  EXPECT_EQ(given.substr(0, given.find('\n')), "layer 'n' (Normalization): mean and variance were given, so there is nothing to adapt");
}

// --- one's own -----------------------------------------------------------------------------------------------------------------------

class Scale : public nn::LayerBody {
 public:
  explicit Scale(double start) : start_(start) {}
  std::string class_name() const override { return "Scale"; }
  nn::Config config() const override { return {{"start", start_}}; }
  void build(const std::vector<Spec>&) override { factor_ = add_weight("factor", {}, {.initializer = nn::initializers::Constant(start_)}); }
  std::vector<Tensor> call(const std::vector<Tensor>& in, const nn::Pass&) override { return {in[0] * factor_}; }

 private:
  double start_;
  Variable factor_;
};

TEST(Layers, OnesOwnKind) {
  nn::register_layer("Scale", [](const nn::Config& c) { return nn::make<Scale>(c.at("start").get<double>()); });
  const nn::Network m = nn::Network::sequential({nn::Input({2}), nn::make<Scale>(3.0), nn::ReLU()});
  expect_near(m(Tensor::of({{1.f, -1.f}})), {3, 0});
  const nn::Network again(nn::layer_from_config("Sequential", m.config()));
  expect_near(again(Tensor::of({{2.f, -1.f}})), {6, 0});
}

// --- errors --------------------------------------------------------------------------------------------------------------------------

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }
template <class F> std::string line_of(F f) { return first_line(error_of(f)); }

TEST(Layers, ErrorsOfSettings) {
  EXPECT_EQ(line_of([] { nn::Dense(0); }), "Dense: units is 0, expected at least 1");
  EXPECT_EQ(line_of([] { nn::Conv2D(4, {3, 3, 3}); }), "Conv2D: kernel_size has 3 numbers, expected 1 or 2");
  EXPECT_EQ(line_of([] { nn::Conv2D(4, 0); }), "Conv2D: kernel_size has 0, expected at least 1");
  EXPECT_EQ(line_of([] { nn::Conv2D(4, 3, {.padding = "sane"}); }), "unknown padding of Conv2D 'sane'");
  EXPECT_EQ(line_of([] { nn::Conv2D(4, 3, {.padding = "causal"}); }), "unknown padding of Conv2D 'causal'");
  EXPECT_EQ(line_of([] { nn::Conv1D(4, 3, {.groups = 3}); }), "Conv1D: 4 filters cannot be shared out evenly among 3 groups");
  EXPECT_EQ(line_of([] { nn::Conv1D(4, 3, {.strides = 2, .dilation_rate = 2}); }),
            "Conv1D: strides and dilation_rate are both larger than 1");
  EXPECT_EQ(line_of([] { nn::Dropout(1.5); }), "Dropout: rate is 1.5, expected 0 to 1");
  EXPECT_EQ(line_of([] { nn::Reshape({-1, -1}); }), "Reshape: target_shape has 2 entries of -1, expected one at most");
  EXPECT_EQ(line_of([] { nn::Permute({0, 1}); }), "Permute: dims are [0,1], expected each number from 1 to 2 once");
  EXPECT_EQ(line_of([] { nn::Bidirectional(nn::Dense(3, {.name = "d"})); }), "Bidirectional: takes a recurrent layer, got 'd' (Dense)");
  EXPECT_EQ(line_of([] { nn::EinsumDense("ab->c", {3}); }), "EinsumDense: the equation 'ab->c' is not of the form 'ab,bc->ac'");
  EXPECT_EQ(line_of([] { nn::RandomZoom({0.3, 0.1}); }), "RandomZoom: height_factor goes from 0.3 to 0.1, which is backwards");
  EXPECT_EQ(line_of([] { nn::MultiHeadAttention(0, 3); }), "MultiHeadAttention: num_heads is 0, expected at least 1");
}

TEST(Layers, ErrorsOfInputsNameTheLayer) {
  const Tensor x = Tensor::ones({2, 3});
  EXPECT_EQ(line_of([&] { nn::Conv2D(4, 3, {.name = "c"})(x); }),
            "layer 'c' (Conv2D): takes an input with 4 axes, [batch, height, width, channels], got float32[2,3] with 2");
  EXPECT_EQ(line_of([&] { nn::LSTM(4, {.name = "l"})(x); }),
            "layer 'l' (LSTM): takes an input with 3 axes, [batch, time, features], got float32[2,3] with 2");
  EXPECT_EQ(line_of([&] { nn::Dense(4, {.name = "d"})(Tensor::ones({2})); }),
            "layer 'd' (Dense): takes an input with at least 2 axes, [batch, ..., features], got float32[2] with 1");
  const nn::Dense built(4, {.name = "d"});
  built(x);
  EXPECT_EQ(line_of([&] { built(Tensor::ones({2, 5})); }), "layer 'd' (Dense): was built for 3 features, got float32[2,5]");
  EXPECT_EQ(line_of([&] { nn::Add({.name = "a"})(x); }), "layer 'a' (Add): takes at least two inputs, got 1");
  EXPECT_EQ(line_of([&] { nn::Dense(2, {.name = "d"})(nn::Input({nn::Input({3}).spec().dims[0]})); }),
            "layer 'd' (Dense): the extent of axis -1 of float32[b,b] must be known for the kernel");
  EXPECT_EQ(line_of([&] { nn::GroupNormalization(2, {.name = "g"})(Tensor::ones({2, 3})); }),
            "layer 'g' (GroupNormalization): 3 channels cannot be shared out evenly among 2 groups");
  const std::string whole = error_of([&] { built(Tensor::ones({2, 5})); });
  EXPECT_NE(whole.find("at "), std::string::npos);
  EXPECT_NE(whole.find("nn_network.cpp:"), std::string::npos) << whole;  // the user's line
  // A layer whose building failed can be built with what it wants.
  const nn::Dense late(2);
  EXPECT_THROW(late(Tensor::ones({2})), UserError);
  EXPECT_EQ(late(x).shape(), (Shape{2, 2}));
}

TEST(Network, Errors) {
  const nn::Symbol a = nn::Input({4}, DType::F32, "a"), b = nn::Input({4}, DType::F32, "b");
  const nn::Dense dense(3, {.name = "dense"});
  const nn::Symbol y = dense(a);
  EXPECT_EQ(line_of([&] { nn::Network({b}, {y}); }), "the outputs of the model depend on input 'a', which is not one of its inputs");
  EXPECT_EQ(line_of([&] { nn::Network({a, b}, {y}); }), "the outputs of the model do not depend on input 'b'");
  EXPECT_EQ(line_of([&] { nn::Network({y}, {y}); }), "the outputs of the model depend on input 'a', which is not one of its inputs");
  const nn::Network m({a}, {y}, "m");
  EXPECT_EQ(line_of([&] { m({Tensor::ones({2, 4}), Tensor::ones({2, 4})}); }), "layer 'm' (Functional): takes 1 input, got 2");
  EXPECT_EQ(line_of([&] { m(Tensor::ones({2, 5})); }), "layer 'm' (Functional): input 'a' takes float32[b,4], got float32[2,5]");
  EXPECT_EQ(error_of([&] { m.layer("dens"); }), "unknown layer 'dens'\n  hint: did you mean dense?");
  EXPECT_EQ(line_of([&] { nn::Network::sequential({nn::Dense(1, {.name = "x"}), nn::Dense(1, {.name = "x"})}); }),
            "two layers of one model are named 'x'");
  EXPECT_EQ(line_of([] { nn::Network::sequential({nn::Dense(1)}, "s").inputs(); }), "the input of 's' is not known yet");
  EXPECT_EQ(line_of([] { nn::Network(nn::Dense(1, {.name = "d"})); }), "layer 'd' (Dense) is not a model of layers");
}

TEST(Network, ErrorsOfConfigs) {
  nn::Config c = nn::Network::sequential({nn::Input({2}), nn::Dense(3)}).config();
  nn::Config bad = c;
  bad["layers"][1]["class_name"] = "Denze";
  EXPECT_EQ(error_of([&] { nn::layer_from_config("Sequential", bad); }).substr(0, 21), "unknown layer 'Denze'");
  bad = c;
  bad["layers"][1]["config"]["units"] = "three";
  EXPECT_EQ(error_of([&] { nn::layer_from_config("Sequential", bad); }), "Dense: units is \"three\", expected a whole number");
  bad = c;
  bad["layers"][1]["config"]["unknown"] = 1;
  EXPECT_EQ(error_of([&] { nn::layer_from_config("Sequential", bad); }),
            "Dense: the config has 'unknown', which this kind of layer does not know");
  bad = c;
  bad["layers"] = 3;
  EXPECT_EQ(error_of([&] { nn::layer_from_config("Sequential", bad); }), "Sequential: layers is number, expected a list");
  EXPECT_EQ(error_of([&] { nn::layer_from_config("Functional", nn::Config::object()); }), "Functional: the config has no 'layers'");
  // A graph that goes round in a circle.
  const nn::Symbol a = nn::Input({4}, DType::F32, "a");
  const nn::Dense d1(4, {.name = "d1"}), d2(4, {.name = "d2"});
  c = nn::Network({a}, {d2(d1(a))}).config();
  c["layers"][1]["inbound_nodes"][0]["args"][0]["config"]["keras_history"][0] = "d2";
  EXPECT_EQ(error_of([&] { nn::layer_from_config("Functional", c); }),
            "Functional: the calls of 2 layers depend on each other or on what is not there");
  c["layers"][1]["inbound_nodes"][0]["args"][0]["config"]["keras_history"][0] = "nobody";
  EXPECT_EQ(error_of([&] { nn::layer_from_config("Functional", c); }), "Functional: no layer is named \"nobody\"");
  // Nested without end.
  nn::Config deep = nn::serialize(nn::Dense(1));
  for (int i = 0; i < 100; ++i) deep = {{"class_name", "TimeDistributed"}, {"config", {{"layer", deep}}}};
  EXPECT_EQ(error_of([&] { nn::deserialize(deep); }), "layers are nested more than 64 deep");
}

TEST(Network, Summary) {
  const nn::Network m = nn::Network::sequential(
      {nn::Input({28, 28, 1}), nn::Conv2D(8, 3, {.name = "conv"}), nn::Flatten({.name = "flat"}), nn::Dense(10, {.name = "out"})}, "net");
  m.layer("conv").set_trainable(false);
  EXPECT_EQ(m.summary(), R"(Model: "net"
┌────────────────┬───────────────────┬─────────┐
│ Layer (type)   │ Output Shape      │ Param # │
├────────────────┼───────────────────┼─────────┤
│ conv (Conv2D)  │ (None, 26, 26, 8) │      80 │
│ flat (Flatten) │ (None, 5408)      │       0 │
│ out (Dense)    │ (None, 10)        │  54,090 │
└────────────────┴───────────────────┴─────────┘
 Total params: 54,170 (211.60 KB)
 Trainable params: 54,090 (211.29 KB)
 Non-trainable params: 80 (320.00 B)
)");
}

}  // namespace
}  // namespace tandem
