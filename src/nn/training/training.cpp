#include "nn/training/training.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <tandem/ops.hpp>
#include <tandem/tape.hpp>

#include "base/text.hpp"
#include "nn/network.hpp"
#include "nn/ranks.hpp"

namespace tandem::nn {
namespace {

std::vector<Variable> sum_and_count(const std::string& name) {
  const auto zero = [&](const char* part) { return Variable(Tensor::scalar(0.f), {.name = cat(name, "_", part), .trainable = false}); };
  return {zero("total"), zero("count")};
}

void add_mean(const std::vector<Variable>& sums, const Tensor& value, const Tensor& count) {
  sums[0].assign_add(value * count);
  sums[1].assign_add(count);
}
double mean_of(const std::vector<Variable>& sums) {
  const double count = sums[1].value().item<double>();
  return count == 0 ? 0 : sums[0].value().item<double>() / count;
}

// Keras's: by the class of each example; 1 for classes that are not named.
Tensor weights_by_class(const Tensor& y, const std::map<int64_t, double>& class_weight) {
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

// Data of another type than the model's input was made for (bytes of an image) is converted in the step.
std::vector<Tensor> as_inputs(const Model& model, const std::vector<Tensor>& batch, size_t count) {
  std::vector<Tensor> x(batch.begin(), batch.begin() + static_cast<ptrdiff_t>(count));
  const bool known = dynamic_cast<NetworkBody&>(model.body()).has_graph();
  for (size_t i = 0; i < x.size(); ++i) {
    const DType wanted = known ? model.inputs()[i].spec().dtype : is_float(x[i].dtype()) ? x[i].dtype() : DType::F32;
    if (x[i].dtype() != wanted) x[i] = x[i].cast(wanted);
  }
  return x;
}

std::string text_of(const std::vector<Spec>& specs) {
  std::string text;
  for (const Spec& s : specs) text += s.str() + ";";
  return text;
}

std::vector<Spec> part(const std::vector<Spec>& specs, size_t first, size_t count) {
  return {specs.begin() + static_cast<ptrdiff_t>(first), specs.begin() + static_cast<ptrdiff_t>(first + count)};
}

}  // namespace

Training& training_of(const Model& model) {
  auto& body = dynamic_cast<NetworkBody&>(model.body());
  if (!body.training) body.training = std::make_shared<Training>();
  return *body.training;
}

Training& compiled_training(const Model& model) {
  Training& t = training_of(model);
  if (!t.compiled)
    user_error("model '", model.name(),
               "' is not compiled\n  hint: model.compile({.optimizer = \"adam\", .loss = {\"mse\"}}) before fit or evaluate");
  return t;
}

// --- making ready ------------------------------------------------------------------------------------------------------------------------

void Training::prepare(const Model& model, const std::vector<Spec>& inputs, const std::vector<Spec>& targets) {
  if (prepared_) return;
  const FlatCallable forward([&](const std::vector<Tensor>& batch) { return model(as_inputs(model, batch, batch.size()), Pass{}); },
                             {.name = "forward"});
  const std::vector<Spec> results = forward.result_specs(inputs);
  if (targets.size() != results.size())
    user_error("model '", model.name(), "' has ", results.size(), " outputs, there are ", targets.size(), " targets");
  const std::vector<Loss>& loss = options.loss;
  if (loss.size() > 1 && loss.size() != results.size())
    user_error("compile: ", loss.size(), " losses for ", results.size(), " outputs\n  hint: one for all, or one an output");
  if (!options.loss_weights.empty() && options.loss_weights.size() != results.size())
    user_error("compile: ", options.loss_weights.size(), " loss_weights for ", results.size(), " outputs");

  outputs_.clear();
  for (size_t i = 0; i < results.size(); ++i) {
    Output o;
    o.name = model.outputs()[i].origin()->layer.name();
    if (!loss.empty()) o.loss = loss[loss.size() == 1 ? 0 : i].resolved(targets[i].dims, results[i].dims);
    if (!options.loss_weights.empty()) o.weight = options.loss_weights[i];
    if (results.size() > 1 && o.loss) o.tracker = sum_and_count(o.name + "_loss");
    outputs_.push_back(std::move(o));
  }
  place(options.metrics, &Output::metrics, targets, results);
  place(options.weighted_metrics, &Output::weighted_metrics, targets, results);
  loss_ = sum_and_count("loss");
  name_metrics();
  prepared_ = true;
}

void Training::place(const std::vector<Metric>& given, std::vector<Metric> Output::* where, const std::vector<Spec>& targets,
                     const std::vector<Spec>& results) {
  for (const Metric& m : given) {
    bool used = false;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!m.output().empty() && m.output() != outputs_[i].name) continue;
      // A state of its own for each output.
      const bool again = used && m.output().empty();
      (outputs_[i].*where).push_back((again ? Metric::deserialize(m.serialize()) : m).resolved(targets[i].dims, results[i].dims));
      used = true;
    }
    if (!used) user_error("compile: metric ", m.name(), " is for output '", m.output(), "', which the model does not have");
  }
}

