// Training without fit: a pipeline with a callback, a model in parts, and gradients that are gathered over several batches.
#include "support.hpp"

namespace td = tandem;
namespace nn = tandem::nn;
using namespace examples;

namespace {

const nn::Loss kLoss = nn::losses::SparseCategoricalCrossentropy({.from_logits = true});

// Any C++ code may prepare an element; here a picture gets mean 0 and deviation 1.
td::Tensor standardized(const td::Tensor& x) {
  const double mean = td::mean(x).item<double>();
  return (x - mean) / (td::std(x).item<double>() + 1e-6);
}

// A step of one's own: one compiled function of forward, loss, gradients and update.
auto make_step(const std::vector<nn::Model>& parts, const nn::Optimizer& optimizer) {
  const td::Dim b = td::Dim::symbol("b");
  std::vector<td::Variable> weights;
  for (const nn::Model& part : parts)
    for (const td::Variable& v : part.trainable_weights()) weights.push_back(v);
  optimizer.build(weights);
  return td::Function(
      [=](const td::Tensor& x, const td::Tensor& y) {
        td::Tape tape;
        td::Tensor h = x;
        for (const nn::Model& part : parts) h = part(h, {.training = true});
        const td::Tensor loss = kLoss(y, h);
        optimizer.apply(tape.gradients(loss, weights));
        return loss;
      },
      {td::Spec{td::DType::F32, {b, kPixels}}, td::Spec{td::DType::I32, {b}}}, "step");
}

nn::Model classifier() {
  return nn::Sequential({nn::InputLayer(td::Dims{kPixels}), nn::Dense(64, {.activation = "relu"}), nn::Dense(kClasses)});
}

void preprocess_on_the_way() {
  const Set train = digits(8000, 1);
  const td::data::Dataset batches =
      td::data::Dataset::from_slices({train.x, train.y})
          .map_callback([](const td::Tensor& x, const td::Tensor& y) { return std::pair(standardized(x), y); },
                        {.parallel_calls = td::data::kAutotune})
          .batch(64)
          .prefetch();
  const nn::Model model = classifier();
  const auto step = make_step({model}, nn::Adam());
  std::vector<float> losses;
  for (int epoch = 0; epoch < 3; ++epoch) {
    td::data::Iterator walk = batches.iterate();
    for (td::data::Element batch; walk.next(batch);) losses.push_back(step(batch[0], batch[1]).item<float>());
  }
  std::printf("pipeline with a callback: loss %.3f -> %.3f\n", losses.front(), losses.back());
  expect(losses.back() < 0.5f * losses.front(), "the loss halves");
}

void a_model_in_parts() {
  const Set train = digits(512, 2);
  const std::vector<nn::Model> parts{nn::Sequential({nn::InputLayer(td::Dims{kPixels}), nn::Dense(256, {.activation = "relu"})}),
                                     nn::Sequential({nn::InputLayer(td::Dims{256}), nn::Dense(32, {.activation = "relu"})}),
                                     nn::Sequential({nn::InputLayer(td::Dims{32}), nn::Dense(kClasses)})};
  const auto step = make_step(parts, nn::Adam(1e-3));
  const float first = step(train.x, train.y).item<float>();
  float last = first;
  for (int i = 0; i < 60; ++i) last = step(train.x, train.y).item<float>();
  std::printf("a model in three parts: loss %.3f -> %.3f\n", first, last);
  expect(last < 0.5f * first, "the loss halves");
}

void gathered_gradients() {
  const Set train = digits(8000, 3);
  const nn::Model model = classifier();
  model.compile({.optimizer = nn::Adam(2e-3, {}, {.gradient_accumulation_steps = 4}), .loss = {kLoss}});
  const nn::Logs before = model.evaluate(train.x, train.y, {.verbose = 0});
  model.fit(train.x, train.y, {.batch_size = 32, .epochs = 2, .verbose = 2});
  const nn::Logs after = model.evaluate(train.x, train.y, {.verbose = 0});
  const int64_t batches = model.optimizer().iterations().value().item<int64_t>();
  std::printf("gradients over 4 batches: loss %.3f -> %.3f, %lld updates from %lld batches\n", before[0].second, after[0].second,
              static_cast<long long>(batches / 4), static_cast<long long>(batches));
  expect(batches == 500 && after[0].second < 0.5 * before[0].second, "500 batches halve the loss");
}

}  // namespace

int main() {
  return run([] {
    preprocess_on_the_way();
    a_model_in_parts();
    gathered_gradients();
  });
}
