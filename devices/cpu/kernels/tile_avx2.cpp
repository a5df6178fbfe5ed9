// The register tiles for AVX2 with FMA. Compiled for these instructions (device.cmake).
#include "avx2.hpp"
#include "tile_body.hpp"

namespace tandem::cpu {

constinit const TileSet kTilesAvx2 = {Avx2::kLanes, Avx2::kMostRows, find_tile<Avx2>, run_dots<Avx2>, run_copy<Avx2>, run_transpose<Avx2>};

}  // namespace tandem::cpu
