// Layers that hold layers: what is called inside is a part of the whole, or is refused.
#include <tandem/nn/layers.hpp>
#include <tandem/nn/model.hpp>

#include "frontend_support.hpp"

namespace tandem::nn {
namespace {

enum class Held { Unknown, AsChild, InsideChild };

class Block : public LayerBody {
 public:
  Block(Layer inner, Held held) : inner_(std::move(inner)) {
    if (held == Held::AsChild) add_child("inner", inner_);
    if (held == Held::InsideChild) add_child("wrapped", Network::sequential({inner_}));
  }
  std::string class_name() const override { return "Block"; }
  std::vector<Tensor> call(const std::vector<Tensor>& in, const Pass& pass) override { return {inner_(in[0], pass)}; }

 private:
  Layer inner_;
};

Layer block(const Layer& inner, Held held) { return Layer(std::make_shared<Block>(inner, held), "b"); }

std::string without_line(const std::string& text) {
  const size_t at = text.find("\n  at nn_layers_inside.cpp:");
  return at == std::string::npos ? "no line: " + text : text.substr(0, at) + text.substr(std::min(text.find('\n', at + 1), text.size()));
}

TEST(LayersInside, OneThatIsNotAChildIsRefused) {
  const Tensor x = Tensor::ones({2, 3});
  const std::string wanted =
      "layer 'd' (Dense) of layer 'b' (Block): it is called inside 'b' but is not a part of it, so its 2 weights would be neither trained "
      "nor "
      "saved\n  hint: add_child(\"d\", layer) in the constructor of Block makes it one";
  EXPECT_EQ(without_line(error_of([&] { block(Dense(2, {.name = "d"}), Held::Unknown)(x); })), wanted);
  EXPECT_EQ(without_line(error_of([&] { block(Dense(2, {.name = "d"}), Held::Unknown)(Input({3})); })), wanted);
  EXPECT_EQ(
      without_line(error_of([&] { block(Dropout(0.5, {.name = "o"}), Held::Unknown)(x, {.training = true}); })),
      "layer 'o' (Dropout) of layer 'b' (Block): it is called inside 'b' but is not a part of it, so the state of its random numbers would "
      "not be saved\n  hint: add_child(\"o\", layer) in the constructor of Block makes it one");
}

TEST(LayersInside, ChildrenAreTrainedAndWhatHasNoStateNeedsNothing) {
  const Tensor x = Tensor::ones({2, 3});
  for (const Held held : {Held::AsChild, Held::InsideChild}) {
    const Layer whole = block(Dense(2), held);
    EXPECT_EQ(whole(x).shape(), (Shape{2, 2}));
    EXPECT_EQ(whole.trainable_weights().size(), 2u);
  }
  EXPECT_EQ(floats(block(ReLU(), Held::Unknown)(x)), floats(x));
  // One layer in two others is one layer: its weights come once.
  const Dense shared(3);
  const Model m = Sequential({Input({3}), block(shared, Held::AsChild), Layer(std::make_shared<Block>(shared, Held::AsChild), "b2")});
  EXPECT_EQ(m.weights().size(), 2u);
}

// Two layers under one attribute would overwrite each other in a file.
class Twins : public LayerBody {
 public:
  explicit Twins(const Layer& second) {
    const Dense first(2);
    add_child("dense", first);
    add_child("dense", first);  // the same again is no other
    add_child("dense", second);
  }
  std::string class_name() const override { return "Twins"; }
  std::vector<Tensor> call(const std::vector<Tensor>& in, const Pass&) override { return in; }
};

TEST(LayersInside, EachHasItsOwnAttribute) {
  EXPECT_EQ(error_of([] { make<Twins>(Dense(2)); }),
            "add_child: two layers inside a Twins are kept as 'dense'\n  hint: each needs an attribute of its own");
  EXPECT_EQ(error_of([] { make<Twins>(Layer()); }), "this layer holds nothing\n  hint: it was made by Layer()");
}

// A build that fails leaves no children behind, so that the next one may add them.
class Late : public LayerBody {
 public:
  std::string class_name() const override { return "Late"; }
  void build(const std::vector<Spec>& inputs) override {
    inner_ = Dense(2);
    add_child("inner", inner_);
    inner_.build(inputs);
  }
  std::vector<Tensor> call(const std::vector<Tensor>& in, const Pass& pass) override { return {inner_(in[0], pass)}; }

 private:
  Layer inner_;
};

TEST(LayersInside, AFailedBuildLeavesNoChildren) {
  const Layer late = make<Late>();
  EXPECT_THROW(late(Tensor::ones({3})), UserError);
  EXPECT_EQ(late(Tensor::ones({2, 3})).shape(), (Shape{2, 2}));
  EXPECT_EQ(late.weights().size(), 2u);
}

}  // namespace
}  // namespace tandem::nn
