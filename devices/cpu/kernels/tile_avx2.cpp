// The register tiles for AVX2. Compiled for these instructions (device.cmake).
#include "tile_body.hpp"
#include "vector_avx2.hpp"

namespace tandem::cpu {
namespace {

struct Tiles : Avx2 {
  // Written out, so that a sum stays in its register: GCC 12 lets the result take the place of x, and then has none left for 12 sums.
  static Vector multiply_add(Vector a, Vector b, Vector c) {
    asm("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
    return c;
  }
  static constexpr int kMostRows[kMostVectors + 1] = {0, 12, 6, 0, 3};
};

}  // namespace

constinit const TileSet kTilesAvx2 = tile_set<Tiles>();

}  // namespace tandem::cpu
