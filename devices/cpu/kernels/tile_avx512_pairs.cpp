// The register tiles for AVX-512 with BF16: one instruction adds the products of two pairs. Compiled for these instructions (device.cmake).
#include "tile_body_avx512.hpp"

namespace tandem::cpu {
namespace {

struct Pairs512 : Tiles512 {
  static Vector multiply_add(Vector a, Vector b, Vector c) {
    return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

}  // namespace

constinit const TileSet kTilesAvx512Pairs = tile_set<Pairs512>();

}  // namespace tandem::cpu
