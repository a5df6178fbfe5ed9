// The register tiles for AVX2 with FMA and F16C: 16 registers of 8 floats. Compiled for these instructions (device.cmake).
#include "tile_body.hpp"

namespace tandem::cpu {
namespace {

struct Avx2 {
  using Vector = __m256;
  using Mask = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kMostRows[kMostVectors + 1] = {0, 12, 6, 0, 3};
  static Mask mask(int count) { return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector set(float x) { return _mm256_set1_ps(x); }
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static Vector load(const float* p, Mask m) { return _mm256_maskload_ps(p, m); }
  static void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  static void store(float* p, Vector v, Mask m) { _mm256_maskstore_ps(p, m, v); }
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector from_float16(const uint16_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static Vector lower(const uint16_t* p) {  // the bits as they are, below 16 zeros
    return _mm256_castsi256_ps(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static Vector from_bfloat16(const uint16_t* p) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(lower(p)), 16)); }
  static Vector either(Vector a, Vector b) { return _mm256_or_ps(a, b); }
  static float total(Vector v) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
  }
};

}  // namespace

constinit const TileSet kTilesAvx2 = tile_set<Avx2>();

}  // namespace tandem::cpu
