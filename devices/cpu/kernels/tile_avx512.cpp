// The register tiles for AVX-512. Compiled for these instructions (device.cmake).
#include "tile_body.hpp"
#include "vector_avx512.hpp"

namespace tandem::cpu {
namespace {

struct Tiles : Avx512 {
  static constexpr int kMostRows[kMostVectors + 1] = {0, 16, 14, 0, 6};
};

}  // namespace

constinit const TileSet kTilesAvx512 = {Tiles::kLanes,   Tiles::kMostRows, find_tile<Tiles>,
                                        run_dots<Tiles>, run_copy<Tiles>,  run_transpose<Tiles>};

}  // namespace tandem::cpu
