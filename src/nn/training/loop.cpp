// TrainingLoop: a model's steps on the loop that any step runs on.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include <tandem/nn/training.hpp>
#include <tandem/ops.hpp>
#include <tandem/train.hpp>

#include "base/names.hpp"
#include "base/text.hpp"
#include "frontend/apply.hpp"
#include "frontend/tensor_impl.hpp"
#include "nn/network.hpp"
#include "nn/training/interrupt.hpp"
#include "nn/training/training.hpp"
#include "ops/classes.hpp"

namespace tandem::nn {
namespace {

using train::Batches;
using train::StepLoop;

const char* name_of(Run::Kind kind) { return kind == Run::Kind::Train ? "fit" : kind == Run::Kind::Test ? "evaluate" : "predict"; }

void check_options(Run::Kind kind, const FitOptions& o) {
  const auto positive = [&](const char* what, int64_t value) {
    if (value < 1) user_error(name_of(kind), ": ", what, " is ", value, ", it must be at least 1");
  };
  if (o.batch_size) positive("batch_size", *o.batch_size);
  if (o.steps_per_epoch) positive("steps_per_epoch", *o.steps_per_epoch);
  if (o.validation_steps) positive("validation_steps", *o.validation_steps);
}

// One entry an output, in their order, from what is given by position or by name. An output that is not named has none.
template <class T, class Given>
std::vector<T> for_each_output(Run::Kind kind, const char* what, const Given& given, const std::vector<std::string>& outputs) {
  std::vector<T> each(outputs.size());
  if (!given.by_position().empty()) {
    if (given.by_position().size() != outputs.size())
      user_error(name_of(kind), ": ", what, " for ", given.by_position().size(), " outputs, the model has ", outputs.size(), ": ",
                 joined(outputs), "\n  hint: one an output, in this order or by name: {{\"", outputs.empty() ? "" : outputs.front(),
                 "\", …}}");
    each = given.by_position();
  }
  for (const auto& [name, value] : given.by_name()) {
    const auto found = std::ranges::find(outputs, name);
    if (found == outputs.end()) user_error(name_of(kind), ": ", what, " for '", name, "', the outputs are ", joined(outputs));
    each[static_cast<size_t>(found - outputs.begin())] = value;
  }
  return each;
}

std::vector<WeightOfClass> class_weights(Run::Kind kind, const ClassWeight& given, const std::vector<std::string>& outputs) {
  if (!given.given()) return {};
  const auto each = for_each_output<WeightOfClass>(kind, "class_weight", given, outputs);
  for (const WeightOfClass& one : each)
    for (const auto& [c, weight] : one)
      if (c < 0 || c > 1'000'000) user_error(name_of(kind), ": class_weight of class ", c, ", classes are in [0, 1000000]");
  return each;
}

// The names of so many outputs; of a sequence that has not seen data yet, its last layer's.
std::vector<std::string> output_names(const Model& model, size_t count) {
  std::vector<std::string> names;
  if (dynamic_cast<NetworkBody&>(model.body()).has_graph())
    for (const Symbol& s : model.outputs()) names.push_back(s.origin()->layer.name());
  else if (!model.layers().empty())
    names.push_back(model.layers().back().name());
  names.resize(count);  // a step of one's own may have more targets or fewer
  return names;
}

// All arrays with their rows compared.
int64_t rows_of(Run::Kind kind, const std::vector<std::pair<std::string, Tensor>>& arrays) {
  std::optional<int64_t> rows;
  for (const auto& [what, t] : arrays) {
    if (!t.defined()) user_error(name_of(kind), ": ", what, " holds nothing");
    if (t.is_traced()) user_error(name_of(kind), ": ", what, " is ", t.type_str(), " inside a function that is traced; it needs numbers");
    if (t.rank() == 0) user_error(name_of(kind), ": ", what, " is ", t.type_str(), ", it needs an axis of examples in front");
    if (rows && *rows != t.shape()[0])
      user_error(name_of(kind), ": ", arrays.front().first, " has ", *rows, " rows, ", what, " has ", t.shape()[0]);
    rows = t.shape()[0];
  }
  if (!rows || *rows == 0) user_error(name_of(kind), ": there is no data, ", arrays.empty() ? "x" : arrays.front().first, " has 0 rows");
  return *rows;
}

// A position is bytes, and JSON holds text.
std::string to_hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes)
    for (const int shift : {4, 0}) text += "0123456789abcdef"[static_cast<uint8_t>(c) >> shift & 15];
  return text;
}
std::string from_hex(const std::string& text) {
  const auto digit = [](char c) { return c >= 'a' ? c - 'a' + 10 : c - '0'; };
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) bytes += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  return bytes;
}

