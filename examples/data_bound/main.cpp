// Training on data that is large beside the model: from arrays and from a pipeline, in little more memory than the data itself.
// An argument scales the size: 1 is 1,000,000 rows of 1000 numbers (4 GB), the default is 0.02.
#include <random>

#include "support.hpp"

namespace td = tandem;
namespace nn = tandem::nn;
using namespace examples;

namespace {

constexpr int64_t kColumns = 1000;

nn::Model yes_or_no() {
  const nn::Model model =
      nn::Sequential({nn::InputLayer(td::Dims{kColumns}), nn::Dense(128, {.activation = "relu"}), nn::Dense(1, {.activation = "sigmoid"})});
  model.compile({.optimizer = "adam", .loss = {"binary_crossentropy"}, .metrics = {"accuracy"}});
  return model;
}

void check_loss(const nn::History& history) {
  const double loss = history.values.at("loss")[0];
  expect(loss > 0.6 && loss < 0.8, "a loss near log 2: there is nothing to learn");
}

void train_on(int64_t rows) {
  std::vector<float> numbers(static_cast<size_t>(rows * kColumns));
  std::vector<int32_t> labels(static_cast<size_t>(rows));
  uint64_t state = 1;
  const auto next = [&] { return static_cast<uint32_t>((state = state * 6364136223846793005u + 1442695040888963407u) >> 40); };
  for (float& x : numbers) x = static_cast<float>(next()) * 0x1p-24f;
  for (int32_t& y : labels) y = static_cast<int32_t>(next() & 1);
  // The arrays are read where they lie.
  const td::Tensor x = td::Tensor::view(numbers.data(), td::DType::F32, {rows, kColumns});
  const td::Tensor y = td::Tensor::view(labels.data(), td::DType::I32, {rows});

  check_loss(yes_or_no().fit(x, y, {.batch_size = 32}));
  check_loss(yes_or_no().fit(td::data::Dataset::from_slices({x, y}).batch(32).prefetch()));

  const double data_mib = static_cast<double>(numbers.size() * sizeof(float) + labels.size() * sizeof(int32_t)) / (1 << 20);
  std::printf("data %.0f MiB, peak %.0f MiB\n", data_mib, peak_mib());
  expect(peak_mib() < data_mib + 200, "a peak below the data and 200 MiB");
}

// One op at a time, each result replacing the one before: two of them are in memory, not a hundred.
void eager_chain(int64_t rows) {
  td::Generator random(1);
  td::Tensor x = random.normal({rows, kColumns});
  for (int i = 0; i < 20; ++i) x = td::matmul(x, random.normal({kColumns, kColumns}, 0.0, 0.03));
  std::printf("twenty products of %s, peak %.0f MiB\n", x.type_str().c_str(), peak_mib());
  expect(x.shape()[0] == rows && td::all(td::is_finite(x)).item<bool>(), "finite numbers");
}

}  // namespace

int main(int argc, char** argv) {
  return run([&] {
    const double scale = argc > 1 ? std::atof(argv[1]) : 0.02;
    const auto scaled = [&](double n) { return std::max<int64_t>(64, static_cast<int64_t>(n * scale)); };
    train_on(scaled(1'000'000));
    eager_chain(scaled(50'000));
  });
}
