// Stages of several inputs: concatenate, zip, sample_from, choose_from.
#include "base/text.hpp"
#include "data/node.hpp"
#include "data/random.hpp"

namespace tandem::data {
namespace {

class InputsWalk : public Walk {
 public:
  InputsWalk(const Node& node, const Scope& scope) : Walk(scope.stage(node)) {
    for (size_t i = 0; i < node.inputs().size(); ++i) inputs_.push_back(node.input(i).walk(scope.input(i)));
  }

 protected:
  size_t count() const { return inputs_.size(); }
  Walk& input(size_t i) { return *inputs_[i]; }
  void save(Writer& w) override {
    for (const auto& input : inputs_) input->save_to(w);
  }
  void restore(Reader& r) override {
    for (const auto& input : inputs_) input->restore_from(r);
  }

 private:
  std::vector<std::unique_ptr<Walk>> inputs_;
};

std::vector<NodeRef> nodes_of(const std::vector<Dataset>& datasets, std::string_view what) {
  if (datasets.empty()) user_error(what, ": no inputs");
  std::vector<NodeRef> nodes;
  for (const Dataset& d : datasets) nodes.push_back(node_of(d));
  return nodes;
}

// What all of them give; a UserError names the one that differs.
std::optional<Specs> common_specs(const std::vector<NodeRef>& nodes, std::string_view what) {
  std::optional<Specs> all;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto own = nodes[i]->specs();
    if (!own) return {};
    if (!all) {
      all = own;
      continue;
    }
    const auto both = common(*all, *own);
    if (!both) user_error(what, ": input ", i, " gives ", str(*own), ", the ones before give ", str(*all));
    all = both;
  }
  return all;
}

// --- concatenate -------------------------------------------------------------------------------------------------------------------

class ConcatenateNode final : public Node {
 public:
  ConcatenateNode(NodeRef first, NodeRef second)
      : Node("concatenate", {std::move(first), std::move(second)}), specs_(common_specs(inputs(), "concatenate")) {}
  std::optional<Specs> specs() const override { return specs_; }
  int64_t cardinality() const override {
    const int64_t a = input(0).cardinality(), b = input(1).cardinality();
    if (a == kInfinite || b == kInfinite) return kInfinite;
    return a == kUnknown || b == kUnknown ? kUnknown : a + b;
  }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;

 private:
  const std::optional<Specs> specs_;
};

class ConcatenateWalk final : public InputsWalk {
 public:
  using InputsWalk::InputsWalk;

 protected:
  bool next(Element& element) override {
    for (; at_ < count(); ++at_)
      if (input(at_).pull(element)) return true;
    return false;
  }
  void save(Writer& w) override {
    w.put(static_cast<int64_t>(at_));
    InputsWalk::save(w);
  }
  void restore(Reader& r) override {
    at_ = static_cast<size_t>(r.integer(0, static_cast<int64_t>(count())));
    InputsWalk::restore(r);
  }

 private:
  size_t at_ = 0;
};

std::unique_ptr<Walk> ConcatenateNode::walk(const Scope& scope) const { return std::make_unique<ConcatenateWalk>(*this, scope); }

// --- zip -----------------------------------------------------------------------------------------------------------------------------

class ZipNode final : public Node {
 public:
  explicit ZipNode(std::vector<NodeRef> inputs) : Node("zip", std::move(inputs)) {}
  std::optional<Specs> specs() const override {
    Specs all;
    for (size_t i = 0; i < inputs().size(); ++i) {
      const auto own = input(i).specs();
      if (!own) return {};
      for (const Spec& s : distinct(*own, cat("z", i))) all.push_back(s);
    }
    return renamed(all);
  }
  int64_t cardinality() const override {
    int64_t least = kInfinite;
    for (const NodeRef& i : inputs()) {
      const int64_t n = i->cardinality();
      if (n == kUnknown) return kUnknown;
      if (n != kInfinite) least = least == kInfinite ? n : std::min(least, n);
    }
    return least;
  }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;
};

class ZipWalk final : public InputsWalk {
 public:
  using InputsWalk::InputsWalk;

 protected:
  // An error of one does not keep the others back, or elements would no longer belong together.
  bool next(Element& element) override {
    element.clear();
    std::exception_ptr error;
    Element part;
    for (size_t i = 0; i < count(); ++i) {
      try {
        if (!input(i).pull(part)) return false;
        element.insert(element.end(), part.begin(), part.end());
      } catch (const Cancelled&) {
        throw;
      } catch (...) {
        if (!error) error = std::current_exception();
      }
    }
    if (error) std::rethrow_exception(error);
    return true;
  }
};

std::unique_ptr<Walk> ZipNode::walk(const Scope& scope) const { return std::make_unique<ZipWalk>(*this, scope); }

// --- sample_from, choose_from ------------------------------------------------------------------------------------------------------

class SampleNode final : public Node {
 public:
  SampleNode(std::vector<NodeRef> inputs, SampleOptions o)
      : Node("sample_from", std::move(inputs)),
        options(std::move(o)),
        seed(options.seed.value_or(Random::fresh_seed())),
        specs_(common_specs(this->inputs(), "sample_from")) {}
  std::string arguments() const override {
    std::string text;
    for (const double w : options.weights) text += cat(text.empty() ? "" : ", ", w);
    if (options.seed) text += cat(text.empty() ? "" : ", ", "seed=", *options.seed);
    return text + (options.stop_on_empty ? ", stop_on_empty" : "");
  }
  std::optional<Specs> specs() const override { return specs_; }
  int64_t cardinality() const override {
    if (options.stop_on_empty) return kUnknown;
    int64_t all = 0;
    for (const NodeRef& i : inputs()) {
      const int64_t n = i->cardinality();
      if (n < 0) return n;
      all += n;
    }
    return all;
  }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;

