// Steps of one's own inside fit, logs by name, and where the errors of a training point to.
#include <tandem/nn/step.hpp>

#include <fstream>

#include <tandem/nn/layers.hpp>
#include <tandem/nn/training.hpp>
#include <tandem/ops.hpp>
#include <tandem/train.hpp>

#include "nn_training_support.hpp"
#include "temporary_folder.hpp"

namespace tandem::nn {
namespace {

struct Data {
  Tensor x = Tensor::arange(0, 60 * 6).reshape({60, 6}).cast(DType::F32) * 0.01f - 1.8f;
  Tensor y = sum(x, 1, true) * 0.3f;
};

Model regression(const CompileOptions& options) {
  set_random_seed(3);
  const Model m = Sequential({InputLayer(Dims{6}), Dense(8, {.activation = "relu", .kernel_regularizer = "l2"}), Dense(1)}, "regression");
  m.compile(options);
  return m;
}
CompileOptions built_in() { return {.optimizer = Adam(0.01), .loss = {"mse"}, .metrics = {"mae"}}; }
CompileOptions with_step(StepFunction train, StepFunction test = {}) {
  CompileOptions o = built_in();
  o.train_step = std::move(train);
  o.test_step = std::move(test);
  return o;
}
std::vector<float> numbers(const Model& model) {
  std::vector<float> all;
  for (const Variable& v : model.weights())
    for (const float f : v.value().to_vector<float>()) all.push_back(f);
  return all;
}

// --- steps ---------------------------------------------------------------------------------------------------------------------

TEST(Steps, TheSamePartsGiveTheSameBits) {
  const Data d;
  const auto own = [](Step& step) {
    Tape tape;
    const std::vector<Tensor> outputs = step.forward();
    const Tensor loss = step.loss(outputs);
    step.apply(step.gradients(tape, loss));
    step.log("loss", loss);
    step.measure(outputs);
  };
  const FitOptions o{.batch_size = 16, .epochs = 3, .validation_split = 0.2, .verbose = 0};
  for (const bool scaled : {false, true}) {
    CompileOptions usual = built_in(), mine = with_step(own);
    usual.optimizer = Adam(0.01, {}, {.loss_scale_factor = scaled ? std::optional(4.0) : std::nullopt});
    mine.optimizer = Adam(0.01, {}, {.loss_scale_factor = scaled ? std::optional(4.0) : std::nullopt});
    if (scaled) usual.loss_scale = mine.loss_scale = LossScaleOptions{.initial = 1024};
    const Model a = regression(usual), b = regression(mine);
    const History expected = a.fit(d.x, d.y, o), got = b.fit(d.x, d.y, o);
    EXPECT_EQ(got.values, expected.values);
    EXPECT_EQ(numbers(b), numbers(a));
    EXPECT_EQ(b.evaluate(d.x, d.y, {.verbose = 0}), a.evaluate(d.x, d.y, {.verbose = 0}));
  }
}

// What is logged is the mean over the examples, the last and smaller batch included, in its own order, and a test step has its own.
TEST(Steps, LogWhatTheyLike) {
  const Data d;
  const auto train = [](Step& step) {
    Tape tape;
    const Tensor p = step.forward()[0];
    const Tensor loss = mean(absolute(p - step.targets()[0]));
    std::vector<Tensor> gradients = step.gradients(tape, loss);
    Tensor norm = Tensor::scalar(0.f);
    for (Tensor& g : gradients) {
      norm = norm + sum(square(g));
      g = clip(g, -0.1, 0.1);
    }
    step.apply(gradients);
    step.log("loss", loss);
    step.log("x0", mean(step.inputs()[0](Slice(), 0)));
    step.log("norm", sqrt(norm));
  };
  const auto test = [](Step& step) { step.log("error", mean(square(step.forward()[0] - step.targets()[0]))); };
  const Model m = regression(with_step(train, test));
  std::vector<std::string> during;
  const History h =
      m.fit(d.x, d.y,
            {.batch_size = 16,
             .epochs = 2,
             .validation_split = 0.2,
             .callbacks = {LambdaCallback({.on_epoch_end = [&](nn::Run&, int64_t, Logs& logs) { during.push_back(logs.names()); }})},
             .verbose = 0});
  EXPECT_EQ(during.back(), "loss, x0, norm, val_error");
  EXPECT_NEAR(h["x0"][0], mean(d.x(Slice(0, 48), 0)).item<double>(), 1e-5);
  EXPECT_LT(h["val_error"][1], h["val_error"][0]);
  EXPECT_EQ(m.optimizer().iterations().value().item<int64_t>(), 6);
  EXPECT_EQ(m.evaluate(d.x, d.y, {.verbose = 0}).names(), "error");
  EXPECT_NEAR(m.evaluate(d.x, d.y, {.batch_size = 7, .verbose = 0})["error"],
              mean(square(m.predict(d.x, {.verbose = 0}) - d.y)).item<double>(), 1e-4);
}

// Two models and two optimizers, no targets: the step decides who learns from what.
TEST(Steps, MayTrainWhatTheyCapture) {
  const Data d;
  set_random_seed(4);
  const Model reader = Sequential({InputLayer(Dims{6}), Dense(2)}), writer = Sequential({InputLayer(Dims{2}), Dense(6)});
  const Optimizer other = Adam(0.02);
  other.build(writer.trainable_weights());
  reader.compile({.optimizer = Adam(0.02), .train_step = [writer, other](Step& step) {
                    Tape tape({.persistent = true});
                    const Tensor again = writer(step.forward()[0]);
                    const Tensor loss = mean(square(again - step.inputs()[0]));
                    step.minimize(tape, loss);
                    other.apply(tape.gradients(loss, writer.trainable_weights()));
                    step.log("loss", loss);
                  }});
  const History h = reader.fit(d.x, {.epochs = 20, .verbose = 0});
  EXPECT_LT(h["loss"].back(), 0.5 * h["loss"].front());
  const Model weighed = Sequential({InputLayer(Dims{6}), Dense(1)});
  weighed.compile({.train_step = [](Step& step) { step.log("weight", mean(step.sample_weight())); }});
  EXPECT_EQ(weighed.fit(d.x, {.sample_weight = Tensor::full({60}, 3.0), .verbose = 0})["weight"][0], 3.0);
  const data::Dataset batches = data::Dataset::from_slices({d.x}).batch(20);
  EXPECT_LT(reader.fit(batches, {.verbose = 0})["loss"][0], h["loss"].front());
}

// The same loop, and nothing is traced again from epoch to epoch; cut and resumed it ends with the same bits.
TEST(Steps, AreTracedForAWholeFitAndResume) {
  const TemporaryFolder folder;
  const Data d;
  int traces = 0;
  const auto own = [&](Step& step) {
    ++traces;
    Tape tape;
    const Tensor loss = step.loss(step.forward());
    step.minimize(tape, loss);
    step.log("my_loss", loss);
  };
  const auto options = [&](std::vector<Callback> callbacks) {
    return FitOptions{.batch_size = 8, .epochs = 3, .callbacks = std::move(callbacks), .verbose = 0};
  };
  const Model whole = regression(with_step(own));
  const History all = whole.fit(d.x, d.y, options({}));
  EXPECT_EQ(traces, 2);  // once to learn what it logs, once to compile

  struct Cut {};
  const auto cut = LambdaCallback({.on_batch_end = [](nn::Run& run) {
    if (run.epoch == 1 && run.step == 5) throw Cut();
  }});
  const auto backup = [&] { return BackupAndRestore(folder / "backup", {.save_every_steps = 2}); };
  EXPECT_THROW(regression(with_step(own)).fit(d.x, d.y, options({backup(), cut})), Cut);
  const Model second = regression(with_step(own));
  const History rest = second.fit(d.x, d.y, options({backup()}));
  EXPECT_EQ(numbers(second), numbers(whole));
  EXPECT_DOUBLE_EQ(rest["my_loss"][0], all["my_loss"][1]);
}

// A step of one's own is code, so a file has the model without how it was compiled, rather than with half of it.
TEST(Steps, AreNotInFiles) {
  const TemporaryFolder folder;
  const Data d;
  const auto own = [](Step& step) {
    Tape tape;
    step.minimize(tape, step.loss(step.forward()));
  };
  const Model m = regression(with_step(own));
  m.fit(d.x, d.y, {.callbacks = {ModelCheckpoint((folder / "m.keras").string())}, .verbose = 0});
  const Model loaded = Model::load(folder / "m.keras");
  EXPECT_EQ(numbers(loaded), numbers(m));
  EXPECT_FALSE(loaded.compiled());
  loaded.compile(with_step(own));
  loaded.optimizer().build(loaded.trainable_weights());
  loaded.load_weights(folder / "m.keras");  // the optimizer's state is there
  EXPECT_EQ(loaded.optimizer().iterations().value().item<int64_t>(), 2);
}

TEST(Steps, Mistakes) {
  const Data d;
  const FitOptions quiet{.verbose = 0};
  const auto error = [&](StepFunction train) { return message([&] { regression(with_step(std::move(train))).fit(d.x, d.y, quiet); }); };
  EXPECT_EQ(error([](Step& step) { step.log("p", step.forward()[0]); }),
            "log: 'p' is float32[b,1], it must be one number\n  hint: mean() of it");
  EXPECT_EQ(error([](Step& step) {
              step.log("a", step.loss(step.forward()));
              step.log("a", step.loss(step.forward()));
            }),
            "log: 'a' is logged twice in one step");
  EXPECT_EQ(error([](Step& step) {
              const std::vector<Tensor> outputs = step.forward();
              step.measure(outputs);
              step.log("mae", step.loss(outputs));
            }),
            "compile: two numbers are logged as 'mae'");
  EXPECT_EQ(error([](Step& step) { step.loss({}); }), "loss: got 0 outputs, the model has 1");
  EXPECT_EQ(message([&] {
              const auto both = [](Step& step) {
                Tape tape;
                step.minimize(tape, step.loss(step.forward()));
              };
              regression(with_step(both, both)).evaluate(d.x, d.y, quiet);
            }),
            "test_step: weights do not change while a model is measured");
  EXPECT_EQ(message([&] {
              const Model none = Sequential({InputLayer(Dims{6}), Dense(1)});
              none.compile({.train_step = [](Step& step) { step.loss(step.forward()); }});
              none.fit(d.x, quiet);
            }),
            "compile: there is no loss\n  hint: compile({.loss = {\"mse\"}})");
}

// --- the batch that somebody keeps ---------------------------------------------------------------------------------------------

// Shuffled rows lie in a buffer that is used again, unless somebody holds the batch or something that lies in its memory.
TEST(Steps, ABatchThatIsHeldIsNotWrittenOver) {
  const Data d;
  for (const train::Order order : {train::Order::Shuffled, train::Order::AsItIs}) {
    const auto batches = train::batches_of(train::ArraySlice{{d.x, d.y}, 0, 60}, 25, order, 7);
    batches->begin();
    std::vector<Tensor> held;
    std::vector<std::vector<float>> then;
    while (batches->next()) {
      held.push_back(held.empty() ? *batches->batch()[0] : batches->batch()[0]->reshape({-1}));  // itself, then what shares its memory
      then.push_back(held.back().to_vector<float>());
    }
    ASSERT_EQ(held.size(), 3u);
    for (size_t i = 0; i < held.size(); ++i) EXPECT_EQ(held[i].to_vector<float>(), then[i]) << "batch " << i;
  }
}

// --- logs ----------------------------------------------------------------------------------------------------------------------

TEST(Logs, ByName) {
  Logs logs{{"loss", 2.0}, {"accuracy", 0.5}};
  EXPECT_EQ(logs["accuracy"], 0.5);
  EXPECT_TRUE(logs.contains("loss"));
  EXPECT_EQ(logs.find("val_loss"), nullptr);
  EXPECT_EQ(message([&] { (void)logs["val_loss"]; }), "logs: there is no 'val_loss', there are loss, accuracy");
  EXPECT_EQ(message([] { (void)Logs()["loss"]; }), "logs: there is no 'loss', it is empty");
  logs.set("val_loss", 3);
  logs.set("loss", 1);
  std::string all;
  for (const auto& [name, value] : logs) all += name + "=" + std::to_string(static_cast<int>(value)) + " ";
  EXPECT_EQ(all, "loss=1 accuracy=0 val_loss=3 ");
  EXPECT_EQ(logs.sorted().names(), "accuracy, loss, val_loss");

  const Data d;
  const History h = regression(built_in()).fit(d.x, d.y, {.epochs = 2, .verbose = 0});
  EXPECT_EQ(h["mae"].size(), 2u);
  EXPECT_EQ(message([&] { (void)h["val_mae"]; }), "history: there is no 'val_mae', there are loss, mae");
}

// --- lines ---------------------------------------------------------------------------------------------------------------------

// "file:line" of an error, and whether it says more than one.
template <class F> std::string line_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    const std::string text = e.what();
    const size_t at = text.find("\n  at ");
    if (at == std::string::npos) return "no line: " + text;
    if (text.find("\n  at ", at + 1) != std::string::npos) return "two lines: " + text;
    return text.substr(at + 6, text.find('\n', at + 1) - at - 6);
  }
  return "nothing was thrown";
}
std::string here(int line) { return "nn_training_steps.cpp:" + std::to_string(line); }

