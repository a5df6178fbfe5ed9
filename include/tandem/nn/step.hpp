// Step: one batch as a train_step or test_step of one's own sees it. fit and evaluate trace the function into the one compiled step that
// they run for each batch, in place of the built-in one.
//
//   model.compile({.optimizer = Adam(1e-3), .loss = {"mse"}, .metrics = {"mae"}, .train_step = [](Step& step) {
//                    Tape tape;
//                    const std::vector<Tensor> outputs = step.forward();
//                    const Tensor loss = step.loss(outputs);
//                    step.apply(step.gradients(tape, loss));  // or whatever is made of them
//                    step.measure(outputs);
//                    step.log("loss", loss);
//                  }});
#pragma once
#include <functional>
#include <source_location>
#include <string>
#include <vector>

#include <tandem/tape.hpp>
#include <tandem/tensor.hpp>

namespace tandem::nn {

class Model;

class Step {
 public:
  struct Impl;
  explicit Step(Impl& impl) : impl_(impl) {}

  const Model& model() const;
  bool training() const;                      // false in a test_step
  const std::vector<Tensor>& inputs() const;  // of the types that the model's inputs have
  const std::vector<Tensor>& targets() const;
  Tensor sample_weight(size_t output = 0) const;  // or what class_weight makes of the targets; undefined where nothing is weighed

  using Where = std::source_location;
  std::vector<Tensor> forward(Where where = Where::current()) const;  // the model's outputs for the inputs
  // As compiled: losses with their weights, and what the layers add.
  Tensor loss(const std::vector<Tensor>& outputs, Where where = Where::current()) const;
  void measure(const std::vector<Tensor>& outputs, Where where = Where::current()) const;  // for the metrics that were compiled
  // One number, shown and kept as the mean over the epoch's examples.
  void log(const std::string& name, const Tensor& value, Where where = Where::current()) const;

  // Of the model's trainable weights, undefined where the loss does not depend on one; the tape has to have seen the forward pass.
  std::vector<Tensor> gradients(Tape& tape, const Tensor& loss, Where where = Where::current()) const;
  // By the optimizer that was compiled; constraints hold afterwards.
  void apply(const std::vector<Tensor>& gradients, Where where = Where::current()) const;
  void minimize(Tape& tape, const Tensor& loss, Where where = Where::current()) const;  // both at once

 private:
  Impl& impl_;
};
// Called while tracing, with tensors that have no numbers yet, and more than once: what it changes besides variables it changes then, and
// not at each batch.
using StepFunction = std::function<void(Step&)>;

}  // namespace tandem::nn
