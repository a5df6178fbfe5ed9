// The register tiles for AVX2. Compiled for these instructions (device.cmake).
#include "tile_body.hpp"
#include "vector_avx2.hpp"

namespace tandem::cpu {
namespace {

struct Tiles : Avx2 {
  static constexpr int kMostRows[kMostVectors + 1] = {0, 12, 6, 0, 3};
};

}  // namespace

constinit const TileSet kTilesAvx2 = tile_set<Tiles>();

}  // namespace tandem::cpu
