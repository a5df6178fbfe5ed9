// OptimizerBody: what all optimizers share (clipping, decay, averages, accumulation) around a formula that updates one variable.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tandem/nn/optimizers.hpp>

namespace tandem::nn {

class OptimizerBody {
 public:
  OptimizerBody(std::string class_name, const LearningRate& rate, Config own, OptimizerOptions options);
  virtual ~OptimizerBody() = default;

  const std::string& class_name() const { return class_name_; }
  const std::string& name() const { return options_.name; }
  Config config() const;
  bool built() const { return built_; }
  void build(const std::vector<Variable>& targets);
  void apply(const std::vector<Tensor>& gradients);
  void finalize();
  void exclude_from_weight_decay(const std::vector<std::string>& parts_of_names);
  const std::vector<Variable>& variables() const { return variables_; }
  const Variable& iterations() const { return iterations_; }
  const OptimizerOptions& options() const { return options_; }
  double learning_rate() const;
  void set_learning_rate(double rate);

 protected:
  // What is the same for all variables in one step.
  struct UpdateInputs {
    Tensor rate;    // float32
    Tensor number;  // 1 at the first update, float32
  };
  virtual void make_state(const std::vector<Variable>& targets) = 0;
  virtual void begin(const UpdateInputs&) {}
  virtual void update(size_t i, const Variable& target, const Tensor& gradient, const UpdateInputs& step) = 0;

  // One variable like each target for each name; in Keras's order, all of one target together.
  struct SlotKind {
    const char* name;
    double initial = 0;
  };
  std::vector<std::vector<Variable>> add_slots(const std::vector<Variable>& targets, const std::vector<SlotKind>& kinds);
  Variable add_variable(const std::string& name, const Tensor& initial);
  double own(const char* key) const { return own_[key].get<double>(); }
  bool is_set(const char* key) const { return own_[key].get<bool>(); }
  bool has_schedule() const { return rate_.schedule().has_value(); }

 private:
  Tensor updates_so_far() const;  // iterations, or those that updated when gradients are accumulated
  std::vector<Tensor> clipped(std::vector<Tensor> gradients) const;
  void update_all(std::vector<Tensor> gradients);
  void average();
  bool decays(const Variable& target) const;
  Tensor current_rate() const;

  const std::string class_name_;
  const LearningRate rate_;
  const Config own_;
  OptimizerOptions options_;
  bool built_ = false;
  std::vector<std::string> not_decayed_;
  std::vector<Variable> variables_, targets_, averages_, accumulators_;
  Variable iterations_, rate_variable_;
};

struct OptimizerKind {
  const char* class_name;
  double rate;
  Config own;  // defaults of its own parameters
  std::shared_ptr<OptimizerBody> (*make)(const LearningRate& rate, const Config& own, const OptimizerOptions& options);
};
const std::vector<OptimizerKind>& optimizer_kinds();  // kinds.cpp

}  // namespace tandem::nn
