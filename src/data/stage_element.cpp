// Stages that look at one element at a time: random keys, callbacks, filter, scan, enumerate, unique.
#include <unordered_set>

#include "base/text.hpp"
#include "data/map.hpp"
#include "data/parallel.hpp"
#include "data/random.hpp"

namespace tandem::data {
namespace {

Specs joined(const Specs& first, const Specs& second) {
  Specs all = distinct(first, "x");
  for (const Spec& s : distinct(second, "y")) all.push_back(s);
  return renamed(all);
}

// --- keys ------------------------------------------------------------------------------------------------------------------------

class KeyNode final : public Node {
 public:
  KeyNode(NodeRef input, uint64_t seed) : Node("key", {std::move(input)}), seed(seed) {}
  std::string arguments() const override { return cat("seed=", seed); }
  std::optional<Specs> specs() const override {
    const auto in = input().specs();
    return in ? std::optional(joined({{DType::U32, {2}}}, *in)) : std::nullopt;
  }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;

  const uint64_t seed;
  mutable IteratorCount iterators;
};

class KeyWalk final : public InputWalk {
 public:
  KeyWalk(const KeyNode& node, const Scope& scope) : InputWalk(node, scope) {
    const Context::Epoch e = scope.context->next_epoch(scope.path, node.iterators);
    random_ = Random::of({node.seed, e.iterator, e.epoch});
  }

 protected:
  bool next(Element& element) override {
    const uint64_t bits = random_.bits();  // an element that fails has its key all the same
    if (!input().pull(element)) return false;
    element.insert(element.begin(), Tensor::of({static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)}));
    return true;
  }
  void save(Writer& w) override {
    w.put(random_.state());
    InputWalk::save(w);
  }
  void restore(Reader& r) override {
    random_ = Random(r.bits());
    InputWalk::restore(r);
  }

 private:
  Random random_;
};

std::unique_ptr<Walk> KeyNode::walk(const Scope& scope) const { return std::make_unique<KeyWalk>(*this, scope); }

// --- callbacks -------------------------------------------------------------------------------------------------------------------

class CallbackNode final : public Node {
 public:
  CallbackNode(NodeRef input, FlatFunction f, CallbackOptions o)
      : Node(o.name, {std::move(input)}), f(std::move(f)), options(std::move(o)), specs_(renamed(options.specs)) {}
  std::string arguments() const override {
    return cat("parallel_calls=", options.parallel_calls == kAutotune ? "autotune" : std::to_string(options.parallel_calls));
  }
  std::optional<Specs> specs() const override { return specs_.empty() ? std::nullopt : std::optional(specs_); }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;

  const FlatFunction f;
  const CallbackOptions options;

 private:
  const Specs specs_;
};

class CallbackWalk final : public ParallelWalk {
 public:
  CallbackWalk(const CallbackNode& node, const Scope& scope)
      : ParallelWalk(node, scope, {node.options.parallel_calls, node.options.deterministic}), node_(node), specs_(node.specs()) {}
  ~CallbackWalk() override { stop(); }

 protected:
  bool pull(Element& element) override { return input().pull(element); }
  void compute(Element& element) override {
    element = node_.f(element);
    if (specs_) check_element(*specs_, element);
    for (size_t c = 0; c < element.size(); ++c)
      if (!element[c].defined()) user_error("component ", c, " of the callback's result holds nothing");
  }

 private:
  const CallbackNode& node_;
  const std::optional<Specs> specs_;
};

std::unique_ptr<Walk> CallbackNode::walk(const Scope& scope) const { return std::make_unique<CallbackWalk>(*this, scope); }

// --- filter --------------------------------------------------------------------------------------------------------------------------

class FilterNode final : public Node {
 public:
  enum class Refused : uint8_t { LeftOut, End };  // what becomes of an element for which the predicate is false
  FilterNode(std::string name, NodeRef input, std::function<bool(const Element&)> predicate, Refused refused)
      : Node(std::move(name), {std::move(input)}), predicate(std::move(predicate)), refused(refused) {}
  int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : kUnknown; }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;

  const std::function<bool(const Element&)> predicate;
  const Refused refused;
};

class FilterWalk final : public InputWalk {
 public:
  FilterWalk(const FilterNode& node, const Scope& scope) : InputWalk(node, scope), node_(node) {}

 protected:
  bool next(Element& element) override {
    while (!ended_ && input().pull(element)) {
      if (node_.predicate(element)) return true;
      ended_ = node_.refused == FilterNode::Refused::End;
    }
    return false;
  }
  void save(Writer& w) override {
    w.put(ended_);
    InputWalk::save(w);
  }
  void restore(Reader& r) override {
    ended_ = r.boolean();
    InputWalk::restore(r);
  }

 private:
  const FilterNode& node_;
  bool ended_ = false;
};

std::unique_ptr<Walk> FilterNode::walk(const Scope& scope) const { return std::make_unique<FilterWalk>(*this, scope); }

