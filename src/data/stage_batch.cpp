// batch: consecutive elements side by side. Rows of tensors in memory are viewed where they lie one after the other, else copied once.
#include "base/text.hpp"
#include "data/map.hpp"
#include "data/parallel.hpp"

namespace tandem::data {
namespace {

class BatchNode final : public Node {
 public:
  BatchNode(NodeRef input, int64_t size, const BatchOptions& options) : Node("batch", {std::move(input)}), size(size), options(options) {}
  std::string arguments() const override { return cat(size, options.drop_remainder ? ", drop_remainder" : ""); }
  std::optional<Specs> specs() const override {
    const auto in = input().specs();
    if (!in) return {};
    const int64_t n = input().cardinality();
    const bool is_fixed = options.drop_remainder || (!options.open_extent && (n == kInfinite || (n >= 0 && n % size == 0)));
    return with_leading(*in, is_fixed ? Dim(size) : Dim::symbol("batch"));
  }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    return n < 0 ? n : options.drop_remainder ? n / size : (n + size - 1) / size;
  }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;

  const int64_t size;
  const BatchOptions options;
};

// An element between pull and compute is the indices of its rows.
class RowBatchWalk final : public ParallelWalk {
 public:
  RowBatchWalk(const BatchNode& node, const Scope& scope)
      : ParallelWalk(node, scope, {node.options.parallel_calls, node.options.deterministic}, nullptr),
        node_(node),
        rows_(*node.input().rows()),
        indices_(node.input().index_walk(input_scope(scope).input(0))) {}
  ~RowBatchWalk() override { stop(); }

 protected:
  bool pull(Element& element) override {
    if (ended_) return false;
    batch_.clear();
    for (int64_t index; static_cast<int64_t>(batch_.size()) < node_.size && indices_->pull(index);) batch_.push_back(index);
    ended_ = static_cast<int64_t>(batch_.size()) < node_.size;
    if (batch_.empty() || (ended_ && node_.options.drop_remainder)) return false;
    element.assign(1, Tensor::from(batch_));
    return true;
  }
  void compute(Element& element) override {
    const Tensor indices = std::move(element[0]);
    const int64_t* first = indices.data<int64_t>();
    const auto count = static_cast<size_t>(indices.size());
    size_t consecutive = 1;
    while (consecutive < count && first[consecutive - 1] < INT64_MAX && first[consecutive] == first[consecutive - 1] + 1) ++consecutive;
    if (consecutive == count)
      rows_.range(first[0], static_cast<int64_t>(count), element);
    else
      rows_.gather({first, count}, element);
  }
  void save_input(Writer& w) override {
    w.put(ended_);
    indices_->save_to(w);
  }
  void restore_input(Reader& r) override {
    ended_ = r.boolean();
    indices_->restore_from(r);
  }

 private:
  const BatchNode& node_;
  const Rows& rows_;
  std::unique_ptr<IndexFlow> indices_;
  std::vector<int64_t> batch_;
  bool ended_ = false;
};

// An element between pull and compute is all components of all its elements.
class BatchWalk final : public ParallelWalk {
 public:
  BatchWalk(const BatchNode& node, const Scope& scope)
      : ParallelWalk(node, scope, {node.options.parallel_calls, node.options.deterministic}), node_(node) {}
  ~BatchWalk() override { stop(); }

 protected:
  // An error of the input leaves here at once; what was collected stays, and the batch goes on behind it.
  bool pull(Element& element) override {
    while (!ended_ && count_ < node_.size) {
      Element one;
      if (!input().pull(one)) {
        ended_ = true;
        break;
      }
      if (one.empty()) user_error("an element without components cannot be batched");
      if (count_ > 0 && one.size() != components_)
        user_error("an element has ", one.size(), " components, the first of the batch has ", components_, " (", one.size(),
                   " != ", components_, ")");
      components_ = one.size();
      ++count_;
      for (Tensor& t : one) collected_.push_back(std::move(t));
    }
    if (count_ == 0 || (count_ < node_.size && node_.options.drop_remainder)) return false;
    element = std::exchange(collected_, {});
    element.push_back(Tensor::scalar<int64_t>(count_));
    count_ = 0;
    return true;
  }
  void compute(Element& element) override {
    const auto count = static_cast<size_t>(element.back().item<int64_t>());
    element.pop_back();
    Element batch;
    stack(element, element.size() / count, batch);
    element = std::move(batch);
  }
  void save_input(Writer& w) override {
    w.put(ended_);
    w.put(count_);
    w.put(collected_);
    ParallelWalk::save_input(w);
  }
  void restore_input(Reader& r) override {
    ended_ = r.boolean();
    count_ = r.integer(0, node_.size);
    collected_ = r.element();
    const auto count = static_cast<size_t>(count_);
    if (count == 0 ? !collected_.empty() : collected_.empty() || collected_.size() % count != 0)
      Reader::damaged(cat(collected_.size(), " components of ", count, " elements of a batch"));
    components_ = count ? collected_.size() / count : 0;
    if (const auto declared = node_.input().specs())
      for (auto from = collected_.begin(); from != collected_.end(); from += static_cast<ptrdiff_t>(components_))
        check_element(*declared, Element(from, from + static_cast<ptrdiff_t>(components_)));
    ParallelWalk::restore_input(r);
  }

 private:
  const BatchNode& node_;
  Element collected_;
  int64_t count_ = 0;
  size_t components_ = 0;
  bool ended_ = false;
};

std::unique_ptr<Walk> BatchNode::walk(const Scope& scope) const {
  if (input().rows()) return std::make_unique<RowBatchWalk>(*this, scope);
  return std::make_unique<BatchWalk>(*this, scope);
}

}  // namespace

Dataset Dataset::batch(int64_t size, const BatchOptions& options) const {
  positive(size, "batch: the size");
  if (options.parallel_calls != kAutotune) positive(options.parallel_calls, "batch: parallel_calls");
  const NodeRef& input = node_of(*this);
  if (const auto* map = dynamic_cast<const MapNode*>(input.get()))
    if (NodeRef batched = map->over_batches(std::make_shared<BatchNode>(map->inputs()[0], size, options)))
      return Dataset(std::move(batched));
  return Dataset(std::make_shared<BatchNode>(input, size, options));
}

}  // namespace tandem::data
