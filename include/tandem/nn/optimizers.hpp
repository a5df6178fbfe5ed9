// Optimizer: how gradients change variables, with Keras's formulas. Its state are variables, so that it is a part of the compiled step.
//   Optimizer o = "adam";   Optimizer o = Adam(1e-3, {.amsgrad = true}, {.clipnorm = 1.0});
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tandem/nn/config.hpp>
#include <tandem/nn/schedules.hpp>
#include <tandem/tensor.hpp>
#include <tandem/variable.hpp>

namespace tandem::nn {

// What every optimizer can do besides its own formula.
struct OptimizerOptions {
  std::optional<double> weight_decay = {};
  std::optional<double> clipnorm = {}, clipvalue = {}, global_clipnorm = {};  // one of them at most
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = {};
  std::optional<double> loss_scale_factor = {};
  std::optional<int64_t> gradient_accumulation_steps = {};
  std::string name = {};  // default: the class's in lower case
};

class OptimizerBody;

// A handle: copies are the same optimizer, with the same state.
class Optimizer {
 public:
  Optimizer(const char* identifier);   // NOLINT: "adam", "SGD", …; UserError with near names
  Optimizer(const std::string& name);  // NOLINT
  explicit Optimizer(std::shared_ptr<OptimizerBody> body) : body_(std::move(body)) {}
  static Optimizer from_config(const std::string& class_name, const Config& config);
  static Optimizer deserialize(const Config& saved);  // what serialize() gave

  const std::string& name() const;
  std::string class_name() const;
  Config config() const;     // with the learning rate of this moment
  Config serialize() const;  // as Keras keeps it in a file

  bool built() const;
  void build(const std::vector<Variable>& variables) const;  // makes the state; once
  // In the order of the "vars" of Keras's files: iteration, learning_rate (unless it is a schedule), averages, accumulators, slots.
  const std::vector<Variable>& variables() const;
  const Variable& iterations() const;

  // One step, on numbers or while tracing; one gradient a variable that it was built for, undefined for one that is not connected.
  void apply(const std::vector<Tensor>& gradients) const;
  Tensor scaled(const Tensor& loss) const;        // by loss_scale_factor; apply divides by it
  Tensor unscaled(const Tensor& gradient) const;  // what it is without that
  // With use_ema: the variables take their averages. fit does it after the last epoch.
  void finalize_variable_values() const;
  void exclude_from_weight_decay(const std::vector<std::string>& parts_of_names) const;  // before it is built

  double learning_rate() const;               // at this moment
  void set_learning_rate(double rate) const;  // UserError for a schedule

 private:
  std::shared_ptr<OptimizerBody> body_;
};

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
};
struct RmspropOptions {
  double rho = 0.9, momentum = 0, epsilon = 1e-7;
  bool centered = false;
};
struct AdagradOptions {
  double initial_accumulator_value = 0.1, epsilon = 1e-7;
};
struct AdadeltaOptions {
  double rho = 0.95, epsilon = 1e-7;
};
struct AdamOptions {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  bool amsgrad = false;
};
struct AdamaxOptions {
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
};
struct LionOptions {
  double beta_1 = 0.9, beta_2 = 0.99;
};
struct AdafactorOptions {
  double beta_2_decay = -0.8, epsilon_1 = 1e-30, epsilon_2 = 1e-3, clip_threshold = 1;
  bool relative_step = true;
};
struct FtrlOptions {
  double learning_rate_power = -0.5, initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0, l2_regularization_strength = 0, l2_shrinkage_regularization_strength = 0, beta = 0;
};

Optimizer SGD(const LearningRate& rate = 0.01, const SgdOptions& own = {}, const OptimizerOptions& options = {});
Optimizer RMSprop(const LearningRate& rate = 0.001, const RmspropOptions& own = {}, const OptimizerOptions& options = {});
Optimizer Adagrad(const LearningRate& rate = 0.001, const AdagradOptions& own = {}, const OptimizerOptions& options = {});
Optimizer Adadelta(const LearningRate& rate = 0.001, const AdadeltaOptions& own = {}, const OptimizerOptions& options = {});
Optimizer Adam(const LearningRate& rate = 0.001, const AdamOptions& own = {}, const OptimizerOptions& options = {});
Optimizer AdamW(const LearningRate& rate = 0.001, const AdamOptions& own = {}, const OptimizerOptions& options = {.weight_decay = 0.004});
Optimizer Adamax(const LearningRate& rate = 0.001, const AdamaxOptions& own = {}, const OptimizerOptions& options = {});
Optimizer Nadam(const LearningRate& rate = 0.001, const AdamaxOptions& own = {}, const OptimizerOptions& options = {});
Optimizer Lion(const LearningRate& rate = 0.001, const LionOptions& own = {}, const OptimizerOptions& options = {});
Optimizer Adafactor(const LearningRate& rate = 0.001, const AdafactorOptions& own = {}, const OptimizerOptions& options = {});
Optimizer Ftrl(const LearningRate& rate = 0.001, const FtrlOptions& own = {}, const OptimizerOptions& options = {});

}  // namespace tandem::nn
