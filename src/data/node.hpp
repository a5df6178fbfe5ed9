// Node: one source or stage of a description. Immutable; makes the flows that run it.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/context.hpp"
#include "data/elements.hpp"
#include "data/walk.hpp"

namespace tandem::data {

using NodeRef = std::shared_ptr<const Node>;

class Node {
 public:
  Node(std::string name, std::vector<NodeRef> inputs);
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const std::string& name() const { return name_; }
  virtual std::string arguments() const { return ""; }  // what tells two such stages apart: "128, drop_remainder"
  std::string text() const { return name_ + "(" + arguments() + ")"; }
  std::string pipeline() const;  // all stages: inputs first
  const std::vector<NodeRef>& inputs() const { return inputs_; }
  const Node& input(size_t i = 0) const { return *inputs_[i]; }

  virtual std::optional<Specs> specs() const { return input().specs(); }  // nothing: only running it would tell
  virtual int64_t cardinality() const { return input().cardinality(); }
  virtual std::unique_ptr<Walk> walk(const Scope& scope) const = 0;

  // Not null: every element is a row of these, and index_walk says which.
  virtual const Rows* rows() const { return nullptr; }
  virtual std::unique_ptr<IndexFlow> index_walk(const Scope& scope) const;

  virtual const PipelineOptions* pipeline_options() const { return nullptr; }

 protected:
  std::unique_ptr<Walk> input_walk(const Scope& scope, size_t i = 0) const { return input(i).walk(scope.input(i)); }

 private:
  const std::string name_;
  const std::vector<NodeRef> inputs_;
  int depth_ = 1;  // stages on the longest way to a source, this one included
};

// A source or stage whose elements are rows wherever its input's are: `Stage::make<Item>` gives the flow over either.
class RowNode : public Node {
 public:
  using Node::Node;
  const Rows* rows() const override { return inputs().empty() ? nullptr : input().rows(); }
  std::unique_ptr<Walk> walk(const Scope& scope) const override;
  std::unique_ptr<IndexFlow> index_walk(const Scope& scope) const override = 0;

 protected:
  virtual std::unique_ptr<Walk> element_walk(const Scope& scope) const = 0;  // where elements are no rows
};

template <class Item> std::unique_ptr<Flow<Item>> make_flow(const Node& node, const Scope& scope) {
  if constexpr (std::is_same_v<Item, int64_t>)
    return node.index_walk(scope);
  else
    return node.walk(scope);
}

// The flow of a stage of one input whose state is, besides its own, its input's.
class InputWalk : public Walk {
 public:
  InputWalk(const Node& node, const Scope& scope) : Walk(scope.stage(node)), input_(node.input().walk(scope.input(0))) {}

 protected:
  Walk& input() { return *input_; }
  void save(Writer& w) override { input_->save_to(w); }
  void restore(Reader& r) override { input_->restore_from(r); }

 private:
  std::unique_ptr<Walk> input_;
};

const NodeRef& node_of(const Dataset& dataset);  // UserError when it holds nothing
// A count in a message: "128", "infinite", "autotune".
std::string count_text(int64_t count);
int64_t positive(int64_t value, std::string_view what);  // UserError otherwise

}  // namespace tandem::data