  const SampleOptions options;
  const uint64_t seed;
  mutable IteratorCount iterators;

 private:
  const std::optional<Specs> specs_;
};

class SampleWalk final : public InputsWalk {
 public:
  SampleWalk(const SampleNode& node, const Scope& scope)
      : InputsWalk(node, scope), stop_on_empty_(node.options.stop_on_empty), left_(node.options.weights) {
    if (left_.empty()) left_.assign(count(), 1.0);
    const Context::Epoch e = scope.context->next_epoch(scope.path, node.iterators);
    random_ = Random::of({node.seed, e.iterator, e.epoch});
  }

 protected:
  bool next(Element& element) override {
    for (;;) {
      double sum = 0;
      for (const double w : left_) sum += w;
      if (!(sum > 0)) return false;
      const double drawn = random_.unit() * sum;
      size_t i = 0, last = 0;
      for (double upto = 0; i < count(); ++i) {
        if (left_[i] > 0) last = i;
        upto += left_[i];
        if (left_[i] > 0 && drawn < upto) break;
      }
      if (i == count()) i = last;  // rounding
      if (input(i).pull(element)) return true;
      left_[i] = 0;
      if (stop_on_empty_) left_.assign(count(), 0.0);
    }
  }
  void save(Writer& w) override {
    w.put(random_.state());
    for (const double left : left_) w.put(left > 0);
    InputsWalk::save(w);
  }
  void restore(Reader& r) override {
    random_ = Random(r.bits());
    for (double& left : left_)
      if (!r.boolean()) left = 0;
    InputsWalk::restore(r);
  }

 private:
  const bool stop_on_empty_;
  std::vector<double> left_;  // weights of the inputs that have not ended
  Random random_;
};

std::unique_ptr<Walk> SampleNode::walk(const Scope& scope) const { return std::make_unique<SampleWalk>(*this, scope); }

class ChooseNode final : public Node {
 public:
  ChooseNode(std::vector<NodeRef> inputs, const NodeRef& choice, bool stop_on_empty)
      : Node("choose_from", with(inputs, choice)), stop_on_empty(stop_on_empty), specs_(common_specs(inputs, "choose_from")) {}
  std::string arguments() const override { return stop_on_empty ? "stop_on_empty" : ""; }
  std::optional<Specs> specs() const override { return specs_; }
  int64_t cardinality() const override { return kUnknown; }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;
  const bool stop_on_empty;

 private:
  static std::vector<NodeRef> with(std::vector<NodeRef> inputs, const NodeRef& choice) {
    inputs.push_back(choice);
    return inputs;
  }
  const std::optional<Specs> specs_;
};

class ChooseWalk final : public InputsWalk {
 public:
  ChooseWalk(const ChooseNode& node, const Scope& scope) : InputsWalk(node, scope), stop_on_empty_(node.stop_on_empty) {}

 protected:
  bool next(Element& element) override {
    Element choice;
    while (!ended_ && input(count() - 1).pull(choice)) {
      if (choice.size() != 1 || choice[0].size() != 1) user_error("a choice must be one number, it has ", choice.size(), " components");
      const auto i = choice[0].item<int64_t>();
      if (i < 0 || i >= static_cast<int64_t>(count()) - 1) user_error("the choice is ", i, ", there are ", count() - 1, " inputs");
      if (input(static_cast<size_t>(i)).pull(element)) return true;
      ended_ = stop_on_empty_;
    }
    return false;
  }
  void save(Writer& w) override {
    w.put(ended_);
    InputsWalk::save(w);
  }
  void restore(Reader& r) override {
    ended_ = r.boolean();
    InputsWalk::restore(r);
  }

 private:
  const bool stop_on_empty_;
  bool ended_ = false;
};

std::unique_ptr<Walk> ChooseNode::walk(const Scope& scope) const { return std::make_unique<ChooseWalk>(*this, scope); }

}  // namespace

Dataset Dataset::concatenate(const Dataset& after) const {
  return Dataset(std::make_shared<ConcatenateNode>(node_of(*this), node_of(after)));
}

Dataset Dataset::zip(const std::vector<Dataset>& inputs) { return Dataset(std::make_shared<ZipNode>(nodes_of(inputs, "zip"))); }

Dataset Dataset::sample_from(const std::vector<Dataset>& inputs, SampleOptions options) {
  if (!options.weights.empty() && options.weights.size() != inputs.size())
    user_error("sample_from: ", options.weights.size(), " weights for ", inputs.size(), " inputs");
  for (const double w : options.weights)
    if (!(w >= 0 && w < 1e300)) user_error("sample_from: a weight is ", w, ", it must not be negative");
  return Dataset(std::make_shared<SampleNode>(nodes_of(inputs, "sample_from"), std::move(options)));
}

Dataset Dataset::choose_from(const std::vector<Dataset>& inputs, const Dataset& choice, bool stop_on_empty) {
  return Dataset(std::make_shared<ChooseNode>(nodes_of(inputs, "choose_from"), node_of(choice), stop_on_empty));
}

}  // namespace tandem::data