// The rows of results one behind the other.
class Collected {
 public:
  void append(const std::vector<Tensor>& results, std::optional<int64_t> rows) {
    if (outputs_.empty()) outputs_.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor t = results[i].contiguous();
      Output& o = outputs_[i];
      if (!o.bytes) {
        o.bytes = std::make_shared<std::vector<std::byte>>();
        o.dtype = t.dtype();
        o.shape = t.shape();
        o.shape[0] = 0;
        if (rows)
          o.bytes->reserve(byte_size(t.shape(), t.dtype()) / static_cast<size_t>(std::max<int64_t>(1, t.shape()[0])) *
                           static_cast<size_t>(*rows));
      }
      const Tensor here = t.to("cpu");
      const auto* data = static_cast<const std::byte*>(here.raw_data());
      o.bytes->insert(o.bytes->end(), data, data + byte_size(t.shape(), t.dtype()));
      o.shape[0] += t.shape()[0];
    }
  }
  std::vector<Tensor> take() {
    std::vector<Tensor> tensors;
    for (Output& o : outputs_) tensors.push_back(Tensor::view(o.bytes->data(), o.dtype, o.shape, {}, [keep = o.bytes] {}));
    outputs_.clear();
    return tensors;
  }

 private:
  struct Output {
    std::shared_ptr<std::vector<std::byte>> bytes;
    DType dtype = DType::F32;
    Shape shape;
  };
  std::vector<Output> outputs_;
};

void expect_inputs(const Model& model, Run::Kind kind, size_t given) {
  const size_t inputs = dynamic_cast<NetworkBody&>(model.body()).has_graph() ? model.inputs().size() : 1;
  if (given != inputs) user_error(name_of(kind), ": model '", model.name(), "' takes ", inputs, " inputs, there are ", given);
}

// Puts the sample weights behind the other arrays; which of them each output has.
void add_weights(Run::Kind kind, const SampleWeight& given, const std::vector<std::string>& outputs,
                 std::vector<std::optional<size_t>>& weights, std::vector<std::pair<std::string, Tensor>>& arrays) {
  if (!given.given()) return;
  if (given.for_all().defined()) {
    weights.assign(std::max<size_t>(1, outputs.size()), 0);  // a step of one's own may have weights and no targets
    arrays.emplace_back("sample_weight", given.for_all());
    return;
  }
  size_t count = 0;
  const std::vector<Tensor> each = for_each_output<Tensor>(kind, "sample_weight", given, outputs);
  for (size_t i = 0; i < each.size(); ++i) {
    weights.push_back(each[i].defined() ? std::optional(count++) : std::nullopt);
    if (each[i].defined()) arrays.emplace_back(cat("sample_weight of '", outputs[i], "'"), each[i]);
  }
}

}  // namespace

struct TrainingLoop::Impl {
  Model model;
  Run::Kind kind;
  FitOptions options;
  Training& training;
  Training::Parts parts = {};
  std::vector<std::string> target_names = {};  // as messages name them: y, y[1], component 2
  const Training::Compiled* step = nullptr;
  std::optional<StepLoop> loop = {};
  Collected collected = {};

  Impl(const Model& m, Run::Kind k, const FitOptions& o)
      : model(m), kind(k), options(o), training(k == Run::Kind::Predict ? training_of(m) : compiled_training(m)) {
    check_options(kind, options);
  }

  bool has_own_step() const {
    return (kind == Run::Kind::Train && training.options.train_step) || (kind == Run::Kind::Test && training.options.test_step);
  }

  void run_over(std::unique_ptr<Batches> batches) {
    parts.classes = class_weights(kind, options.class_weight, output_names(model, parts.targets));
    const bool weighted = std::ranges::any_of(parts.weights, [](const auto& w) { return w.has_value(); });
    if (!parts.classes.empty() && weighted) user_error(name_of(kind), ": class_weight and sample_weight cannot both be given");
    step = &training.step(model, kind, batches->specs(), parts);
    train::LoopOptions how{.name = name_of(kind), .steps_per_epoch = options.steps_per_epoch, .stops = interrupted};
    how.before = [this](const Batches& b) { check_targets(b); };
    if (kind == Run::Kind::Predict)
      how.after = [this](const std::vector<Tensor>& results) { collected.append(results, loop->batches().rows()); };
    loop.emplace(step->function, std::move(batches), std::move(how));
  }

