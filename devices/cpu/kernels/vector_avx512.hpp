// Vectors of AVX-512: 32 registers of 16 floats. For files that are compiled for these instructions (device.cmake).
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace tandem::cpu {
namespace {

struct Avx512 {
  using Vector = __m512;
  using Mask = __mmask16;
  static constexpr int kLanes = 16;
  static constexpr bool kFreeMasks = true;  // masks have registers of their own
  static Mask mask(int count) { return static_cast<Mask>((1u << count) - 1); }
  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector set(float x) { return _mm512_set1_ps(x); }
  static Vector lanes() { return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static Vector load(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  static void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
  static void store(float* p, Vector v, Mask m) { _mm512_mask_storeu_ps(p, m, v); }
  static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector subtract(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
  static Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static Vector divide(Vector a, Vector b) { return _mm512_div_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static Vector negative_multiply_add(Vector a, Vector b, Vector c) { return _mm512_fnmadd_ps(a, b, c); }  // c - a * b
  // Of a NaN and a number, the right one. Masked forms here and below, because GCC 12 warns of what its own header does in the plain ones.
  static Vector max(Vector a, Vector b) { return _mm512_maskz_max_ps(kAll, a, b); }
  static Vector min(Vector a, Vector b) { return _mm512_maskz_min_ps(kAll, a, b); }
  static Mask greater_equal(Vector a, Vector b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
  static Mask equal(Vector a, Vector b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static Vector select(Mask m, Vector yes, Vector no) { return _mm512_mask_blend_ps(m, no, yes); }
  static Vector round(Vector v) { return _mm512_maskz_roundscale_ps(kAll, v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static Vector scale(Vector v, Vector n) { return _mm512_maskz_scalef_ps(kAll, v, n); }  // v * 2^n for whole numbers n
  static Vector from_float16(const uint16_t* p) {
    return _mm512_maskz_cvtph_ps(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Vector lower(const uint16_t* p) {  // the bits as they are, below 16 zeros
    return _mm512_castsi512_ps(_mm512_maskz_cvtepu16_epi32(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
  }
  static Vector from_bfloat16(const uint16_t* p) {
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, _mm512_castps_si512(lower(p)), 16));
  }
  static Vector either(Vector a, Vector b) { return _mm512_or_ps(a, b); }
  static float total(Vector v) {
    const __m256 half = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, v, 0), _mm512_maskz_extractf32x8_ps(0xff, v, 1));
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
  }

 private:
  static constexpr Mask kAll = 0xffff;
};

}  // namespace
}  // namespace tandem::cpu
