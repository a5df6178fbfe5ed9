// Train, keep the model in a file that Keras reads too, load it again, measure it, and use it part by part.
#include <filesystem>

#include "support.hpp"

namespace td = tandem;
namespace nn = tandem::nn;
using namespace examples;

int main() {
  return run([] {
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tandem_save_and_load";
    std::filesystem::create_directories(folder);
    const Set train = digits(8000, 1), test = digits(2000, 2);
    using td::data::Dataset;
    const Dataset test_batches = Dataset::from_slices({test.x, test.y}).batch(64);

    const nn::Model model = nn::Sequential(
        {nn::InputLayer(td::Dims{kPixels}), nn::Dense(128, {.activation = "relu"}), nn::Dense(kClasses, {.activation = "softmax"})});
    model.compile({.optimizer = "adam", .loss = {"sparse_categorical_crossentropy"}, .metrics = {"accuracy"}});
    model.fit(Dataset::from_slices({train.x, train.y}).shuffle(8000, {.seed = 1}).batch(64),
              {.epochs = 10,
               .validation_data = test_batches,
               .callbacks = {nn::ModelCheckpoint((folder / "best.keras").string(), {.monitor = "val_accuracy", .save_best_only = true})}});
    model.save(folder / "digits.keras");
    model.save_weights(folder / "digits.weights.h5");

    const nn::Model loaded = nn::Model::load(folder / "digits.keras");
    const nn::Logs measured = loaded.evaluate(test_batches, {.verbose = 2});
    expect(measured == model.evaluate(test_batches, {.verbose = 0}), "the same model from the file");
    expect(measured["accuracy"] > 0.9, "an accuracy above 90 %");

    // A large array in chunks, as far as memory goes; each is one call.
    int64_t right = 0;
    for (int64_t first = 0; first < 8000; first += 1000) {
      const td::Slice part(first, first + 1000);
      const td::Tensor classes = loaded.predict(train.x[part], {.batch_size = 256, .verbose = 0}).argmax(-1);
      right += td::sum((classes == train.y[part]).cast(td::DType::I64)).item<int64_t>();
    }
    std::printf("8000 predictions, accuracy %.4f\n", static_cast<double>(right) / 8000);
    expect(right > 7200, "an accuracy above 90 % on what it learned from");
    std::filesystem::remove_all(folder);
  });
}
