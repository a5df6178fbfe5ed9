// What fit costs beside the bare compiled step: the same model both ways, pass by pass in turn, and a line of JSON for each work.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <tandem/nn/layers.hpp>
#include <tandem/nn/training.hpp>

#include "models/training.hpp"

namespace {

using namespace bench;
namespace nn = td::nn;

struct Api {
  nn::Model model;
  nn::Loss loss;
};

Api make_api(const std::string& name, const Work& work) {
  const auto sequence = [&](std::vector<nn::Layer> layers) {
    layers.insert(layers.begin(), nn::InputLayer(td::DimList(work.x)));
    return nn::Sequential(std::move(layers));
  };
  if (name == "mlp")
    return {sequence({nn::Dense(128, {.activation = "relu"}), nn::Dense(1, {.activation = "sigmoid"})}), "binary_crossentropy"};
  if (name == "mlp_big")
    return {sequence({nn::Dense(2048, {.activation = "relu"}), nn::Dense(2048, {.activation = "relu"}), nn::Dense(10)}),
            nn::losses::SparseCategoricalCrossentropy({.from_logits = true})};
  if (name == "cnn")
    return {sequence({nn::Conv2D(32, 3, {.activation = "relu"}), nn::MaxPooling2D(2), nn::Conv2D(64, 3, {.activation = "relu"}),
                      nn::MaxPooling2D(2), nn::Flatten(), nn::Dropout(0.5), nn::Dense(10, {.activation = "softmax"})}),
            "sparse_categorical_crossentropy"};
  throw td::UserError("fit: knows mlp, mlp_big and cnn, not '" + name + "'");
}

td::Shape of_all(const td::Shape& example, int64_t rows) {
  td::Shape shape{rows};
  for (const int64_t extent : example) shape.push_back(extent);
  return shape;
}

template <class F> double milliseconds(int64_t steps, F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(steps);
}

void compare(const std::string& name, int passes) {
  Weights weights(0);
  const Work work = make_work(name, Scale::Full, weights);
  const Examples examples(work, work.steps, Examples::Source::Random);
  const Trainer trainer(work, weights);
  const auto bare = [&] {
    for (int64_t i = 0; i < work.steps; ++i) trainer.step(examples.x(i), examples.y(i));
  };

  // All batches lie one behind the other: the first one's memory is that of all.
  const int64_t rows = work.batch * work.steps;
  const td::Tensor x = td::Tensor::view(examples.x(0).raw_data(), examples.x(0).dtype(), of_all(work.x, rows));
  const td::Tensor y = td::Tensor::view(examples.y(0).raw_data(), examples.y(0).dtype(), of_all(work.y, rows));
  const Api api = make_api(name, work);
  api.model.compile({.optimizer = "adam", .loss = {api.loss}, .metrics = {"accuracy"}});
  const auto loop_of = [&](bool shuffle) {
    return nn::TrainingLoop(api.model, nn::Run::Kind::Train, {x}, {y}, {.batch_size = work.batch, .shuffle = shuffle});
  };
  nn::TrainingLoop ordered = loop_of(false), shuffled = loop_of(true);
  const auto epoch = [](nn::TrainingLoop& loop) {
    loop.begin_epoch();
    loop.run();
    loop.logs();
  };

  double best[3] = {1e9, 1e9, 1e9};
  for (int pass = 0; pass <= passes; ++pass) {  // the first one compiles and does not count
    const double ms[3] = {milliseconds(work.steps, bare), milliseconds(work.steps, [&] { epoch(ordered); }),
                          milliseconds(work.steps, [&] { epoch(shuffled); })};
    for (int i = 0; pass > 0 && i < 3; ++i) best[i] = std::min(best[i], ms[i]);
  }
  std::printf(
      "{\"work\": \"%s\", \"bare_ms\": %.5g, \"fit_ms\": %.5g, \"fit_shuffled_ms\": %.5g, \"fit_ratio\": %.4g, \"fit_shuffled_ratio\": "
      "%.4g}\n",
      name.c_str(), best[0], best[1], best[2], best[1] / best[0], best[2] / best[0]);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<std::string> names(argv + 1, argv + argc);
    if (names.empty()) names = {"mlp", "mlp_big", "cnn"};
    for (const std::string& name : names) compare(name, name == "mlp" ? 5 : 3);
    return 0;
  } catch (const td::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
