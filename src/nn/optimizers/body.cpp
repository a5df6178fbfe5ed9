#include "nn/optimizers/body.hpp"

#include <algorithm>

#include <tandem/control.hpp>
#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "nn/names.hpp"

namespace tandem::nn {
namespace {

template <class T> Config optional(const std::optional<T>& value) { return value ? Config(*value) : Config(); }

}  // namespace

OptimizerBody::OptimizerBody(std::string class_name, const LearningRate& rate, Config own, OptimizerOptions options)
    : class_name_(std::move(class_name)), rate_(rate), own_(std::move(own)), options_(std::move(options)) {
  const std::string& c = class_name_;
  if (options_.name.empty()) options_.name = snake_case(c);
  if (int{options_.clipnorm.has_value()} + int{options_.clipvalue.has_value()} + int{options_.global_clipnorm.has_value()} > 1)
    user_error(c, ": only one of clipnorm, clipvalue and global_clipnorm can be set");
  for (const auto& [key, limit] :
       {std::pair("clipnorm", options_.clipnorm), {"clipvalue", options_.clipvalue}, {"global_clipnorm", options_.global_clipnorm}})
    if (limit && !(*limit > 0)) user_error(c, ": ", key, " is ", *limit, ", it must be above 0");
  if (options_.gradient_accumulation_steps && *options_.gradient_accumulation_steps < 2)
    user_error(c, ": gradient_accumulation_steps is ", *options_.gradient_accumulation_steps, ", it must be at least 2");
  if (options_.use_ema && !(options_.ema_momentum >= 0 && options_.ema_momentum <= 1))
    user_error(c, ": ema_momentum is ", options_.ema_momentum, ", it must be in [0, 1]");
  if (options_.ema_overwrite_frequency && *options_.ema_overwrite_frequency < 1)
    user_error(c, ": ema_overwrite_frequency is ", *options_.ema_overwrite_frequency, ", it must be at least 1");
  if (options_.loss_scale_factor && !(*options_.loss_scale_factor > 0))
    user_error(c, ": loss_scale_factor is ", *options_.loss_scale_factor, ", it must be above 0");
  iterations_ = add_variable("iteration", Tensor::scalar(int64_t{0}));
  if (!has_schedule()) rate_variable_ = add_variable("learning_rate", Tensor::scalar(static_cast<float>(rate_.rate())));
}

Config OptimizerBody::config() const {
  Config rate;
  if (!has_schedule()) {
    rate = rate_variable_.value().item<double>();
  } else {
    rate = rate_.schedule()->serialize();
  }
  const OptimizerOptions& o = options_;
  Config c{{"name", o.name},
           {"learning_rate", rate},
           {"weight_decay", optional(o.weight_decay)},
           {"clipnorm", optional(o.clipnorm)},
           {"global_clipnorm", optional(o.global_clipnorm)},
           {"clipvalue", optional(o.clipvalue)},
           {"use_ema", o.use_ema},
           {"ema_momentum", o.ema_momentum},
           {"ema_overwrite_frequency", optional(o.ema_overwrite_frequency)},
           {"loss_scale_factor", optional(o.loss_scale_factor)},
           {"gradient_accumulation_steps", optional(o.gradient_accumulation_steps)}};
  c.update(own_);
  return c;
}

// --- state -----------------------------------------------------------------------------------------------------------------------------

Variable OptimizerBody::add_variable(const std::string& name, const Tensor& initial) {
  return variables_.emplace_back(initial, VariableOptions{.name = name, .trainable = false});
}

std::vector<std::vector<Variable>> OptimizerBody::add_slots(const std::vector<Variable>& targets, const std::vector<SlotKind>& kinds) {
  std::vector<std::vector<Variable>> slots(kinds.size());
  for (const Variable& t : targets)
    for (size_t k = 0; k < kinds.size(); ++k)
      slots[k].push_back(add_variable(t.name() + "_" + kinds[k].name, Tensor::full(t.shape(), kinds[k].initial, t.dtype())));
  return slots;
}

void OptimizerBody::build(const std::vector<Variable>& targets) {
  if (built_) {
    const bool same = std::ranges::equal(targets, targets_, {}, &Variable::impl, &Variable::impl);
    if (!same)
      user_error(class_name_, ": was built for ", targets_.size(), " other variables\n  hint: make a new optimizer for another model");
    return;
  }
  targets_ = targets;
  if (options_.use_ema) averages_ = add_slots(targets, {{"average"}}).front();
  if (options_.gradient_accumulation_steps) accumulators_ = add_slots(targets, {{"gradient_accumulator"}}).front();
  make_state(targets);
  built_ = true;
}

// --- a step ----------------------------------------------------------------------------------------------------------------------------

Tensor OptimizerBody::updates_so_far() const {
  if (!options_.gradient_accumulation_steps) return iterations_.value();
  return floor_divide(iterations_, *options_.gradient_accumulation_steps);
}

Tensor OptimizerBody::current_rate() const { return has_schedule() ? (*rate_.schedule())(iterations_.value()) : rate_variable_.value(); }

void OptimizerBody::apply(const std::vector<Tensor>& given) {
  if (!built_) user_error(class_name_, ": is not built\n  hint: build(variables) makes its state");
  if (given.size() != targets_.size())
    user_error(class_name_, ": got ", given.size(), " gradients for the ", targets_.size(), " variables that it was built for");
  if (!targets_.empty() && std::ranges::none_of(given, &Tensor::defined))
    user_error(class_name_, ": no variable has a gradient\n  hint: the loss does not depend on any of them");
  std::vector<Tensor> gradients;
  for (size_t i = 0; i < given.size(); ++i) {
    const Tensor g = given[i].defined() ? given[i].cast(targets_[i].dtype()) : given[i];
    gradients.push_back(g.defined() && options_.loss_scale_factor ? g / *options_.loss_scale_factor : g);
  }
  if (!options_.gradient_accumulation_steps) {
    update_all(std::move(gradients));
  } else {
    const int64_t steps = *options_.gradient_accumulation_steps;
    for (size_t i = 0; i < gradients.size(); ++i)
      if (gradients[i].defined()) gradients[i] = accumulators_[i] + gradients[i];
    flat::cond((iterations_ + 1) % steps == 0,
               [&]() -> std::vector<Tensor> {
                 std::vector<Tensor> means = gradients;
                 for (size_t i = 0; i < means.size(); ++i) {
                   if (!means[i].defined()) continue;
                   means[i] = means[i] / steps;
                   accumulators_[i].assign(Tensor::zeros(targets_[i].shape(), targets_[i].dtype()));
                 }
                 update_all(std::move(means));
                 return {};
               },
               [&]() -> std::vector<Tensor> {
                 for (size_t i = 0; i < gradients.size(); ++i)
                   if (gradients[i].defined()) accumulators_[i].assign(gradients[i]);
                 return {};
               });
  }
  if (options_.use_ema) average();
  iterations_.assign_add(1);
}

void OptimizerBody::update_all(std::vector<Tensor> gradients) {
  gradients = clipped(std::move(gradients));
  const UpdateInputs step{current_rate(), updates_so_far().cast(DType::F32) + 1};
  begin(step);
  for (size_t i = 0; i < targets_.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Variable& t = targets_[i];
    if (options_.weight_decay && decays(t)) t.assign(t - t * *options_.weight_decay * step.rate.cast(t.dtype()));
    update(i, t, gradients[i], {step.rate.cast(t.dtype()), step.number.cast(t.dtype())});
  }
}

std::vector<Tensor> OptimizerBody::clipped(std::vector<Tensor> gradients) const {
  if (options_.global_clipnorm) {
    const double limit = *options_.global_clipnorm;
    Tensor squares;
    for (const Tensor& g : gradients)
      if (g.defined()) squares = squares.defined() ? squares + sum(square(g)).cast(DType::F32) : sum(square(g)).cast(DType::F32);
    const Tensor norm = sqrt(squares);
    const Tensor scale = limit * minimum(1 / norm, 1 / limit) + (norm - norm);  // the difference: NaN when the norm is infinite
    for (Tensor& g : gradients)
      if (g.defined()) g = g * scale.cast(g.dtype());
    return gradients;
  }
  for (Tensor& g : gradients) {
    if (!g.defined()) continue;
    if (options_.clipvalue) g = clip(g, -*options_.clipvalue, *options_.clipvalue);
    if (options_.clipnorm) g = g * *options_.clipnorm / maximum(sqrt(sum(square(g))), *options_.clipnorm);
  }
  return gradients;
}

void OptimizerBody::average() {
  const Tensor number = updates_so_far();
  for (size_t i = 0; i < targets_.size(); ++i) {
    const Variable &t = targets_[i], &a = averages_[i];
    const Tensor momentum = (number != 0).cast(t.dtype()) * options_.ema_momentum;
    a.assign(momentum * a + (1 - momentum) * t);
    if (options_.ema_overwrite_frequency) t.assign(where((number + 1) % *options_.ema_overwrite_frequency == 0, a, t));
  }
}

void OptimizerBody::finalize() {
  for (size_t i = 0; i < averages_.size(); ++i) targets_[i].assign(averages_[i]);
}

bool OptimizerBody::decays(const Variable& target) const {
  return std::ranges::none_of(not_decayed_, [&](const std::string& part) { return target.name().find(part) != std::string::npos; });
}

void OptimizerBody::exclude_from_weight_decay(const std::vector<std::string>& parts_of_names) {
  if (built_) user_error(class_name_, ": exclude_from_weight_decay comes before the optimizer is built");
  not_decayed_ = parts_of_names;
}

double OptimizerBody::learning_rate() const { return current_rate().item<double>(); }

void OptimizerBody::set_learning_rate(double rate) {
  if (has_schedule()) user_error(class_name_, ": its learning rate is a schedule and cannot be set\n  hint: make it with a number");
  rate_variable_.assign(Tensor::scalar(static_cast<float>(rate)));
}

}  // namespace tandem::nn