  // Before the step, so that a batch that is refused changes nothing. Costs one look at each label.
  void check_targets(const Batches& batches) const {
    for (size_t i = 0; i < step->classes.size(); ++i)
      if (const std::optional<ClassTargets>& c = step->classes[i]) check_target(batches, parts.inputs + i, i, *c);
  }
  void check_target(const Batches& batches, size_t component, size_t output, const ClassTargets& expected) const {
    const Tensor target = batches.batch()[component]->to("cpu");
    const Shape shape = target.shape();
    const int64_t rows = shape[0];
    const bool is_dense = frontend::concrete_ref(target)->layout.is_dense();
    // Rows may be a part of wider rows; what is in a row lies together.
    const int64_t count = is_dense ? element_count(shape) : element_count(shape) / std::max<int64_t>(1, rows);
    const auto* data = static_cast<const std::byte*>(target.raw_data());
    const ptrdiff_t step_bytes = static_cast<ptrdiff_t>(target.strides()[0]) * static_cast<ptrdiff_t>(size_of(target.dtype()));
    for (int64_t r = 0; r < (is_dense ? 1 : rows); ++r) {
      const std::byte* labels = data + r * step_bytes;
      const int64_t bad = tandem::ops::first_non_class(labels, target.dtype(), count, expected.classes, expected.ignored);
      if (bad < count) refuse(batches, labels, target, is_dense ? bad : r * count + bad, bad, output, expected);
    }
  }
  [[noreturn]] void refuse(const Batches& batches, const void* labels, const Tensor& target, int64_t at, int64_t in_labels, size_t output,
                           const ClassTargets& expected) const {
    Shape position = tandem::ops::position_of(target.shape(), at);
    const std::string place = batches.place(position[0]);
    std::string inside;
    if (element_count(target.shape()) > target.shape()[0]) {
      for (size_t k = 1; k < position.size(); ++k) inside += cat(k == 1 ? " at [" : ",", position[k]);
      inside += "]";
    }
    const std::string label = tandem::ops::label_text(labels, target.dtype(), in_labels);
    user_error(name_of(kind), ": ", target_names[output], " is ", label, " in ", place, inside, ", output '",
               training.outputs()[output].name, "' has ", expected.classes, " classes, 0 to ", expected.classes - 1,
               hint_for(label, expected));
  }
  static std::string hint_for(const std::string& label, const ClassTargets& expected) {
    if (label.starts_with("class -"))
      return cat("\n  hint: losses::SparseCategoricalCrossentropy({.ignore_class = ", label.substr(6), "}) leaves such examples out");
    if (!label.starts_with("class ")) return "\n  hint: classes are whole numbers";
    if (expected.is_yes_or_no)
      return "\n  hint: more than two classes go with sparse_categorical_crossentropy and a unit for each in the last layer";
    if (label == cat("class ", expected.classes)) return "\n  hint: classes are counted from 0";
    return "\n  hint: the last layer needs a unit for each class";
  }
};

TrainingLoop::TrainingLoop(const Model& model, Run::Kind kind, const std::vector<Tensor>& x, const std::vector<Tensor>& y,
                           const FitOptions& options, Where where) {
  frontend::for_caller(where, [&] { impl_ = loop_over(model, kind, x, y, options); });
}

TrainingLoop::TrainingLoop(const Model& model, Run::Kind kind, const data::Dataset& dataset, const FitOptions& options, Where where) {
  frontend::for_caller(where, [&] { impl_ = loop_over(model, kind, dataset, options); });
}

std::unique_ptr<TrainingLoop::Impl> TrainingLoop::loop_over(const Model& model, Run::Kind kind, const std::vector<Tensor>& x,
                                                            const std::vector<Tensor>& y, const FitOptions& options) {
  auto impl = std::make_unique<Impl>(model, kind, options);
  Impl& i = *impl;
  if (!i.has_own_step()) expect_inputs(model, kind, x.size());
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (size_t k = 0; k < x.size(); ++k) arrays.emplace_back(x.size() == 1 ? "x" : cat("x[", k, "]"), x[k]);
  i.parts.inputs = x.size();
  if (kind != Run::Kind::Predict) {
    for (size_t k = 0; k < y.size(); ++k) arrays.emplace_back(i.target_names.emplace_back(y.size() == 1 ? "y" : cat("y[", k, "]")), y[k]);
    i.parts.targets = y.size();
    add_weights(kind, options.sample_weight, output_names(model, y.size()), i.parts.weights, arrays);
  }
  const int64_t rows = rows_of(kind, arrays);
  train::ArraySlice slice{{}, 0, rows};
  for (const auto& [what, t] : arrays) slice.arrays.push_back(t);
  if (options.validation_split != 0) {
    if (!(options.validation_split > 0 && options.validation_split < 1))
      user_error("fit: validation_split is ", options.validation_split, ", it must be in [0, 1)");
    const auto split = static_cast<int64_t>(static_cast<double>(rows) * (1.0 - options.validation_split));
    if (split == 0 || split == rows)
      user_error("fit: validation_split ", options.validation_split, " of ", rows, " rows leaves nothing to one side");
    slice.first = kind == Run::Kind::Train ? 0 : split;
    slice.count = kind == Run::Kind::Train ? split : rows - split;
  }
  const bool shuffled = kind == Run::Kind::Train && options.shuffle;
  constexpr int64_t kBatchSize = 32;
  i.run_over(train::batches_of(slice, options.batch_size.value_or(kBatchSize), shuffled ? train::Order::Shuffled : train::Order::AsItIs,
                               options.seed));
  return impl;
}

