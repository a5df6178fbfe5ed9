// Indexing as in NumPy: numbers, slices, an ellipsis, new axes, and tensors of indices.
#pragma once
#include <concepts>
#include <optional>
#include <source_location>
#include <utility>

#include <tandem/dim.hpp>

namespace tandem {

class Tensor;

inline constexpr std::nullopt_t _ = std::nullopt;  // an end of a slice that is left open: Slice(_, _, -1)

// start:stop:step. Negative bounds count from the end; bounds beyond the ends are clipped.
struct Slice {
  Slice() = default;
  Slice(std::optional<Dim> first, std::optional<Dim> last, std::optional<int64_t> stride = {})
      : start(std::move(first)), stop(std::move(last)), step(stride.value_or(1)) {}
  std::optional<Dim> start, stop;
  int64_t step = 1;
};

struct Ellipsis {};
struct NewAxis {};
inline constexpr Ellipsis ellipsis{};  // all axes that no other index names
inline constexpr NewAxis newaxis{};    // a new axis of extent 1

// One entry of an index. Only for parameters: a tensor is referred to.
class Index {
 public:
  using Where = std::source_location;
  enum class Kind : uint8_t { None, Number, Range, Rest, New, Gather };
  Index() = default;
  template <std::integral T>
  Index(T at, Where where = Where::current()) : kind_(Kind::Number), at_(static_cast<int64_t>(at)), where_(where) {}        // NOLINT
  Index(Slice range, Where where = Where::current()) : kind_(Kind::Range), range_(std::move(range)), where_(where) {}       // NOLINT
  Index(Ellipsis, Where where = Where::current()) : kind_(Kind::Rest), where_(where) {}                                     // NOLINT
  Index(NewAxis, Where where = Where::current()) : kind_(Kind::New), where_(where) {}                                       // NOLINT
  Index(const Tensor& indices, Where where = Where::current()) : kind_(Kind::Gather), indices_(&indices), where_(where) {}  // NOLINT

  Kind kind() const { return kind_; }
  int64_t at() const { return at_; }
  const Slice& range() const { return range_; }
  const Tensor& indices() const { return *indices_; }
  const Where& where() const { return where_; }

 private:
  Kind kind_ = Kind::None;
  int64_t at_ = 0;
  Slice range_;
  const Tensor* indices_ = nullptr;
  Where where_;
};

}  // namespace tandem
