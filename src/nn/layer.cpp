#include <tandem/nn/layer.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include <tandem/ops.hpp>

#include "base/text.hpp"
#include "frontend/thread_state.hpp"
#include "nn/layer_frame.hpp"
#include "nn/names.hpp"
#include "nn/saving/loading.hpp"

namespace tandem::nn {
namespace {

// "dense", "dense_1", …: Keras's names of layers that are given none.
std::string next_name(const std::string& class_name) {
  static std::mutex mutex;
  static auto& counts = *new std::map<std::string, int>;
  std::lock_guard guard(mutex);
  const std::string base = snake_case(class_name);
  const int count = counts[base]++;
  return count == 0 ? base : cat(base, "_", count);
}

Spec spec_of(const Tensor& t) { return {t.dtype(), t.dims()}; }

std::vector<Spec> specs_of(const std::vector<Tensor>& tensors) {
  std::vector<Spec> specs;
  for (const Tensor& t : tensors) specs.push_back(spec_of(t));
  return specs;
}

// Runs what a kind of layer says itself; the lines of a program's own kind are worth naming.
template <class F> auto in_body(bool has_lines, F f) {
  std::optional<frontend::UserScope> own;
  if (has_lines) own.emplace();
  return f();
}

// Everything inside a layer, itself first; what is shared comes once.
void visit(const Layer& layer, std::set<const LayerBody*>& seen, const std::function<void(LayerBody&)>& f) {
  if (!seen.insert(&layer.body()).second) return;
  f(layer.body());
  for (const auto& child : layer.body().children()) visit(child.layer, seen, f);
}
void visit(const Layer& layer, const std::function<void(LayerBody&)>& f) {
  std::set<const LayerBody*> seen;
  visit(layer, seen, f);
}

}  // namespace

// --- LayerBody -------------------------------------------------------------------------------------------------------------------

struct LayerBody::Rules {
  Variable weight;
  Regularizer regularizer;
  Constraint constraint;
};

LayerBody::LayerBody() = default;
LayerBody::~LayerBody() = default;
Config LayerBody::config() const { return Config::object(); }
void LayerBody::check(const std::vector<Spec>&) const {}
void LayerBody::build(const std::vector<Spec>&) {}
std::vector<std::string> LayerBody::call_arguments() const { return {}; }

std::vector<Tensor> LayerBody::compute_mask(const std::vector<Tensor>&, const Pass& pass) const {
  return pass.masks.empty() ? std::vector<Tensor>{} : std::vector{pass.masks.front()};
}

Results LayerBody::run(const std::vector<Tensor>& inputs, const Pass& pass) { return {call(inputs, pass), compute_mask(inputs, pass)}; }

const std::string& LayerBody::name() const { return name_; }

Variable LayerBody::add_weight(const std::string& name, const Shape& shape, const WeightOptions& options) {
  const frontend::EagerScope eager;  // a layer may be built while a function is traced
  const frontend::LibraryScope library;
  const DType dtype = options.dtype.value_or(dtype_);
  const std::string full_name = cat(name_, "/", name);
  const bool loading = LoadingScope::active();
  LoadingScope::take_weight(full_name, shape);
  const Variable weight(loading ? Tensor::zeros(shape, dtype) : options.initializer(shape, dtype),
                        {.name = full_name, .trainable = options.trainable && trainable_, .dtype = dtype});
  if (!(weight.shape() == shape))
    user_error("weight '", name, "' is ", shape.str(), ", its initializer ", options.initializer.class_name(), " gave ",
               weight.shape().str());
  if (options.trainable)
    weights_.insert(weights_.begin() + static_cast<ptrdiff_t>(trainable_count_++), weight);
  else
    weights_.push_back(weight);
  rules_.push_back({weight, options.regularizer, options.constraint});
  return weight;
}

void LayerBody::add_child(const std::string& attribute, const Layer& layer) {
  const LayerBody& child = layer.body();
  const auto same = [&](const Child& c) { return c.attribute == attribute; };
  if (!attributes_.insert(attribute).second) {
    if (std::find_if(children_.begin(), children_.end(), same)->layer == layer) return;
    user_error("add_child: two layers inside a ", class_name(), " are kept as '", attribute,
               "'\n  hint: each needs an attribute of its own");
  }
  depth_ = std::max(depth_, child.depth_ + 1);
  if (depth_ > kDeepestNesting) user_error("layers are nested more than ", kDeepestNesting, " deep");
  children_.push_back({attribute, layer});
  inside_.insert(&child);
}

bool LayerBody::knows(const LayerBody& inner) {
  if (inside_.contains(&inner)) return true;
  // A layer may be added to a child later, so what is not there now may be there next time.
  std::set<const LayerBody*> seen;
  for (const Child& c : children_) visit(c.layer, seen, [](LayerBody&) {});
  return seen.contains(&inner) && inside_.insert(&inner).second;
}

void LayerBody::add_loss(const Pass& pass, const Tensor& loss) {
  if (loss.rank() != 0) user_error("add_loss: a loss has no axes, got ", loss.type_str(), "\n  hint: mean(loss), or sum(loss)");
  if (pass.losses) pass.losses->push_back(loss);
}

Generator& LayerBody::random(std::optional<int64_t> seed) {
  if (!random_) {
    const frontend::EagerScope eager;
    random_ = std::make_unique<Generator>(seed ? static_cast<uint64_t>(*seed) : next_seed());
  }
  return *random_;
}

Tensor LayerBody::random_state() const { return random_ ? random_->state().value() : Tensor(); }

void LayerBody::set_random_state(const Tensor& state) {
  if (!random_) random_ = std::make_unique<Generator>(0);
  random_->state().assign(state);
}

Tensor LayerBody::regularization() const {
  Tensor sum;
  for (const Rules& r : rules_)
    if (r.regularizer && r.weight.trainable()) {
      const Tensor loss = r.regularizer(r.weight.value());
      sum = sum.defined() ? sum + loss : loss;
    }
  return sum;
}

// --- Layer -----------------------------------------------------------------------------------------------------------------------

Layer::Layer(std::shared_ptr<LayerBody> body, const std::string& name) : body_(std::move(body)) {
  if (body_ && body_->name_.empty()) body_->name_ = name.empty() ? next_name(body_->class_name()) : name;
}

LayerBody& Layer::body() const {
  if (!body_) user_error("this layer holds nothing\n  hint: it was made by Layer()");
  return *body_;
}

const std::string& Layer::name() const { return body().name_; }
std::string Layer::class_name() const { return body().class_name(); }
bool Layer::built() const { return body().built_; }
bool Layer::trainable() const { return body().trainable_; }

void Layer::build(const std::vector<Spec>& inputs, Where where) const {
  LayerBody& b = body();
  in_layer(b, where, [&] {
    in_body(b.has_lines_, [&] { b.check(inputs); });
    if (std::exchange(b.built_, true)) return;
    const size_t children = b.children_.size();
    try {
      in_body(b.has_lines_, [&] { b.build(inputs); });
    } catch (...) {  // as if it had never been tried
      b.built_ = false;
      b.weights_.clear();
      b.trainable_count_ = 0;
      b.rules_.clear();
      while (b.children_.size() > children) {
        b.attributes_.erase(b.children_.back().attribute);
        b.children_.pop_back();
      }
      b.inside_.clear();
      throw;
    }
  });
}

void Layer::expect_to_be_known() const {
  LayerBody* const outer = LayerFrame::around(body());
  if (!outer || !outer->has_lines_ || outer->knows(body())) return;
  size_t count = 0;
  bool is_random = false;
  visit(*this, [&](LayerBody& b) {
    count += b.weights_.size();
    is_random |= b.random_ != nullptr;
  });
  if (count == 0 && !is_random) return;
  user_error("it is called inside '", outer->name(), "' but is not a part of it, so ",
             count > 0 ? cat("its ", count, count == 1 ? " weight" : " weights", " would be neither trained nor saved")
                       : "the state of its random numbers would not be saved",
             "\n  hint: ", outer->class_name() == "Lambda" ? "a kind of your own (LayerBody) has parts: " : "", "add_child(\"", name(),
             "\", layer) in the constructor", outer->class_name() == "Lambda" ? "" : cat(" of ", outer->class_name()), " makes it one");
}

Results Layer::run(const std::vector<Tensor>& inputs, const Pass& pass, Where where) const {
  LayerBody& b = body();
  return in_layer(b, where, [&] {
    LoadingScope::count_call();
    for (const Tensor& t : inputs)
      if (!t.defined()) user_error("an input holds nothing");
    std::vector<Tensor> in = inputs;
    for (Tensor& t : in)
      if (b.casts_inputs_ && is_float(t.dtype()) && t.dtype() != b.dtype()) t = t.cast(b.dtype());
    build(specs_of(in), where);
    Results r = in_body(b.has_lines_, [&] { return b.run(in, pass); });
    expect_to_be_known();
    r.masks.resize(r.values.size());
    if (b.activity_regularizer_ && pass.losses)
      for (const Tensor& y : r.values) {
        const Tensor loss = b.activity_regularizer_(y);
        pass.losses->push_back(y.rank() > 0 ? divide_no_nan(loss, extent(y.dims().front(), loss.dtype())) : loss);
      }
    return r;
  });
}

std::vector<Tensor> Layer::operator()(const std::vector<Tensor>& inputs, const Pass& pass, Where where) const {
  return run(inputs, pass, where).values;
}

Tensor Layer::operator()(const Tensor& x, const Pass& pass, Where where) const {
  std::vector<Tensor> results = (*this)(std::vector{x}, pass, where);
  expect_one_output(body(), results.size(), where);
  return results.front();
}

Config Layer::config() const {
  const LayerBody& b = body();
  Config all = {{"name", b.name()}, {"trainable", b.trainable_}};
  const std::string_view policy = b.precision_ == Precision::Float32 ? tandem::name(b.dtype_) : tandem::name(b.precision_);
  all["dtype"] = {
      {"module", "keras"}, {"class_name", "DTypePolicy"}, {"config", {{"name", std::string(policy)}}}, {"registered_name", nullptr}};
  if (b.activity_regularizer_) all["activity_regularizer"] = b.activity_regularizer_.config();
  const Config own = b.config();
  for (const auto& [key, value] : own.items()) {
    if (value.is_discarded())  // FieldWriter::absent
      all.erase(key);
    else
      all[key] = value;
  }
  return all;
}

void Layer::set_trainable(bool trainable) const {
  visit(*this, [&](LayerBody& b) {
    b.trainable_ = trainable;
    for (size_t i = 0; i < b.trainable_count_; ++i) b.weights_[i].set_trainable(trainable);
  });
}

Precision Layer::precision() const {
  const LayerBody* first = nullptr;
  visit(*this, [&](LayerBody& b) {
    if (b.precision_ == Precision::Float32) return;
    if (!first) first = &b;
    if (b.precision_ != first->precision_)
      user_error("model '", name(), "': one step cannot compute in two precisions: '", first->name(), "' (", first->class_name(), ") is ",
                 tandem::name(first->precision_), ", '", b.name(), "' (", b.class_name(), ") is ", tandem::name(b.precision_),
                 "\n  hint: compile({.precision = …}) sets one for all layers");
  });
  return first ? first->precision_ : Precision::Float32;
}

void Layer::set_precision(Precision precision) const {
  tandem::name(precision);  // UserError when there is no such one
  visit(*this, [&](LayerBody& b) {
    if (b.dtype_ == DType::F32) b.precision_ = precision;
  });
}

std::vector<Variable> Layer::weights() const {
  std::vector<Variable> all;
  visit(*this, [&](LayerBody& b) { all.insert(all.end(), b.weights_.begin(), b.weights_.end()); });
  return all;
}

std::vector<Variable> Layer::trainable_weights() const {
  std::vector<Variable> some = weights();
  std::erase_if(some, [](const Variable& v) { return !v.trainable(); });
  return some;
}

std::vector<Variable> Layer::non_trainable_weights() const {
  std::vector<Variable> some = weights();
  std::erase_if(some, [](const Variable& v) { return v.trainable(); });
  return some;
}

std::vector<Tensor> Layer::losses() const {
  std::vector<Tensor> all;
  visit(*this, [&](LayerBody& b) {
    if (Tensor t = b.regularization(); t.defined()) all.push_back(t);
  });
  return all;
}

void Layer::apply_constraints() const {
  visit(*this, [](LayerBody& b) {
    for (const auto& r : b.rules_)
      if (r.constraint && r.weight.trainable()) r.weight.assign(r.constraint(r.weight.value()));
  });
}

}  // namespace tandem::nn
