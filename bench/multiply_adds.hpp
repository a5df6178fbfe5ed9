// What a core can do at most: more independent chains of fused multiply-adds than its latency times its units asks for, and nothing else.
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace multiply_adds {

constexpr int kChains = 12;

__attribute__((target("avx512f"))) inline float run_512(int64_t rounds) {
  __m512 chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (int64_t r = 0; r < rounds; ++r)
    for (__m512& c : chains) c = _mm512_fmadd_ps(c, a, b);
  __m512 sum = chains[0];
  for (int i = 1; i < kChains; ++i) sum = _mm512_add_ps(sum, chains[i]);
  return _mm512_cvtss_f32(sum);
}

__attribute__((target("avx2,fma"))) inline float run_256(int64_t rounds) {
  __m256 chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (int64_t r = 0; r < rounds; ++r)
    for (__m256& c : chains) c = _mm256_fmadd_ps(c, a, b);
  __m256 sum = chains[0];
  for (int i = 1; i < kChains; ++i) sum = _mm256_add_ps(sum, chains[i]);
  return _mm256_cvtss_f32(sum);
}

inline bool wide() { return __builtin_cpu_supports("avx512f"); }
inline double flops(int64_t rounds) { return 2.0 * (wide() ? 16 : 8) * kChains * static_cast<double>(rounds); }
// The caller writes the result somewhere, so that nothing is left out.
inline float run(int64_t rounds) { return wide() ? run_512(rounds) : run_256(rounds); }

}  // namespace multiply_adds
