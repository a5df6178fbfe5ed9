// A classifier in a few lines: prepare, compile, fit until it gets no better, evaluate.
#include "support.hpp"

namespace td = tandem;
namespace nn = tandem::nn;
using namespace examples;

int main() {
  return run([] {
    const Set train = digits(8000, 1), test = digits(2000, 2);
    const auto prepared = [](const td::Tensor& x) { return td::clip(x * 1.1f - 0.05f, 0.0f, 1.0f); };

    const nn::Model model = nn::Sequential(
        {nn::InputLayer(td::Dims{kPixels}), nn::Dense(128, {.activation = "relu"}), nn::Dense(kClasses, {.activation = "softmax"})});
    std::printf("%s\n", model.summary().c_str());
    model.compile({.optimizer = "adam", .loss = {"categorical_crossentropy"}, .metrics = {"accuracy"}});
    model.fit(prepared(train.x), td::one_hot(train.y, kClasses),
              {.batch_size = 64,
               .epochs = 20,
               .validation_split = 0.1,
               .callbacks = {nn::EarlyStopping({.patience = 3, .restore_best_weights = true})}});
    const double accuracy = model.evaluate(prepared(test.x), td::one_hot(test.y, kClasses), {.verbose = 0})["accuracy"];
    std::printf("test accuracy %.4f\n", accuracy);
    expect(accuracy > 0.9, "an accuracy above 90 %");
  });
}