std::unique_ptr<TrainingLoop::Impl> TrainingLoop::loop_over(const Model& model, Run::Kind kind, const data::Dataset& dataset,
                                                            const FitOptions& options) {
  auto impl = std::make_unique<Impl>(model, kind, options);
  Impl& i = *impl;
  const auto& body = dynamic_cast<NetworkBody&>(model.body());
  const size_t inputs = body.has_graph() ? model.inputs().size() : 1, outputs = body.has_graph() ? model.outputs().size() : 1;
  const auto arrays_only = [&](const char* what, const char* hint) {
    user_error(name_of(kind), ": ", what, " goes with arrays, the elements of a dataset are batches\n  hint: ", hint);
  };
  if (options.batch_size) arrays_only("batch_size", "dataset.batch(…) says how large they are");
  if (options.sample_weight.given()) arrays_only("sample_weight", "weights are further components of the elements, behind the targets");
  if (options.validation_split != 0) arrays_only("validation_split", "take() and skip(), and validation_data");
  i.parts.inputs = inputs;
  auto batches = train::batches_of(dataset, kind == Run::Kind::Predict ? inputs : 0);
  if (kind != Run::Kind::Predict) {
    const size_t count = batches->specs().size();
    const size_t least = inputs + (i.has_own_step() ? 0 : outputs), weights = count - std::min(count, inputs + outputs);
    if (count < least || (weights > 1 && weights != outputs))
      user_error(name_of(kind), ": elements of the dataset have ", count, " components, the model takes ", inputs, " inputs and ", outputs,
                 " targets, and sample weights if there are any: one for all outputs or one for each");
    i.parts.targets = std::min(count - inputs, outputs);
    for (size_t k = 0; k < i.parts.targets; ++k) i.target_names.push_back(cat("component ", inputs + k));
    if (weights > 0)
      for (size_t k = 0; k < outputs; ++k) i.parts.weights.emplace_back(weights == 1 ? 0 : k);
  }
  i.run_over(std::move(batches));
  return impl;
}

TrainingLoop::TrainingLoop(TrainingLoop&&) noexcept = default;
TrainingLoop& TrainingLoop::operator=(TrainingLoop&&) noexcept = default;
TrainingLoop::~TrainingLoop() = default;

void TrainingLoop::begin_epoch() {
  impl_->loop->begin_epoch();
  if (impl_->kind != Run::Kind::Predict) impl_->training.reset_metrics();
}

int64_t TrainingLoop::run(int64_t steps, double seconds, Where where) { return impl_->loop->run(steps, seconds, where); }
bool TrainingLoop::at_end() const { return impl_->loop->at_end(); }
int64_t TrainingLoop::step() const { return impl_->loop->step(); }
std::optional<int64_t> TrainingLoop::steps() const { return impl_->loop->steps(); }
Logs TrainingLoop::logs() const { return impl_->step->logs(); }
std::vector<Tensor> TrainingLoop::take_predictions() { return impl_->collected.take(); }

std::string TrainingLoop::position() const {
  const Impl& i = *impl_;
  Config metrics = Config::array();
  for (const Variable& v : i.training.metric_variables()) metrics.push_back(v.value().to_vector<double>());
  return Config{{"loop", to_hex(i.loop->position())}, {"metrics", metrics}}.dump();
}

void TrainingLoop::restore(const std::string& position) try {
  Impl& i = *impl_;
  const Config saved = Config::parse(position);
  const std::vector<Variable> variables = i.training.metric_variables();
  const auto metrics = saved.at("metrics").get<std::vector<std::vector<double>>>();
  if (metrics.size() != variables.size())
    user_error("training: the position has the state of ", metrics.size(), " metrics, there are ", variables.size());
  i.loop->restore(from_hex(saved.at("loop").get<std::string>()));
  for (size_t k = 0; k < variables.size(); ++k) variables[k].assign(Tensor::from(metrics[k], variables[k].shape()));
} catch (const nlohmann::json::exception&) {
  user_error("training: this is no position of a loop: '", position.substr(0, 60), "'");
}

}  // namespace tandem::nn
