// Model: compile, fit, evaluate, predict: a loop with callbacks between its steps.
#include <tandem/nn/model.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include <tandem/nn/training.hpp>
#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "frontend/apply.hpp"
#include "nn/network.hpp"
#include "nn/training/compile_config.hpp"
#include "nn/training/interrupt.hpp"
#include "nn/training/training.hpp"

namespace tandem::nn {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Runs loops and calls back. One for a whole fit with its validations.
class Runner final : public Run {
 public:
  Runner(const Model& model, Kind first, const FitOptions& options, TrainingLoop& loop) : model_(model), loop_(&loop) {
    kind = first;
    epochs = options.epochs;
    verbose = options.verbose;
    if (verbose) callbacks_.push_back(ProgressBar());
    for (const Callback& c : options.callbacks) {
      if (!c) user_error("callbacks: one of them holds nothing");
      callbacks_.push_back(c);
    }
  }
  const Model& model() const override { return model_; }
  Logs logs() const override { return loop_->logs(); }
  std::string position() const override { return loop_->position(); }
  void resume(int64_t at, const std::string& place) override { resumed_ = {at, place}; }

  template <class F> void each(F f) {
    const frontend::UserScope user;
    for (const Callback& c : callbacks_) f(*c);
  }

  // All steps of one epoch, or what is left of it.
  Logs run_epoch(TrainingLoop& loop, Kind which, const std::string& place = "") {
    TrainingLoop* const outer = std::exchange(loop_, &loop);
    const Kind outer_kind = std::exchange(kind, which);
    if (!place.empty()) loop.restore(place);
    if (loop.at_end()) loop.begin_epoch();
    step = loop.step();
    steps = loop.steps();
    std::vector<Clock::time_point> called(callbacks_.size(), Clock::now());
    while (!loop.at_end() && !stop && !interrupted()) {
      loop.run(steps_until_call(), seconds_until_call(called));
      step = loop.step();
      for (size_t i = 0; i < callbacks_.size(); ++i) {
        CallbackBody& c = *callbacks_[i];
        const int64_t every = c.every_steps();
        const bool by_time = c.every_seconds() > 0 && seconds_since(called[i]) >= c.every_seconds();
        if (!by_time && (every == 0 || step % every != 0)) continue;
        const frontend::UserScope user;
        c.on_batch_end(*this);
        called[i] = Clock::now();
      }
    }
    Logs logs = loop.logs();
    loop_ = outer;
    kind = outer_kind;
    return logs;
  }

  struct Resumed {
    int64_t epoch;
    std::string place;
  };
  std::optional<Resumed> resumed_;

 private:
  int64_t steps_until_call() const {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const Callback& c : callbacks_)
      if (const int64_t every = c->every_steps(); every > 0) least = std::min(least, every - step % every);
    return least;
  }
  double seconds_until_call(const std::vector<Clock::time_point>& called) const {
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < callbacks_.size(); ++i)
      if (const double every = callbacks_[i]->every_seconds(); every > 0)
        least = std::min(least, std::max(0.0, every - seconds_since(called[i])));
    return least;
  }

  const Model model_;
  TrainingLoop* loop_;
  std::vector<Callback> callbacks_;
};

History run_fit(const Model& model, const FitOptions& options, TrainingLoop loop, std::optional<TrainingLoop> validation) {
  const InterruptScope interrupt;
  History history;
  Runner run(model, Run::Kind::Train, options, loop);
  Training& training = compiled_training(model);
  run.steps = loop.steps();
  run.epoch = options.initial_epoch;
  run.each([&](CallbackBody& c) { c.on_train_begin(run); });
  int64_t first = options.initial_epoch;
  std::string place;
  if (run.resumed_) std::tie(first, place) = std::pair(run.resumed_->epoch, run.resumed_->place);

  Logs logs;
  for (int64_t epoch = first; epoch < options.epochs && !run.stop; ++epoch) {
    run.epoch = epoch;
    run.each([&](CallbackBody& c) { c.on_epoch_begin(run, epoch); });
    logs = run.run_epoch(loop, Run::Kind::Train, std::exchange(place, ""));
    if (validation && !interrupted()) {
      run.each([&](CallbackBody& c) { c.on_test_begin(run); });
      const Logs measured = run.run_epoch(*validation, Run::Kind::Test);
      run.each([&](CallbackBody& c) { c.on_test_end(run, measured); });
      for (const auto& [name, value] : measured) logs.set("val_" + name, value);
      run.step = loop.step();
      run.steps = loop.steps();
    }
    if (interrupted()) run.stop = true;
    run.each([&](CallbackBody& c) { c.on_epoch_end(run, epoch, logs); });
    history.epochs.push_back(epoch);
    for (const auto& [name, value] : logs) history.values[name].push_back(value);
  }
  if (options.epochs > first) training.options.optimizer.finalize_variable_values();
  run.each([&](CallbackBody& c) { c.on_train_end(run, logs); });
  if (interrupted() && options.verbose)
    std::fprintf(stderr, "fit: interrupted in epoch %lld; the model is as that step left it\n", static_cast<long long>(run.epoch) + 1);
  return history;
}

