// The weights of a convolution where their own layout does not suit the tiles.
#pragma once
#include "conv_geometry.hpp"
#include "tile.hpp"

namespace tandem::cpu {

// to[c * filters + f] = one tap's weight, from wherever it lies.
inline void copy_tap(const TileSet& set, const float* tap, const KernelSteps& steps, int64_t channels, int64_t filters, float* to) {
  if (steps.channel == 1) return set.transpose(tap, steps.filter, filters, channels, to, filters);
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t f = 0; f < filters; ++f) to[c * filters + f] = tap[c * steps.channel + f * steps.filter];
}

}  // namespace tandem::cpu
