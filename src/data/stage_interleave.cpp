// flat_map and interleave: each element becomes a Dataset, whose elements come one after the other or in turns.
#include "base/text.hpp"
#include "data/ahead.hpp"
#include "data/node.hpp"

namespace tandem::data {
namespace {

class InterleaveNode final : public Node {
 public:
  InterleaveNode(std::string name, NodeRef input, std::function<Dataset(const Element&)> f, InterleaveOptions o)
      : Node(std::move(name), {std::move(input)}), f(std::move(f)), options(std::move(o)) {}
  std::string arguments() const override {
    if (name() == "flat_map") return "";
    return cat("cycle=", options.cycle_length == kAutotune ? "autotune" : std::to_string(options.cycle_length),
               ", block=", options.block_length,
               ", parallel_calls=", options.parallel_calls == kAutotune ? "autotune" : std::to_string(options.parallel_calls));
  }
  std::optional<Specs> specs() const override { return options.specs.empty() ? std::nullopt : std::optional(renamed(options.specs)); }
  int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : kUnknown; }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;

  const std::function<Dataset(const Element&)> f;
  const InterleaveOptions options;
};

class ReadAheadNode final : public Node {
 public:
  ReadAheadNode() : Node("read_ahead", {}) {}
  std::unique_ptr<Walk> walk(const Scope&) const override { internal_error("read_ahead is a part of interleave"); }
};

// One of the Datasets under way, read by a thread of its own or by the reader.
class Inner {
 public:
  Inner(Element from, const InterleaveNode& node, const Scope& scope, bool read_ahead) : from_(std::move(from)), dataset_(node.f(from_)) {
    Scope inside = scope.inner();
    if (read_ahead) {
      static const ReadAheadNode ahead_node;
      Stage& stage = inside.stage(ahead_node);
      set_capacity(stage, *scope.context, std::max<int64_t>(2, node.options.block_length));
      ahead_.emplace(stage, *scope.context, scope.stop);
      inside = inside.with(ahead_->token());
      inside.path += ".0";
    }
    walk_ = node_of(dataset_)->walk(inside);
    if (ahead_) ahead_->start({.pull = [this](Element& e) { return walk_->pull(e); }});
  }
  ~Inner() { ahead_.reset(); }
  Inner(const Inner&) = delete;
  Inner& operator=(const Inner&) = delete;

  const Element& from() const { return from_; }
  bool next(Element& element) { return ahead_ ? ahead_->next(element) : walk_->pull(element); }
  bool is_ready() { return !ahead_ || ahead_->is_ready(); }
  void save(Writer& w) {
    w.put(ahead_.has_value());
    if (ahead_)
      ahead_->save(w, [&] { walk_->save_to(w); });
    else
      walk_->save_to(w);
  }
  void restore(Reader& r) {
    if (r.boolean() != ahead_.has_value()) user_error("restore: the state was saved with other threads in interleave");
    if (ahead_)
      ahead_->restore(r, node_of(dataset_)->specs(), [&] { walk_->restore_from(r); });
    else
      walk_->restore_from(r);
  }

 private:
  const Element from_;
  const Dataset dataset_;
  std::optional<Ahead> ahead_;
  std::unique_ptr<Walk> walk_;
};

// tf.data's order: slots in turn, `block_length` elements from each; a slot whose Dataset ended is filled when its turn comes again.
class InterleaveWalk final : public InputWalk {
 public:
  InterleaveWalk(const InterleaveNode& node, const Scope& scope)
      : InputWalk(node, scope),
        node_(node),
        scope_(scope),
        overtaking_(!node.options.deterministic || !scope.context->settings.deterministic) {
    const Settings& settings = scope.context->settings;
    const int64_t cycle = node.options.cycle_length == kAutotune ? static_cast<int64_t>(settings.cores.size()) : node.options.cycle_length;
    slots_.resize(static_cast<size_t>(cycle));
    const int64_t calls = node.options.parallel_calls == kAutotune ? settings.threads : node.options.parallel_calls;
    ahead_count_ = node.options.parallel_calls == 1 ? 0 : static_cast<size_t>(std::min(calls, cycle));
  }

