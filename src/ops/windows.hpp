// The geometry of windows that slide over spatial axes, as convolutions and pools have them.
#pragma once
#include <string_view>

#include "ops/helpers.hpp"

namespace tandem::ops {

// The number of spatial axes of a channels-last tensor [batch, 1 to 3 spatial axes, channels].
int spatial_axes(const ir::OpCall& call, const ir::TensorType& x);
// An `ints?` attribute with one entry a spatial axis or one for all; none is `otherwise`. Entries below 1 are UserErrors.
ir::Ints spatial_ints(const ir::OpCall& call, std::string_view attr, int axes, int64_t otherwise);

enum class Padding : uint8_t { Valid, Same, Causal };
Padding padding_of(const ir::OpCall& call, int axes);  // the attribute `padding`; causal needs one spatial axis

// How windows of `extent` inputs lie along one axis. `high` may be negative: then the last inputs belong to no window.
struct Window {
  Dim low, high;
  Dim count;  // windows
};
// UserError (named after `call`) when no window fits.
Window place_windows(const ir::OpCall& call, Padding padding, const Dim& input, const Dim& extent, int64_t stride);
// The number of windows: floor((input + low + high - extent) / stride) + 1, never negative.
Dim window_count(const Dim& input, const Dim& low, const Dim& high, const Dim& extent, int64_t stride);

// Without padding on a side no window reaches beyond the input on that side.
inline bool never_pads(const Dim& padding) { return padding.is_const() && padding.value() <= 0; }

}  // namespace tandem::ops
