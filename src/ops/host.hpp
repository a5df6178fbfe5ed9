// What host routines share: the lines of a tensor along one axis, cut into chunks that are worth a thread.
#pragma once
#include <algorithm>
#include <string>

#include "base/half.hpp"
#include "ir/op.hpp"

namespace tandem::ops {

template <class T> inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// All the runs of elements along one axis; element i of a line is at begin(line) + i * inner.
struct Lines {
  int64_t outer = 1, length = 1, inner = 1;
  Lines(const Shape& s, int axis) {
    for (int k = 0; k < s.rank(); ++k) (k < axis ? outer : k == axis ? length : inner) *= s[static_cast<size_t>(k)];
  }
  int64_t count() const { return outer * inner; }
  int64_t begin(int64_t line) const { return line / inner * length * inner + line % inner; }
};

inline int host_axis(const ir::HostCall& c, const Shape& s) { return normalize_axis(c.attrs.get<int64_t>("axis"), s.rank(), c.op.name); }

// Runs f(first, last) over ranges of lines of `length` elements each. How they are cut depends on the sizes only.
template <class F> void for_lines(const ir::HostCall& c, int64_t lines, int64_t length, F f) {
  constexpr int64_t kChunkElements = 1 << 14;
  if (lines == 0) return;
  int64_t per_chunk = std::max<int64_t>(1, kChunkElements / std::max<int64_t>(1, length));
  int64_t chunks = (lines + per_chunk - 1) / per_chunk;
  c.parallel(chunks, [&](int64_t chunk) { f(chunk * per_chunk, std::min(lines, (chunk + 1) * per_chunk)); });
}

// An index made non-negative; -1 when it is out of range.
inline int64_t normal_index(int64_t index, int64_t size) {
  int64_t i = index < 0 ? index + size : index;
  return i >= 0 && i < size ? i : -1;
}
// Where element `at` in row-major order is: [1,2].
inline Shape position_of(const Shape& shape, int64_t at) {
  Shape position = shape;
  for (size_t k = shape.size(); k-- > 0; at /= shape[k]) position[k] = at % shape[k];
  return position;
}
// "take: index 7 is out of range for axis 0 with size 5 (at position [1,2])"; `at` is the row-major position in `shape`.
[[noreturn]] void index_out_of_range(std::string_view op, int64_t index, int64_t axis, int64_t size, const Shape& shape, int64_t at);

}  // namespace tandem::ops
