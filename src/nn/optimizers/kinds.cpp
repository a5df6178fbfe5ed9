// The formulas of the optimizers, as Keras has them.
#include <limits>

#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "nn/optimizers/body.hpp"

namespace tandem::nn {
namespace {

using Slots = std::vector<Variable>;

template <class Body> std::shared_ptr<OptimizerBody> make(const LearningRate& rate, const Config& own, const OptimizerOptions& options) {
  return std::make_shared<Body>(rate, own, options);
}

// An average that decays. Where x stays 0, as for the weights of a unit that relu keeps at 0, it would end among the subnormal numbers,
// which CPUs divide and take roots of at half their speed (a step of the benchmark's mlp took 10 % longer). They become 0, as under
// TensorFlow and JAX, which let the CPU do that.
void move_towards(const Tensor& x, const Variable& average, double beta) {
  const Tensor moved = average + (x - average) * (1 - beta);
  const DType t = average.dtype();
  if (t != DType::F32 && t != DType::F64) return average.assign(moved);
  const double smallest = t == DType::F32 ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  average.assign(where(absolute(moved) < smallest, 0.0, moved));
}

class Sgd final : public OptimizerBody {
 public:
  Sgd(const LearningRate& rate, const Config& c, const OptimizerOptions& options) : OptimizerBody("SGD", rate, c, options) {
    if (!(own("momentum") >= 0 && own("momentum") <= 1)) user_error("SGD: momentum is ", own("momentum"), ", it must be in [0, 1]");
  }

 private:
  void make_state(const std::vector<Variable>& targets) override {
    if (own("momentum") != 0) momentums_ = add_slots(targets, {{"momentum"}}).front();
  }
  void update(size_t i, const Variable& t, const Tensor& g, const UpdateInputs& s) override {
    if (momentums_.empty()) return t.assign_sub(g * s.rate);
    const Variable& m = momentums_[i];
    const double momentum = own("momentum");
    m.assign(m * momentum - g * s.rate);
    t.assign_add(is_set("nesterov") ? m * momentum - g * s.rate : m.value());
  }
  Slots momentums_;
};

// Tieleman and Hinton, 2012.
class Rmsprop final : public OptimizerBody {
 public:
  Rmsprop(const LearningRate& rate, const Config& c, const OptimizerOptions& options) : OptimizerBody("RMSprop", rate, c, options) {}

 private:
  void make_state(const std::vector<Variable>& targets) override {
    velocities_ = add_slots(targets, {{"velocity"}}).front();
    if (own("momentum") > 0) momentums_ = add_slots(targets, {{"momentum"}}).front();
    if (is_set("centered")) averages_ = add_slots(targets, {{"average_gradient"}}).front();
  }
  void update(size_t i, const Variable& t, const Tensor& g, const UpdateInputs& s) override {
    const double rho = own("rho");
    const Variable& v = velocities_[i];
    v.assign(rho * v + (1 - rho) * square(g));
    Tensor denominator = v + own("epsilon");
    if (is_set("centered")) {
      averages_[i].assign(rho * averages_[i] + (1 - rho) * g);
      denominator = v - square(averages_[i]) + own("epsilon");
    }
    const Tensor increment = s.rate * g / sqrt(denominator);
    if (momentums_.empty()) return t.assign_sub(increment);
    momentums_[i].assign(own("momentum") * momentums_[i] + increment);
    t.assign_sub(momentums_[i]);
  }
  Slots velocities_, momentums_, averages_;
};

// Duchi, Hazan and Singer, 2011.
class Adagrad_ final : public OptimizerBody {
 public:
  Adagrad_(const LearningRate& rate, const Config& c, const OptimizerOptions& options) : OptimizerBody("Adagrad", rate, c, options) {}

 private:
  void make_state(const std::vector<Variable>& targets) override {
    accumulators_ = add_slots(targets, {{"accumulator", own("initial_accumulator_value")}}).front();
  }
  void update(size_t i, const Variable& t, const Tensor& g, const UpdateInputs& s) override {
    accumulators_[i].assign_add(square(g));
    t.assign_sub(s.rate * g / sqrt(accumulators_[i] + own("epsilon")));
  }
  Slots accumulators_;
};

// Zeiler, 2012.
class Adadelta_ final : public OptimizerBody {
 public:
  Adadelta_(const LearningRate& rate, const Config& c, const OptimizerOptions& options) : OptimizerBody("Adadelta", rate, c, options) {}

