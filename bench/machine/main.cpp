// What this machine can do at most, as a line of JSON: multiply-adds on all cores, the best matrix product, memory traffic.
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <numeric>
#include <tandem/tandem.hpp>
#include <thread>
#include <vector>

namespace {

namespace td = tandem;

unsigned thread_count() { return std::max(1u, std::thread::hardware_concurrency()); }

template <class F> double seconds(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The best of all tries in a second: other programs can only make one slower, and a short one often escapes them.
template <class F> double best_seconds(F f) {
  double best = seconds(f), total = best;
  while (total < 1) {
    const double time = seconds(f);
    best = std::min(best, time);
    total += time;
  }
  return best;
}

// How much all threads do in a second when each does `amount` in work(thread). Each takes its own time, so that one that had to wait
// does not count for all.
double total_rate(double amount, const std::function<void(unsigned)>& work) {
  std::vector<double> rates(thread_count());
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < thread_count(); ++t) threads.emplace_back([&, t] { rates[t] = amount / best_seconds([&] { work(t); }); });
  }
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

// --- multiply-adds: more independent chains than a core's latency times its units asks for ----------------------------------
constexpr int64_t kRounds = 100'000;
constexpr int kChains = 12;

__attribute__((target("avx512f"))) float multiply_add_512() {
  __m512 chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (int64_t r = 0; r < kRounds; ++r)
    for (__m512& c : chains) c = _mm512_fmadd_ps(c, a, b);
  __m512 sum = chains[0];
  for (int i = 1; i < kChains; ++i) sum = _mm512_add_ps(sum, chains[i]);
  return _mm512_cvtss_f32(sum);
}

__attribute__((target("avx2,fma"))) float multiply_add_256() {
  __m256 chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (int64_t r = 0; r < kRounds; ++r)
    for (__m256& c : chains) c = _mm256_fmadd_ps(c, a, b);
  __m256 sum = chains[0];
  for (int i = 1; i < kChains; ++i) sum = _mm256_add_ps(sum, chains[i]);
  return _mm256_cvtss_f32(sum);
}

double multiply_add_gflops() {
  const bool wide = __builtin_cpu_supports("avx512f");
  std::vector<float> results(thread_count());  // written, so that nothing is left out
  return total_rate(2.0 * (wide ? 16 : 8) * kChains * kRounds,
                    [&](unsigned t) { results[t] = wide ? multiply_add_512() : multiply_add_256(); }) /
         1e9;
}

// --- matrix products: the sizes at which libraries are at their best -------------------------------------------------------------------
double product_gflops() {
  double best = 0;
  for (const int64_t n : {512, 1024, 1536}) {
    const td::Tensor a = td::Tensor::full({n, n}, 0.5f), b = td::Tensor::full({n, n}, 0.25f);
    const td::Function product([](const td::Tensor& x, const td::Tensor& y) { return td::matmul(x, y); });
    product(a, b);
    const auto size = static_cast<double>(n);
    best = std::max(best, 2 * size * size * size / best_seconds([&] { product(a, b); }) / 1e9);
  }
  return best;
}

// --- memory: STREAM's triad, a = b + s * c, on arrays of so many bytes together --------------------------------------------------------
double triad_gb_per_s(size_t bytes) {
  const size_t part = bytes / 3 / sizeof(float) / thread_count();
  std::vector<float> a(part * thread_count(), 1.0f), b(a), c(a);
  const auto work = [&](unsigned t) {
    for (size_t i = t * part; i < (t + 1) * part; ++i) a[i] = b[i] + 0.5f * c[i];
  };
  return total_rate(3.0 * sizeof(float) * static_cast<double>(part), work) / 1e9;
}

}  // namespace

int main() {
  std::printf("{\"threads\": %u, \"fma_gflops\": %.1f, \"gemm_gflops\": %.1f", thread_count(), multiply_add_gflops(), product_gflops());
  // From what a core's own cache holds to what no cache holds.
  for (const size_t mib : {1, 4, 16, 64, 256}) std::printf(", \"memory_%zu_mib_gb_per_s\": %.1f", mib, triad_gb_per_s(mib << 20));
  std::printf("}\n");
}
