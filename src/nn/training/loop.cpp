// TrainingLoop: batches into compiled steps.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include <tandem/nn/training.hpp>
#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "frontend/memory.hpp"
#include "nn/network.hpp"
#include "nn/training/batches.hpp"
#include "nn/training/interrupt.hpp"
#include "nn/training/training.hpp"

namespace tandem::nn {
namespace {

using Clock = std::chrono::steady_clock;

const char* name_of(Run::Kind kind) { return kind == Run::Kind::Train ? "fit" : kind == Run::Kind::Test ? "evaluate" : "predict"; }

void check_options(Run::Kind kind, const FitOptions& o) {
  const auto positive = [&](const char* what, int64_t value) {
    if (value < 1) user_error(name_of(kind), ": ", what, " is ", value, ", it must be at least 1");
  };
  positive("batch_size", o.batch_size);
  if (o.steps_per_epoch) positive("steps_per_epoch", *o.steps_per_epoch);
  if (o.validation_steps) positive("validation_steps", *o.validation_steps);
  for (const auto& [c, weight] : o.class_weight)
    if (c < 0 || c > 1'000'000) user_error(name_of(kind), ": class_weight of class ", c, ", classes are in [0, 1000000]");
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

// A dataset's position is bytes, and JSON holds text.
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
      const auto* data = static_cast<const std::byte*>(t.raw_data());
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

}  // namespace

struct TrainingLoop::Impl {
  Model model;
  Run::Kind kind;
  FitOptions options;
  std::unique_ptr<Batches> batches;
  Training& training;
  Training::Parts parts = {};
  const FlatCallable* function = nullptr;
  std::vector<Tensor> results = {};
  Collected collected = {};
  int64_t done = 0, walked = 0;        // steps of this epoch, and of this walk over the data
  bool ended = true, walking = false;  // the epoch; whether there is more of the walk

  Impl(const Model& m, Run::Kind k, const FitOptions& o)
      : model(m), kind(k), options(o), training(k == Run::Kind::Predict ? training_of(m) : compiled_training(m)) {
    check_options(kind, options);
  }

  void find_step() {
    const std::vector<Spec>& specs = batches->specs();
    if (parts.weights > 1 && parts.weights != parts.targets)
      user_error(name_of(kind), ": ", parts.weights, " sample weights for ", parts.targets, " targets");
    if (!options.class_weight.empty() && parts.targets != 1)
      user_error(name_of(kind), ": class_weight is for models with one output, this one has ", parts.targets);
    if (!options.class_weight.empty() && parts.weights) user_error(name_of(kind), ": class_weight and sample_weight cannot both be given");
    function = &training.step(model, kind, specs, parts, options.class_weight);
  }

  void begin_walk() {
    batches->begin();
    walking = true;
    walked = 0;
  }
  std::optional<int64_t> steps() const { return options.steps_per_epoch ? options.steps_per_epoch : batches->steps(); }

