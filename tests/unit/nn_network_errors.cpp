// Errors while layers are built, called and traced: the user's line, the path of layers, and never a line of the library.
#include <nlohmann/json.hpp>
#include <source_location>

#include <tandem/nn/layers.hpp>
#include <tandem/nn/model.hpp>

#include "frontend_support.hpp"

namespace tandem::nn {
namespace {

// How a message names the line above the one that asks.
std::string line_above(std::source_location where = std::source_location::current()) {
  return "\n  at nn_network_errors.cpp:" + std::to_string(where.line() - 1);
}

std::string line_below(std::source_location where = std::source_location::current()) {
  return "\n  at nn_network_errors.cpp:" + std::to_string(where.line() + 1);
}

std::vector<Tensor> unequal() { return {Tensor::ones({2, 3}), Tensor::ones({3, 3})}; }
const char kUnequal[] = "concatenate: operand 1 [3,3] and operand 0 [2,3] differ on axis 0 (3 != 2)";

TEST(LayerErrors, NameTheLineOfTheCallAndThePath) {
  const Concatenate join(1, {.name = "join"});
  std::string got = error_of([&] { join(unequal()); });
  std::string at = line_above();
  EXPECT_EQ(got, std::string("layer 'join' (Concatenate): ") + kUnequal + at);

  // Inside a model, inside another one.
  const Symbol a = Input({3}), b = Input({3});
  const Network inner({a, b}, join({a, b}), "inner");
  const Network outer({a, b}, inner({a, b}), "outer");
  got = error_of([&] { outer(unequal()); });
  at = line_above();
  EXPECT_EQ(got, std::string("layer 'join' (Concatenate) of model 'inner' of model 'outer': ") + kUnequal + at);

  // While a function is traced: the line in its body.
  const Function f([&](Tensor x, Tensor y) {
    at = line_below();
    return outer({x, y})[0];
  });
  got = error_of([&] { f(unequal()[0], unequal()[1]); });
  EXPECT_EQ(got, std::string("layer 'join' (Concatenate) of model 'inner' of model 'outer': ") + kUnequal + at);
}

TEST(LayerErrors, OnSymbolsAndWhenModelsAreMade) {
  const Symbol x = Input({3});
  const Reshape reshape({2, 2}, {.name = "r"});
  std::string got = error_of([&] { reshape(x); });
  std::string at = line_above();
  EXPECT_TRUE(got.starts_with("layer 'r' (Reshape): ")) << got;
  EXPECT_NE(got.find(at), std::string::npos) << got;

  got = error_of([&] { Sequential({Input({3}), reshape}); });
  at = line_above();
  EXPECT_TRUE(got.starts_with("layer 'r' (Reshape): ")) << got;
  EXPECT_NE(got.find(at), std::string::npos) << got;

  const Dense one(1, {.name = "d"}), two(2, {.name = "d"});
  got = error_of([&] { Sequential({Input({3}), one, two}); });
  at = line_above();
  EXPECT_EQ(got, "two layers of one model are named 'd'" + at + "\n  hint: give one of them another name");
  const std::vector<Symbol> outputs{two(one(x))};
  got = error_of([&] { Model({x}, outputs); });
  at = line_above();
  EXPECT_EQ(got, "two layers of one model are named 'd'" + at + "\n  hint: give one of them another name");

  // A sequence that learns its input when it is called: the line of that call.
  const Model late = Sequential({reshape}, "late");
  got = error_of([&] { late(Tensor::ones({2, 3})); });
  at = line_above();
  EXPECT_TRUE(got.starts_with("layer 'r' (Reshape) of model 'late': ")) << got;
  EXPECT_NE(got.find(at), std::string::npos) << got;
}

// Lines of a program's own kind of layer are the user's.
class Halves : public LayerBody {
 public:
  Halves() { add_child("join", join_); }
  std::string class_name() const override { return "Halves"; }
  std::vector<Tensor> call(const std::vector<Tensor>& in, const Pass& pass) override {
    if (pass.training) {
      std::vector<Tensor> y = join_({in[0], in[0].transpose()}, pass);
      inner_line = line_above();
      return y;
    }
    Tensor y = matmul(in[0], in[0]);
    own_line = line_above();
    return {y};
  }
  inline static std::string own_line, inner_line;