 private:
  void make_state(const std::vector<Variable>& targets) override {
    slots_ = add_slots(targets, {{"accumulated_grad"}, {"accumulated_delta_var"}});
  }
  void update(size_t i, const Variable& t, const Tensor& g, const UpdateInputs& s) override {
    const double rho = own("rho"), epsilon = own("epsilon");
    const Variable &gradients = slots_[0][i], &deltas = slots_[1][i];
    gradients.assign(rho * gradients + (1 - rho) * square(g));
    const Tensor delta = -(sqrt(deltas + epsilon) * g / sqrt(gradients + epsilon));
    deltas.assign(rho * deltas + (1 - rho) * square(delta));
    t.assign_add(s.rate * delta);
  }
  std::vector<Slots> slots_;
};

// Kingma and Ba, 2015; AdamW: Loshchilov and Hutter, 2019, whose decay is the base's.
class Adam_ : public OptimizerBody {
 public:
  Adam_(const LearningRate& rate, const Config& c, const OptimizerOptions& options) : Adam_("Adam", rate, c, options) {}

 protected:
  Adam_(const char* name, const LearningRate& rate, const Config& c, const OptimizerOptions& options)
      : OptimizerBody(name, rate, c, options) {}

 private:
  void make_state(const std::vector<Variable>& targets) override {
    slots_ = add_slots(targets, {{"momentum"}, {"velocity"}});
    if (is_set("amsgrad")) hats_ = add_slots(targets, {{"velocity_hat"}}).front();
  }
  void update(size_t i, const Variable& t, const Tensor& g, const UpdateInputs& s) override {
    const double beta_1 = own("beta_1"), beta_2 = own("beta_2");
    const Variable &m = slots_[0][i], &v = slots_[1][i];
    const Tensor rate = s.rate * sqrt(1 - power(beta_2, s.number)) / (1 - power(beta_1, s.number));
    move_towards(g, m, beta_1);
    move_towards(square(g), v, beta_2);
    if (!hats_.empty()) hats_[i].assign(maximum(hats_[i], v));
    t.assign_sub(m * rate / (sqrt(hats_.empty() ? v : hats_[i]) + own("epsilon")));
  }
  std::vector<Slots> slots_;
  Slots hats_;
};

class AdamW_ final : public Adam_ {
 public:
  AdamW_(const LearningRate& rate, const Config& c, const OptimizerOptions& options) : Adam_("AdamW", rate, c, options) {
    if (!options.weight_decay) user_error("AdamW: needs a weight_decay\n  hint: Adam is the one without");
  }
};

class Adamax_ final : public OptimizerBody {
 public:
  Adamax_(const LearningRate& rate, const Config& c, const OptimizerOptions& options) : OptimizerBody("Adamax", rate, c, options) {}

 private:
  void make_state(const std::vector<Variable>& targets) override { slots_ = add_slots(targets, {{"momentum"}, {"norm"}}); }
  void update(size_t i, const Variable& t, const Tensor& g, const UpdateInputs& s) override {
    const Variable &m = slots_[0][i], &u = slots_[1][i];
    move_towards(g, m, own("beta_1"));
    u.assign(maximum(own("beta_2") * u, absolute(g)));
    t.assign_sub(s.rate * m / ((1 - power(own("beta_1"), s.number)) * (u + own("epsilon"))));
  }
  std::vector<Slots> slots_;
};

// Dozat, 2015.
class Nadam_ final : public OptimizerBody {
 public:
  Nadam_(const LearningRate& rate, const Config& c, const OptimizerOptions& options) : OptimizerBody("Nadam", rate, c, options) {}

