// Networks of layers: building, sharing, nesting, masks, configs, errors.
#include <nlohmann/json.hpp>

#include <tandem/nn/layers/activation.hpp>
#include <tandem/nn/layers/core.hpp>
#include <tandem/nn/layers/regularization.hpp>
#include <tandem/nn/layers/reshaping.hpp>
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

}  // namespace
}  // namespace tandem