  bool take_step() {
    if (walking && !batches->next()) {
      walking = false;
      if (done == 0 && walked > 0) {  // the epoch before used up the data without knowing
        begin_walk();
        walking = batches->next();
      }
    }
    if (!walking) {
      if (done == 0) user_error(name_of(kind), ": there is no data, the dataset gave no batch");
      end_of_data();
      return false;
    }
    function->call(batches->batch(), results, std::source_location::current());
    if (kind == Run::Kind::Predict) collected.append(results, batches->rows());
    ++done;
    ++walked;
    if (const auto all = batches->steps(); all && walked >= *all) walking = false;
    if (options.steps_per_epoch && done >= *options.steps_per_epoch)
      ended = true;
    else if (!walking)
      end_of_data();
    return true;
  }
  void end_of_data() {
    ended = true;
    if (options.steps_per_epoch)
      std::fprintf(stderr, "%s: the data ended after %lld of %lld steps\n  hint: repeat() makes a dataset go on\n", name_of(kind),
                   static_cast<long long>(done), static_cast<long long>(*options.steps_per_epoch));
  }
};

TrainingLoop::TrainingLoop(const Model& model, Run::Kind kind, const std::vector<Tensor>& x, const std::vector<Tensor>& y,
                           const FitOptions& options)
    : impl_(std::make_unique<Impl>(model, kind, options)) {
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (size_t i = 0; i < x.size(); ++i) arrays.emplace_back(x.size() == 1 ? "x" : cat("x[", i, "]"), x[i]);
  if (kind != Run::Kind::Predict)
    for (size_t i = 0; i < y.size(); ++i) arrays.emplace_back(y.size() == 1 ? "y" : cat("y[", i, "]"), y[i]);
  const bool weighted = kind != Run::Kind::Predict && options.sample_weight.defined();
  if (weighted) arrays.emplace_back("sample_weight", options.sample_weight);
  const int64_t rows = rows_of(kind, arrays);
  ArraySlice slice{{}, 0, rows};
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
  Impl& i = *impl_;
  i.parts = {x.size(), kind == Run::Kind::Predict ? 0 : y.size(), weighted ? size_t{1} : size_t{0}};
  const bool shuffled = kind == Run::Kind::Train && options.shuffle;
  i.batches = batches_of(slice, options.batch_size, shuffled ? Order::Shuffled : Order::AsItIs, options.seed);
  i.find_step();
}

TrainingLoop::TrainingLoop(const Model& model, Run::Kind kind, const data::Dataset& dataset, const FitOptions& options)
    : impl_(std::make_unique<Impl>(model, kind, options)) {
  Impl& i = *impl_;
  const auto& body = dynamic_cast<NetworkBody&>(model.body());
  const size_t inputs = body.has_graph() ? model.inputs().size() : 1, outputs = body.has_graph() ? model.outputs().size() : 1;
  if (options.sample_weight.defined())
    user_error(name_of(kind), ": sample_weight goes with arrays\n  hint: a third component of the dataset's elements");
  if (options.validation_split != 0)
    user_error(name_of(kind), ": validation_split goes with arrays\n  hint: take() and skip(), and validation_data");
  if (kind == Run::Kind::Predict) {
    i.parts = {inputs, 0, 0};
    i.batches = batches_of(dataset, inputs);
  } else {
    i.batches = batches_of(dataset, 0);
    const size_t count = i.batches->specs().size();
    if (count < inputs + outputs || count > inputs + 2 * outputs)
      user_error(name_of(kind), ": elements of the dataset have ", count, " components, the model takes ", inputs, " inputs and ", outputs,
                 " targets, and sample weights if there are any");
    i.parts = {inputs, outputs, count - inputs - outputs};
  }
  i.find_step();
}

TrainingLoop::TrainingLoop(TrainingLoop&&) noexcept = default;
TrainingLoop& TrainingLoop::operator=(TrainingLoop&&) noexcept = default;
TrainingLoop::~TrainingLoop() = default;

void TrainingLoop::begin_epoch() {
  Impl& i = *impl_;
  // With steps_per_epoch an epoch goes on where the one before ended, until the data is used up.
  if (!i.walking || !i.options.steps_per_epoch) i.begin_walk();
  if (i.kind != Run::Kind::Predict) i.training.reset_metrics();
  i.done = 0;
  i.ended = false;
}

int64_t TrainingLoop::run(int64_t steps, double seconds) {
  Impl& i = *impl_;
  const bool timed = seconds != std::numeric_limits<double>::infinity();
  const Clock::time_point end =
      timed ? Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)) : Clock::time_point{};
  int64_t count = 0;
  while (count < steps && !i.ended && !interrupted()) {
    if (!i.take_step()) break;
    ++count;
    if (timed && Clock::now() >= end) break;
  }
  return count;
}

bool TrainingLoop::at_end() const { return impl_->ended; }
int64_t TrainingLoop::step() const { return impl_->done; }
std::optional<int64_t> TrainingLoop::steps() const { return impl_->steps(); }
Logs TrainingLoop::logs() const { return impl_->kind == Run::Kind::Predict ? Logs{} : impl_->training.logs(); }
std::vector<Tensor> TrainingLoop::take_predictions() { return impl_->collected.take(); }

std::string TrainingLoop::position() const {
  const Impl& i = *impl_;
  Config metrics = Config::array();
  for (const Variable& v : i.training.metric_variables()) metrics.push_back(v.value().to_vector<double>());
  return Config{
      {"step", i.done},    {"walked", i.walked}, {"walking", i.walking}, {"ended", i.ended}, {"batches", to_hex(i.batches->save())},
      {"metrics", metrics}}
      .dump();
}

void TrainingLoop::restore(const std::string& position) try {
  Impl& i = *impl_;
  const Config saved = Config::parse(position);
  const std::vector<Variable> variables = i.training.metric_variables();
  const auto metrics = saved.at("metrics").get<std::vector<std::vector<double>>>();
  if (metrics.size() != variables.size())
    user_error("training: the position has the state of ", metrics.size(), " metrics, there are ", variables.size());
  i.batches->restore(from_hex(saved.at("batches").get<std::string>()));
  i.walking = saved.at("walking");
  i.walked = saved.at("walked");
  i.done = saved.at("step");
  i.ended = saved.at("ended");
  for (size_t k = 0; k < variables.size(); ++k) variables[k].assign(Tensor::from(metrics[k], variables[k].shape()));
} catch (const nlohmann::json::exception&) {
  user_error("training: this is no position of a loop: '", position.substr(0, 60), "'");
}

}  // namespace tandem::nn
