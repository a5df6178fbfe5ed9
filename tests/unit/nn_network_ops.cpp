// Ops and functions as nodes of graphs of layers: arithmetic on symbols, indexing, Lambda, and their way through configs and files.
#include <nlohmann/json.hpp>

#include <tandem/nn/layers.hpp>
#include <tandem/nn/model.hpp>

#include "frontend_support.hpp"

namespace tandem::nn {
namespace {

Tensor numbers(const Shape& shape, float first = -3) {
  return Tensor::arange(first, first + static_cast<float>(element_count(shape))).reshape(shape) * 0.25f;
}

// The model as it is, and as its config makes it again.
void expect_both(const std::vector<Symbol>& inputs, const Symbol& output, const std::vector<Tensor>& x, const Tensor& wanted) {
  const Network m(inputs, {output});
  const Config config = m.config();
  const Network again(layer_from_config("Functional", config));
  EXPECT_EQ(again.config(), config);
  for (const Network& n : {m, again}) {
    const Tensor y = n(x)[0];
    EXPECT_EQ(y.type_str(), wanted.type_str());
    EXPECT_EQ(floats(y.cast(DType::F32)), floats(wanted.cast(DType::F32)));
  }
}

TEST(SymbolOps, Arithmetic) {
  const Symbol a = Input({3}), b = Input({3});
  const Tensor x = numbers({2, 3}), y = numbers({2, 3}, 1), row = Tensor::of({1.f, 2.f, 3.f});
  expect_both({a, b}, a + b, {x, y}, x + y);
  expect_both({a}, a * 2.0f, {x}, x * 2.0f);
  expect_both({a}, 1 - a, {x}, 1 - x);
  expect_both({a, b}, -a / b, {x, y}, -x / y);
  expect_both({a}, a % 2, {x}, x % 2);
  expect_both({a}, a * row + 0.5, {x}, x * row + 0.5);
  expect_both({a, b}, (a < b) & (a >= -0.5), {x, y}, (x < y) & (x >= -0.5));
  expect_both({a}, !(a > 0), {x}, !(x > 0));
}

TEST(SymbolOps, Functions) {
  const Symbol a = Input({4, 6});
  const Tensor x = numbers({2, 4, 6}, -20);
  expect_both({a}, tanh(a), {x}, tanh(x));
  expect_both({a}, relu(a), {x}, relu(x));
  expect_both({a}, softmax(a, 1), {x}, softmax(x, 1));
  expect_both({a}, mean(a, 1, true), {x}, mean(x, 1, true));
  expect_both({a}, sum(a, {1, 2}), {x}, sum(x, {1, 2}));
  expect_both({a}, reshape(a, {-1, 24}), {x}, reshape(x, {-1, 24}));
  expect_both({a}, transpose(a, {0, 2, 1}), {x}, transpose(x, {0, 2, 1}));
  expect_both({a}, ops::concatenate({a, tanh(a)}, 1), {x}, concatenate({x, tanh(x)}, 1));
  expect_both({a}, ops::stack({a, a * 2}, 1), {x}, stack({x, x * 2}, 1));
  expect_both({a}, clip(a, -1.0, 1.5), {x}, clip(x, -1.0, 1.5));
  expect_both({a}, where(a > 0, a, 0.5), {x}, where(x > 0, x, 0.5));
  expect_both({a}, matmul(a, Tensor::ones({6, 2})), {x}, matmul(x, Tensor::ones({6, 2})));
  expect_both({a}, ops::einsum({a, a}, "abc,adc->abd"), {x}, einsum({x, x}, "abc,adc->abd"));
  expect_both({a}, cast(a, DType::I32), {x}, cast(x, DType::I32));
  expect_both({a}, expand_dims(a, 1), {x}, expand_dims(x, 1));
  expect_both({a}, moments(a, 1)[1], {x}, moments(x, 1)[1]);
  expect_both({a}, split(a, {2, 4}, 2)[1], {x}, split(x, {2, 4}, 2)[1]);
  expect_both({a}, matmul(a, a, false, true), {x}, matmul(x, x, false, true));  // Keras has no such class: written our own way
  expect_both({a}, one_hot(argmax(a, -1), 6), {x}, one_hot(argmax(x, -1), 6));
}

TEST(SymbolOps, Indexing) {
  const Symbol a = Input({4, 6});
  const Tensor x = numbers({2, 4, 6});
  expect_both({a}, a(Slice(), -1), {x}, x(Slice(), -1));
  expect_both({a}, a(Slice(), Slice(1, 3), ellipsis, newaxis), {x}, x(Slice(), Slice(1, 3), ellipsis, newaxis));
  expect_both({a}, a(ellipsis, Slice(_, _, -2)), {x}, x(ellipsis, Slice(_, _, -2)));
  expect_both({a}, a(Slice(), Tensor::of({3, 0})), {x}, x(Slice(), Tensor::of({3, 0})));
  expect_both({a}, a[Slice(0, 1)], {x}, x[Slice(0, 1)]);
}

TEST(SymbolOps, AreNamedAndWrittenAsKerasDoes) {
  const Symbol a = Input({4}, DType::F32, "a");
  const Network m({a}, {mean(a * 2.0f, 1)}, "m");
  const Config layers = m.config()["layers"];
  EXPECT_EQ(layers[1]["module"], "keras.src.ops.numpy");
  EXPECT_EQ(layers[1]["class_name"], "Multiply");
  EXPECT_EQ(layers[1]["registered_name"], "Multiply");
  EXPECT_EQ(layers[1]["config"], (Config{{"name", m.layers()[1].name()}}));
  EXPECT_EQ(layers[1]["inbound_nodes"][0]["args"][1], 2.0);
  EXPECT_EQ(layers[2]["config"], (Config{{"name", m.layers()[2].name()}, {"axis", 1}, {"keepdims", false}}));
  // Operations have no weights, so that weights of layers stay where they are in files.
  const Symbol sum = a + a;
  const Network both({a}, {Add()({sum, Dense(4)(sum)})[0]});
  std::vector<std::string> kept;
  for (const LayerBody::Child& c : both.body().children()) kept.push_back(c.attribute);
  EXPECT_EQ(kept, (std::vector<std::string>{"layers/input_layer", "layers/dense", "layers/add"}));
}

TEST(SymbolOps, GradientsFlowThrough) {
  const Symbol a = Input({3});
  const Model m({a}, {mean(square(Dense(2)(a)) * 3.0, 1)});
  m.compile({.optimizer = "adam", .loss = {"mse"}});
  const Tensor x = numbers({8, 3}), y = Tensor::zeros({8});
  const History h = m.fit(x, y, {.epochs = 5, .verbose = 0});
  EXPECT_LT(h.values.at("loss").back(), h.values.at("loss").front());
}

TEST(SymbolOps, Errors) {
  const Symbol a = Input({3}), b = Input({4});
  const std::string message = error_of([&] { a + b; });
  EXPECT_NE(message.find("add: "), std::string::npos) << message;
  EXPECT_NE(message.find("nn_network_ops.cpp:"), std::string::npos) << message;
  EXPECT_EQ(error_of([&] { ops::tanh(1.0); }).substr(0, 39), "tanh: none of its operands is a symbol\n");
  Config config = Network({a}, {tanh(a)}).config();
  config["layers"][1]["class_name"] = "Tahn";
  const std::string unknown = error_of([&] { layer_from_config("Functional", config); });
  EXPECT_TRUE(unknown.starts_with("unknown operation of Keras 'Tahn'\n  hint: did you mean Tan, Tanh")) << unknown;
  config["layers"][1]["class_name"] = "Mean";
  config["layers"][1]["config"]["axes"] = 1;
  EXPECT_EQ(error_of([&] { layer_from_config("Functional", config); }), "Mean: the config has 'axes', which this operation does not know");
}

TEST(SymbolOps, SplittingIsLimitedByWhatAFileCanMean) {
  const Symbol huge = Input({1'000'000'000'000}), a = Input({6});
  EXPECT_NE(error_of([&] { unstack(huge, 1); }).find("is cut into 1000000000000 parts, at most 65536 are possible"), std::string::npos);
  Config config = Network({a}, {split(a, {2, 4}, 1)[0]}).config();
  const auto error_with = [&](const Config& cuts, const Config& shape) {
    config["layers"][1]["config"]["indices_or_sections"] = cuts;
    config["layers"][0]["config"]["batch_shape"] = shape;
    return error_of([&] { layer_from_config("Functional", config); });
  };
  const Config usual = {nullptr, 6}, large = {nullptr, 1'000'000'000'000};
  EXPECT_EQ(error_with({2, 3}, usual), "no error");
  EXPECT_EQ(error_with(3, usual), "no error");
  EXPECT_NE(error_with(4, usual).find("an axis of extent 6 cannot be cut into 4 equal parts"), std::string::npos);
  EXPECT_NE(error_with({3, 2}, usual).find("Split: indices_or_sections is [3,2], which is not supported"), std::string::npos);
  EXPECT_NE(error_with({7}, usual).find("which is not supported"), std::string::npos);
  EXPECT_NE(error_with(1'000'000'000'000, large).find("at most 65536 are possible"), std::string::npos);
  EXPECT_NE(error_with("x", usual).find("which is not supported"), std::string::npos);
}

// --- Lambda ------------------------------------------------------------------------------------------------------------------------------

TEST(Lambdas, AreLayers) {
  const Tensor x = numbers({2, 3});
  EXPECT_EQ(floats(Lambda([](Tensor t) { return t * 2; })(x)), floats(x * 2));
  const Lambda difference([](const Tensor& p, const Tensor& q) { return p - q; });
  EXPECT_EQ(floats(difference({x, x * 3})[0]), floats(x - x * 3));
  const Symbol a = Input({3});
  const Network m({a}, {difference({a, Lambda([](Tensor t) { return relu(t); })(a)})[0]});
  EXPECT_EQ(floats(m(x)), floats(x - relu(x)));
  const Dense inner(2, {.name = "inner"});
  const std::string message = error_of([&] { Lambda([&](Tensor t) { return inner(t); }, {.name = "l"})(x); });
  EXPECT_NE(message.find("hint: a kind of your own (LayerBody) has parts: add_child"), std::string::npos) << message;
}

TEST(Lambdas, AreSavedByName) {
  const Symbol a = Input({3}, DType::F32, "a");
  const Network unnamed({a}, {Lambda([](Tensor t) { return t * 2; }, {.name = "l"})(a)});
  EXPECT_EQ(error_of([&] { serialize(unnamed); }),
            "layer 'l' (Lambda): its function has no name by which a file could hold it\n  hint: register_lambda(\"my_function\", f), then "
            "Lambda(\"my_function\")");
  EXPECT_EQ(error_of([&] { Lambda("halve"); }).substr(0, 38), "unknown function 'halve' of a Lambda\n ");
  register_lambda("halve", [](Tensor t) { return t / 2; });
  const Network named({a}, {Lambda("halve", {.name = "l"})(a)});
  const Network again(deserialize(serialize(named)));
  EXPECT_EQ(floats(again(Tensor::ones({1, 3}))), (F{0.5f, 0.5f, 0.5f}));
  const std::string unknown = error_of([&] { Lambda("havle"); });
  EXPECT_TRUE(unknown.starts_with("unknown function of a Lambda 'havle'\n  hint: did you mean halve? Else register_lambda(")) << unknown;
  Config python = serialize(named);
  python["config"]["layers"][1]["config"]["function"] = {{"class_name", "__lambda__"}, {"config", {{"code", "4wEAAAA"}}}};
  EXPECT_EQ(
      error_of([&] { deserialize(python); }),
      "Lambda: its function is a lambda of Python, which only Python can run\n  hint: save the model with a named function, and give it "
      "here by register_lambda(\"its_name\", …)");
}

// --- hints
// ---------------------------------------------------------------------------------------------------------------------------------

std::string hint_in(const std::string& message) { return message.substr(std::min(message.find("\n  hint: "), message.size())); }

TEST(Hints, NameTheNearOneFirst) {
  const auto hint = [](const std::string& name) { return hint_in(error_of([&] { layer_from_config(name, Config::object()); })); };
  EXPECT_EQ(hint("Denze"), "\n  hint: did you mean Dense? Else register_layer(\"Denze\", …) makes a kind of your own known");
  EXPECT_TRUE(hint("Quaternion").starts_with("\n  hint: register_layer(\"Quaternion\", …) makes a kind of your own known; there are "))
      << hint("Quaternion");
  EXPECT_LT(hint("Quaternion").size(), 350u);
  EXPECT_NE(hint("SpatialConv2D").find("did you mean "), std::string::npos) << hint("SpatialConv2D");
  EXPECT_NE(hint_in(error_of([] { Loss("sparse_crossentropy"); })).find("did you mean sparse_categorical_crossentropy"), std::string::npos);
}

TEST(Hints, ChannelsAtTheOtherEnd) {
  const std::string got = error_of([] { Conv2D(8, 5, {.name = "c"})(Tensor::ones({2, 3, 28, 28})); });
  EXPECT_EQ(got.substr(0, got.find("\n  at")),
            "layer 'c' (Conv2D): a window of [5, 5] does not fit into float32[2,3,28,28], whose axes are [batch, height, width, channels] "
            "(5 > 3)");
  EXPECT_EQ(hint_in(got), "\n  hint: data_format = \"channels_first\" takes [batch, channels, height, width], as the input seems to be");
  EXPECT_EQ(hint_in(error_of([] { Conv2D(8, 5)(Tensor::ones({2, 3, 3, 28})); })), "\n  hint: padding = \"same\" pads the input");
  EXPECT_EQ(hint_in(error_of([] { MaxPooling2D(2)(Tensor::ones({2, 1, 28, 28})); })),
            "\n  hint: data_format = \"channels_first\" takes [batch, channels, height, width], as the input seems to be");
  EXPECT_EQ(hint_in(error_of([] { Conv1D(8, 3, {.data_format = "channels_first"})(Tensor::ones({2, 28, 1})); })),
            "\n  hint: data_format = \"channels_last\" takes [batch, steps, channels], as the input seems to be");
}

}  // namespace
}  // namespace tandem::nn