TEST(Lines, AreThoseOfTheCallAndNeverOurs) {
  const Data d;
  const Model m = regression(built_in());
  const FitOptions quiet{.verbose = 0};
  const Tensor narrow = Tensor::ones({60, 5});
  const auto batches = data::Dataset::from_slices({narrow, d.y}).batch(8);
  EXPECT_EQ(line_of([&] { m.fit(narrow, d.y, quiet); }), here(__LINE__));
  EXPECT_EQ(line_of([&] { m.fit(batches, quiet); }), here(__LINE__));
  EXPECT_EQ(line_of([&] { m.evaluate(narrow, d.y, quiet); }), here(__LINE__));
  EXPECT_EQ(line_of([&] { m.evaluate(batches, quiet); }), here(__LINE__));
  EXPECT_EQ(line_of([&] { m.predict(narrow, quiet); }), here(__LINE__));
  EXPECT_EQ(line_of([&] { m.predict(std::vector{narrow}, quiet); }), here(__LINE__));
  EXPECT_EQ(line_of([&] { m.predict(batches, quiet); }), here(__LINE__));
  EXPECT_EQ(line_of([&] { m.train_on_batch({narrow}, {d.y}); }), here(__LINE__));
  EXPECT_EQ(line_of([&] { m.test_on_batch({narrow}, {d.y}); }), here(__LINE__));
  EXPECT_EQ(line_of([&] { m.predict_on_batch({narrow}); }), here(__LINE__));
  EXPECT_EQ(line_of([&] { TrainingLoop(m, nn::Run::Kind::Train, {narrow}, {d.y}); }), here(__LINE__));
  EXPECT_EQ(line_of([&] { m.fit(d.x, Tensor::ones({60, 2, 3}), quiet); }), here(__LINE__));  // the loss refuses it
  EXPECT_EQ(line_of([&] { Loss("mse")(d.y, narrow.expand_dims(0)); }), here(__LINE__));
  EXPECT_EQ(line_of([&] { Metric("mae").update(d.y, narrow.expand_dims(0)); }), here(__LINE__));

  // And the layer that refuses what it is given, in a sequence that learns its shapes from the data.
  const Model late = Sequential({Dense(3), Conv2D(2, 3, {.name = "conv"})}, "late");
  late.compile({.loss = {"mse"}});
  std::string text = message([&] { late.fit(d.x, d.y, quiet); });
  EXPECT_TRUE(text.starts_with("layer 'conv' (Conv2D) of model 'late': ")) << text;
  EXPECT_EQ(text.find("\n  at "), std::string::npos) << text;
  text = message([&] { late.predict(d.x, quiet); });
  EXPECT_TRUE(text.starts_with("layer 'conv' (Conv2D) of model 'late': ")) << text;
}

