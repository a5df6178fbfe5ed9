// Dataset: a description of elements that come one after the other, from memory, files or a callback, through stages. Iterator: one
// walk over it, with its threads, buffers and position. A description does nothing by itself and never changes; stages give a new one.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tandem/function.hpp>
#include <tandem/structure.hpp>
#include <tandem/tensor.hpp>

namespace tandem::data {

// The components of one element, in order. Text and records of bytes are uint8 tensors of one axis.
using Element = std::vector<Tensor>;

inline constexpr int64_t kAutotune = -1;  // a degree of parallelism or a buffer's size that is found while running
inline constexpr int64_t kInfinite = -1;  // cardinalities
inline constexpr int64_t kUnknown = -2;

class Node;  // one source or stage; src/data/node.hpp
class Walk;  // one iterator's run of it; src/data/walk.hpp

class Iterator {
 public:
  Iterator(Iterator&&) noexcept;
  Iterator& operator=(Iterator&&) noexcept;
  ~Iterator();  // cancels what runs and waits for it; possible at any moment

  // Replaces `element` by the next one; false at the end. An error carries the stage and the number of the element; the iterator can go on
  // after one, with the element that follows.
  bool next(Element& element);

  // The exact position, mid-epoch, shuffled or parallel; restored into an iterator of an equal Dataset it gives the elements that this
  // one would have given next.
  std::string save() const;
  void restore(std::string_view state);

  std::string explain() const;  // each stage with time, parallelism, queue fill and bytes, and which one is the bottleneck

 private:
  friend class Dataset;
  explicit Iterator(std::unique_ptr<Walk> walk);
  std::unique_ptr<Walk> walk_;
};

class Dataset {
 public:
  Dataset() = default;
  static Dataset from_slices(std::vector<Tensor> tensors);  // along the first axis of each; elements are views
  Dataset batch(int64_t size, bool drop_remainder = false) const;
  Dataset prefetch(int64_t elements = kAutotune) const;

  std::vector<Spec> specs() const;  // of the components; symbols where extents vary
  int64_t cardinality() const;      // elements in one walk, kInfinite or kUnknown
  Iterator iterate() const;

  explicit Dataset(std::shared_ptr<const Node> node);
  const std::shared_ptr<const Node>& node() const { return node_; }

 private:
  std::shared_ptr<const Node> node_;
};

}  // namespace tandem::data
