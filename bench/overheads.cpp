// What small things cost: an eager op, a compiled call, a tape, starting the engine, the first use of an op.
#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <tandem/tandem.hpp>
#include <vector>

namespace {

using namespace tandem;

void eager_add_10(benchmark::State& state) {
  const Tensor a = Tensor::ones({10}), b = Tensor::ones({10});
  for (auto _ : state) benchmark::DoNotOptimize(a + b);
}
BENCHMARK(eager_add_10);

void eager_chain_of_10(benchmark::State& state) {
  const Tensor a = Tensor::ones({10});
  for (auto _ : state) {
    Tensor x = a;
    for (int i = 0; i < 10; ++i) x = x * a;
    benchmark::DoNotOptimize(x);
  }
}
BENCHMARK(eager_chain_of_10);

void compiled_10_small_ops(benchmark::State& state) {
  const Tensor a = Tensor::ones({10});
  Function f([](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 5; ++i) y = tanh(y * x);
    return y;
  });
  f(a);
  for (auto _ : state) benchmark::DoNotOptimize(f(a));
}
BENCHMARK(compiled_10_small_ops);

void tape_matmul_tanh_sum(benchmark::State& state) {
  Variable v(Tensor::ones({10, 10}));
  const Tensor x = Tensor::ones({4, 10});
  for (auto _ : state) {
    Tape tape;
    const Tensor loss = tanh(matmul(x, v)).sum();
    benchmark::DoNotOptimize(tape.gradient(loss, v));
  }
}
BENCHMARK(tape_matmul_tanh_sum);

void fused_chain_4m(benchmark::State& state) {
  const Tensor x = Tensor::full({4096, 1024}, 0.5f);
  Function f([](const Tensor& t) { return (tanh(t) * exp(-t) + t * t).mean(); });
  f(x);
  for (auto _ : state) benchmark::DoNotOptimize(f(x));
}
BENCHMARK(fused_chain_4m)->Unit(benchmark::kMillisecond);

// Each of these needs a process of its own: this program runs itself again with TANDEM_BENCH_CHILD set and reads the number it prints.
double child(const std::string& what, const std::string& cache) {
  const std::string command = "TANDEM_BENCH_CHILD=" + what + " TANDEM_CACHE_DIR=" + cache + " /proc/" + std::to_string(getpid()) + "/exe";
  double ms = -1;
  if (FILE* p = popen(command.c_str(), "r")) {
    if (fscanf(p, "%lf", &ms) != 1) ms = -1;
    pclose(p);
  }
  return ms;
}

void in_child(benchmark::State& state, const char* what, bool warm) {
  char folder[] = "/tmp/tandem_bench_XXXXXX";
  const std::string cache = mkdtemp(folder);
  if (warm) child(what, cache);
  for (auto _ : state) {
    if (!warm) {
      const std::string clean = "rm -f " + cache + "/*";
      if (system(clean.c_str()) != 0) state.SkipWithError("cannot empty the cache");
    }
    const double ms = child(what, cache);
    if (ms < 0) state.SkipWithError("the child printed no number");
    state.SetIterationTime(ms / 1e3);
  }
  const std::string remove = "rm -r " + cache;
  if (system(remove.c_str()) != 0) state.SkipWithError("cannot remove the cache");
}
BENCHMARK_CAPTURE(in_child, start_engine, "start", false)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(10);
BENCHMARK_CAPTURE(in_child, first_op_no_cache, "first", false)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(10);
BENCHMARK_CAPTURE(in_child, next_new_op_no_cache, "next", false)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(10);
BENCHMARK_CAPTURE(in_child, first_op_disk_cache, "first", true)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(10);

template <class F> double milliseconds(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

int run_child(const std::string& what) {
  const std::vector<float> values(10, 0.5f);
  Tensor a;
  const double start = milliseconds([&] { a = Tensor::from(values); });  // the first tensor starts the engine
  const double first = milliseconds([&] { a + a; });
  const double next = milliseconds([&] { sqrt(a); });
  std::printf("%f\n", what == "start" ? start : what == "first" ? first : next);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (const char* what = getenv("TANDEM_BENCH_CHILD")) return run_child(what);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
