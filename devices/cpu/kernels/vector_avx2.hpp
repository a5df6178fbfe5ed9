// Vectors of AVX2 with FMA and F16C: 16 registers of 8 floats. For files that are compiled for these instructions (device.cmake).
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace tandem::cpu {
namespace {

struct Avx2 {
  using Vector = __m256;
  using Mask = __m256i;
  static constexpr int kLanes = 8;
  static constexpr bool kFreeMasks = false;  // a mask takes one of the registers
  static Mask mask(int count) { return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector set(float x) { return _mm256_set1_ps(x); }
  static Vector lanes() { return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7); }
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static Vector load(const float* p, Mask m) { return _mm256_maskload_ps(p, m); }
  static void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  static void store(float* p, Vector v, Mask m) { _mm256_maskstore_ps(p, m, v); }
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector subtract(Vector a, Vector b) { return _mm256_sub_ps(a, b); }
  static Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
  static Vector divide(Vector a, Vector b) { return _mm256_div_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector negative_multiply_add(Vector a, Vector b, Vector c) { return _mm256_fnmadd_ps(a, b, c); }  // c - a * b
  // Of a NaN and a number, the right one.
  static Vector max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
  static Vector min(Vector a, Vector b) { return _mm256_min_ps(a, b); }
  static Mask greater_equal(Vector a, Vector b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GE_OQ)); }
  static Mask equal(Vector a, Vector b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)); }
  static Vector select(Mask m, Vector yes, Vector no) { return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(m)); }
  static Vector round(Vector v) { return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  // v * 2^n for whole numbers n of at most 2 * 126; in two steps, so that what is below the smallest normal number is rounded once.
  static Vector scale(Vector v, Vector n) {
    const __m256i all = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(all, 1);
    return _mm256_mul_ps(_mm256_mul_ps(v, power(half)), power(_mm256_sub_epi32(all, half)));
  }
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

 private:
  static Vector power(__m256i n) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23)); }
};

}  // namespace
}  // namespace tandem::cpu
