// Metrics have Keras's numbers, names and mistakes.
#include <tandem/nn/metrics.hpp>

#include <tandem/function.hpp>
#include <tandem/ops.hpp>

#include "nn_training_support.hpp"

namespace tandem::nn {
namespace {

// Batch by batch in one compiled function whose batch is a symbol, as a training step has it.
Tensor gathered(const Metric& made, const Config& batches, bool weighted) {
  const auto symbolic = [](const Config& c) {
    const Tensor t = tensor(c);
    Dims dims = t.dims();
    dims[0] = Dim::symbol("b");
    return Spec{t.dtype(), dims};
  };
  const Spec y = symbolic(batches[0]["y_true"]), p = symbolic(batches[0]["y_pred"]), w = symbolic(batches[0]["weight"]);
  const Metric metric = made.resolved(y.dims, p.dims);
  const Function update([&](Tensor a, Tensor b, Tensor c) { metric.update(a, b, weighted ? c : Tensor()); }, {y, p, w});
  for (const Config& batch : batches) update(tensor(batch["y_true"]), tensor(batch["y_pred"]), tensor(batch["weight"]));
  return metric.result();
}

TEST(Metrics, AreKerass) {
  ASSERT_GT(stored()["metrics"].size(), 40u);
  for (const Config& c : stored()["metrics"]) {
    const std::string name = c["class"].get<std::string>() + c["config"].dump();
    expect_near(gathered(Metric::from_config(c["class"], c["config"]), c["batches"], false), c["result"], 1e-5, name);
    expect_near(gathered(Metric::from_config(c["class"], c["config"]), c["batches"], true), c["weighted"], 1e-5, name + " weighted");
  }
}

TEST(Metrics, StartAnew) {
  const Metric m = Metric("mse").resolved({2, 1}, {2, 1});
  m.update(Tensor::of({{0.f}, {0.f}}), Tensor::of({{1.f}, {3.f}}));
  EXPECT_DOUBLE_EQ(m.value(), 5.0);
  m.reset();
  EXPECT_DOUBLE_EQ(m.value(), 0.0);
  m.update(Tensor::of({{0.f}, {0.f}}), Tensor::of({{1.f}, {1.f}}));
  EXPECT_DOUBLE_EQ(m.value(), 1.0);
}

TEST(Metrics, ByName) {
  EXPECT_EQ(Metric("accuracy").resolved({8}, {8, 1}).class_name(), "BinaryAccuracy");
  EXPECT_EQ(Metric("acc").resolved({8}, {8, 5}).class_name(), "SparseCategoricalAccuracy");
  EXPECT_EQ(Metric("accuracy").resolved({8, 5}, {8, 5}).class_name(), "CategoricalAccuracy");
  EXPECT_EQ(Metric("acc").resolved({8}, {8, 5}).name(), "acc");
  EXPECT_EQ(Metric("top_k_categorical_accuracy").class_name(), "TopKCategoricalAccuracy");
  EXPECT_EQ(Metric("auc").serialize(), "auc");
  const Metric made = metrics::Precision({.thresholds = {0.7}, .name = "p"});
  EXPECT_EQ(Metric::deserialize(made.serialize()).config(), made.config());
  EXPECT_EQ(made.name(), "p");
  EXPECT_EQ(Metric("mean_absolute_error").better(), MetricBody::Better::Lower);
  EXPECT_EQ(metrics::AUC().better(), MetricBody::Better::Higher);
}

TEST(Metrics, Mistakes) {
  EXPECT_EQ(message([] { Metric("acuracy"); }), "unknown metric 'acuracy'\n  hint: did you mean accuracy or Accuracy?");
  EXPECT_EQ(message([] { Metric("accuracy").result(); }),
            "metric accuracy: what it means depends on the shapes of targets and predictions\n  hint: resolved(y_true, y_pred)");
  EXPECT_EQ(message([] { metrics::Precision({.thresholds = {1.5}}); }), "metric: thresholds must be in [0, 1], got 1.5");
  EXPECT_EQ(message([] { Metric::from_config("BinaryAccuracy", {{"threshold", "x"}}).update(Tensor::of({1.f}), Tensor::of({1.f})); }),
            R"(metric binary_accuracy: cannot be computed with {"threshold":"x"})");
  EXPECT_EQ(message([] { metrics::MeanIoU(0); }), "metric MeanIoU: num_classes is 0, it must be a positive number");
  EXPECT_EQ(message([] { metrics::F1Score().resolved({8}, {8}); }),
            "metric F1Score: targets and predictions must be [batch, n], they are [8] and [8]");
  const Tensor classes = Tensor::of({1, 2}), rows = Tensor::ones({2, 3});
  EXPECT_EQ(
      message([&] { Metric("sparse_categorical_accuracy").update(rows, rows); }),
      "metric sparse_categorical_accuracy: targets are float32[2,3], predictions are float32[2,3]: there must be one class number for "
      "each row of predictions\n  hint: one-hot targets go with the metrics that are not sparse");
  EXPECT_EQ(message([&] { Metric("categorical_accuracy").update(classes, rows); }),
            "metric categorical_accuracy: targets are int32[2], predictions are float32[2,3]"
            "\n  hint: class numbers go with the sparse ones, such as sparse_categorical_crossentropy");
  EXPECT_EQ(message([] { metrics::AUC({.curve = "XY"}); }), R"(metric AUC: curve "XY" is none of ["ROC","PR"])");
}

}  // namespace
}  // namespace tandem::nn
