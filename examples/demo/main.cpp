// Trains a small classifier of drawn digits. A whole step (forward, loss, gradients, Adam, metrics) is one compiled function.
#include <tandem/tandem.hpp>

#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "digits.hpp"
#include "progress.hpp"

namespace td = tandem;

namespace {

constexpr int64_t kTrain = 30000, kTest = 5000, kBatch = 64, kHidden = 256;
constexpr int kEpochs = 10;
constexpr float kLearningRate = 1e-3f;

// Two dense layers with a relu between them.
struct Mlp {
  explicit Mlp(td::Generator& random)
      : w1(random.normal({examples::kPixels, kHidden}, 0, std::sqrt(2.0 / examples::kPixels))),
        b1(td::Tensor::zeros({kHidden})),
        w2(random.normal({kHidden, examples::kClasses}, 0, std::sqrt(2.0 / kHidden))),
        b2(td::Tensor::zeros({examples::kClasses})) {}

  td::Tensor operator()(const td::Tensor& x) const { return td::matmul(td::relu(td::matmul(x, w1) + b1), w2) + b2; }
  std::vector<td::Variable> variables() const { return {w1, b1, w2, b2}; }

  td::Variable w1, b1, w2, b2;
};

// Kingma and Ba, "Adam: a method for stochastic optimization", 2015.
struct Adam {
  explicit Adam(std::vector<td::Variable> v)
      : variables(std::move(v)), step(0, {.name = "step", .trainable = false, .dtype = td::DType::F32}) {
    for (const td::Variable& w : variables) {
      m.emplace_back(td::Tensor::zeros(w.shape()), td::VariableOptions{.trainable = false});
      v2.emplace_back(td::Tensor::zeros(w.shape()), td::VariableOptions{.trainable = false});
    }
  }

  void apply(const std::vector<td::Tensor>& gradients) const {
    constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-7f;
    step.assign_add(1);
    const td::Tensor rate = kLearningRate * td::sqrt(1 - td::power(kBeta2, step)) / (1 - td::power(kBeta1, step));
    for (size_t i = 0; i < variables.size(); ++i) {
      const td::Tensor& g = gradients[i];
      m[i].assign(kBeta1 * m[i] + (1 - kBeta1) * g);
      v2[i].assign(kBeta2 * v2[i] + (1 - kBeta2) * td::square(g));
      variables[i].assign_sub(rate * m[i] / (td::sqrt(v2[i]) + kEpsilon));
    }
  }

  std::vector<td::Variable> variables, m, v2;
  td::Variable step;
};

struct Set {
  td::Tensor x, y;
};
Set load(int64_t count, uint64_t seed) {
  const examples::Digits d = examples::draw_digits(count, seed);
  return {td::Tensor::from(d.images, {count, examples::kPixels}), td::Tensor::from(d.labels, {count})};
}

td::Tensor accuracy(const td::Tensor& logits, const td::Tensor& y) { return td::mean((logits.argmax(-1) == y).cast(td::DType::F32)); }

void train() {
  std::printf("drawing %lld digits to learn from and %lld to test with\n", static_cast<long long>(kTrain), static_cast<long long>(kTest));
  const Set training = load(kTrain, 1), test = load(kTest, 2);
  td::Generator random(42);
  const Mlp model(random);
  const Adam adam(model.variables());

  // The batch is a symbol, so the last, smaller batch needs no other trace.
  const td::Dim b = td::Dim::symbol("b");
  td::Function step(
      [&](const td::Tensor& x, const td::Tensor& y) {
        td::Tape tape;
        const td::Tensor logits = model(x);
        const td::Tensor loss = td::mean(td::sparse_categorical_crossentropy(y, logits, true));
        adam.apply(tape.gradients(loss, model.variables()));
        return std::pair(loss, accuracy(logits, y));
      },
      {td::Spec{td::DType::F32, {b, examples::kPixels}}, td::Spec{td::DType::I32, {b}}}, "step");

  const int64_t steps = (kTrain + kBatch - 1) / kBatch;
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    examples::Progress progress(epoch, kEpochs, steps);
    const td::Tensor order = random.permutation(kTrain);
    float loss_sum = 0, accuracy_sum = 0;
    for (int64_t n = 0; n < steps; ++n) {
      const td::Tensor rows = order[td::Slice(n * kBatch, (n + 1) * kBatch)];
      const auto [loss, right] = step(td::take(training.x, rows), td::take(training.y, rows));
      loss_sum += loss.item<float>();
      accuracy_sum += right.item<float>();
      progress.step(n + 1, loss_sum / static_cast<float>(n + 1));
    }
    progress.finish(loss_sum / static_cast<float>(steps), accuracy_sum / static_cast<float>(steps));
  }

  const td::Function evaluate([&](const td::Tensor& x, const td::Tensor& y) { return accuracy(model(x), y); });
  std::printf("test accuracy %.2f %% on %lld digits that it never saw\n", 100.0 * evaluate(test.x, test.y).item<double>(),
              static_cast<long long>(kTest));
}

}  // namespace

int main() {
  try {
    train();
    return 0;
  } catch (const td::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
