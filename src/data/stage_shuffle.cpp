// shuffle: a buffer of elements from which one is drawn at random.
#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "data/map.hpp"
#include "data/random.hpp"
#include "data/select.hpp"

namespace tandem::data {
namespace {

class ShuffleNode;

template <class Item> class ShuffleFlow final : public Flow<Item> {
 public:
  ShuffleFlow(const ShuffleNode& node, const Scope& scope);

 protected:
  bool next(Item& item) override;
  void save(Writer& w) override {
    w.put(random_.state());
    w.put(ended_);
    w.put(static_cast<int64_t>(buffer_.size()));
    for (const Item& item : buffer_) put_item(w, item);
    flow_->save_to(w);
  }
  void restore(Reader& r) override;

 private:
  const ShuffleNode& node_;
  std::unique_ptr<Flow<Item>> flow_;
  Held held_;
  std::vector<Item> buffer_;
  Random random_;
  bool ended_ = false;
};

class ShuffleNode final : public SelectNode<ShuffleNode> {
 public:
  ShuffleNode(NodeRef input, int64_t size, ShuffleOptions options)
      : SelectNode("shuffle", std::move(input)),
        size(size),
        options_(options),
        seed_(options.seed ? *options.seed : Random::fresh_seed()) {}
  std::string arguments() const override {
    return cat(size, options_.seed ? cat(", seed=", *options_.seed) : "", options_.reshuffle_each_iteration ? "" : ", one order");
  }
  template <class Item> std::unique_ptr<Flow<Item>> flow(const Scope& scope) const {
    return std::make_unique<ShuffleFlow<Item>>(*this, scope);
  }
  Random random(Context::Epoch e) const {
    return options_.reshuffle_each_iteration ? Random::of({seed_, e.iterator, e.epoch}) : Random::of({seed_});
  }
  const int64_t size;
  mutable IteratorCount iterators;

 private:
  const ShuffleOptions options_;
  const uint64_t seed_;
};

template <class Item>
ShuffleFlow<Item>::ShuffleFlow(const ShuffleNode& node, const Scope& scope)
    : Flow<Item>(scope.stage(node)),
      node_(node),
      flow_(make_flow<Item>(node.input(), scope.input(0))),
      held_(scope.context->budget),
      random_(node.random(scope.context->next_epoch(scope.path, node.iterators))) {}

template <class Item> bool ShuffleFlow<Item>::next(Item& item) {
  while (!ended_ && static_cast<int64_t>(buffer_.size()) < node_.size) {
    Item more;
    if (flow_->pull(more)) {
      held_.add(held_bytes(more), "the buffer of shuffle");
      buffer_.push_back(std::move(more));
    } else {
      ended_ = true;
    }
  }
  if (buffer_.empty()) return false;
  const size_t drawn = random_.below(buffer_.size());
  item = std::move(buffer_[drawn]);
  held_.remove(held_bytes(item));
  // In a full buffer the next one takes this place; at the end the last one does.
  if (drawn + 1 != buffer_.size()) buffer_[drawn] = std::move(buffer_.back());
  buffer_.pop_back();
  return true;
}

template <class Item> void ShuffleFlow<Item>::restore(Reader& r) {
  random_ = Random(r.bits());
  ended_ = r.boolean();
  const int64_t count = r.integer(0, node_.size);
  const auto declared = node_.input().specs();
  for (int64_t i = 0; i < count; ++i) {
    get_item(r, declared, buffer_.emplace_back());
    held_.add(held_bytes(buffer_.back()), "the buffer of shuffle");
  }
  flow_->restore_from(r);
}

}  // namespace

Dataset Dataset::shuffle(int64_t size, ShuffleOptions options) const {
  positive(size, "shuffle: the buffer's size");
  return Dataset(before_map(node_of(*this), [&](NodeRef input) { return std::make_shared<ShuffleNode>(std::move(input), size, options); }));
}

}  // namespace tandem::data
