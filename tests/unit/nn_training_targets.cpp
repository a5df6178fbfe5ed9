// What a fit takes: targets that are classes, weights of examples, data for each input and output, options that belong to it.
#include <limits>

#include <tandem/nn/layers.hpp>
#include <tandem/nn/training.hpp>
#include <tandem/ops.hpp>

#include "nn/training/training.hpp"
#include "nn_training_support.hpp"

namespace tandem::nn {
namespace {

// --- class numbers
// -------------------------------------------------------------------------------------------------------------------------

constexpr int kRows = 20;

Tensor inputs() { return Tensor::arange(0, kRows * 4).reshape({kRows, 4}).cast(DType::F32) * 0.02f - 0.5f; }

// A model with state of every kind: weights, moving averages, random numbers, the optimizer's.
Model classifier(int64_t classes, const Loss& loss, const std::vector<Metric>& metrics = {}) {
  set_random_seed(5);
  const Model m = Sequential({InputLayer(Dims{4}), Dense(6), BatchNormalization(), Dropout(0.2, {.seed = 1}),
                              Dense(classes, {.activation = "softmax", .name = "classes"})},
                             "classifier");
  m.compile({.optimizer = Adam(0.01), .loss = {loss}, .metrics = metrics});
  return m;
}

std::vector<int32_t> labels(int32_t classes, std::pair<size_t, int32_t> other = {kRows, 0}) {
  std::vector<int32_t> all;
  for (size_t i = 0; i < kRows; ++i) all.push_back(i == other.first ? other.second : static_cast<int32_t>(i) % classes);
  return all;
}
std::vector<float> state(const Model& m) {
  std::vector<float> all;
  for (const auto& list : {m.weights(), m.optimizer().variables()})
    for (const Variable& v : list)
      for (const float f : v.value().to_vector<float>()) all.push_back(f);
  return all;
}

const FitOptions kQuiet{.batch_size = 8, .shuffle = false, .verbose = 0};

TEST(Targets, AClassThatThereIsNotIsNamed) {
  const Model m = classifier(3, "sparse_categorical_crossentropy", {"accuracy"});
  const auto error = [&](int32_t label, bool shuffle = false) {
    return message([&] {
      FitOptions o = kQuiet;
      o.shuffle = shuffle;
      m.fit(inputs(), Tensor::from(labels(3, {13, label})), o);
    });
  };
  EXPECT_EQ(error(3), "fit: y is class 3 in row 13, output 'classes' has 3 classes, 0 to 2\n  hint: classes are counted from 0");
  EXPECT_EQ(error(3, true), error(3));  // the row of the array, wherever it came in the epoch
  EXPECT_EQ(error(77),
            "fit: y is class 77 in row 13, output 'classes' has 3 classes, 0 to 2\n  hint: the last layer needs a unit for each class");
  EXPECT_EQ(error(-1),
            "fit: y is class -1 in row 13, output 'classes' has 3 classes, 0 to 2"
            "\n  hint: losses::SparseCategoricalCrossentropy({.ignore_class = -1}) leaves such examples out");
  EXPECT_EQ(message([&] { m.evaluate(inputs(), Tensor::from(labels(3, {0, 5})), kQuiet); }),
            "evaluate: y is class 5 in row 0, output 'classes' has 3 classes, 0 to 2\n  hint: the last layer needs a unit for each class");
  EXPECT_EQ(message([&] { m.train_on_batch({inputs()}, {Tensor::from(labels(3, {19, 4}))}); }),
            "fit: y is class 4 in row 19, output 'classes' has 3 classes, 0 to 2\n  hint: the last layer needs a unit for each class");
  const auto batches = data::Dataset::from_slices({inputs(), Tensor::from(labels(3, {13, 9}))}).batch(8);
  EXPECT_EQ(message([&] { m.fit(batches, {.verbose = 0}); }),
            "fit: component 1 is class 9 in row 5 of batch 1, output 'classes' has 3 classes, 0 to 2"
            "\n  hint: the last layer needs a unit for each class");
  EXPECT_EQ(message([&] {
              FitOptions o = kQuiet;
              o.validation_split = 0.25;
              m.fit(inputs(), Tensor::from(labels(3, {16, 8})), o);
            }),
            "evaluate: y is class 8 in row 16, output 'classes' has 3 classes, 0 to 2\n  hint: the last layer needs a unit for each class");
}

TEST(Targets, LabelsMayBeOfAnyTypeButMustBeWhole) {
  const Model m = classifier(3, "sparse_categorical_crossentropy");
  std::vector<float> all;
  for (const int32_t c : labels(3)) all.push_back(static_cast<float>(c));
  const Tensor good = Tensor::from(all, {kRows, 1});
  const auto with = [&](float label) {
    all[11] = label;
    return Tensor::from(all, {kRows, 1});
  };
  EXPECT_EQ(message([&] { m.fit(inputs(), good, kQuiet); }), "nothing was thrown");
  const std::string rest = " in row 11, output 'classes' has 3 classes, 0 to 2\n  hint: classes are whole numbers";
  EXPECT_EQ(message([&] { m.fit(inputs(), with(std::numeric_limits<float>::quiet_NaN()), kQuiet); }), "fit: y is NaN" + rest);
  EXPECT_EQ(message([&] { m.fit(inputs(), with(1.5f), kQuiet); }), "fit: y is 1.5" + rest);
  for (const DType dtype : {DType::U8, DType::I64, DType::F16}) {
    EXPECT_EQ(message([&] { m.fit(inputs(), good.cast(dtype), kQuiet); }), "nothing was thrown") << name(dtype);
    EXPECT_EQ(message([&] { m.fit(inputs(), with(7).cast(dtype), kQuiet); }).substr(0, 28), "fit: y is class 7 in row 11,") << name(dtype);
  }
  const Tensor wide = concatenate({good, with(9)}, 1);  // rows that are a part of wider ones
  EXPECT_EQ(message([&] { m.fit(inputs(), wide(Slice(), Slice(0, 1)), kQuiet); }), "nothing was thrown");
  EXPECT_EQ(message([&] { m.fit(inputs(), wide(Slice(), Slice(1, 2)), kQuiet); }).substr(0, 28), "fit: y is class 9 in row 11,");
}

// A batch that is refused leaves weights, averages, the optimizer and its count of steps as they were, and the model is usable.
TEST(Targets, ARefusedBatchChangesNothing) {
  const Model m = classifier(3, "sparse_categorical_crossentropy", {"accuracy"});
  m.fit(inputs(), Tensor::from(labels(3)), kQuiet);
  const std::vector<float> before = state(m);
  EXPECT_NE(message([&] { m.fit(inputs(), Tensor::from(labels(3, {2, 3})), kQuiet); }), "nothing was thrown");
  EXPECT_EQ(state(m), before);
  EXPECT_EQ(message([&] { m.fit(inputs(), Tensor::from(labels(3)), kQuiet); }), "nothing was thrown");
  EXPECT_NE(state(m), before);
}

TEST(Targets, AnIgnoredClassIsNoMistakeForTheMetricsBeside) {
  const Model m = classifier(3, losses::SparseCategoricalCrossentropy({.ignore_class = -1}), {"accuracy"});
  EXPECT_EQ(message([&] { m.fit(inputs(), Tensor::from(labels(3, {13, -1})), kQuiet); }), "nothing was thrown");
  EXPECT_EQ(message([&] { m.fit(inputs(), Tensor::from(labels(3, {13, -2})), kQuiet); }).substr(0, 29), "fit: y is class -2 in row 13,");
}

TEST(Targets, OfSequencesAndOfYesOrNo) {
  const Model steps = Sequential({InputLayer(Dims{5, 4}), Dense(3, {.activation = "softmax", .name = "tags"})});
  steps.compile({.loss = {"sparse_categorical_crossentropy"}});
  std::vector<int32_t> tags(10, 1);
  tags[8] = 3;
  EXPECT_EQ(message([&] { steps.fit(Tensor::ones({2, 5, 4}), Tensor::from(tags, {2, 5}), kQuiet); }),
            "fit: y is class 3 in row 1 at [3], output 'tags' has 3 classes, 0 to 2\n  hint: classes are counted from 0");

  const Model yes = Sequential({InputLayer(Dims{4}), Dense(1, {.activation = "sigmoid", .name = "yes"})});
  yes.compile({.loss = {"binary_crossentropy"}});
  EXPECT_EQ(message([&] { yes.fit(inputs(), Tensor::from(labels(2)), kQuiet); }), "nothing was thrown");
  EXPECT_EQ(message([&] { yes.fit(inputs(), Tensor::from(labels(2, {3, 2})), kQuiet); }),
            "fit: y is class 2 in row 3, output 'yes' has 2 classes, 0 to 1"
            "\n  hint: more than two classes go with sparse_categorical_crossentropy and a unit for each in the last layer");
  EXPECT_EQ(message([&] { yes.fit(inputs(), Tensor::from(labels(2)).cast(DType::F32) * 0.5f, kQuiet); }), "nothing was thrown");
}

TEST(Targets, AMetricOfClassesBesideALossOfOthers) {
  const Loss own("own", [](const Tensor&, const Tensor& p) { return mean(square(p), -1); });
  const Model m = classifier(3, own, {"sparse_categorical_accuracy"});
  EXPECT_EQ(message([&] { m.fit(inputs(), Tensor::from(labels(3, {13, 3})), kQuiet); }).substr(0, 28), "fit: y is class 3 in row 13,");
}

// The loop looks, so the step itself does not: it has the kernels that it would have without a check.
TEST(Targets, AStepHasNoCheckInside) {
  const Model m = classifier(3, "sparse_categorical_crossentropy", {"accuracy"});
  m.fit(inputs(), Tensor::from(labels(3)), kQuiet);
  const Dim b = Dim::symbol("b");
  const Training::Compiled& step =
      compiled_training(m).step(m, nn::Run::Kind::Train, {Spec{DType::F32, {b, 4}}, Spec{DType::I32, {b}}}, {1, 1});
  const std::string graph = step.function.graph_str();
  EXPECT_NE(graph.find("sparse_categorical_crossentropy"), std::string::npos);
  EXPECT_EQ(graph.find("check_classes"), std::string::npos);
}

// Outside of fit the check is a part of what is computed, also inside a formula of one's own that fit knows nothing about.
TEST(Targets, OutsideOfFit) {
  const Tensor p = Tensor::ones({2, 3}) / 3, bad = Tensor::of({1, 3});
  const std::string rest = ": the target at [1] is class 3, there are 3 classes, 0 to 2";
  const auto error = [](const std::function<void()>& f) { return first_line(message(f)); };
  EXPECT_EQ(error([&] { Loss("sparse_categorical_crossentropy")(bad, p); }), "loss sparse_categorical_crossentropy" + rest);
  for (const char* name : {"sparse_categorical_accuracy", "sparse_top_k_categorical_accuracy", "sparse_categorical_crossentropy"})
    EXPECT_EQ(error([&] { Metric(name).update(bad, p); }), std::string("metric ") + name + rest);
  EXPECT_EQ(error([&] { metrics::MeanIoU(3).update(bad, Tensor::of({1, 1})); }), "metric MeanIoU" + rest);
  EXPECT_EQ(error([&] { metrics::MeanIoU(3, {.ignore_class = 3}).update(bad, Tensor::of({1, 1})); }), "nothing was thrown");
  EXPECT_EQ(error([&] { Loss("binary_crossentropy")(Tensor::of({{0}, {2}}), Tensor::of({{0.5f}, {0.5f}})); }),
            "loss binary_crossentropy: the target at [1,0] is class 2, there are 2 classes, 0 to 1");
  EXPECT_EQ(error([&] { losses::CTC()(Tensor::of({{1, 4}}), Tensor::ones({1, 5, 4})); }),
            "loss ctc: the target at [0,1] is class 4, there are 4 classes, 0 to 3");
  const Function step([](Tensor y, Tensor x) { return Loss("sparse_categorical_crossentropy")(y, x); });
  EXPECT_EQ(error([&] { step(bad, p); }), "loss sparse_categorical_crossentropy" + rest);

  const Loss own("own", [](const Tensor& y, const Tensor& x) { return Loss("sparse_categorical_crossentropy").values(y, x); });
  EXPECT_EQ(error([&] { classifier(3, own).fit(inputs(), Tensor::from(labels(3, {1, 3})), kQuiet); }),
            "loss sparse_categorical_crossentropy" + rest);
}

// --- weights of examples
// ---------------------------------------------------------------------------------------------------------------------

Model two_outputs(const Config& run) {
  const Symbol input = Input({6});
  const Symbol hidden = Dense(5, {.activation = "tanh"})(input);
  const Model m({input}, {Dense(1, {.name = "left"})(hidden), Dense(3, {.activation = "softmax", .name = "right"})(hidden)});
  const std::vector<Variable> weights = m.weights();
  for (size_t i = 0; i < weights.size(); ++i) weights[i].assign(tensor(run["start"][i]));
  m.compile({.optimizer = Adam(0.01),
             .loss = {"mse", "sparse_categorical_crossentropy"},
             .weighted_metrics = {Metric("mae").on("left"), Metric("accuracy").on("right")},
             .loss_weights = {1.0, 0.5}});
  return m;
}

// However they are given, by position, by name or as a dataset, they are what Keras makes of them.
TEST(ExampleWeights, OfSeveralOutputsAreKerass) {
  const Config& all = stored()["weighted_outputs"];
  const Tensor x = tensor(all["x"]), left = tensor(all["left"]), right = tensor(all["right"]);
  const Tensor a = tensor(all["weight"]), b = tensor(all["other_weight"]);
  const FitOptions plain{.batch_size = 16, .epochs = 3, .shuffle = false, .verbose = 0};
  const auto expect = [&](const char* name, const std::function<History(const Model&)>& fit) {
    SCOPED_TRACE(name);
    const Config& run = all["runs"][name];
    const Model m = two_outputs(run);
    const History h = fit(m);
    EXPECT_EQ(h.values.size(), run["history"].size());
    for (const auto& [key, values] : run["history"].items())
      for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(h[key][i], values[i].get<double>(), 2e-5) << key << " of epoch " << i;
    const std::vector<Variable> weights = m.weights();
    for (size_t i = 0; i < weights.size(); ++i) expect_near(weights[i].value(), run["end"][i], 3e-5, "weight " + std::to_string(i));
  };
  const auto with_samples = [&](const SampleWeight& w) {
    FitOptions o = plain;
    o.sample_weight = w;
    return [&, o](const Model& m) { return m.fit({x}, {left, right}, o); };
  };
  const auto with_classes = [&](const ClassWeight& w) {
    FitOptions o = plain;
    o.class_weight = w;
    return [&, o](const Model& m) { return m.fit({x}, {left, right}, o); };
  };
  const auto with_elements = [&](const std::vector<Tensor>& arrays) {
    FitOptions o = plain;
    o.batch_size = {};
    return [o, batches = data::Dataset::from_slices(arrays).batch(16)](const Model& m) { return m.fit(batches, o); };
  };
  expect("one for all", with_samples(a));
  expect("one for all", with_elements({x, left, right, a}));
  expect("one each", with_samples(std::vector{a, b}));
  expect("one each", with_samples({{"right", b}, {"left", a}}));
  expect("one each", with_elements({x, left, right, a, b}));
  expect("of the second", with_samples({{"right", b}}));
  expect("of the second", with_samples(std::vector{Tensor(), b}));
  expect("classes of the second", with_classes({{"right", {{0, 0.5}, {2, 3.0}}}}));
  expect("classes of the second", with_classes(std::vector<WeightOfClass>{{}, {{0, 0.5}, {2, 3.0}}}));
}

TEST(ExampleWeights, Mistakes) {
  const Config& all = stored()["weighted_outputs"];
  const Tensor x = tensor(all["x"]), left = tensor(all["left"]), right = tensor(all["right"]), w = tensor(all["weight"]);
  const Model m = two_outputs(all["runs"]["one for all"]);
  const auto error = [&](const SampleWeight& samples, const ClassWeight& classes) {
    FitOptions o{.verbose = 0};
    o.sample_weight = samples;
    o.class_weight = classes;
    return message([&] { m.fit({x}, {left, right}, o); });
  };
  EXPECT_EQ(error({{"middle", w}}, {}), "fit: sample_weight for 'middle', the outputs are left, right");
  EXPECT_EQ(error(std::vector{w}, {}),
            "fit: sample_weight for 1 outputs, the model has 2: left, right"
            "\n  hint: one an output, in this order or by name: {{\"left\", …}}");
  EXPECT_EQ(error({}, {{0, 2.0}}),
            "fit: class_weight for 1 outputs, the model has 2: left, right"
            "\n  hint: one an output, in this order or by name: {{\"left\", …}}");
  EXPECT_EQ(error(w, {{"right", {{0, 2.0}}}}), "fit: class_weight and sample_weight cannot both be given");
  EXPECT_EQ(error({{"left", w[Slice(0, 3)]}}, {}), "fit: x has 40 rows, sample_weight of 'left' has 3");
  EXPECT_EQ(error({}, {{"right", {{-2, 2.0}}}}), "fit: class_weight of class -2, classes are in [0, 1000000]");
}

// --- options and data that would be ignored
// ----------------------------------------------------------------------------------------------------

TEST(FitOptions, WhatWouldBeIgnoredIsRefused) {
  const Model m = classifier(3, "sparse_categorical_crossentropy");
  const Tensor x = inputs(), y = Tensor::from(labels(3));
  const data::Dataset batches = data::Dataset::from_slices({x, y}).batch(8), only_x = data::Dataset::from_slices({x}).batch(8);
  const std::string sized =
      ": batch_size goes with arrays, the elements of a dataset are batches\n  hint: dataset.batch(…) says how large they are";
  EXPECT_EQ(message([&] { m.fit(batches, {.batch_size = 4, .verbose = 0}); }), "fit" + sized);
  EXPECT_EQ(message([&] { m.evaluate(batches, {.batch_size = 4, .verbose = 0}); }), "evaluate" + sized);
  EXPECT_EQ(message([&] { m.predict(only_x, {.batch_size = 4, .verbose = 0}); }), "predict" + sized);
  EXPECT_EQ(message([&] { m.fit(x, y, {.batch_size = 4, .validation_data = batches, .verbose = 0}); }), "nothing was thrown");
  EXPECT_EQ(message([&] { m.evaluate(x, y, {.validation_split = 0.5, .verbose = 0}); }), "evaluate: validation_split is an option of fit");
  EXPECT_EQ(message([&] { m.evaluate(x, y, {.epochs = 2, .verbose = 0}); }), "evaluate: epochs is an option of fit");
  EXPECT_EQ(message([&] { m.predict(x, {.sample_weight = x, .verbose = 0}); }), "predict: sample_weight is an option of fit and evaluate");
}

TEST(FitOptions, AsManyInputsAndOutputsAsTheModelHas) {
  const Symbol input = Input({4});
  const Model two({input}, {Dense(1, {.name = "a"})(input), Dense(1, {.name = "b"})(input)}, "two");
  two.compile({.loss = {"mse"}});
  const Tensor x = inputs(), y = Tensor::ones({kRows, 1});
  const FitOptions quiet{.verbose = 0};
  EXPECT_EQ(message([&] { two.predict(x, quiet); }),
            "predict: model 'two' gives 2 outputs\n  hint: predict(std::vector{x}) gives all of them");
  EXPECT_EQ(two.predict(std::vector{x}, quiet).size(), 2u);
  const std::string few =
      "model 'two' has 2 outputs, there are 1 targets\n  hint: a list with the targets of each output, fit({x}, {y, z})";
  EXPECT_EQ(message([&] { two.fit(x, y, quiet); }), few);
  two.fit({x}, {y, y}, quiet);
  EXPECT_EQ(message([&] { two.evaluate(x, y, quiet); }), few);  // also once the steps are made
  EXPECT_EQ(message([&] { two.fit({x, x}, {y, y}, quiet); }), "fit: model 'two' takes 1 inputs, there are 2");
  EXPECT_EQ(message([&] { two.predict(std::vector{x, x}, quiet); }), "predict: model 'two' takes 1 inputs, there are 2");
}

}  // namespace
}  // namespace tandem::nn
