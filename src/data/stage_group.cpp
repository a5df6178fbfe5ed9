// Stages that take elements apart or look at several at a time: unbatch, rebatch, window.
#include <deque>

#include "base/text.hpp"
#include "data/node.hpp"

namespace tandem::data {
namespace {

// --- unbatch -----------------------------------------------------------------------------------------------------------------------

class UnbatchNode final : public Node {
 public:
  explicit UnbatchNode(NodeRef input) : Node("unbatch", {std::move(input)}) {
    for (const Spec& s : this->input().specs().value_or(Specs{}))
      if (s.dims.empty()) user_error("unbatch: the input gives ", str(*this->input().specs()), ", of which not every component has rows");
  }
  std::optional<Specs> specs() const override {
    auto in = input().specs();
    if (!in) return {};
    for (Spec& s : *in) s.dims.erase(s.dims.begin());
    return renamed(*in);
  }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    const auto in = input().specs();
    if (n <= 0) return n;
    if (!in || in->empty() || !in->front().dims[0].is_const()) return kUnknown;
    return n * in->front().dims[0].value();
  }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;
};

class UnbatchWalk final : public InputWalk {
 public:
  using InputWalk::InputWalk;

 protected:
  bool next(Element& element) override {
    while (!rows_ || at_ == rows_->count()) {
      Element batch;
      rows_.reset();
      if (!input().pull(batch)) return false;
      rows_.emplace(std::move(batch), "unbatch");
      at_ = 0;
    }
    rows_->row(at_++, element);
    return true;
  }
  void save(Writer& w) override {
    w.put(rows_.has_value());
    if (rows_) {
      w.put(rows_->tensors());
      w.put(at_);
    }
    InputWalk::save(w);
  }
  void restore(Reader& r) override {
    if (r.boolean()) {
      rows_.emplace(r.element(), "unbatch");
      at_ = r.integer(0, rows_->count());
    }
    InputWalk::restore(r);
  }

 private:
  std::optional<Rows> rows_;
  int64_t at_ = 0;
};

std::unique_ptr<Walk> UnbatchNode::walk(const Scope& scope) const { return std::make_unique<UnbatchWalk>(*this, scope); }

// --- window --------------------------------------------------------------------------------------------------------------------------

class WindowNode final : public Node {
 public:
  WindowNode(NodeRef input, int64_t size, WindowOptions options) : Node("window", {std::move(input)}), size(size), options(options) {}
  std::string arguments() const override {
    return cat(size, ", shift=", options.shift, ", stride=", options.stride, options.drop_remainder ? ", drop_remainder" : "");
  }
  std::optional<Specs> specs() const override {
    const auto in = input().specs();
    return in ? std::optional(with_leading(*in, options.drop_remainder ? Dim(size) : Dim::symbol("window"))) : std::nullopt;
  }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    if (n < 0) return n;
    const int64_t span = (size - 1) * options.stride + 1;
    if (options.drop_remainder) return n < span ? 0 : (n - span) / options.shift + 1;
    return (n + options.shift - 1) / options.shift;
  }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;
  const int64_t size;
  const WindowOptions options;
};

class WindowWalk final : public InputWalk {
 public:
  WindowWalk(const WindowNode& node, const Scope& scope) : InputWalk(node, scope), node_(node) {}

 protected:
  bool next(Element& element) override {
    const int64_t span = (node_.size - 1) * node_.options.stride + 1;
    while (!ended_ && (to_skip_ > 0 || static_cast<int64_t>(buffer_.size()) < span)) {
      Element one;
      if (!input().pull(one)) {
        ended_ = true;
      } else if (to_skip_ > 0) {
        --to_skip_;
      } else {
        buffer_.push_back(std::move(one));
      }
    }
    const auto have = static_cast<int64_t>(buffer_.size());
    if (have == 0 || to_skip_ > 0 || (node_.options.drop_remainder && have < span)) return false;
    Element flat;
    for (int64_t i = 0; i < have && i < span; i += node_.options.stride) {
      const Element& one = buffer_[static_cast<size_t>(i)];
      if (one.size() != buffer_[0].size()) user_error("elements have ", one.size(), " and ", buffer_[0].size(), " components");
      flat.insert(flat.end(), one.begin(), one.end());
    }
    const size_t components = buffer_[0].size();
    const int64_t leave = std::min(have, node_.options.shift);
    buffer_.erase(buffer_.begin(), buffer_.begin() + leave);
    to_skip_ = node_.options.shift - leave;
    stack(flat, components, element);
    return true;
  }
  void save(Writer& w) override {
    w.put(ended_);
    w.put(to_skip_);
    w.put(static_cast<int64_t>(buffer_.size()));
    for (const Element& e : buffer_) w.put(e);
    InputWalk::save(w);
  }
  void restore(Reader& r) override {
    ended_ = r.boolean();
    to_skip_ = r.integer(0, node_.options.shift);
    const int64_t count = r.integer(0, INT64_MAX);
    const auto declared = node_.input().specs();
    for (int64_t i = 0; i < count; ++i) buffer_.push_back(r.element(declared));
    InputWalk::restore(r);
  }

 private:
  const WindowNode& node_;
  std::deque<Element> buffer_;
  int64_t to_skip_ = 0;
  bool ended_ = false;
};

std::unique_ptr<Walk> WindowNode::walk(const Scope& scope) const { return std::make_unique<WindowWalk>(*this, scope); }

}  // namespace

Dataset Dataset::unbatch() const { return Dataset(std::make_shared<UnbatchNode>(node_of(*this))); }

Dataset Dataset::rebatch(int64_t size, bool drop_remainder) const {
  positive(size, "rebatch: the size");
  return unbatch().batch(size, drop_remainder);
}

Dataset Dataset::window(int64_t size, WindowOptions options) const {
  positive(size, "window: the size");
  if (options.shift == 0) options.shift = size;
  positive(options.shift, "window: the shift");
  positive(options.stride, "window: the stride");
  return Dataset(std::make_shared<WindowNode>(node_of(*this), size, options));
}

}  // namespace tandem::data
