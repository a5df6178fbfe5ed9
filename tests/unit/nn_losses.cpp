// Losses have Keras's numbers, names and mistakes.
#include <tandem/nn/losses.hpp>

#include <tandem/ops.hpp>
#include <tandem/tape.hpp>
#include <tandem/variable.hpp>

#include "nn_training_support.hpp"

namespace tandem::nn {
namespace {

TEST(Losses, AreKerass) {
  ASSERT_GT(stored()["losses"].size(), 30u);
  for (const Config& c : stored()["losses"]) {
    const std::string name = c["class"].get<std::string>() + c["config"].dump();
    const Tensor y = tensor(c["y_true"]), p = tensor(c["y_pred"]), weight = tensor(c["weight"]);
    for (const char* reduction : {"sum_over_batch_size", "sum", "none", "mean_with_sample_weight"}) {
      Config config = c["config"];
      config["reduction"] = reduction;
      const Loss loss = Loss::from_config(c["class"], config);
      expect_near(loss(y, p), c[reduction], 2e-6, name + " " + reduction);
      const std::string weighted = std::string("weighted_") + reduction;
      if (c.contains(weighted)) expect_near(loss(y, p, weight), c[weighted], 2e-6, name + " " + weighted);
    }
  }
}

TEST(Losses, ByName) {
  EXPECT_EQ(Loss("mse").class_name(), "MeanSquaredError");
  EXPECT_EQ(Loss("mse").serialize(), "mse");
  EXPECT_EQ(Loss("MeanSquaredError").name(), "mean_squared_error");
  EXPECT_EQ(losses::Huber(2.0).config(), Config({{"name", "huber_loss"}, {"reduction", "sum_over_batch_size"}, {"delta", 2.0}}));
  const Loss made = losses::SparseCategoricalCrossentropy({.from_logits = true, .ignore_class = 3});
  EXPECT_EQ(Loss::deserialize(made.serialize()).config(), made.config());
  EXPECT_EQ(Loss("crossentropy").resolved({8}, {8, 1}).class_name(), "BinaryCrossentropy");
  EXPECT_EQ(Loss("crossentropy").resolved({8}, {8, 5}).class_name(), "SparseCategoricalCrossentropy");
  EXPECT_EQ(Loss("crossentropy").resolved({8, 5}, {8, 5}).class_name(), "CategoricalCrossentropy");
}

TEST(Losses, Mistakes) {
  EXPECT_EQ(message([] { Loss("mean_squared_eror"); }),
            "unknown loss 'mean_squared_eror'\n  hint: did you mean mean_squared_error or MeanSquaredError?");
  const Tensor classes = Tensor::of({1, 2}), rows = Tensor::ones({2, 3});
  EXPECT_EQ(message([&] { Loss("categorical_crossentropy")(classes, rows); }),
            "loss categorical_crossentropy: targets are int32[2], predictions are float32[2,3]"
            "\n  hint: class numbers go with the sparse ones, such as sparse_categorical_crossentropy");
  EXPECT_EQ(
      message([&] { Loss("sparse_categorical_crossentropy")(rows, rows); }),
      "loss sparse_categorical_crossentropy: targets are float32[2,3], predictions are float32[2,3]: there must be one class number for "
      "each row of predictions\n  hint: one-hot targets go with categorical_crossentropy");
  EXPECT_EQ(message([] { Loss("sparse_crossentropy"); }),
            "unknown loss 'sparse_crossentropy'\n  hint: did you mean sparse_categorical_crossentropy, SparseCategoricalCrossentropy "
            "or crossentropy?");
  EXPECT_EQ(message([] { Loss::from_config("Huber", {{"delt", 1.0}}); }), "loss Huber: cannot be made with delt = 1.0");
  EXPECT_EQ(message([] { Loss::from_config("crossentropy", {}); }),
            "loss crossentropy: has no config\n  hint: ask for it by its name alone");
  EXPECT_EQ(message([] { Loss::from_config("Huber", {{"reduction", "max"}}); }),
            R"(loss: reduction "max" is none of "sum_over_batch_size", "mean", "sum", "none", "mean_with_sample_weight")");
}

// Each hint is for the mistake that was made.
TEST(Losses, HintsForShapes) {
  const auto error = [](const Loss& loss, const Tensor& y, const Tensor& p) {
    const std::string text = message([&] { loss(y, p); });
    return text.substr(std::min(text.size(), text.find("\n  hint: ") + 9));
  };
  const Tensor wide = Tensor::ones({2, 3}), narrow = Tensor::ones({2, 2}), steps = Tensor::ones({2, 4, 3});
  const Tensor classes = Tensor::of({1, 2}), column = Tensor::of({{1}, {2}});
  const std::string units = "to have 3 predictions an example, the last layer needs 3 units";
  const std::string sparse = "class numbers go with the sparse ones, such as sparse_categorical_crossentropy";
  EXPECT_EQ(error("mse", wide, narrow), units);
  EXPECT_EQ(error("categorical_crossentropy", wide, narrow), units);
  EXPECT_EQ(error("mae", classes.cast(DType::F32), steps),
            "each prediction needs a target of its own; the targets have 1 axes, the predictions 3");
  EXPECT_EQ(error("mse", classes, wide), sparse);
  EXPECT_EQ(error("binary_crossentropy", classes, wide), sparse);
  EXPECT_EQ(error("categorical_crossentropy", column, wide), sparse);
  EXPECT_EQ(error("kl_divergence", classes.cast(DType::F32), wide), sparse);
  EXPECT_EQ(error("sparse_categorical_crossentropy", wide, wide), "one-hot targets go with categorical_crossentropy");
}

// Thirty steps down their gradients end where Keras 3.15 ends, also where labels are short, repeated or missing, and where an example has
// no pair.
TEST(Losses, OfSequencesLeadDown) {
  const auto descends = [](const Loss& loss, const Tensor& y, const Tensor& start, double rate, double expected) {
    const Variable x(start);
    double last = 0;
    for (int i = 0; i < 30; ++i) {
      Tape tape;
      const Tensor rows = start.rank() == 2 ? normalize(x.value(), -1) : x.value();
      const Tensor value = loss(y, rows);
      x.assign_sub(tape.gradient(value, x) * rate);
      last = value.item<double>();
    }
    EXPECT_NEAR(last, expected, 1e-4) << loss.name();
  };
  descends(losses::CTC(), Tensor::of({{1, 2, 2}, {3, 0, 0}, {0, 0, 0}}), tandem::sin(Tensor::arange(72.f)).reshape({3, 6, 4}), 2.0,
           0.270114);
  descends(losses::Circle({.gamma = 4}), Tensor::of({0, 1, 0, 1, 2}), tandem::sin(Tensor::arange(15.f)).reshape({5, 3}), 0.2, 0.898456);
}

// A 0 between labels stands for no class; what Keras gives for it was taken from Keras.
TEST(Losses, CtcWithAZeroBetweenLabels) {
  const Tensor logits = (Tensor::arange(24.f).reshape({2, 4, 3}) - 12) / 100;
  EXPECT_NEAR(losses::CTC()(Tensor::of({{1, 2, 1, 0}, {1, 2, 0, 2}}), logits).item<float>(), 2.448645, 1e-5);
}

// A masked value counts as if it were not there.
TEST(Losses, Masks) {
  const Tensor y = Tensor::of({{0.f}, {0.f}, {0.f}}), p = Tensor::of({{1.f}, {2.f}, {5.f}});
  EXPECT_FLOAT_EQ(Loss("mse")(y, p, {}, Tensor::from(std::vector<bool>{true, true, false}, {3})).item<float>(), 2.5f);
}

TEST(Losses, OwnFormula) {
  const Loss cubic("cubic", [](const Tensor& y, const Tensor& p) { return mean(power(absolute(y - p), 3), -1); });
  EXPECT_FLOAT_EQ(cubic(Tensor::of({{0.f}, {0.f}}), Tensor::of({{1.f}, {2.f}})).item<float>(), 4.5f);
  EXPECT_EQ(message([&] { cubic.serialize(); }),
            "loss cubic: is a formula of the program's own, which a file cannot keep"
            "\n  hint: register_loss(\"cubic\", …) says how it is made again");
}

}  // namespace
}  // namespace tandem::nn
