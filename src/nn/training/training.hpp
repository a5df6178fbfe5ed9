// Training: what compile made of a model: losses and metrics for each output, and the compiled steps.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tandem/function.hpp>
#include <tandem/nn/model.hpp>

#include "nn/labels.hpp"

namespace tandem::nn {

// Total and count of a number whose mean is shown.
struct Tracker {
  std::string name;
  Variable total, count;
  explicit Tracker(const std::string& name);
  void add(const Tensor& value, const Tensor& weight) const;
  double mean() const;
};

struct Training {
  // What the tensors of a batch are, in order: inputs, targets, sample weights.
  struct Parts {
    size_t inputs = 0, targets = 0;
    std::vector<std::optional<size_t>> weights;  // which of the sample weights each output has
    std::vector<WeightOfClass> classes;          // of each output; empty: none
    bool operator==(const Parts&) const = default;
  };
  struct Output {
    std::string name;
    Loss loss;
    double weight = 1;
    std::optional<Tracker> tracker;  // of its loss, when there are several outputs
    std::vector<Metric> metrics, weighted_metrics;
    Spec spec;  // of what the model gives
  };
  // What a number in the logs is called, and how it is read.
  struct Shown {
    std::string name;
    std::function<double()> value;
  };
  // The step of one kind for batches of one type.
  struct Compiled {
    Run::Kind kind;
    std::string specs;
    Parts parts;
    FlatCallable function;
    std::vector<Shown> shown = {};
    std::vector<std::optional<ClassTargets>> classes = {};  // of each output, where its targets are class numbers
    Logs logs() const;
  };

  CompileOptions options;
  bool compiled = false;
  Precision precision = Precision::Float32;  // once it is compiled
  std::optional<LossScale> loss_scale;

  // Traced when it is first called. Makes the model's weights, metrics and optimizer's state.
  const Compiled& step(const Model& model, Run::Kind kind, const std::vector<Spec>& specs, const Parts& parts);
  const std::vector<Output>& outputs() const { return outputs_; }  // none before the first step
  void reset_metrics() const;
  std::vector<Variable> metric_variables() const;  // all state that reset_metrics() resets
  std::optional<Metric> metric(const std::string& name) const;
  const Tracker& tracker(const std::string& name);  // made when there is none

 private:
  void prepare(const Model& model, const std::vector<Spec>& inputs, const std::vector<Spec>& targets);
  void place(const std::vector<Metric>& given, std::vector<Metric> Output::* where, const std::vector<Spec>& targets,
             const std::vector<Spec>& outputs);
  std::vector<Shown> shown_metrics() const;
  struct Used;
  void finish(Compiled& step, const std::vector<Spec>& targets, const Used& used);
  static void built_in(const Step& step);

  bool prepared_ = false;
  std::vector<Output> outputs_;
  std::vector<std::unique_ptr<Tracker>> trackers_;  // their addresses stay
  std::vector<std::unique_ptr<Compiled>> steps_;
};

// What a Step holds while it is traced.
struct Step::Impl {
  Training& training;
  const Model& model;
  const Training::Parts& parts;
  bool is_training;
  std::vector<Tensor> batch;
  std::vector<Tensor> inputs = {}, targets = {};
  Results results = {};            // of the last forward pass, with the masks
  std::vector<Tensor> extra = {};  // losses that layers made of their inputs
  std::vector<std::string> logged = {};
  bool measured = false, lost = false;  // whether metrics and losses were computed

  Impl(Training& t, const Model& m, const Training::Parts& p, bool is_train, const std::vector<Tensor>& tensors);
  Tensor rows() const;  // how many examples, float32
  Tensor mask(size_t output) const;
  void update(const std::vector<Tensor>& scaled_gradients);
};

// Data of another type than the model's input was made for (bytes of an image) is converted in the step.
std::vector<Tensor> model_inputs(const Model& model, const std::vector<Tensor>& given);

Training& training_of(const Model& model);        // made when there is none
Training& compiled_training(const Model& model);  // UserError when the model is not compiled

}  // namespace tandem::nn
