// Stages that choose among elements: repeat, take, skip, shard.
#include "base/checked.hpp"
#include "data/map.hpp"
#include "data/select.hpp"

namespace tandem::data {
namespace {

// --- repeat ----------------------------------------------------------------------------------------------------------------------

template <class Item> class RepeatFlow final : public Flow<Item> {
 public:
  RepeatFlow(const Node& node, const Scope& scope, int64_t count)
      : Flow<Item>(scope.stage(node)), input_(node.input()), scope_(scope.input(0)), count_(count) {
    if (count != 0) flow_ = make_flow<Item>(input_, scope_);  // now: which walk it is belongs to the state
  }

 protected:
  bool next(Item& item) override {
    while (count_ == kInfinite || epoch_ < count_) {
      if (!flow_) {
        flow_ = make_flow<Item>(input_, scope_);
        is_empty_ = true;
      }
      if (flow_->pull(item)) {
        is_empty_ = false;
        return true;
      }
      flow_.reset();
      ++epoch_;
      if (is_empty_ && count_ == kInfinite) return false;  // nothing for ever is nothing
    }
    return false;
  }
  void save(Writer& w) override {
    w.put(epoch_);
    w.put(is_empty_);
    w.put(flow_ != nullptr);
    if (flow_) flow_->save_to(w);
  }
  void restore(Reader& r) override {
    epoch_ = count_ == kInfinite ? r.count() : r.integer(0, count_);
    is_empty_ = r.boolean();
    if (r.boolean()) {
      if (!flow_) flow_ = make_flow<Item>(input_, scope_);
      flow_->restore_from(r);
    } else {
      flow_.reset();
    }
  }

 private:
  const Node& input_;
  const Scope scope_;
  const int64_t count_;
  int64_t epoch_ = 0;
  bool is_empty_ = true;
  std::unique_ptr<Flow<Item>> flow_;
};

class RepeatNode final : public SelectNode<RepeatNode> {
 public:
  RepeatNode(NodeRef input, int64_t count) : SelectNode("repeat", std::move(input)), count_(count) {}
  std::string arguments() const override { return count_text(count_); }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    if (n == 0 || count_ == 0) return 0;
    if (n == kUnknown) return kUnknown;
    return n == kInfinite || count_ == kInfinite ? kInfinite : n * count_;
  }
  template <class Item> std::unique_ptr<Flow<Item>> flow(const Scope& scope) const {
    return std::make_unique<RepeatFlow<Item>>(*this, scope, count_);
  }

 private:
  const int64_t count_;
};

// --- take, skip, shard: a part of the numbers --------------------------------------------------------------------------------------

// Items first, first + step, … of which there are at most `count`.
struct Part {
  int64_t first = 0, step = 1, count = kInfinite;
};

template <class Item> class PartFlow final : public Flow<Item> {
 public:
  PartFlow(const Node& node, const Scope& scope, Part part)
      : Flow<Item>(scope.stage(node)), part_(part), flow_(make_flow<Item>(node.input(), scope.input(0))) {}

 protected:
  bool next(Item& item) override {
    if (part_.count != kInfinite && given_ >= part_.count) return false;
    // An item that fails has its number all the same.
    while (passed_ < part_.first + given_ * part_.step) {
      ++passed_;
      if (!flow_->pull(item)) return false;
    }
    ++passed_;
    ++given_;
    return flow_->pull(item);
  }
  void save(Writer& w) override {
    w.put(passed_);
    w.put(given_);
    flow_->save_to(w);
  }
  void restore(Reader& r) override {
    passed_ = r.count();
    given_ = part_.count == kInfinite ? r.count() : r.integer(0, part_.count);
    const auto place = [&](int64_t given) {  // of an item among those of the input
      const auto steps = checked_multiply(given, part_.step);
      return steps ? checked_add(part_.first, *steps) : std::nullopt;
    };
    const auto next = place(given_);
    if (!next || passed_ > *next || (given_ > 0 && passed_ <= *place(given_ - 1)))
      Reader::damaged(cat(given_, " items given after ", passed_, " of the input"));
    flow_->restore_from(r);
  }

 private:
  const Part part_;
  std::unique_ptr<Flow<Item>> flow_;
  int64_t passed_ = 0, given_ = 0;  // items of the input, items of this
};

class PartNode final : public SelectNode<PartNode> {
 public:
  PartNode(std::string name, std::string arguments, NodeRef input, Part part)
      : SelectNode(std::move(name), std::move(input)), arguments_(std::move(arguments)), part_(part) {}
  std::string arguments() const override { return arguments_; }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    if (n == kUnknown) return part_.count == 0 ? 0 : kUnknown;
    if (n == kInfinite) return part_.count;
    const int64_t all = n <= part_.first ? 0 : (n - part_.first + part_.step - 1) / part_.step;
    return part_.count == kInfinite ? all : std::min(all, part_.count);
  }
  template <class Item> std::unique_ptr<Flow<Item>> flow(const Scope& scope) const {
    return std::make_unique<PartFlow<Item>>(*this, scope, part_);
  }

 private:
  const std::string arguments_;
  const Part part_;
};

Dataset part_of(const Dataset& dataset, std::string name, std::string arguments, Part part) {
  return Dataset(before_map(node_of(dataset), [&](NodeRef input) {
    return std::make_shared<PartNode>(std::move(name), std::move(arguments), std::move(input), part);
  }));
}

}  // namespace

Dataset Dataset::repeat(int64_t count) const {
  if (count < 0 && count != kInfinite) user_error("repeat: count is ", count, ", it must not be negative");
  return Dataset(before_map(node_of(*this), [&](NodeRef input) { return std::make_shared<RepeatNode>(std::move(input), count); }));
}

Dataset Dataset::take(int64_t count) const {
  if (count < 0 && count != kInfinite) user_error("take: count is ", count, ", it must not be negative");
  return part_of(*this, "take", count_text(count), {.count = count});
}

Dataset Dataset::skip(int64_t count) const {
  if (count < 0) user_error("skip: count is ", count, ", it must not be negative");
  return part_of(*this, "skip", count_text(count), {.first = count});
}

Dataset Dataset::shard(int64_t shards, int64_t index) const {
  positive(shards, "shard: the number of shards");
  if (index < 0 || index >= shards) user_error("shard: index is ", index, ", it must be from 0 to ", shards - 1);
  return part_of(*this, "shard", cat(shards, ", ", index), {.first = index, .step = shards});
}

}  // namespace tandem::data