// Keras's names: with the output's in front when there are several, numbered or "weighted_" when they are taken.
void Training::name_metrics() {
  shown_.clear();
  std::map<std::string, int> taken;
  const auto show = [&](const std::string& output, const Metric& m, bool is_weighted) {
    const std::string front = outputs_.size() > 1 ? output + "_" : "";
    std::string name = front + m.name();
    if (is_weighted && taken.contains(name)) name = front + "weighted_" + m.name();
    const int count = taken[name]++;
    shown_.push_back({count == 0 ? name : cat(name, "_", count), [m] { return m.value(); }});
  };
  shown_.push_back({"loss", [sums = loss_] { return mean_of(sums); }});
  for (const Output& o : outputs_)
    for (const Metric& m : o.metrics) show(o.name, m, false);
  for (const Output& o : outputs_)
    for (const Metric& m : o.weighted_metrics) show(o.name, m, true);
  for (const Output& o : outputs_)
    if (!o.tracker.empty()) shown_.push_back({o.name + "_loss", [sums = o.tracker] { return mean_of(sums); }});
}

// --- the steps ---------------------------------------------------------------------------------------------------------------------------

Tensor Training::measure(const Model& model, const std::vector<Tensor>& batch, const Parts& parts,
                         const std::map<int64_t, double>& class_weight, bool training, const std::function<void(const Tensor&)>& minimize) {
  const auto target = [&](size_t i) { return batch[parts.inputs + i]; };
  const auto weight = [&](size_t i) {
    if (!class_weight.empty()) return weights_by_class(target(i), class_weight);
    return parts.weights == 0 ? Tensor() : batch[parts.inputs + parts.targets + (parts.weights == 1 ? 0 : i)];
  };
  std::vector<Tensor> extra;
  const Results r = model.run(as_inputs(model, batch, parts.inputs), Pass{.training = training, .losses = &extra});
  Tensor total;
  const auto add = [&](const Tensor& loss) { total = total.defined() ? total + loss : loss; };
  std::vector<Tensor> losses;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Output& o = outputs_[i];
    losses.push_back(o.loss ? o.loss(target(i), r.values[i], weight(i), r.masks[i]) : Tensor());
    if (!o.loss) continue;
    if (losses[i].rank() != 0) user_error("compile: loss ", o.loss.name(), " has reduction none, training needs one number");
    add(o.weight == 1 ? losses[i] : losses[i] * o.weight);
  }
  for (const Tensor& loss : model.losses()) add(loss);
  for (const Tensor& loss : extra) add(loss);
  if (!total.defined()) user_error("compile: there is no loss\n  hint: compile({.loss = {\"mse\"}})");
  minimize(total);

  const Tensor count = extent(batch.front().dims().front(), DType::F32);
  add_mean(loss_, total, count);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Output& o = outputs_[i];
    const auto update = [&](const Metric& m, const Tensor& w) {
      m.update(target(i), r.values[i], m.takes_mask() ? masked_weight(w, r.masks[i], MaskScale::None) : w);
    };
    for (const Metric& m : o.metrics) update(m, {});
    for (const Metric& m : o.weighted_metrics) update(m, weight(i));
    if (!o.tracker.empty()) add_mean(o.tracker, losses[i], count);
  }
  return total;
}