// --- scan ----------------------------------------------------------------------------------------------------------------------------

class ScanNode final : public Node {
 public:
  ScanNode(NodeRef input, Element initial, FlatFunction step)
      : Node("scan", {std::move(input)}), initial(std::move(initial)), step(std::move(step), FunctionOptions{.name = "scan"}) {
    if (const auto in = this->input().specs()) {
      Specs arguments;
      for (const Tensor& t : this->initial) arguments.push_back({t.dtype(), t.dims()});
      arguments.insert(arguments.end(), in->begin(), in->end());
      const Specs results = this->step.result_specs(arguments);
      check_state(results.size(), [&](size_t i) { return results[i].str(); });
      specs_ = renamed(Specs(results.begin() + static_cast<ptrdiff_t>(this->initial.size()), results.end()));
    }
  }
  std::optional<Specs> specs() const override { return specs_; }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;
  template <class F> void check_state(size_t count, F type) const {
    if (count < initial.size()) user_error("scan: the step gives ", count, " tensors, the state alone has ", initial.size());
    for (size_t i = 0; i < initial.size(); ++i)
      if (type(i) != initial[i].type_str())
        user_error("scan: the step makes ", type(i), " of component ", i, " of the state, which is ", initial[i].type_str());
  }

  const Element initial;
  const FlatCallable step;

 private:
  std::optional<Specs> specs_;
};

class ScanWalk final : public InputWalk {
 public:
  ScanWalk(const ScanNode& node, const Scope& scope) : InputWalk(node, scope), node_(node), state_(node.initial) {}

 protected:
  bool next(Element& element) override {
    if (!input().pull(element)) return false;
    Element arguments = state_;
    arguments.insert(arguments.end(), element.begin(), element.end());
    Element results = node_.step(arguments);
    node_.check_state(results.size(), [&](size_t i) { return results[i].type_str(); });
    const auto split = results.begin() + static_cast<ptrdiff_t>(state_.size());
    state_.assign(results.begin(), split);
    element.assign(split, results.end());
    return true;
  }
  void save(Writer& w) override {
    w.put(state_);
    InputWalk::save(w);
  }
  void restore(Reader& r) override {
    state_ = r.element();
    if (state_.size() != node_.initial.size())
      Reader::damaged(cat("scan has ", node_.initial.size(), " tensors, ", state_.size(), " are given"));
    node_.check_state(state_.size(), [&](size_t i) { return state_[i].type_str(); });
    InputWalk::restore(r);
  }

 private:
  const ScanNode& node_;
  Element state_;
};

std::unique_ptr<Walk> ScanNode::walk(const Scope& scope) const { return std::make_unique<ScanWalk>(*this, scope); }

// --- how many there are, by the user's word
// ------------------------------------------------------------------------------------------------

class AssertNode final : public Node {
 public:
  AssertNode(NodeRef input, int64_t count) : Node("assert_cardinality", {std::move(input)}), count(count) {}
  std::string arguments() const override { return count_text(count); }
  int64_t cardinality() const override { return count; }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;
  const int64_t count;
};

class AssertWalk final : public InputWalk {
 public:
  AssertWalk(const AssertNode& node, const Scope& scope) : InputWalk(node, scope), count_(node.count) {}

 protected:
  bool next(Element& element) override {
    const bool has_element = input().pull(element);
    seen_ += has_element;
    if (!has_element && count_ != kUnknown && seen_ < count_)
      user_error("Input dataset was expected to contain ", count_, " elements but contained only ", seen_);
    if (!has_element && count_ == kInfinite)
      user_error("Input dataset was expected to contain an infinite number of elements but contained only ", seen_);
    if (has_element && count_ >= 0 && seen_ > count_)
      user_error("Input dataset was expected to contain ", count_, " elements but contained at least ", seen_);
    return has_element;
  }
  void save(Writer& w) override {
    w.put(seen_);
    InputWalk::save(w);
  }
  void restore(Reader& r) override {
    seen_ = r.count();
    InputWalk::restore(r);
  }

 private:
  const int64_t count_;
  int64_t seen_ = 0;
};

std::unique_ptr<Walk> AssertNode::walk(const Scope& scope) const { return std::make_unique<AssertWalk>(*this, scope); }

// --- enumerate, unique -----------------------------------------------------------------------------------------------------------------

class EnumerateNode final : public Node {
 public:
  EnumerateNode(NodeRef input, int64_t start) : Node("enumerate", {std::move(input)}), start(start) {}
  std::string arguments() const override { return std::to_string(start); }
  std::optional<Specs> specs() const override {
    const auto in = input().specs();
    return in ? std::optional(joined({{DType::I64, {}}}, *in)) : std::nullopt;
  }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;
  const int64_t start;
};

class EnumerateWalk final : public InputWalk {
 public:
  EnumerateWalk(const EnumerateNode& node, const Scope& scope) : InputWalk(node, scope), number_(node.start) {}

