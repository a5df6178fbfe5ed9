#include "gemm_packing.hpp"

#include <algorithm>
#include <cstring>

namespace tandem::cpu {
namespace {

constexpr int64_t kPanelGap = 16;    // floats between packed rows of x, so that they do not lie in one set of L1
constexpr int64_t kRowsAtATime = 8;  // of memory, while packing along them
constexpr int64_t kCopyAhead = 32;   // rows
constexpr int64_t kLineFloats = 16, kFewLines = 8 * kLineFloats;

}  // namespace

GemmPacking::GemmPacking(const codegen::Product& p, const HalfPack& pack, const TileTable& tiles, int most_vectors, int64_t most_height,
                         int64_t most_units)
    : p_(p),
      pack_(pack),
      tiles_(tiles),
      set_(tiles.set()),
      most_vectors_(most_vectors),
      most_height_(most_height),
      x_step_(most_units + kPanelGap),
      x_by_columns_(stored_by(p) == Stored::ByColumns) {}

void GemmPacking::pack_y(const void* from, int64_t columns, int64_t length, float* to) const {
  if (pack_) {
    for (int64_t j = 0; j < columns;) {
      const int64_t width = vectors_at(columns - j) * set_.lanes;
      pack_.block(pack_.element(from, j * p_.y.column_step), p_.y.row_step, p_.y.column_step, std::min(width, columns - j), length,
                  to + j * pack_.units(length), width);
      j += width;
    }
    return;
  }
  const auto* y = static_cast<const float*>(from);
  if (p_.y.column_step == 1) return copy_y(y, columns, length, to);
  for (int64_t j = 0; j < columns;) {
    const int64_t width = vectors_at(columns - j) * set_.lanes, used = std::min(width, columns - j);
    const float* column = y + j * p_.y.column_step;
    float* panel = to + j * length;
    if (p_.y.row_step == 1) {
      set_.transpose(column, p_.y.column_step, used, length, panel, width);
    } else {
      for (int64_t k = 0; k < length; ++k)
        for (int64_t i = 0; i < used; ++i) panel[k * width + i] = column[k * p_.y.row_step + i * p_.y.column_step];
    }
    j += width;
  }
}

// Along the rows, a few at a time. Where a row is only a few lines no hardware fetches the next ones ahead.
void GemmPacking::copy_y(const float* y, int64_t columns, int64_t length, float* to) const {
  for (int64_t k = 0; k < length; k += kRowsAtATime) {
    if (columns <= kFewLines)
      for (int64_t i = k + kCopyAhead; i < std::min(length, k + kCopyAhead + kRowsAtATime); ++i)
        for (int64_t j = 0; j < columns; j += kLineFloats) __builtin_prefetch(y + i * p_.y.row_step + j, 0, 2);
    for (int64_t j = 0; j < columns;) {
      const int64_t width = vectors_at(columns - j) * set_.lanes, panels = std::max<int64_t>(1, (columns - j) / width);
      set_.copy(y + k * p_.y.row_step + j, p_.y.row_step, std::min(width, columns - j), std::min(kRowsAtATime, length - k),
                to + j * length + k * width, width, panels, width * length);
      j += panels * width;
    }
  }
}

void GemmPacking::pack_x(const void* from, int64_t rows, int64_t length, float* to) const {
  if (x_by_columns_ && !pack_) {
    // Along the rows, a few k-steps at a time: the pieces of one panel lie far apart, and the next panel needs the rest of their lines.
    const auto* x = static_cast<const float*>(from);
    for (int64_t k = 0; k < length; k += kRowsAtATime)
      for_even_runs(rows, most_height_, [&](int64_t row, int64_t height, int64_t count) {
        set_.copy(x + k * p_.x.column_step + row, p_.x.column_step, height, std::min(kRowsAtATime, length - k),
                  to + row * x_step() + k * height, height, count, height * x_step());
      });
    return;
  }
  for_even_parts(rows, most_height_, [&](int64_t row, int64_t height) {
    const void* x = pack_.element(from, row * p_.x.row_step);
    float* panel = to + row * x_step();
    if (x_by_columns_) return pack_.block(x, p_.x.column_step, 1, height, length, panel, height);
    for (int64_t i = 0; i < height; ++i) pack_row(pack_.element(x, i * p_.x.row_step), length, panel + i * x_step());
  });
}
void GemmPacking::pack_row(const void* from, int64_t length, float* to) const {
  if (pack_) return pack_.along(from, p_.x.column_step, length, to);
  const auto* x = static_cast<const float*>(from);
  if (p_.x.column_step == 1)
    std::memcpy(to, x, static_cast<size_t>(length) * sizeof(float));
  else
    for (int64_t k = 0; k < length; ++k) to[k] = x[k * p_.x.column_step];
}

}  // namespace tandem::cpu
