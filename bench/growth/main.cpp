// How cost grows: a table of the first step (trace, compile, plan, run) and of later steps against the depth and the width of an MLP.
#include <tandem/tandem.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace {

namespace td = tandem;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Cost {
  double first_s, step_ms;
  size_t variables;
};

// `depth` dense layers of the same width with relu, a mean square loss, and Adam.
Cost train(int64_t depth, int64_t width, int64_t batch) {
  td::Generator random(1);
  std::vector<td::Variable> weights, m, v;
  for (int64_t i = 0; i < depth; ++i) {
    weights.emplace_back(random.normal({width, width}, 0, std::sqrt(2.0 / static_cast<double>(width))));
    weights.emplace_back(td::Tensor::zeros({width}));
  }
  for (const td::Variable& w : weights) {
    m.emplace_back(td::Tensor::zeros(w.shape()), td::VariableOptions{.trainable = false});
    v.emplace_back(td::Tensor::zeros(w.shape()), td::VariableOptions{.trainable = false});
  }
  td::Function step([&](const td::Tensor& x) {
    td::Tape tape;
    td::Tensor y = x;
    for (size_t i = 0; i < weights.size(); i += 2) y = td::relu(td::matmul(y, weights[i]) + weights[i + 1]);
    const td::Tensor loss = td::mean(td::square(y - x));
    const std::vector<td::Tensor> gradients = tape.gradients(loss, weights);
    for (size_t i = 0; i < weights.size(); ++i) {
      m[i].assign_add((gradients[i] - m[i]) * 0.1f);
      v[i].assign_add((td::square(gradients[i]) - v[i]) * 0.001f);
      weights[i].assign_sub(1e-4f * m[i] / (td::sqrt(v[i]) + 1e-7f));
    }
    return loss;
  });
  const td::Tensor x = random.normal({batch, width}, 0, 1);
  auto start = std::chrono::steady_clock::now();
  step(x);
  Cost cost{seconds_since(start), 1e9, weights.size()};
  for (int i = 0; i < 5; ++i) {
    start = std::chrono::steady_clock::now();
    step(x);
    cost.step_ms = std::min(cost.step_ms, seconds_since(start) * 1e3);
  }
  return cost;
}

void row(int64_t depth, int64_t width) {
  const Cost c = train(depth, width, 32);
  const double layer_us = c.step_ms * 1e3 / static_cast<double>(depth), first_ms = c.first_s * 1e3 / static_cast<double>(depth);
  std::printf("| %5lld | %5lld | %9zu | %10.3f | %12.3f | %9.3f | %13.1f |\n", static_cast<long long>(depth), static_cast<long long>(width),
              c.variables, c.first_s, first_ms, c.step_ms, layer_us);
  std::fflush(stdout);
}

}  // namespace

int main() {
  try {
    std::printf("| depth | width | variables | first step | a layer (ms) | step (ms) | a layer (us) |\n|---|---|---|---|---|---|---|\n");
    for (const int64_t depth : {10, 100, 1000}) row(depth, 64);
    for (const int64_t width : {32, 128, 512, 1024}) row(10, width);
    return 0;
  } catch (const td::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
