// A part of an image in scratch memory, with zeros wherever it goes beyond the image.
#pragma once
#include "conv_geometry.hpp"

namespace tandem::cpu {

// Elements [first, first + count) of an axis that has `extent`; those beyond it are zeros.
struct Window {
  int64_t first, count, extent;
  bool inside() const { return first >= 0 && first + count <= extent; }
};

// rows x columns x channels, densely, into `to`. `plane` is where row 0 and column 0 are.
void copy_window(const float* plane, int64_t row_step, int64_t column_step, int64_t channel_step, int64_t channels, const Window& rows,
                 const Window& columns, float* to);

}  // namespace tandem::cpu