 protected:
  bool next(Element& element) override {
    if (!input().pull(element)) return false;
    element.insert(element.begin(), Tensor::scalar<int64_t>(number_++));
    return true;
  }
  void save(Writer& w) override {
    w.put(number_);
    InputWalk::save(w);
  }
  void restore(Reader& r) override {
    number_ = r.integer(INT64_MIN, INT64_MAX / 2);
    InputWalk::restore(r);
  }

 private:
  int64_t number_;
};

std::unique_ptr<Walk> EnumerateNode::walk(const Scope& scope) const { return std::make_unique<EnumerateWalk>(*this, scope); }

class UniqueNode final : public Node {
 public:
  explicit UniqueNode(NodeRef input) : Node("unique", {std::move(input)}) {}
  int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : kUnknown; }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;
};

class UniqueWalk final : public InputWalk {
 public:
  UniqueWalk(const UniqueNode& node, const Scope& scope) : InputWalk(node, scope), held_(scope.context->budget) {}

 protected:
  bool next(Element& element) override {
    while (input().pull(element)) {
      Writer key;
      key.put(element);
      if (add(key.bytes())) return true;
    }
    return false;
  }
  void save(Writer& w) override {
    w.put(static_cast<int64_t>(seen_.size()));
    for (const std::string& s : seen_) w.put(s);
    InputWalk::save(w);
  }
  void restore(Reader& r) override {
    const int64_t count = r.integer(0, INT64_MAX);
    for (int64_t i = 0; i < count; ++i) add(std::string(r.text()));
    InputWalk::restore(r);
  }

 private:
  bool add(const std::string& key) {
    if (seen_.contains(key)) return false;
    held_.add(key.size(), "the set of unique");
    return seen_.insert(key).second;
  }
  Held held_;
  std::unordered_set<std::string> seen_;
};

std::unique_ptr<Walk> UniqueNode::walk(const Scope& scope) const { return std::make_unique<UniqueWalk>(*this, scope); }

}  // namespace

Dataset Dataset::map_random_flat(uint64_t seed, FlatFunction f, MapOptions options) const {
  return Dataset(std::make_shared<KeyNode>(node_of(*this), seed)).map_flat(std::move(f), std::move(options));
}

Dataset Dataset::map_callback_flat(FlatFunction f, CallbackOptions options) const {
  if (options.parallel_calls != kAutotune) positive(options.parallel_calls, cat(options.name, ": parallel_calls"));
  return Dataset(std::make_shared<CallbackNode>(node_of(*this), std::move(f), std::move(options)));
}

namespace {

std::function<bool(const Element&)> traced_predicate(const char* stage, const Node& input, FlatFunction predicate) {
  FunctionOptions options{.name = stage};
  if (const auto in = input.specs()) {
    options.specs = *in;
    const Specs result = FlatCallable(predicate, options).result_specs(*in);
    if (result.size() != 1 || result[0].dtype != DType::Bool || !result[0].dims.empty())
      user_error(stage, ": the predicate gives ", data::str(result), ", it must give one bool[]");
  }
  return [f = FlatCallable(std::move(predicate), std::move(options))](const Element& e) { return f(e).at(0).item<bool>(); };
}

}  // namespace

Dataset Dataset::filter_flat(FlatFunction predicate) const {
  const NodeRef& in = node_of(*this);
  return Dataset(
      std::make_shared<FilterNode>("filter", in, traced_predicate("filter", *in, std::move(predicate)), FilterNode::Refused::LeftOut));
}

Dataset Dataset::filter_callback(std::function<bool(const Element&)> predicate) const {
  if (!predicate) user_error("filter_callback: no function");
  return Dataset(std::make_shared<FilterNode>("filter_callback", node_of(*this), std::move(predicate), FilterNode::Refused::LeftOut));
}

Dataset Dataset::take_while_flat(FlatFunction predicate) const {
  const NodeRef& in = node_of(*this);
  return Dataset(
      std::make_shared<FilterNode>("take_while", in, traced_predicate("take_while", *in, std::move(predicate)), FilterNode::Refused::End));
}

Dataset Dataset::take_while_callback(std::function<bool(const Element&)> predicate) const {
  if (!predicate) user_error("take_while_callback: no function");
  return Dataset(std::make_shared<FilterNode>("take_while_callback", node_of(*this), std::move(predicate), FilterNode::Refused::End));
}

Dataset Dataset::assert_cardinality(int64_t count) const { return Dataset(std::make_shared<AssertNode>(node_of(*this), count)); }

Dataset Dataset::scan(Element initial, FlatFunction step) const {
  return Dataset(std::make_shared<ScanNode>(node_of(*this), std::move(initial), std::move(step)));
}

Dataset Dataset::enumerate(int64_t start) const { return Dataset(std::make_shared<EnumerateNode>(node_of(*this), start)); }
Dataset Dataset::unique() const { return Dataset(std::make_shared<UniqueNode>(node_of(*this))); }

}  // namespace tandem::data
