// Training one piece of work: its data, and one compiled function for a whole step (forward, loss, gradients, Adam, metrics).
#pragma once
#include <optional>
#include <vector>

#include "works.hpp"

namespace bench {

// Adam with Keras's formula and defaults.
class Adam {
 public:
  explicit Adam(std::vector<td::Variable> variables);
  void apply(const std::vector<td::Tensor>& gradients) const;

 private:
  std::vector<td::Variable> variables_, momentums_, velocities_;
  td::Variable step_;
};

// All examples in one array each for inputs and classes; a batch is a view of consecutive rows and copies nothing.
class Examples {
 public:
  enum class Source : uint8_t { Random, Formula };
  Examples(const Work& work, int64_t steps, Source source);
  td::Tensor x(int64_t step) const;
  td::Tensor y(int64_t step) const;

 private:
  template <class T> td::Tensor batch(const std::vector<T>& rows, const td::Shape& example, int64_t step) const;

  int64_t batch_;
  td::Shape x_shape_, y_shape_;
  std::vector<float> floats_;
  std::vector<int32_t> words_, classes_;
};

struct TrainerOptions {
  bool dropout = true;
  td::Precision precision = td::Precision::Float32;  // mixed_float16 comes with a dynamic loss scale
};

class Trainer {
 public:
  Trainer(const Work& work, const Weights& weights, TrainerOptions options = {});
  Trainer(const Trainer&) = delete;  // the compiled step refers to this one
  Trainer& operator=(const Trainer&) = delete;

  td::Tensor step(const td::Tensor& x, const td::Tensor& y) const { return step_(x, y); }  // the loss of this batch
  double flops() const { return flops_; }  // of a step's products; known once it has been traced

  // Means over the steps since they were last read.
  struct Metrics {
    double loss, accuracy;
  };
  Metrics take_metrics() const;

 private:
  td::Tensor trace_step(const td::Tensor& x, const td::Tensor& y);

  Work work_;
  std::vector<td::Variable> variables_;
  TrainerOptions options_;
  Adam adam_;
  td::Generator random_{0};
  std::optional<td::LossScale> loss_scale_;
  td::Variable loss_sum_, accuracy_sum_, step_count_;
  double flops_ = 0;
  td::Function<td::Tensor(td::Tensor, td::Tensor)> step_;
};

}  // namespace bench
