#include "codegen/dense_copy.hpp"

#include <array>
#include <cstring>

namespace tandem::codegen {
namespace {

template <class T> void copy_as(const Layout& o, const T* from, T* to) {
  const int64_t count = element_count(o.shape);
  if (count == 0) return;
  const size_t rank = o.shape.size();
  const int64_t inner = rank ? o.shape[rank - 1] : 1, step = rank ? o.strides[rank - 1] : 1;
  std::array<int64_t, kMaxRank> at{};
  for (int64_t done = 0; done < count; done += inner) {
    int64_t offset = 0;
    for (size_t d = 0; d + 1 < rank; ++d) offset += at[d] * o.strides[d];
    for (int64_t i = 0; i < inner; ++i) *to++ = from[offset + i * step];
    for (size_t d = rank ? rank - 1 : 0; d-- > 0;) {
      if (++at[d] < o.shape[d]) break;
      at[d] = 0;
    }
  }
}

}  // namespace

void dense_copy(const Layout& layout, const void* from, void* to) {
  switch (size_of(layout.dtype)) {
    case 1: return copy_as(layout, static_cast<const uint8_t*>(from), static_cast<uint8_t*>(to));
    case 2: return copy_as(layout, static_cast<const uint16_t*>(from), static_cast<uint16_t*>(to));
    case 4: return copy_as(layout, static_cast<const uint32_t*>(from), static_cast<uint32_t*>(to));
    default: return copy_as(layout, static_cast<const uint64_t*>(from), static_cast<uint64_t*>(to));
  }
}

}  // namespace tandem::codegen