 protected:
  bool next(Element& element) override {
    for (;;) {
      if (overtaking_) open_all();
      if (overtaking_ && open_ > 0) to_ready_slot();
      if (slots_[at_]) {
        if (slots_[at_]->next(element)) {
          if (++taken_ == node_.options.block_length) advance();
          if (specs_) check_element(*specs_, element);
          return true;
        }
        slots_[at_].reset();
        --open_;
        advance();
      } else if (!ended_) {
        open(at_);
      } else if (open_ == 0) {
        return false;
      } else {
        advance();
      }
    }
  }
  void save(Writer& w) override {
    w.put(ended_);
    w.put(static_cast<int64_t>(at_));
    w.put(taken_);
    w.put(static_cast<int64_t>(slots_.size()));
    for (const auto& slot : slots_) {
      w.put(slot != nullptr);
      if (!slot) continue;
      w.put(slot->from());
      slot->save(w);
    }
    InputWalk::save(w);
  }
  void restore(Reader& r) override {
    ended_ = r.boolean();
    at_ = static_cast<size_t>(r.integer(0, static_cast<int64_t>(slots_.size()) - 1));
    taken_ = r.integer(0, node_.options.block_length);
    if (const int64_t count = r.integer(); count != static_cast<int64_t>(slots_.size()))
      user_error("restore: the state was saved with a cycle of ", count, ", here it is ", slots_.size(), "\n  hint: give cycle_length");
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (!r.boolean()) continue;
      slots_[i] = std::make_unique<Inner>(r.element(node_.input().specs()), node_, scope_, i < ahead_count_);
      slots_[i]->restore(r);
      ++open_;
    }
    InputWalk::restore(r);
  }

 private:
  void advance() {
    at_ = (at_ + 1) % slots_.size();
    taken_ = 0;
  }
  void open(size_t slot) {
    Element from;
    if (!input().pull(from)) {
      ended_ = true;
      return;
    }
    slots_[slot] = std::make_unique<Inner>(std::move(from), node_, scope_, slot < ahead_count_);
    ++open_;
  }
  void open_all() {
    for (size_t i = 0; i < slots_.size() && !ended_; ++i)
      if (!slots_[i]) open(i);
  }
  void to_ready_slot() {  // the one whose turn it is, when none is
    for (size_t i = 0; i < slots_.size(); ++i) {
      const size_t slot = (at_ + i) % slots_.size();
      if (!slots_[slot] || !slots_[slot]->is_ready()) continue;
      if (slot != at_) taken_ = 0;
      at_ = slot;
      return;
    }
  }

  const InterleaveNode& node_;
  const std::optional<Specs> specs_ = node_.specs();
  const Scope scope_;
  const bool overtaking_;
  std::vector<std::unique_ptr<Inner>> slots_;
  size_t ahead_count_ = 0;  // so many of the slots are read ahead
  size_t at_ = 0, open_ = 0;
  int64_t taken_ = 0;  // of the present block
  bool ended_ = false;
};

std::unique_ptr<Walk> InterleaveNode::walk(const Scope& scope) const { return std::make_unique<InterleaveWalk>(*this, scope); }

}  // namespace

Dataset Dataset::flat_map(std::function<Dataset(const Element&)> f, std::vector<Spec> specs) const {
  if (!f) user_error("flat_map: no function");
  InterleaveOptions options{.cycle_length = 1, .specs = std::move(specs)};
  return Dataset(std::make_shared<InterleaveNode>("flat_map", node_of(*this), std::move(f), std::move(options)));
}

Dataset Dataset::interleave(std::function<Dataset(const Element&)> f, InterleaveOptions options) const {
  if (!f) user_error("interleave: no function");
  if (options.cycle_length != kAutotune) positive(options.cycle_length, "interleave: cycle_length");
  if (options.parallel_calls != kAutotune) positive(options.parallel_calls, "interleave: parallel_calls");
  positive(options.block_length, "interleave: block_length");
  return Dataset(std::make_shared<InterleaveNode>("interleave", node_of(*this), std::move(f), std::move(options)));
}

}  // namespace tandem::data
