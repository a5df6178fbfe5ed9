// A traced map: what other stages may know about it, so that they can stand before it instead of behind it.
#pragma once
#include <memory>
#include <optional>

#include "data/node.hpp"

namespace tandem::data {

class MapNode : public Node {
 public:
  MapNode(NodeRef input, FlatFunction f, MapOptions options);
  MapNode(NodeRef input, const MapNode& like);  // over another input, not traced again
  ~MapNode() override;
  std::string arguments() const override;
  std::optional<Specs> specs() const override;
  std::unique_ptr<Walk> walk(const Scope& scope) const override;

  // Its results depend on the element alone: the map may move behind stages that choose elements, and run for several at once.
  bool is_pure() const;
  // The same map over another input whose elements are of the same types.
  NodeRef over(NodeRef input) const;
  // The map over batches of its input's elements, computed at once. Null when that is not possible or not wanted; `why` says why.
  NodeRef over_batches(const NodeRef& batches, std::string* why = nullptr) const;

  const FlatCallable& callable() const { return callable_; }
  const MapOptions& options() const { return options_; }

 private:
  struct Traced;
  FlatCallable compiled() const;
  const FlatFunction body_;
  const MapOptions options_;
  std::shared_ptr<const Traced> traced_;  // null when the input's types are known only when it runs
  FlatCallable callable_;
};

// stage(x) as it is, but map(stage(y)) when x is a pure map of y: the stage then keeps and moves what is there before the map, and the map
// stays next to a batch that may follow.
template <class F> NodeRef before_map(const NodeRef& input, F stage) {
  if (const auto* map = dynamic_cast<const MapNode*>(input.get()); map && map->is_pure()) return map->over(stage(map->inputs()[0]));
  return stage(input);
}

}  // namespace tandem::data
