// The register tiles for AVX-512. Compiled for these instructions (device.cmake).
#include "avx512.hpp"
#include "tile_body.hpp"

namespace tandem::cpu {

constinit const TileSet kTilesAvx512 = {Avx512::kLanes,   Avx512::kMostRows, find_tile<Avx512>,
                                        run_dots<Avx512>, run_copy<Avx512>,  run_transpose<Avx512>};

}  // namespace tandem::cpu
