// AVX-512 as the tiles use it: 32 registers of 16 floats.
#pragma once
#include "tile_body.hpp"

namespace tandem::cpu {
namespace {

struct Avx512 {
  using Vector = __m512;
  using Mask = __mmask16;
  static constexpr int kLanes = 16;
  static constexpr int kMostRows[kMostVectors + 1] = {0, 16, 14, 0, 6};
  static Mask mask(int count) { return static_cast<Mask>((1u << count) - 1); }
  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector set(float x) { return _mm512_set1_ps(x); }
  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static Vector load(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  static void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
  static void store(float* p, Vector v, Mask m) { _mm512_mask_storeu_ps(p, m, v); }
  static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static Vector from_float16(const uint16_t* p) {
    return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Vector lower(const uint16_t* p) {  // the bits as they are, below 16 zeros
    return _mm512_castsi512_ps(_mm512_maskz_cvtepu16_epi32(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
  }
  static Vector from_bfloat16(const uint16_t* p) {
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_castps_si512(lower(p)), 16));
  }
  static Vector either(Vector a, Vector b) { return _mm512_or_ps(a, b); }
  static float total(Vector v) {
    // Masked forms, because GCC 12 warns of what its own header does in the plain ones.
    const __m256 half = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, v, 0), _mm512_maskz_extractf32x8_ps(0xff, v, 1));
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
  }
};

}  // namespace
}  // namespace tandem::cpu
