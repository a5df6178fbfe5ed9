// Shape: the extents of a tensor whose size is known. Strides: how far apart its elements lie, in elements.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include <tandem/dtype.hpp>

namespace tandem {

inline constexpr int kMaxRank = 12;

// A short list of int64 kept in place: no allocation, cheap to copy and to compare. More than kMaxRank entries is a UserError.
class Extents {
 public:
  Extents() = default;
  Extents(std::initializer_list<int64_t> v) : Extents(std::span<const int64_t>(v.begin(), v.size())) {}
  explicit Extents(std::span<const int64_t> v);
  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  size_t size() const { return static_cast<size_t>(rank_); }
  int64_t operator[](size_t i) const { return v_[i]; }
  int64_t& operator[](size_t i) { return v_[i]; }
  const int64_t* begin() const { return v_.data(); }
  const int64_t* end() const { return v_.data() + rank_; }
  const int64_t* data() const { return v_.data(); }
  int64_t* data() { return v_.data(); }
  int64_t back() const { return v_[static_cast<size_t>(rank_ - 1)]; }
  void push_back(int64_t x);
  operator std::span<const int64_t>() const { return {v_.data(), size()}; }
  friend bool operator==(const Extents& a, const Extents& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.v_[static_cast<size_t>(i)] != b.v_[static_cast<size_t>(i)]) return false;
    return true;
  }
  std::string str() const;  // "[2,3]"

 private:
  int rank_ = 0;
  std::array<int64_t, kMaxRank> v_;  // only the first rank_ are meaningful
};

using Shape = Extents;
using Strides = Extents;

int64_t element_count(const Shape& s);                              // UserError if the product leaves int64
size_t byte_size(const Shape& s, DType t);                          // UserError likewise
Strides contiguous_strides(const Shape& s);                         // row-major
bool is_contiguous(const Shape& s, const Strides& t);               // ignoring axes of extent 1; empty tensors always are
Shape broadcast(const Shape& a, const Shape& b);                    // NumPy's rule; UserError names both shapes
int normalize_axis(int64_t axis, int rank, std::string_view what);  // -1 -> rank-1; UserError when out of range

}  // namespace tandem
