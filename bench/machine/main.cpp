// What this machine can do at most, as a line of JSON: multiply-adds on all cores, the best matrix product, memory traffic.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <numeric>
#include <tandem/tandem.hpp>
#include <thread>
#include <vector>

#include "multiply_adds.hpp"

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

double multiply_add_gflops() {
  constexpr int64_t kRounds = 100'000;
  std::vector<float> results(thread_count());
  return total_rate(multiply_adds::flops(kRounds), [&](unsigned t) { results[t] = multiply_adds::run(kRounds); }) / 1e9;
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
