#include "image_copy.hpp"

#include <algorithm>
#include <cstring>

namespace tandem::cpu {

void copy_window(const float* plane, int64_t row_step, int64_t column_step, int64_t channel_step, int64_t channels, const Window& rows,
                 const Window& columns, float* to) {
  const auto bytes = [&](int64_t columns_of) { return static_cast<size_t>(columns_of * channels) * sizeof(float); };
  const int64_t from = std::clamp<int64_t>(-columns.first, 0, columns.count);
  const int64_t until = std::clamp<int64_t>(columns.extent - columns.first, from, columns.count);
  for (int64_t r = 0; r < rows.count; ++r, to += columns.count * channels) {
    const int64_t row = rows.first + r;
    if (row < 0 || row >= rows.extent || from == until) {
      std::memset(to, 0, bytes(columns.count));
      continue;
    }
    std::memset(to, 0, bytes(from));
    std::memset(to + until * channels, 0, bytes(columns.count - until));
    const float* pixel = plane + row * row_step + (columns.first + from) * column_step;
    float* out = to + from * channels;
    if (channel_step == 1 && column_step == channels) {
      std::memcpy(out, pixel, bytes(until - from));
      continue;
    }
    for (int64_t i = from; i < until; ++i, pixel += column_step, out += channels)
      for (int64_t c = 0; c < channels; ++c) out[c] = pixel[c * channel_step];
  }
}

}  // namespace tandem::cpu
