// Training: what compile made of a model: losses and metrics for each output, and the compiled steps.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tandem/function.hpp>
#include <tandem/nn/model.hpp>

namespace tandem::nn {

struct Training {
  // What the tensors of a batch are, in order: inputs, targets, sample weights.
  struct Parts {
    size_t inputs = 0, targets = 0, weights = 0;
    bool operator==(const Parts&) const = default;
  };
  struct Output {
    std::string name;
    Loss loss;
    double weight = 1;
    std::vector<Variable> tracker;  // total and count of its loss, when there are several outputs
    std::vector<Metric> metrics, weighted_metrics;
  };

  CompileOptions options;
  bool compiled = false;
  Precision precision = Precision::Float32;  // once it is compiled
  std::optional<LossScale> loss_scale;

  // The step of this kind for such batches, traced when it is first called. Makes the model's weights, metrics and optimizer's state.
  const FlatCallable& step(const Model& model, Run::Kind kind, const std::vector<Spec>& specs, const Parts& parts,
                           const std::map<int64_t, double>& class_weight);
  void reset_metrics() const;
  Logs logs() const;
  std::vector<Variable> metric_variables() const;  // all state that reset_metrics() resets
  std::optional<Metric> metric(const std::string& name) const;

 private:
  struct Step {
    Run::Kind kind;
    std::string specs;
    Parts parts;
    std::map<int64_t, double> class_weight;
    FlatCallable function;
  };
  void prepare(const Model& model, const std::vector<Spec>& inputs, const std::vector<Spec>& targets);
  void place(const std::vector<Metric>& given, std::vector<Metric> Output::* where, const std::vector<Spec>& targets,
             const std::vector<Spec>& outputs);
  void name_metrics();
  Tensor measure(const Model& model, const std::vector<Tensor>& batch, const Parts& parts, const std::map<int64_t, double>& class_weight,
                 bool training, const std::function<void(const Tensor& loss)>& minimize);

  bool prepared_ = false;
  std::vector<Output> outputs_;
  std::vector<Variable> loss_;  // total and count
  struct Shown {
    std::string name;
    std::function<double()> value;
  };
  std::vector<Shown> shown_;
  std::vector<std::unique_ptr<Step>> steps_;
};

Training& training_of(const Model& model);        // made when there is none
Training& compiled_training(const Model& model);  // UserError when the model is not compiled

}  // namespace tandem::nn
