// Where the tiles of a convolution read the image: in its own memory, or in a copy of a part of it that has zeros around it. An image of
// 16 bits is always copied, into the units that the tiles take.
#pragma once
#include "conv_geometry.hpp"
#include "half_pack.hpp"

namespace tandem::cpu {

using Phases = std::array<std::vector<Phase>, kSpatial>;

class ConvImage {
 public:
  // Outputs are computed in bands of so many rows.
  ConvImage(const Conv& conv, const ImageSteps& steps, const Phases& phases, int64_t band_rows, const HalfPack& pack);

  bool copied() const { return copied_; }
  int64_t pixel_step() const { return pixel_step_; }
  int64_t row_step() const { return row_step_; }
  int64_t plane_step(size_t tap, const Phase& depth) const;  // from the start to the plane that a tap along the depth reads
  int64_t first_column() const { return columns_.first; }    // that lies at the start
  int64_t copy_floats() const { return copied_ ? copy_floats_ : 0; }

  // Makes the copy for one band, if there is to be one. Returns the start: where row 0 (which a copy may not contain) would begin. `plane`
  // is how far the taps along the depth have moved on.
  const float* start(const void* image, const Phase& depth, int64_t plane, const Reach& rows, float* copy) const;

 private:
  // Elements [first, first + count) of an axis; those that it does not have are zeros.
  struct Window {
    int64_t first, count;
  };
  void copy_plane(const void* plane, const Reach& rows, float* to) const;
  void copy_pixels(const void* pixel, int64_t count, float* to) const;

  HalfPack pack_;
  std::array<ConvAxis, kSpatial> axes_;
  int64_t channels_, units_;  // of a pixel; units in a copy
  ImageSteps steps_;
  bool copied_ = false;
  Window columns_{0, 0};
  int64_t pixel_step_, row_step_, copied_plane_step_ = 0, copy_floats_ = 0;
};

// Output rows that go together, so that what they read and write stays in the L2 cache.
int64_t rows_in_cache(const Conv& conv, const Phases& phases, int64_t floats);

}  // namespace tandem::cpu