// An error that comes up when the compiled step runs.
TEST(Lines, OfARunningStep) {
  const Model m = Sequential({InputLayer(Dims{2}, {.dtype = DType::I32}), Embedding(4, 3), Flatten(), Dense(1)});
  m.compile({.loss = {"mse"}});
  const Tensor ids = Tensor::of({{0, 1}, {2, 4}}), y = Tensor::ones({2, 1});
  EXPECT_EQ(line_of([&] { m.fit(ids, y, {.verbose = 0}); }), here(__LINE__));
  EXPECT_EQ(line_of([&] { m.predict(ids, {.verbose = 0}); }), here(__LINE__));
}

// In code of the user's that fit calls, his own lines count.
TEST(Lines, InsideOwnCode) {
  const Data d;
  const FitOptions quiet{.verbose = 0};
  int line = 0;
  const auto bad = [&](const Tensor& y, const Tensor& p) {
    line = __LINE__ + 1;
    return matmul(y, p);
  };
  const auto fails_at_its_own = [&](const CompileOptions& o) {
    line = 0;
    const std::string at = line_of([&] { regression(o).fit(d.x, d.y, quiet); });
    EXPECT_NE(line, 0);
    EXPECT_EQ(at, here(line));
  };
  fails_at_its_own({.loss = {Loss("own", bad)}});
  fails_at_its_own({.loss = {"mse"}, .metrics = {Metric("own", bad)}});
  fails_at_its_own(
      {.optimizer = SGD(Schedule([&](const Tensor& s) { return bad(s.reshape({1, 1}), Tensor::ones({2, 3})); })), .loss = {"mse"}});
  fails_at_its_own(with_step([&](Step& step) { bad(step.inputs()[0], step.inputs()[0]); }));
  fails_at_its_own(with_step([&](Step& step) {
    line = __LINE__ + 1;
    step.loss({Tensor::ones({3, 2, 2})});
  }));
  const auto callback = LambdaCallback({.on_epoch_begin = [&](nn::Run&, int64_t) { bad(d.x, d.x); }});
  const std::string at = line_of([&] { regression(built_in()).fit(d.x, d.y, {.callbacks = {callback}, .verbose = 0}); });
  EXPECT_EQ(at, here(line));
}

}  // namespace
}  // namespace tandem::nn
