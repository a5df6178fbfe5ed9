#include "data/node.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace tandem::data {
namespace {

// An element comes through all stages by one call inside the other; a thread's stack bounds how many there can be.
constexpr int kMostStages = 1000;

// Rows as elements: views.
class RowWalk final : public Walk {
 public:
  RowWalk(Stage& stage, const Rows& rows, std::unique_ptr<IndexFlow> indices) : Walk(stage), rows_(rows), indices_(std::move(indices)) {}

 protected:
  bool next(Element& element) override {
    int64_t index;
    if (!indices_->pull(index)) return false;
    rows_.row(index, element);
    return true;
  }
  void save(Writer& w) override { indices_->save_to(w); }
  void restore(Reader& r) override { indices_->restore_from(r); }

 private:
  const Rows& rows_;
  std::unique_ptr<IndexFlow> indices_;
};

// Rows become elements here; the stage that chose them is counted on its own.
class RowsOut final : public Node {
 public:
  RowsOut() : Node("rows", {}) {}
  std::unique_ptr<Walk> walk(const Scope&) const override { internal_error("rows are no node of a description"); }
};

}  // namespace

Node::Node(std::string name, std::vector<NodeRef> inputs) : name_(std::move(name)), inputs_(std::move(inputs)) {
  for (const NodeRef& input : inputs_) depth_ = std::max(depth_, input->depth_ + 1);
  if (depth_ > kMostStages)
    user_error(name_, ": the pipeline would be ", depth_, " stages long, the most is ", kMostStages,
               "\n  hint: what is done to each element goes into one map");
}

std::string Node::pipeline() const {
  std::string all;
  for (size_t i = 0; i < inputs_.size(); ++i) all += (i ? ", " : "") + inputs_[i]->pipeline();
  if (inputs_.size() > 1) all = "[" + all + "]";
  return all.empty() ? text() : all + " | " + text();
}

std::unique_ptr<IndexFlow> Node::index_walk(const Scope&) const { internal_error(name_, " does not give rows"); }

std::unique_ptr<Walk> RowNode::walk(const Scope& scope) const {
  if (!rows()) return element_walk(scope);
  static const RowsOut out;
  return std::make_unique<RowWalk>(scope.stage(out), *rows(), index_walk(scope.input(0)));
}

const NodeRef& node_of(const Dataset& dataset) {
  if (!dataset.node()) user_error("this Dataset holds nothing\n  hint: it was made by its default constructor");
  return dataset.node();
}

std::string count_text(int64_t count) {
  if (count == kInfinite) return "infinite";
  if (count == kUnknown) return "unknown";
  return std::to_string(count);
}

int64_t positive(int64_t value, std::string_view what) {
  if (value <= 0) user_error(what, " is ", value, ", it must be above 0");
  return value;
}

}  // namespace tandem::data
