#include "conv_image.hpp"

#include <algorithm>
#include <cstring>

#include "tile_table.hpp"

namespace tandem::cpu {

ConvImage::ConvImage(const Conv& conv, const ImageSteps& steps, const Phases& phases, int64_t band_rows, const HalfPack& pack)
    : pack_(pack), axes_(conv.axes), channels_(conv.channels), units_(pack.units(conv.channels)), steps_(steps) {
  bool inside = !pack && (steps.channel == 1 || conv.channels == 1);
  for (size_t i = 0; i < kSpatial; ++i) {
    const Reach r = reach(phases[i], 0, axes_[i].out);
    if (r.empty()) continue;  // nothing is read
    inside = inside && r.first >= 0 && r.last < axes_[i].in;
    if (i == 2) columns_ = {r.first, r.count()};
  }
  copied_ = !inside;
  if (!copied_) {
    pixel_step_ = steps.axes[2];
    row_step_ = steps.axes[1];
    columns_ = {0, 0};
    return;
  }
  pixel_step_ = units_;
  row_step_ = columns_.count * units_;
  int64_t most_rows = 0;
  for (int64_t row = 0; row < axes_[1].out; row += band_rows)
    most_rows = std::max(most_rows, reach(phases[1], row, std::min(axes_[1].out, row + band_rows)).count());
  copied_plane_step_ = most_rows * row_step_;
  copy_floats_ = axes_[0].kernel * copied_plane_step_;
}

int64_t ConvImage::plane_step(size_t tap, const Phase& depth) const {
  return copied_ ? static_cast<int64_t>(tap) * copied_plane_step_ : depth.taps[tap].position * steps_.axes[0];
}

const float* ConvImage::start(const void* image, const Phase& depth, int64_t plane, const Reach& rows, float* copy) const {
  if (!copied_) return static_cast<const float*>(image) + plane * steps_.axes[0];
  if (rows.empty()) return copy;
  for (size_t i = 0; i < depth.taps.size(); ++i) {
    const int64_t at = depth.taps[i].position + plane;
    float* to = copy + static_cast<int64_t>(i) * copied_plane_step_;
    if (at < 0 || at >= axes_[0].in)
      std::fill_n(to, rows.count() * row_step_, 0.0f);
    else
      copy_plane(pack_.element(image, at * steps_.axes[0]), rows, to);
  }
  return copy - rows.first * row_step_;
}

void ConvImage::copy_plane(const void* plane, const Reach& rows, float* to) const {
  const auto bytes = [&](int64_t columns) { return static_cast<size_t>(columns * units_) * sizeof(float); };
  const int64_t from = std::clamp<int64_t>(-columns_.first, 0, columns_.count);
  const int64_t until = std::clamp<int64_t>(axes_[2].in - columns_.first, from, columns_.count);
  for (int64_t row = rows.first; row <= rows.last; ++row, to += row_step_) {
    if (row < 0 || row >= axes_[1].in || from == until) {
      std::memset(to, 0, bytes(columns_.count));
      continue;
    }
    std::memset(to, 0, bytes(from));
    std::memset(to + until * units_, 0, bytes(columns_.count - until));
    copy_pixels(pack_.element(plane, row * steps_.axes[1] + (columns_.first + from) * steps_.axes[2]), until - from, to + from * units_);
  }
}

// Neighbours along a row.
void ConvImage::copy_pixels(const void* pixel, int64_t count, float* to) const {
  const bool dense = steps_.channel == 1 && steps_.axes[2] == channels_;
  if (!pack_ && dense) {
    std::memcpy(to, pixel, static_cast<size_t>(count * channels_) * sizeof(float));
  } else if (dense && channels_ % pack_.elements() == 0) {
    pack_.along(pixel, 1, count * channels_, to);
  } else if (pack_) {
    for (int64_t i = 0; i < count; ++i) pack_.along(pack_.element(pixel, i * steps_.axes[2]), steps_.channel, channels_, to + i * units_);
  } else {
    const auto* from = static_cast<const float*>(pixel);
    for (int64_t i = 0; i < count; ++i, from += steps_.axes[2], to += channels_)
      for (int64_t c = 0; c < channels_; ++c) to[c] = from[c * steps_.channel];
  }
}

int64_t rows_in_cache(const Conv& conv, const Phases& phases, int64_t floats) {
  const ConvAxis &height = conv.axes[1], &width = conv.axes[2];
  const int64_t input_rows = parts(height.stride, height.input_dilation) * conv.axes[0].kernel;
  const int64_t row = reach(phases[2], 0, width.out).count() * conv.channels * input_rows + width.out * conv.filters;
  return std::max<int64_t>(1, floats / row);
}

}  // namespace tandem::cpu
