// Networks as deep as a program likes: nothing recurses over their layers or looks at all of them for each of them.
#include <algorithm>

#include <tandem/nn/layers.hpp>
#include <tandem/nn/model.hpp>

#include "nn_saving_support.hpp"

namespace tandem::nn {
namespace {

constexpr int kDeep = 100'000;
constexpr int kSaved = 10'000;  // a config may have a million values

std::vector<Layer> many(int count) {
  std::vector<Layer> layers{Input({2}, DType::F32, "x")};
  for (int i = 0; i < count; ++i) layers.push_back(Identity());
  return layers;
}

TEST(DeepNetwork, OfSymbolsIsMadeCalledSummarisedAndDestroyed) {
  const Symbol x = Input({2}, DType::F32, "x");
  Symbol y = x;
  for (int i = 0; i < kDeep; ++i) y = Identity()(y);
  {
    const Network m({x}, {y});
    EXPECT_EQ(m.layers().size(), kDeep + 1u);
    EXPECT_EQ(m(Tensor::of({{1.f, 2.f}})).to_vector<float>(), (std::vector<float>{1, 2}));
    EXPECT_GT(m.summary().size(), size_t{kDeep});
    EXPECT_TRUE(m.weights().empty());
  }
  y = x;  // the last handle of the whole chain
}

TEST(DeepNetwork, GoesToItsConfigAndBack) {
  const Symbol x = Input({2}, DType::F32, "x");
  Symbol y = x;
  for (int i = 0; i < kDeep; ++i) y = Identity()(y);
  Config config = Network({x}, {y}).config();
  std::reverse(config["layers"].begin(), config["layers"].end());  // the order in which each waits for all behind it
  const Network again(layer_from_config("Functional", config));
  EXPECT_EQ(again.layers().size(), kDeep + 1u);
}

TEST(DeepNetwork, OfASequenceIsSavedAndLoaded) {
  const TemporaryFolder folder;
  const Model m = Sequential(many(kSaved));
  m.save(folder / "deep.keras");
  const Model again = Model::load(folder / "deep.keras");
  EXPECT_EQ(again.layers().size(), size_t{kSaved});
  EXPECT_EQ(again(Tensor::of({{1.f, 2.f}})).to_vector<float>(), (std::vector<float>{1, 2}));
}

// Layers in layers are another thing: each level takes a piece of the stack, so there is a limit, and it is said.
TEST(DeepNetwork, NestingHasALimit) {
  const auto nested = [](int depth) {
    Layer layer = Dense(1);
    for (int i = 0; i < depth; ++i) layer = TimeDistributed(layer);
    return layer;
  };
  nested(60);
  EXPECT_EQ(error_of([&] { nested(100'000); }), "layers are nested more than 64 deep");
}

}  // namespace
}  // namespace tandem::nn
