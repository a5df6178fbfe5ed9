// Training in other ways than fit's own: a pipeline with a callback, a model in parts, gradients that are gathered over several batches,
// and two models that play against each other, in a fit with a step of one's own.
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
  std::printf("gradients over 4 batches: loss %.3f -> %.3f, %lld updates from %lld batches\n", before["loss"], after["loss"],
              static_cast<long long>(batches / 4), static_cast<long long>(batches));
  expect(batches == 500 && after["loss"] < 0.5 * before["loss"], "500 batches halve the loss");
}

// A writer learns to give what the judge takes for numbers from the data (Goodfellow et al., 2014): here, pairs around (2, -1).
void two_that_play() {
  const td::Tensor points = td::Tensor::of({2.f, -1.f}) + 0.3 * td::Generator(1).normal({4096, 2});
  const nn::Model judge = nn::Sequential({nn::InputLayer(td::Dims{2}), nn::Dense(32, {.activation = "relu"}), nn::Dense(1)});
  const nn::Model writer = nn::Sequential({nn::InputLayer(td::Dims{4}), nn::Dense(32, {.activation = "relu"}), nn::Dense(2)});
  const nn::Optimizer writers = nn::Adam(1e-3, {.beta_1 = 0.5});
  writers.build(writer.trainable_weights());
  const nn::Loss loss = nn::losses::BinaryCrossentropy({.from_logits = true});
  td::Generator noise(2);

  judge.compile({.optimizer = nn::Adam(1e-3, {.beta_1 = 0.5}), .train_step = [=](nn::Step& step) mutable {
                   const nn::Model& judges = step.model();
                   const td::Tensor real = step.inputs()[0];
                   const td::Tensor seeds = noise.normal({real.dims()[0], 4});
                   td::Tape of_judge, of_writer;
                   const td::Tensor made = writer(seeds), says_made = judges(made), says_real = judges(real);
                   const td::Tensor judged =
                       loss(td::Tensor::ones(says_real.dims()), says_real) + loss(td::Tensor::zeros(says_made.dims()), says_made);
                   const td::Tensor written = loss(td::Tensor::ones(says_made.dims()), says_made);
                   const std::vector<td::Tensor> gradients = of_writer.gradients(written, writer.trainable_weights());
                   step.minimize(of_judge, judged);
                   writers.apply(gradients);
                   step.log("judge", judged);
                   step.log("writer", written);
                 }});
  judge.fit(points, {.batch_size = 64, .epochs = 20, .verbose = 2});
  const td::Tensor middle = td::mean(writer(td::Generator(3).normal({1000, 4})), 0);
  std::printf("two that play: the writer's pairs are around (%.2f, %.2f)\n", middle[0].item<double>(), middle[1].item<double>());
  expect(std::abs(middle[0].item<double>() - 2) < 0.5 && std::abs(middle[1].item<double>() + 1) < 0.5, "pairs like those of the data");
}

}  // namespace

int main() {
  return run([] {
    preprocess_on_the_way();
    a_model_in_parts();
    gathered_gradients();
    two_that_play();
  });
}
