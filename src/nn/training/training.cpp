#include "nn/training/training.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include <tandem/tape.hpp>

#include "base/text.hpp"
#include "frontend/thread_state.hpp"
#include "nn/network.hpp"

namespace tandem::nn {
namespace {

Variable zero(const std::string& name) {
  const frontend::EagerScope eager;  // a step of one's own names what it logs while it is traced
  return Variable(Tensor::scalar(0.f), {.name = name, .trainable = false});
}

std::string text_of(const std::vector<Spec>& specs) {
  std::string text;
  for (const Spec& s : specs) text += s.str() + ";";
  return text;
}

std::vector<Spec> part(const std::vector<Spec>& specs, size_t first, size_t count) {
  return {specs.begin() + static_cast<ptrdiff_t>(first), specs.begin() + static_cast<ptrdiff_t>(first + count)};
}

// Both together: the classes are the same, what either leaves out may be there.
void add(std::optional<ClassTargets>& all, const std::optional<ClassTargets>& more) {
  if (!all) {
    all = more;
  } else if (more) {
    all->classes = std::min(all->classes, more->classes);
    all->ignored.insert(all->ignored.end(), more->ignored.begin(), more->ignored.end());
  }
}

}  // namespace

Tracker::Tracker(const std::string& n) : name(n), total(zero(n + "_total")), count(zero(n + "_count")) {}
void Tracker::add(const Tensor& value, const Tensor& weight) const {
  total.assign_add(value * weight);
  count.assign_add(weight);
}
double Tracker::mean() const {
  const double n = count.value().item<double>();
  return n == 0 ? 0 : total.value().item<double>() / n;
}

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
  const auto expect_targets = [&](size_t outputs) {
    if (targets.size() != outputs)
      user_error("model '", model.name(), "' has ", outputs, " outputs, there are ", targets.size(), " targets",
                 outputs > 1 ? "\n  hint: a list with the targets of each output, fit({x}, {y, z})" : "");
  };
  if (prepared_) return expect_targets(outputs_.size());
  const FlatCallable forward([&](const std::vector<Tensor>& batch) { return model(model_inputs(model, batch), Pass{}); },
                             {.name = "forward"});
  const std::vector<Spec> results = forward.result_specs(inputs);
  expect_targets(results.size());
  const std::vector<Loss>& loss = options.loss;
  if (loss.size() > 1 && loss.size() != results.size())
    user_error("compile: ", loss.size(), " losses for ", results.size(), " outputs\n  hint: one for all, or one an output");
  if (!options.loss_weights.empty() && options.loss_weights.size() != results.size())
    user_error("compile: ", options.loss_weights.size(), " loss_weights for ", results.size(), " outputs");

  outputs_.clear();
  for (size_t i = 0; i < results.size(); ++i) {
    Output o;
    o.name = model.outputs()[i].origin()->layer.name();
    o.spec = results[i];
    if (!loss.empty()) o.loss = loss[loss.size() == 1 ? 0 : i].resolved(targets[i].dims, results[i].dims);
    if (!options.loss_weights.empty()) o.weight = options.loss_weights[i];
    if (results.size() > 1 && o.loss) o.tracker.emplace(o.name + "_loss");
    outputs_.push_back(std::move(o));
  }
  place(options.metrics, &Output::metrics, targets, results);
  place(options.weighted_metrics, &Output::weighted_metrics, targets, results);
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
      (outputs_[i].*where).push_back((again ? m.again() : m).resolved(targets[i].dims, results[i].dims));
      used = true;
    }
    if (!used) user_error("compile: metric ", m.name(), " is for output '", m.output(), "', which the model does not have");
  }
}

const Tracker& Training::tracker(const std::string& name) {
  for (const auto& t : trackers_)
    if (t->name == name) return *t;
  return *trackers_.emplace_back(std::make_unique<Tracker>(name));
}

// Keras's names: with the output's in front when there are several, numbered or "weighted_" when they are taken.
std::vector<Training::Shown> Training::shown_metrics() const {
  std::vector<Shown> shown;
  std::map<std::string, int> taken;
  const auto show = [&](const std::string& output, const Metric& m, bool is_weighted) {
    const std::string front = outputs_.size() > 1 ? output + "_" : "";
    std::string name = front + m.name();
    if (is_weighted && taken.contains(name)) name = front + "weighted_" + m.name();
    const int count = taken[name]++;
    shown.push_back({count == 0 ? name : cat(name, "_", count), [m] { return m.value(); }});
  };
  for (const Output& o : outputs_)
    for (const Metric& m : o.metrics) show(o.name, m, false);
  for (const Output& o : outputs_)
    for (const Metric& m : o.weighted_metrics) show(o.name, m, true);
  return shown;
}

// --- the steps ---------------------------------------------------------------------------------------------------------------------------

// What a step uses of what was compiled, and so what of it is shown and what its targets must be.
struct Training::Used {
  std::vector<std::string> logged;
  bool losses = false, metrics = false;
};

