// Learning rates that change with the step, computed inside the compiled step.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tandem/nn/config.hpp>
#include <tandem/tensor.hpp>

namespace tandem::nn {

class Schedule {
 public:
  using Formula = std::function<Tensor(const Tensor& step)>;  // from the step's number, float32, to the rate

  Schedule(std::string class_name, const Config& config);  // Keras's class and what it was made with
  explicit Schedule(Formula formula);                      // an own one, which files cannot keep
  // An own one that files can keep once register_schedule has said how it is made from its config.
  Schedule(std::string class_name, const Config& config, Formula formula);
  static Schedule deserialize(const Config& saved);  // what serialize() gave
  const std::string& class_name() const;
  const Config& config() const;
  Config serialize() const;  // as Keras keeps it in a file
  Tensor operator()(const Tensor& step) const;

  struct Impl;

 private:
  std::shared_ptr<const Impl> impl_;
};

// Own schedules by class, so that files can keep them. A second registration of a name replaces the first.
using ScheduleMaker = Schedule (*)(const Config& config);
void register_schedule(const std::string& class_name, ScheduleMaker maker);

// A number, or a schedule.
class LearningRate {
 public:
  LearningRate(double rate) : rate_(rate) {}                           // NOLINT
  LearningRate(Schedule schedule) : schedule_(std::move(schedule)) {}  // NOLINT
  double rate() const { return rate_; }
  const std::optional<Schedule>& schedule() const { return schedule_; }

 private:
  double rate_ = 0;
  std::optional<Schedule> schedule_;
};

Schedule ExponentialDecay(double initial_learning_rate, double decay_steps, double decay_rate, bool staircase = false);
Schedule PiecewiseConstantDecay(const std::vector<double>& boundaries, const std::vector<double>& values);
struct PolynomialDecayOptions {
  double end_learning_rate = 0.0001, power = 1;
  bool cycle = false;
};
Schedule PolynomialDecay(double initial_learning_rate, double decay_steps, const PolynomialDecayOptions& options = {});
Schedule InverseTimeDecay(double initial_learning_rate, double decay_steps, double decay_rate, bool staircase = false);
struct CosineDecayOptions {
  double alpha = 0;
  std::optional<double> warmup_target = {};
  double warmup_steps = 0;
};
Schedule CosineDecay(double initial_learning_rate, double decay_steps, const CosineDecayOptions& options = {});
struct CosineDecayRestartsOptions {
  double t_mul = 2, m_mul = 1, alpha = 0;
};
Schedule CosineDecayRestarts(double initial_learning_rate, double first_decay_steps, const CosineDecayRestartsOptions& options = {});

}  // namespace tandem::nn