const FlatCallable& Training::step(const Model& model, Run::Kind kind, const std::vector<Spec>& specs, const Parts& parts,
                                   const std::map<int64_t, double>& class_weight) {
  const std::string text = text_of(specs);
  for (const auto& s : steps_)
    if (s->kind == kind && s->specs == text && s->parts == parts && s->class_weight == class_weight) return s->function;

  if (kind != Run::Kind::Predict) prepare(model, part(specs, 0, parts.inputs), part(specs, parts.inputs, parts.targets));
  // The model holds this training, so the steps must not hold the model: a handle that does not own.
  const auto self = [body = &model.body()] { return Model(Layer(std::shared_ptr<LayerBody>(std::shared_ptr<void>(), body))); };
  FlatFunction body;
  switch (kind) {
    case Run::Kind::Train: {
      options.optimizer.build(model.trainable_weights());
      body = [this, self, parts, class_weight](const std::vector<Tensor>& batch) -> std::vector<Tensor> {
        const Model m = self();
        Tape tape;
        measure(m, batch, parts, class_weight, true, [&](const Tensor& loss) {
          const Tensor scaled = options.optimizer.scaled(loss);
          const auto update = [&](const std::vector<Tensor>& gradients) {
            options.optimizer.apply(gradients);
            m.apply_constraints();
          };
          if (loss_scale)
            loss_scale->apply(tape.gradients(loss_scale->scale(scaled), m.trainable_weights()), update);
          else
            update(tape.gradients(scaled, m.trainable_weights()));
        });
        return {};
      };
      break;
    }
    case Run::Kind::Test:
      body = [this, self, parts, class_weight](const std::vector<Tensor>& batch) -> std::vector<Tensor> {
        measure(self(), batch, parts, class_weight, false, [](const Tensor&) {});
        return {};
      };
      break;
    case Run::Kind::Predict:
      body = [self, parts](const std::vector<Tensor>& batch) {
        const Model m = self();
        return m(as_inputs(m, batch, parts.inputs), Pass{});
      };
      break;
  }
  static constexpr const char* kNames[] = {"train_step", "test_step", "predict_step"};
  const FunctionOptions function{
      .name = kNames[static_cast<size_t>(kind)], .specs = specs, .precision = compiled ? precision : model.precision()};
  steps_.push_back(std::make_unique<Step>(Step{kind, text, parts, class_weight, FlatCallable(std::move(body), function)}));
  return steps_.back()->function;
}

// --- metrics -----------------------------------------------------------------------------------------------------------------------------

std::vector<Variable> Training::metric_variables() const {
  std::vector<Variable> all = loss_;
  for (const Output& o : outputs_) {
    all.insert(all.end(), o.tracker.begin(), o.tracker.end());
    for (const auto& list : {o.metrics, o.weighted_metrics})
      for (const Metric& m : list)
        for (const Variable& v : m.variables()) all.push_back(v);
  }
  return all;
}

void Training::reset_metrics() const {
  for (const Variable& v : metric_variables()) v.assign(Tensor::zeros(v.shape(), v.dtype()));
}

Logs Training::logs() const {
  Logs logs;
  for (const Shown& s : shown_) logs.emplace_back(s.name, s.value());
  return logs;
}

std::optional<Metric> Training::metric(const std::string& name) const {
  for (const Output& o : outputs_)
    for (const auto& list : {o.metrics, o.weighted_metrics})
      for (const Metric& m : list)
        if (m.name() == name) return m;
  return {};
}

}  // namespace tandem::nn
