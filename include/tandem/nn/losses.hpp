// Loss: what a prediction costs, by Keras's name or made with options.
//   Loss mse = "mean_squared_error";   Loss ce = losses::SparseCategoricalCrossentropy({.from_logits = true});
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <tandem/nn/config.hpp>
#include <tandem/tensor.hpp>

namespace tandem::nn {

// How the values of a batch become one number. MeanWithSampleWeight divides by the sum of the weights and not by their count.
enum class Reduction : uint8_t { SumOverBatchSize, Sum, None, MeanWithSampleWeight };

class Loss {
 public:
  using Formula = std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;  // one value an example, or more: [batch, …]

  Loss() = default;               // none: an output that is not trained
  Loss(const char* identifier);   // NOLINT: "mse", "MeanSquaredError", "mean_squared_error", …; UserError with near names
  Loss(const std::string& name);  // NOLINT
  Loss(std::string name, Formula formula, Reduction reduction = Reduction::SumOverBatchSize);  // an own one
  // An own one with parameters, which files keep as the config of the class.
  Loss(std::string class_name, const Config& config, Formula formula, Reduction reduction = Reduction::SumOverBatchSize);
  static Loss from_config(const std::string& class_name, const Config& config);
  static Loss deserialize(const Config& saved);  // what serialize() gave

  explicit operator bool() const { return impl_ != nullptr; }
  const std::string& name() const;
  std::string class_name() const;  // "MeanSquaredError"; "" for an own formula without a config
  Config config() const;
  Config serialize() const;  // as Keras keeps it in a file: the name it was asked for by, or class and config

  // The number to minimise. Weights are one an example or one a value; where the mask is false nothing counts.
  using Where = std::source_location;
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}, const Tensor& mask = {},
                    Where where = Where::current()) const;
  Tensor values(const Tensor& y_true, const Tensor& y_pred, Where where = Where::current()) const;  // before weights and reduction
  // "crossentropy" means what fits the shapes; others are what they are.
  Loss resolved(const Dims& y_true, const Dims& y_pred) const;

  struct Impl;

 private:
  explicit Loss(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  Tensor raw_values(const Tensor& y_true, const Tensor& y_pred) const;
  Tensor reduced(Tensor values, const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight, const Tensor& mask) const;
  std::shared_ptr<const Impl> impl_;
};

// Own losses by name or class, so that files can keep them. A second registration of a name replaces the first.
//   register_loss("cubic", [](const Config&) { return Loss("cubic", formula); });
using LossMaker = Loss (*)(const Config& config);
void register_loss(const std::string& name, LossMaker maker);

namespace losses {

struct Options {
  Reduction reduction = Reduction::SumOverBatchSize;
  std::string name = {};  // default: the class's in snake case
};
struct Crossentropy {
  bool from_logits = false;
  double label_smoothing = 0;
  int64_t axis = -1;
};
struct SparseCrossentropy {
  bool from_logits = false;
  std::optional<int64_t> ignore_class = {};
};
struct Focal {
  double alpha = 0.25, gamma = 2;
  bool apply_class_balancing = false;  // BinaryFocalCrossentropy only
  bool from_logits = false;
  double label_smoothing = 0;
  int64_t axis = -1;
};

struct CircleOptions {
  double gamma = 80, margin = 0.4;
  bool remove_diagonal = true;  // an example is no pair with itself
};

Loss BinaryCrossentropy(const Crossentropy& own = {}, const Options& options = {});
Loss CategoricalCrossentropy(const Crossentropy& own = {}, const Options& options = {});
Loss SparseCategoricalCrossentropy(const SparseCrossentropy& own = {}, const Options& options = {});
Loss BinaryFocalCrossentropy(const Focal& own = {}, const Options& options = {});
Loss CategoricalFocalCrossentropy(const Focal& own = {}, const Options& options = {});
Loss MeanSquaredError(const Options& options = {});
Loss MeanAbsoluteError(const Options& options = {});
Loss MeanAbsolutePercentageError(const Options& options = {});
Loss MeanSquaredLogarithmicError(const Options& options = {});
Loss Huber(double delta = 1, const Options& options = {});
Loss LogCosh(const Options& options = {});
Loss Hinge(const Options& options = {});
Loss SquaredHinge(const Options& options = {});
Loss CategoricalHinge(const Options& options = {});
Loss KLDivergence(const Options& options = {});
Loss Poisson(const Options& options = {});
Loss CosineSimilarity(int64_t axis = -1, const Options& options = {});
Loss Dice(const Options& options = {});
Loss Tversky(double alpha = 0.5, double beta = 0.5, const Options& options = {});
// Targets [batch, labels], filled up with 0, the blank; predictions [batch, steps, classes] are logits.
Loss CTC(const Options& options = {});
Loss Circle(const CircleOptions& own = {}, const Options& options = {});  // targets are classes, predictions rows of length 1

}  // namespace losses
}  // namespace tandem::nn
