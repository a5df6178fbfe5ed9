// AVX-512 as the tiles use it.
#pragma once
#include "tile_body.hpp"
#include "vector_avx512.hpp"

namespace tandem::cpu {
namespace {

struct Tiles512 : Avx512 {
  static constexpr int kMostRows[kMostVectors + 1] = {0, 16, 14, 0, 6};
};

}  // namespace
}  // namespace tandem::cpu
