// Trains a convolutional network on drawn digits. The pipeline changes every picture a little each time it comes, so that the network
// learns the digit and not the picture.
#include <cmath>

#include "support.hpp"

namespace td = tandem;
namespace nn = tandem::nn;
using namespace examples;

namespace {

constexpr int64_t kTrain = 12000, kTest = 2000, kBatch = 64, kEpochs = 6;

td::Tensor pictures(const td::Tensor& rows) { return rows.reshape({-1, kSide, kSide, 1}); }

// Shifted by up to one pixel in each direction, brighter or darker, with other noise.
td::Tensor changed(const td::Tensor& key, const td::Tensor& picture) {
  const td::Tensor keys = td::split_key(key, 3);
  const td::Tensor framed = td::pad(picture, 0.0f, {1, 1, 0}, {1, 1, 0});
  const td::Tensor shift = td::concatenate({td::random_int(keys[0], 0, 3, {2}), td::Tensor::zeros({1}, td::DType::I32)});
  const td::Tensor moved = td::dynamic_slice(framed, shift, {kSide, kSide, 1});
  return moved * td::random_uniform(keys[1], {}, 0.8, 1.2) + td::random_normal(keys[2], {kSide, kSide, 1}, 0.0, 0.05);
}

nn::Model network() {
  return nn::Sequential({
      nn::InputLayer({kSide, kSide, 1}),
      nn::Conv2D(16, 3, {.padding = "same", .activation = "relu"}),
      nn::MaxPooling2D(2),
      nn::Conv2D(32, 3, {.padding = "same", .activation = "relu"}),
      nn::MaxPooling2D(2),
      nn::Flatten(),
      nn::Dropout(0.3),
      nn::Dense(kClasses, {.activation = "softmax"}),
  });
}

void train() {
  std::printf("drawing %lld digits to learn from and %lld to test with\n\n", static_cast<long long>(kTrain), static_cast<long long>(kTest));
  const Set train = digits(kTrain, 1), test = digits(kTest, 2);
  const td::data::Dataset batches =
      td::data::Dataset::from_slices({pictures(train.x), train.y})
          .shuffle(kTrain, {.seed = 1})
          .map_random(2, [](const td::Tensor& key, const td::Tensor& x, const td::Tensor& y) { return std::pair(changed(key, x), y); })
          .batch(kBatch)
          .prefetch();

  const nn::Model model = network();
  std::printf("%s\n", model.summary().c_str());
  model.compile({.optimizer = nn::Adam(nn::CosineDecay(2e-3, kEpochs * kTrain / kBatch)),
                 .loss = {"sparse_categorical_crossentropy"},
                 .metrics = {"accuracy"}});
  model.fit(batches, {.epochs = kEpochs, .validation_data = td::data::Dataset::from_slices({pictures(test.x), test.y}).batch(kBatch)});
  const double accuracy = model.evaluate(pictures(test.x), test.y, {.verbose = 0})["accuracy"];
  std::printf("\ntest accuracy %.2f %% on %lld digits that it never saw\n", 100 * accuracy, static_cast<long long>(kTest));
  expect(accuracy > 0.97, "an accuracy above 97 %");
}

}  // namespace

int main() { return run(train); }
