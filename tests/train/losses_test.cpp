// The benchmark's models learn as Keras's do: the losses of the first steps, from the same weights and data, are the same. Keras's were
// stored by tools/bench/check.py --store.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "models/training.hpp"
#include "support/source_folder.hpp"

namespace bench {
namespace {

std::map<std::string, std::vector<double>> keras_losses() {
  std::ifstream file(tandem::test::source_file("tests/data/keras_losses.txt"));
  std::map<std::string, std::vector<double>> losses;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string work;
    words >> work;
    for (double loss; words >> loss;) losses[work].push_back(loss);
  }
  return losses;
}

class Losses : public testing::TestWithParam<std::string> {};

TEST_P(Losses, AreKerass) {
  const std::vector<double> expected = keras_losses()[GetParam()];
  ASSERT_EQ(expected.size(), 10u);
  Weights weights(0);
  const Work work = make_work(GetParam(), Scale::Tiny, weights);
  weights.set_by_formula();
  const auto steps = static_cast<int64_t>(expected.size());
  const Examples examples(work, steps, Examples::Source::Formula);
  const Trainer trainer(work, weights, {.dropout = false});
  double sum = 0;
  for (int64_t i = 0; i < steps; ++i) {
    const auto loss = trainer.step(examples.x(i), examples.y(i)).item<double>();
    const double keras = expected[static_cast<size_t>(i)];
    EXPECT_NEAR(loss, keras, 1e-4 * std::abs(keras)) << "step " << i;
    sum += loss;
  }
  EXPECT_NEAR(trainer.take_metrics().loss, sum / static_cast<double>(steps), 1e-5);
}

// Half the digits in products and between them, and float32 for the rest: the losses stay close to Keras's in float32.
TEST_P(Losses, StayCloseInMixedPrecision) {
  const std::vector<double> expected = keras_losses()[GetParam()];
  for (const td::Precision precision : {td::Precision::MixedFloat16, td::Precision::MixedBFloat16}) {
    Weights weights(0);
    const Work work = make_work(GetParam(), Scale::Tiny, weights);
    weights.set_by_formula();
    const auto steps = static_cast<int64_t>(expected.size());
    const Examples examples(work, steps, Examples::Source::Formula);
    const Trainer trainer(work, weights, {.dropout = false, .precision = precision});
    for (int64_t i = 0; i < steps; ++i) {
      const double loss = trainer.step(examples.x(i), examples.y(i)).item<double>(), keras = expected[static_cast<size_t>(i)];
      EXPECT_NEAR(loss, keras, 0.02 * std::abs(keras)) << td::name(precision) << ", step " << i;
    }
  }
}

TEST(Weights, OrthogonalRowsAreOrthonormal) {
  Weights weights(7);
  const td::Variable w = weights.trainable("w", {3, 12}, Initial::Orthogonal);
  const std::vector<float> products = td::matmul(w, w, false, true).to_vector<float>();
  for (size_t i = 0; i < products.size(); ++i) EXPECT_NEAR(products[i], i % 4 == 0 ? 1 : 0, 1e-5) << i;
}

TEST(Trainer, DropsOutUnlessToldNotTo) {
  const auto first_loss = [](bool dropout) {
    Weights weights(0);
    const Work work = make_work("cnn", Scale::Tiny, weights);
    const Examples examples(work, 1, Examples::Source::Random);
    const Trainer trainer(work, weights, {.dropout = dropout});
    return trainer.step(examples.x(0), examples.y(0)).item<float>();
  };
  EXPECT_EQ(first_loss(true), first_loss(true));
  EXPECT_NE(first_loss(true), first_loss(false));
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const WorkEntry& w : works()) list.emplace_back(w.name);
  return list;
}
INSTANTIATE_TEST_SUITE_P(Keras, Losses, testing::ValuesIn(names()), [](const auto& i) { return i.param; });

}  // namespace
}  // namespace bench
