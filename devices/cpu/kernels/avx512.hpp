// AVX-512: 32 registers of 16 floats. Included only by files that are compiled for these instructions (device.cmake).
#pragma once
#include <immintrin.h>

#include "tile.hpp"

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
  static Vector subtract(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
  static Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static Vector divide(Vector a, Vector b) { return _mm512_div_ps(a, b); }
  // Masked forms here and below, because GCC 12 warns of what its own header does in the plain ones.
  static Vector minimum(Vector a, Vector b) { return _mm512_maskz_min_ps(0xffff, a, b); }  // b where one is a NaN
  static Vector maximum(Vector a, Vector b) { return _mm512_maskz_max_ps(0xffff, a, b); }  // likewise
  static Vector round(Vector a) { return _mm512_maskz_roundscale_ps(0xffff, a, _MM_FROUND_TO_NEAREST_INT); }
  static Vector power_of_two(Vector n) {  // for whole n from -126 to 127
    const __m512i exponent = _mm512_add_epi32(_mm512_maskz_cvtps_epi32(0xffff, n), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, exponent, 23));
  }
  static float total(Vector v) {
    const __m256 half = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, v, 0), _mm512_maskz_extractf32x8_ps(0xff, v, 1));
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
  }
};

}  // namespace
}  // namespace tandem::cpu
