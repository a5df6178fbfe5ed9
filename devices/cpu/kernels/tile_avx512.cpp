// The register tiles for AVX-512. Compiled for these instructions (device.cmake).
#include "tile_body_avx512.hpp"

namespace tandem::cpu {

constinit const TileSet kTilesAvx512 = tile_set<Tiles512>();

}  // namespace tandem::cpu