 private:
  void make_state(const std::vector<Variable>& targets) override {
    slots_ = add_slots(targets, {{"momentum"}, {"velocity"}});
    product_ = add_variable("u_product", Tensor::scalar(1.0f));
  }
  Tensor momentum_at(const Tensor& number) const { return own("beta_1") * (1 - 0.5 * power(0.96, number)); }
  void begin(const UpdateInputs& s) override { product_.assign(product_ * momentum_at(s.number)); }
  void update(size_t i, const Variable& t, const Tensor& g, const UpdateInputs& s) override {
    const double beta_1 = own("beta_1"), beta_2 = own("beta_2");
    const Variable &m = slots_[0][i], &v = slots_[1][i];
    const Tensor now = momentum_at(s.number), next = momentum_at(s.number + 1), product = product_.value().cast(t.dtype());
    move_towards(g, m, beta_1);
    move_towards(square(g), v, beta_2);
    const Tensor m_hat = next * m / (1 - product * next) + (1 - now) * g / (1 - product);
    const Tensor v_hat = v / (1 - power(beta_2, s.number));
    t.assign_sub(m_hat * s.rate / (sqrt(v_hat) + own("epsilon")));
  }
  std::vector<Slots> slots_;
  Variable product_;
};

// Chen et al., "Symbolic discovery of optimization algorithms", 2023.
class Lion_ final : public OptimizerBody {
 public:
  Lion_(const LearningRate& rate, const Config& c, const OptimizerOptions& options) : OptimizerBody("Lion", rate, c, options) {
    if (!(own("beta_1") > 0 && own("beta_1") <= 1)) user_error("Lion: beta_1 is ", own("beta_1"), ", it must be in (0, 1]");
  }

 private:
  void make_state(const std::vector<Variable>& targets) override { momentums_ = add_slots(targets, {{"momentum"}}).front(); }
  void update(size_t i, const Variable& t, const Tensor& g, const UpdateInputs& s) override {
    const double beta_1 = own("beta_1"), beta_2 = own("beta_2");
    const Variable& m = momentums_[i];
    t.assign_sub(s.rate * sign(m * beta_1 + g * (1 - beta_1)));
    m.assign(m * beta_2 + g * (1 - beta_2));
  }
  Slots momentums_;
};

// Shazeer and Stern, 2018.
class Adafactor_ final : public OptimizerBody {
 public:
  Adafactor_(const LearningRate& rate, const Config& c, const OptimizerOptions& options) : OptimizerBody("Adafactor", rate, c, options) {}

 private:
  static bool factored(const Variable& t) { return t.shape().rank() >= 2; }
  void make_state(const std::vector<Variable>& targets) override {
    for (const Variable& t : targets) {
      // Vectors have no factors, but Keras's files have a zero in each one's place.
      Shape rows, columns;
      for (int i = 0; factored(t) && i < t.shape().rank(); ++i) {
        if (i != t.shape().rank() - 1) rows.push_back(t.shape()[static_cast<size_t>(i)]);
        if (i != t.shape().rank() - 2) columns.push_back(t.shape()[static_cast<size_t>(i)]);
      }
      const DType dtype = factored(t) ? t.dtype() : DType::I32;
      rows_.push_back(add_variable(t.name() + "_r", Tensor::zeros(rows, dtype)));
      columns_.push_back(add_variable(t.name() + "_c", Tensor::zeros(columns, dtype)));
      velocities_.push_back(add_variable(t.name() + "_velocity", Tensor::zeros(t.shape(), t.dtype())));
    }
  }
  static Tensor root_mean_square(const Operand& x) { return sqrt(mean(square(x))); }
  void update(size_t i, const Variable& t, const Tensor& g, const UpdateInputs& s) override {
    const Tensor slowing = 1 / sqrt(s.number);
    const Tensor rate = !has_schedule() && is_set("relative_step") ? minimum(s.rate, slowing) : s.rate;
    const Tensor scale = maximum(own("epsilon_2"), root_mean_square(t)) * minimum(rate, slowing);
    const Tensor squares = square(g) + own("epsilon_1"), beta = 1 - power(s.number, own("beta_2_decay"));
    const Variable& v = velocities_[i];
    if (factored(t)) {
      const Variable &r = rows_[i], &c = columns_[i];
      r.assign(beta * r + (1 - beta) * mean(squares, -1));
      c.assign(beta * c + (1 - beta) * mean(squares, -2));
      v.assign(expand_dims(r / mean(r, -1, true), -1) * expand_dims(c, -2));
    } else {
      v.assign(beta * v + (1 - beta) * squares);
    }
    const Tensor u = g / sqrt(v);
    t.assign_sub(scale * (u / maximum(1, root_mean_square(u) / own("clip_threshold"))));
  }
  Slots rows_, columns_, velocities_;
};

// McMahan et al., "Ad click prediction: a view from the trenches", 2013.
class Ftrl_ final : public OptimizerBody {
 public:
  Ftrl_(const LearningRate& rate, const Config& c, const OptimizerOptions& options) : OptimizerBody("Ftrl", rate, c, options) {
    if (own("learning_rate_power") > 0) user_error("Ftrl: learning_rate_power is ", own("learning_rate_power"), ", it must not be above 0");
    for (const char* key :
         {"initial_accumulator_value", "l1_regularization_strength", "l2_regularization_strength", "l2_shrinkage_regularization_strength"})
      if (own(key) < 0) user_error("Ftrl: ", key, " is ", own(key), ", it must not be negative");
  }

