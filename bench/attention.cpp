// Attention by length: forward, and forward with its gradients. With TANDEM_DISABLE_PASS=keep the scores lie in memory, for comparison.
#include <benchmark/benchmark.h>

#include <tandem/tandem.hpp>
#include <vector>

namespace {

using namespace tandem;

constexpr int64_t kHeads = 4, kDepth = 64;

struct Sizes {
  explicit Sizes(const benchmark::State& s) : batch(s.range(0)), targets(s.range(1)), sources(s.range(2)), is_causal(s.range(3) != 0) {}
  int64_t batch, targets, sources;
  bool is_causal;
  double products() const { return static_cast<double>(batch * kHeads * targets * sources * kDepth) * (is_causal ? 0.5 : 1); }
};
Tensor random(int64_t batch, int64_t length) { return Generator(1).uniform({batch, length, kHeads, kDepth}, -1.0, 1.0); }

void count(benchmark::State& state, double multiplications) {
  state.counters["flops"] = benchmark::Counter(2 * multiplications * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate,
                                               benchmark::Counter::kIs1000);
}

void forward(benchmark::State& state) {
  const Sizes s(state);
  const Tensor q = random(s.batch, s.targets), k = random(s.batch, s.sources);
  Function f([&](const Tensor& query, const Tensor& key) { return dot_product_attention(query, key, key, {}, {}, {}, s.is_causal); });
  f(q, k);
  for (auto _ : state) benchmark::DoNotOptimize(f(q, k));
  count(state, 2 * s.products());
}

void with_gradients(benchmark::State& state) {
  const Sizes s(state);
  const Tensor q = random(s.batch, s.targets), k = random(s.batch, s.sources), v = k * 0.5f;
  Function f([&](const Tensor& query, const Tensor& key, const Tensor& value) {
    Tape tape;
    tape.watch(query);
    tape.watch(key);
    tape.watch(value);
    const Tensor y = dot_product_attention(query, key, value, {}, {}, {}, s.is_causal);
    return tape.gradients(y * y, {query, key, value});
  });
  f(q, k, v);
  for (auto _ : state) benchmark::DoNotOptimize(f(q, k, v));
  count(state, 7 * s.products());
}

void lengths(benchmark::internal::Benchmark* b) {
  b->ArgNames({"batch", "targets", "sources", "causal"})->Unit(benchmark::kMillisecond)->UseRealTime();
  for (const std::vector<int64_t>& args :
       {std::vector<int64_t>{32, 32, 32, 0}, {8, 128, 128, 0}, {2, 512, 512, 0}, {1, 2048, 2048, 0}, {1, 2048, 2048, 1}})
    b->Args(args);
}
BENCHMARK(forward)->Apply(lengths);
BENCHMARK(with_gradients)->Apply(lengths);

}  // namespace
