// Step: what the built-in steps and those of one's own are made of.
#include <algorithm>

#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "frontend/apply.hpp"
#include "nn/network.hpp"
#include "nn/ranks.hpp"
#include "nn/training/training.hpp"

namespace tandem::nn {
namespace {

// Keras's: by the class of each example; 1 for classes that are not named.
Tensor weights_by_class(const Tensor& y, const WeightOfClass& class_weight) {
  const int64_t count = class_weight.rbegin()->first + 1;
  std::vector<float> table(static_cast<size_t>(count), 1.f);
  for (const auto& [c, weight] : class_weight) table[static_cast<size_t>(c)] = static_cast<float>(weight);
  Tensor classes = y;
  if (y.rank() > 1) classes = y.dims().back().is(1) ? y.squeeze(-1) : y.argmax(-1);
  if (classes.rank() != 1) user_error("fit: class_weight needs one class an example, targets are ", y.type_str());
  classes = (is_float(classes.dtype()) ? round(classes) : classes).cast(DType::I64);
  const Tensor named = logical_and(classes >= 0, classes < count);
  return where(named, take_clipped(Tensor::from(table), where(named, classes, 0)), 1.f);
}

Spec spec_of(const Tensor& t) { return {t.dtype(), t.dims()}; }

void expect_outputs(const char* what, const std::vector<Tensor>& given, size_t count) {
  if (given.size() != count) user_error(what, ": got ", given.size(), " outputs, the model has ", count);
}

}  // namespace

std::vector<Tensor> model_inputs(const Model& model, const std::vector<Tensor>& given) {
  const bool known = dynamic_cast<NetworkBody&>(model.body()).has_graph();
  const size_t count = known ? model.inputs().size() : 1;
  std::vector<Tensor> x = given;
  for (size_t i = 0; i < std::min(count, x.size()); ++i) {
    const DType wanted = known ? model.inputs()[i].spec().dtype : is_float(x[i].dtype()) ? x[i].dtype() : DType::F32;
    if (x[i].dtype() != wanted) x[i] = x[i].cast(wanted);
  }
  return x;
}

Step::Impl::Impl(Training& t, const Model& m, const Training::Parts& p, bool is_train, const std::vector<Tensor>& tensors)
    : training(t), model(m), parts(p), is_training(is_train), batch(tensors) {
  const auto first = batch.begin() + static_cast<ptrdiff_t>(parts.inputs);
  inputs = model_inputs(model, {batch.begin(), first});
  targets = {first, first + static_cast<ptrdiff_t>(parts.targets)};
}

Tensor Step::Impl::rows() const { return extent(batch.front().dims().front(), DType::F32); }
Tensor Step::Impl::mask(size_t output) const { return output < results.masks.size() ? results.masks[output] : Tensor(); }

const Model& Step::model() const { return impl_.model; }
bool Step::training() const { return impl_.is_training; }
const std::vector<Tensor>& Step::inputs() const { return impl_.inputs; }
const std::vector<Tensor>& Step::targets() const { return impl_.targets; }

Tensor Step::sample_weight(size_t output) const {
  const Training::Parts& p = impl_.parts;
  if (output < p.classes.size() && !p.classes[output].empty()) return weights_by_class(impl_.targets[output], p.classes[output]);
  if (output >= p.weights.size() || !p.weights[output]) return {};
  return impl_.batch[p.inputs + p.targets + *p.weights[output]];
}

std::vector<Tensor> Step::forward(Where where) const {
  return frontend::for_caller(where, [&] {
    impl_.extra.clear();
    impl_.results = impl_.model.run(impl_.inputs, Pass{.training = impl_.is_training, .losses = &impl_.extra});
    return impl_.results.values;
  });
}

Tensor Step::loss(const std::vector<Tensor>& outputs, Where where) const {
  return frontend::for_caller(where, [&] {
    const std::vector<Training::Output>& compiled = impl_.training.outputs();
    Tensor total;
    const auto add = [&](const Tensor& loss) { total = total.defined() ? total + loss : loss; };
    if (!compiled.empty()) expect_outputs("loss", outputs, compiled.size());
    for (size_t i = 0; i < compiled.size(); ++i) {
      const Training::Output& o = compiled[i];
      if (!o.loss) continue;
      const TargetsAreChecked checked(class_targets(o.loss, spec_of(impl_.targets[i]), o.spec).has_value());
      const Tensor loss = o.loss(impl_.targets[i], outputs[i], sample_weight(i), impl_.mask(i));
      if (loss.rank() != 0) user_error("compile: loss ", o.loss.name(), " has reduction none, training needs one number");
      add(o.weight == 1 ? loss : loss * o.weight);
      if (o.tracker) o.tracker->add(loss, impl_.rows());
    }
    for (const Tensor& loss : impl_.model.losses()) add(loss);
    for (const Tensor& loss : impl_.extra) add(loss);
    if (!total.defined()) user_error("compile: there is no loss\n  hint: compile({.loss = {\"mse\"}})");
    impl_.lost = true;
    return total;
  });
}

void Step::measure(const std::vector<Tensor>& outputs, Where where) const {
  frontend::for_caller(where, [&] {
    const std::vector<Training::Output>& compiled = impl_.training.outputs();
    if (!compiled.empty()) expect_outputs("measure", outputs, compiled.size());
    for (size_t i = 0; i < compiled.size(); ++i) {
      const auto update = [&](const Metric& m, const Tensor& w) {
        const TargetsAreChecked checked(class_targets(m, spec_of(impl_.targets[i]), compiled[i].spec).has_value());
        m.update(impl_.targets[i], outputs[i], m.takes_mask() ? masked_weight(w, impl_.mask(i), MaskScale::None) : w);
      };
      for (const Metric& m : compiled[i].metrics) update(m, {});
      for (const Metric& m : compiled[i].weighted_metrics) update(m, sample_weight(i));
    }
    impl_.measured = true;
  });
}

void Step::log(const std::string& name, const Tensor& value, Where where) const {
  frontend::for_caller(where, [&] {
    if (value.rank() != 0) user_error("log: '", name, "' is ", value.type_str(), ", it must be one number\n  hint: mean() of it");
    if (std::ranges::find(impl_.logged, name) != impl_.logged.end()) user_error("log: '", name, "' is logged twice in one step");
    impl_.logged.push_back(name);
    impl_.training.tracker(name).add(value.cast(DType::F32), impl_.rows());
  });
}

// --- gradients ---------------------------------------------------------------------------------------------------------------------------

std::vector<Tensor> Step::gradients(Tape& tape, const Tensor& loss, Where where) const {
  return frontend::for_caller(where, [&] {
    const Optimizer& optimizer = impl_.training.options.optimizer;
    const std::optional<LossScale>& scale = impl_.training.loss_scale;
    const Tensor scaled = optimizer.scaled(loss);
    std::vector<Tensor> gradients = tape.gradients(scale ? scale->scale(scaled) : scaled, impl_.model.trainable_weights());
    if (scale) gradients = scale->unscale(gradients).gradients;
    for (Tensor& g : gradients)
      if (g.defined()) g = optimizer.unscaled(g);
    return gradients;
  });
}

void Step::apply(const std::vector<Tensor>& gradients, Where where) const {
  frontend::for_caller(where, [&] {
    const std::optional<LossScale>& scale = impl_.training.loss_scale;
    std::vector<Tensor> scaled = gradients;  // as the optimizer and the loss scale expect them, which divide
    for (Tensor& g : scaled) {
      if (!g.defined()) continue;
      g = impl_.training.options.optimizer.scaled(g);
      if (scale) g = scale->scale(g);
    }
    impl_.update(scaled);
  });
}

void Step::minimize(Tape& tape, const Tensor& loss, Where where) const {
  frontend::for_caller(where, [&] {
    const Tensor scaled = impl_.training.options.optimizer.scaled(loss);
    const std::optional<LossScale>& scale = impl_.training.loss_scale;
    impl_.update(tape.gradients(scale ? scale->scale(scaled) : scaled, impl_.model.trainable_weights()));
  });
}

void Step::Impl::update(const std::vector<Tensor>& scaled_gradients) {
  if (!is_training) user_error("test_step: weights do not change while a model is measured");
  const Optimizer& optimizer = training.options.optimizer;
  if (!optimizer.built()) {
    const frontend::EagerScope eager;
    optimizer.build(model.trainable_weights());
  }
  const auto apply = [&](const std::vector<Tensor>& gradients) {
    optimizer.apply(gradients);
    model.apply_constraints();
  };
  if (training.loss_scale)
    training.loss_scale->apply(scaled_gradients, apply);
  else
    apply(scaled_gradients);
}

}  // namespace tandem::nn