 private:
  void make_state(const std::vector<Variable>& targets) override {
    slots_ = add_slots(targets, {{"accumulator", own("initial_accumulator_value")}, {"linear"}});
  }
  void update(size_t i, const Variable& t, const Tensor& g, const UpdateInputs& s) override {
    const double exponent = -own("learning_rate_power"), l1 = own("l1_regularization_strength");
    const Variable &accumulator = slots_[0][i], &linear = slots_[1][i];
    const Tensor l2 = own("l2_regularization_strength") + own("beta") / (2 * s.rate);
    const Tensor shrunk = g + 2 * own("l2_shrinkage_regularization_strength") * t;
    const Tensor sum = accumulator + square(g);
    linear.assign_add(shrunk - (power(sum, exponent) - power(accumulator, exponent)) / s.rate * t);
    t.assign((clip(linear, -l1, l1) - linear) / (power(sum, exponent) / s.rate + 2 * l2));
    accumulator.assign(sum);
  }
  std::vector<Slots> slots_;
};

}  // namespace

const std::vector<OptimizerKind>& optimizer_kinds() {
  static const auto& table = *new std::vector<OptimizerKind>{
      {"SGD", 0.01, Config{{"momentum", 0.0}, {"nesterov", false}}, make<Sgd>},
      {"RMSprop", 0.001, Config{{"rho", 0.9}, {"momentum", 0.0}, {"epsilon", 1e-7}, {"centered", false}}, make<Rmsprop>},
      {"Adagrad", 0.001, Config{{"initial_accumulator_value", 0.1}, {"epsilon", 1e-7}}, make<Adagrad_>},
      {"Adadelta", 0.001, Config{{"rho", 0.95}, {"epsilon", 1e-7}}, make<Adadelta_>},
      {"Adam", 0.001, Config{{"beta_1", 0.9}, {"beta_2", 0.999}, {"epsilon", 1e-7}, {"amsgrad", false}}, make<Adam_>},
      {"AdamW", 0.001, Config{{"beta_1", 0.9}, {"beta_2", 0.999}, {"epsilon", 1e-7}, {"amsgrad", false}}, make<AdamW_>},
      {"Adamax", 0.001, Config{{"beta_1", 0.9}, {"beta_2", 0.999}, {"epsilon", 1e-7}}, make<Adamax_>},
      {"Nadam", 0.001, Config{{"beta_1", 0.9}, {"beta_2", 0.999}, {"epsilon", 1e-7}}, make<Nadam_>},
      {"Lion", 0.001, Config{{"beta_1", 0.9}, {"beta_2", 0.99}}, make<Lion_>},
      {"Adafactor", 0.001,
       Config{{"beta_2_decay", -0.8}, {"epsilon_1", 1e-30}, {"epsilon_2", 1e-3}, {"clip_threshold", 1.0}, {"relative_step", true}},
       make<Adafactor_>},
      {"Ftrl", 0.001,
       Config{{"learning_rate_power", -0.5},
              {"initial_accumulator_value", 0.1},
              {"l1_regularization_strength", 0.0},
              {"l2_regularization_strength", 0.0},
              {"l2_shrinkage_regularization_strength", 0.0},
              {"beta", 0.0}},
       make<Ftrl_>},
  };
  return table;
}

}  // namespace tandem::nn