Logs run_evaluate(const Model& model, const FitOptions& options, TrainingLoop loop) {
  Runner run(model, Run::Kind::Test, options, loop);
  run.steps = loop.steps();
  run.each([&](CallbackBody& c) { c.on_test_begin(run); });
  const Logs logs = run.run_epoch(loop, Run::Kind::Test);
  run.each([&](CallbackBody& c) { c.on_test_end(run, logs); });
  return logs;
}

std::vector<Tensor> run_predict(const Model& model, const FitOptions& options, TrainingLoop loop) {
  Runner run(model, Run::Kind::Predict, options, loop);
  run.steps = loop.steps();
  run.each([&](CallbackBody& c) { c.on_predict_begin(run); });
  run.run_epoch(loop, Run::Kind::Predict);
  run.each([&](CallbackBody& c) { c.on_predict_end(run); });
  return loop.take_predictions();
}

// How validation runs beside a fit with these options.
FitOptions for_validation(const FitOptions& options) {
  FitOptions o = options;
  o.steps_per_epoch = options.validation_steps;
  o.class_weight = {};
  return o;
}

std::optional<TrainingLoop> validation_of(const Model& model, const FitOptions& options) {
  if (!options.validation_data) return {};
  FitOptions o = for_validation(options);
  o.batch_size = {};
  o.sample_weight = {};
  o.validation_split = 0;
  return TrainingLoop(model, Run::Kind::Test, *options.validation_data, o);
}

// Options that say something about training only would be ignored in silence.
void expect_no_fit(const char* what, const FitOptions& o) {
  const std::pair<const char*, bool> given[] = {{"epochs", o.epochs != 1},
                                                {"initial_epoch", o.initial_epoch != 0},
                                                {"validation_split", o.validation_split != 0},
                                                {"validation_data", o.validation_data.has_value()},
                                                {"validation_steps", o.validation_steps.has_value()},
                                                {"class_weight", o.class_weight.given()},
                                                {"sample_weight", o.sample_weight.given() && what == std::string_view("predict")}};
  for (const auto& [name, is_given] : given)
    if (is_given) user_error(what, ": ", name, " is an option of fit", name == std::string_view("sample_weight") ? " and evaluate" : "");
}

std::vector<std::string> output_names(const Model& model) {
  std::vector<std::string> names;
  for (const Symbol& s : model.outputs()) names.push_back(s.origin()->layer.name());
  return names;
}

// A loop that has run its one batch.
TrainingLoop one_step(const Model& model, Run::Kind kind, const std::vector<Tensor>& x, const std::vector<Tensor>& y) {
  FitOptions o;
  o.shuffle = false;
  o.batch_size = x.empty() || !x.front().defined() || x.front().rank() == 0 ? 1 : std::max<int64_t>(1, x.front().shape()[0]);
  TrainingLoop loop(model, kind, x, y, o);
  loop.begin_epoch();
  loop.run();
  return loop;
}

}  // namespace

void Model::compile(const CompileOptions& options) const {
  auto training = std::make_shared<Training>();
  training->options = options;
  training->compiled = true;
  training->precision = options.precision ? *options.precision : precision();
  if (options.loss_scale || training->precision == Precision::MixedFloat16)
    training->loss_scale.emplace(options.loss_scale.value_or(LossScaleOptions{}));
  if (options.precision) set_precision(*options.precision);
  dynamic_cast<NetworkBody&>(body()).training = std::move(training);
}