 private:
  Concatenate join_{1, {.name = "join"}};
};

TEST(LayerErrors, InOnesOwnKindNameItsLines) {
  const Layer halves(std::make_shared<Halves>(), "h");
  const Model model = Sequential({halves}, "m");
  const Tensor good = Tensor::ones({3, 3}), bad = Tensor::ones({2, 3});
  halves(good), halves(good, {.training = true});  // tells the lines
  std::string got = error_of([&] { model(bad); });
  EXPECT_TRUE(got.starts_with("layer 'h' (Halves) of model 'm': matmul: ")) << got;
  EXPECT_NE(got.find(Halves::own_line), std::string::npos) << got;
  got = error_of([&] { halves(bad, {.training = true}); });
  EXPECT_TRUE(got.starts_with("layer 'join' (Concatenate) of layer 'h' (Halves): concatenate: ")) << got;
  EXPECT_NE(got.find(Halves::inner_line), std::string::npos) << got;
}

// Nodes too: what a compiled function says when it runs comes from them.
TEST(LayerErrors, NodesOfATraceNameTheCallOfTheModel) {
  const Model model = Sequential({Input({5, 3}), Dense(4, {.activation = "gelu"}), LSTM(2), BatchNormalization()});
  std::string at;
  const Function f([&](Tensor x) {
    Tensor y = model(x, {.training = true});
    at = line_above();
    return y;
  });
  f(Tensor::ones({2, 5, 3}));
  const std::string graph = f.graph_str();
  EXPECT_EQ(graph.find("core.cpp"), std::string::npos) << graph;
  EXPECT_EQ(graph.find("recurrent.cpp"), std::string::npos) << graph;
  EXPECT_EQ(graph.find("normalization.cpp"), std::string::npos) << graph;
  EXPECT_NE(graph.find(at.substr(at.find("nn_"))), std::string::npos) << graph;
}

// What a config says has no line; ours would not help.
TEST(LayerErrors, OfConfigsNameNoLine) {
  const Reshape reshape({2, 2}, {.name = "r"});
  const Symbol x = Input({4});
  for (const Model& model : {Sequential({Input({4}), reshape}), Model({x}, {reshape(x)})}) {
    Config config = model.config();
    config["layers"][1]["config"]["target_shape"] = {3, 3};
    const std::string got = error_of([&] { layer_from_config(model.class_name(), config); });
    EXPECT_TRUE(got.starts_with("layer 'r' (Reshape): ")) << got;
    EXPECT_EQ(got.find(".cpp:"), std::string::npos) << got;
  }
}

// A layer that tries another one, and when that fails says something of its own.
class Tries : public LayerBody {
 public:
  Tries() { add_child("inner", inner_); }
  std::string class_name() const override { return "Tries"; }
  std::vector<Tensor> call(const std::vector<Tensor>& in, const Pass&) override {
    try {
      return {inner_(in[0])};
    } catch (const UserError&) {
      throw UserError("gave up");
    }
  }

 private:
  Dense inner_{2, {.name = "inner"}};
};

TEST(LayerErrors, OneThatWasCaughtLeavesNothingBehind) {
  const Layer tries(std::make_shared<Tries>(), "t");
  std::string got = error_of([&] { tries(Tensor::ones({2})); });
  std::string at = line_above();
  EXPECT_EQ(got, "layer 't' (Tries): gave up" + at);
  EXPECT_EQ(tries(Tensor::ones({2, 3})).shape(), (Shape{2, 2}));
  got = error_of([&] { Tensor::ones({2, 3}) + Tensor::ones({4}); });
  at = line_above();
  EXPECT_TRUE(got.ends_with(at)) << got;  // outside of layers a line is what it was
}

}  // namespace
}  // namespace tandem::nn
