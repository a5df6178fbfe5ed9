// Arithmetic on extents: sizes checked for overflow, row-major strides, broadcasting.
#include <tandem/shape.hpp>

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/text.hpp"

namespace tandem {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

[[noreturn]] void too_many_dimensions(size_t count) { user_error("shape: ", count, " dimensions, at most ", kMaxRank, " are supported"); }

}  // namespace

Extents::Extents(std::span<const int64_t> v) {
  if (v.size() > kMaxRank) too_many_dimensions(v.size());
  rank_ = static_cast<int>(v.size());
  std::copy(v.begin(), v.end(), v_.begin());
}

void Extents::push_back(int64_t x) {
  if (rank_ == kMaxRank) too_many_dimensions(kMaxRank + 1);
  v_[size()] = x;
  ++rank_;
}

std::string Extents::str() const {
  std::string text = "[";
  for (int64_t x : *this) {
    if (text.size() > 1) text += ',';
    text += std::to_string(x);
  }
  return text + ']';
}

// Zero extents are left out of the overflow check's product, as in NumPy: an empty tensor still needs strides that fit.
int64_t element_count(const Shape& s) {
  int64_t product = 1;
  bool is_empty = false;
  for (size_t axis = 0; axis < s.size(); ++axis) {
    const int64_t extent = s[axis];
    if (extent < 0) user_error("shape ", s, ": extent ", extent, " at axis ", axis, " is negative");
    if (extent == 0) {
      is_empty = true;
    } else if (product > kLargest / extent) {
      user_error("shape ", s, ": ", product, " x ", extent, " elements do not fit in 64 bits (at most ", kLargest, ")");
    } else {
      product *= extent;
    }
  }
  return is_empty ? 0 : product;
}

// The limit is that of a signed number, because byte offsets may be negative.
size_t byte_size(const Shape& s, DType t) {
  const int64_t count = element_count(s);
  const auto bytes = static_cast<int64_t>(size_of(t));
  if (count > kLargest / bytes)
    user_error("shape ", s, " of ", t, ": ", count, " x ", bytes, " bytes do not fit in 64 bits (at most ", kLargest, ")");
  return static_cast<size_t>(count * bytes);
}

Strides contiguous_strides(const Shape& s) {
  element_count(s);  // so that no stride below can overflow
  Strides strides = s;
  int64_t stride = 1;
  for (size_t axis = s.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= std::max<int64_t>(s[axis], 1);
  }
  return strides;
}

bool is_contiguous(const Shape& s, const Strides& t) {
  if (element_count(s) == 0) return true;
  int64_t expected = 1;
  for (size_t axis = s.size(); axis-- > 0;) {
    if (s[axis] != 1 && t[axis] != expected) return false;
    expected *= s[axis];
  }
  return true;
}

Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  for (size_t back = 1; back <= shorter.size(); ++back) {  // counted from the last axis, where the shapes are aligned
    int64_t& extent = result[longer.size() - back];
    const int64_t other = shorter[shorter.size() - back];
    if (extent == 1) {
      extent = other;
    } else if (other != 1 && other != extent) {
      user_error("broadcast: shapes ", a, " and ", b, " do not fit (", a[a.size() - back], " != ", b[b.size() - back], " at axis -", back,
                 ")");
    }
  }
  return result;
}

int normalize_axis(int64_t axis, int rank, std::string_view what) {
  if (rank == 0) user_error(what, ": axis ", axis, " asked of a scalar, which has none");
  if (axis < -rank || axis >= rank)
    user_error(what, ": axis ", axis, " is out of range for rank ", rank, " (", -rank, " to ", rank - 1, ")");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace tandem