bool Model::compiled() const { return training_of(*this).compiled; }
const CompileOptions& Model::compile_options() const { return compiled_training(*this).options; }
Config Model::compile_config() const {
  const CompileOptions& o = compile_options();
  if (o.train_step || o.test_step)
    user_error("model '", name(), "' has a step of the program's own, which a config cannot hold\n  hint: compile it in the program");
  return nn::compile_config(o, output_names(*this));
}
void Model::compile_from_config(const Config& config) const { compile(compile_options_from(config, output_names(*this))); }
Optimizer& Model::optimizer() const { return compiled_training(*this).options.optimizer; }
const std::optional<LossScale>& Model::loss_scale() const { return compiled_training(*this).loss_scale; }

MetricBody::Better Model::better(const std::string& metric) const {
  const std::optional<Metric> found = compiled_training(*this).metric(metric);
  return found ? found->better() : metric == "loss" || metric.ends_with("_loss") ? MetricBody::Better::Lower : MetricBody::Better::Unknown;
}

History Model::fit(const Tensors& x, const Tensors& y, const FitOptions& options, Where where) const {
  return frontend::for_caller(where, [&] {
    if (options.validation_data && options.validation_split != 0)
      user_error("fit: validation_data and validation_split cannot both be given");
    TrainingLoop loop(*this, Run::Kind::Train, x, y, options);
    std::optional<TrainingLoop> validation = validation_of(*this, options);
    if (options.validation_split != 0) validation.emplace(*this, Run::Kind::Test, x, y, for_validation(options));
    return run_fit(*this, options, std::move(loop), std::move(validation));
  });
}

History Model::fit(const data::Dataset& batches, const FitOptions& options, Where where) const {
  return frontend::for_caller(where, [&] {
    TrainingLoop loop(*this, Run::Kind::Train, batches, options);
    if (!loop.steps() && batches.cardinality() == data::kInfinite)
      user_error("fit: the dataset has no end\n  hint: steps_per_epoch says how long an epoch is");
    return run_fit(*this, options, std::move(loop), validation_of(*this, options));
  });
}

Logs Model::evaluate(const Tensors& x, const Tensors& y, const FitOptions& options, Where where) const {
  return frontend::for_caller(where, [&] {
    expect_no_fit("evaluate", options);
    return run_evaluate(*this, options, TrainingLoop(*this, Run::Kind::Test, x, y, options));
  });
}

Logs Model::evaluate(const data::Dataset& batches, const FitOptions& options, Where where) const {
  return frontend::for_caller(where, [&] {
    expect_no_fit("evaluate", options);
    return run_evaluate(*this, options, TrainingLoop(*this, Run::Kind::Test, batches, options));
  });
}

std::vector<Tensor> Model::predict(const Tensors& x, const FitOptions& options, Where where) const {
  return frontend::for_caller(where, [&] {
    expect_no_fit("predict", options);
    return run_predict(*this, options, TrainingLoop(*this, Run::Kind::Predict, x, {}, options));
  });
}

Tensor Model::predict(const Tensor& x, const FitOptions& options, Where where) const {
  return frontend::for_caller(where, [&] {
    if (network().has_graph() && outputs().size() != 1)
      user_error("predict: model '", name(), "' gives ", outputs().size(), " outputs\n  hint: predict(std::vector{x}) gives all of them");
    return predict(Tensors{x}, options).front();
  });
}

std::vector<Tensor> Model::predict(const data::Dataset& batches, const FitOptions& options, Where where) const {
  return frontend::for_caller(where, [&] {
    expect_no_fit("predict", options);
    return run_predict(*this, options, TrainingLoop(*this, Run::Kind::Predict, batches, options));
  });
}

Logs Model::train_on_batch(const Tensors& x, const Tensors& y, Where where) const {
  return frontend::for_caller(where, [&] { return one_step(*this, Run::Kind::Train, x, y).logs(); });
}
Logs Model::test_on_batch(const Tensors& x, const Tensors& y, Where where) const {
  return frontend::for_caller(where, [&] { return one_step(*this, Run::Kind::Test, x, y).logs(); });
}
std::vector<Tensor> Model::predict_on_batch(const Tensors& x, Where where) const {
  return frontend::for_caller(where, [&] { return one_step(*this, Run::Kind::Predict, x, {}).take_predictions(); });
}

}  // namespace tandem::nn