void Training::finish(Compiled& step, const std::vector<Spec>& targets, const Used& used) {
  for (const std::string& name : used.logged) step.shown.push_back({name, [t = &tracker(name)] { return t->mean(); }});
  if (used.metrics)
    for (Shown& s : shown_metrics()) step.shown.push_back(std::move(s));
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Output& o = outputs_[i];
    std::optional<ClassTargets>& classes = step.classes.emplace_back();
    if (used.losses) {
      add(classes, class_targets(o.loss, targets[i], o.spec));
      if (o.tracker) step.shown.push_back({o.tracker->name, [t = &*o.tracker] { return t->mean(); }});
    }
    if (!used.metrics) continue;
    for (const auto* list : {&o.metrics, &o.weighted_metrics})
      for (const Metric& m : *list) add(classes, class_targets(m, targets[i], o.spec));
  }
  std::set<std::string> names;
  for (const Shown& s : step.shown)
    if (!names.insert(s.name).second) user_error("compile: two numbers are logged as '", s.name, "'");
}

const Training::Compiled& Training::step(const Model& model, Run::Kind kind, const std::vector<Spec>& specs, const Parts& parts) {
  const std::string text = text_of(specs);
  for (const auto& s : steps_)
    if (s->kind == kind && s->specs == text && s->parts == parts) return *s;

  const StepFunction own = kind == Run::Kind::Train ? options.train_step : kind == Run::Kind::Test ? options.test_step : nullptr;
  const std::vector<Spec> targets = part(specs, parts.inputs, parts.targets);
  const bool uses_compiled = !own || !options.loss.empty() || !options.metrics.empty() || !options.weighted_metrics.empty();
  if (kind != Run::Kind::Predict && uses_compiled) prepare(model, part(specs, 0, parts.inputs), targets);

  // The model holds this training, so the steps must not hold the model: a handle that does not own.
  const auto self = [body = &model.body()] { return Model(Layer(std::shared_ptr<LayerBody>(std::shared_ptr<void>(), body))); };
  const auto used = std::make_shared<Used>();
  FlatFunction body;
  if (kind == Run::Kind::Predict) {
    body = [self](const std::vector<Tensor>& batch) {
      const Model m = self();
      return m(model_inputs(m, batch), Pass{});
    };
  } else {
    const bool training = kind == Run::Kind::Train;
    if (training && !own) options.optimizer.build(model.trainable_weights());
    body = [this, self, parts, training, own, used](const std::vector<Tensor>& batch) -> std::vector<Tensor> {
      const Model m = self();
      Step::Impl impl(*this, m, parts, training, batch);
      Step step(impl);
      if (own) {
        const frontend::UserScope user;
        own(step);
      } else {
        built_in(step);
      }
      *used = {impl.logged, impl.lost, impl.measured};
      return {};
    };
  }
  static constexpr const char* kNames[] = {"train_step", "test_step", "predict_step"};
  const FunctionOptions function{
      .name = kNames[static_cast<size_t>(kind)], .specs = specs, .precision = compiled ? precision : model.precision()};
  auto step = std::make_unique<Compiled>(Compiled{kind, text, parts, FlatCallable(std::move(body), function)});
  if (kind != Run::Kind::Predict) {
    // What a step of one's own logs is known once it was traced; what it was compiled with has to be known before the first batch.
    if (own) step->function.result_specs(specs);
    finish(*step, targets, own ? *used : Used{{"loss"}, true, true});
  }
  return *steps_.emplace_back(std::move(step));
}

void Training::built_in(const Step& step) {
  std::optional<Tape> tape;
  if (step.training()) tape.emplace();
  const std::vector<Tensor> outputs = step.forward();
  const Tensor loss = step.loss(outputs);
  if (tape) step.minimize(*tape, loss);
  step.log("loss", loss);
  step.measure(outputs);
}

Logs Training::Compiled::logs() const {
  Logs logs;
  for (const Shown& s : shown) logs.set(s.name, s.value());
  return logs;
}

// --- metrics -----------------------------------------------------------------------------------------------------------------------------

std::vector<Variable> Training::metric_variables() const {
  std::vector<Variable> all;
  for (const auto& t : trackers_) all.insert(all.end(), {t->total, t->count});
  for (const Output& o : outputs_) {
    if (o.tracker) all.insert(all.end(), {o.tracker->total, o.tracker->count});
    for (const auto& list : {o.metrics, o.weighted_metrics})
      for (const Metric& m : list)
        for (const Variable& v : m.variables()) all.push_back(v);
  }
  return all;
}

void Training::reset_metrics() const {
  for (const Variable& v : metric_variables()) v.assign(Tensor::zeros(v.shape(), v.dtype()));
}

std::optional<Metric> Training::metric(const std::string& name) const {
  for (const Output& o : outputs_)
    for (const auto& list : {o.metrics, o.weighted_metrics})
      for (const Metric& m : list)
        if (m.name() == name) return m;
  return {};
}

}  // namespace tandem::nn
