// Products and convolutions at the shapes of six models, ours beside the libraries that are there: `compare_products [CASES] [KERNELS]`.
// All are timed in turn and the fastest of many rounds counts, because a machine is rarely alone. Libraries are only found, never needed:
// TANDEM_COMPARE_BLIS and TANDEM_COMPARE_DNNL may name their files.
#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "base/text.hpp"
#include "cpu_program.hpp"
#include "host_target.hpp"
#include "multiply_adds.hpp"
#include "ops/table.hpp"

namespace tandem {
namespace {

using codegen::Layout;

double seconds(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

const ir::OpDef& row(const std::string& name) {
  static ir::OpTable& table = *new ir::OpTable;
  if (!table.find(name)) {
    for (ir::OpDef& r : ops::matmul_rows()) table.add(std::move(r));
    for (ir::OpDef& r : ops::convolution_rows()) table.add(std::move(r));
  }
  return table.at(name);
}

// Memory as the engine has it: in huge pages, so that it does not depend on the run which lines share a set of a cache.
class Block {
 public:
  explicit Block(size_t bytes) {
    constexpr size_t kHugePage = size_t{2} << 20;
    void* p = nullptr;
    if (posix_memalign(&p, kHugePage, bytes) != 0) resource_error("compare_products: no memory for ", bytes, " bytes");
    madvise(p, bytes, MADV_HUGEPAGE);
    start_.reset(p);
  }
  float* floats() const { return static_cast<float*>(start_.get()); }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> start_;
};

// One kernel and its memory.
struct Case {
  std::string name;
  codegen::Kernel kernel;
  double flops;
  std::vector<Block> data;  // inputs, output
  std::vector<float*> pointers;
  int64_t m = 0, n = 0, k = 0, batches = 1;  // of a matmul
  bool transpose_x = false, transpose_y = false;
};

Case make_case(std::string name, const std::string& op, const ir::Attrs& attrs, const std::vector<Shape>& shapes, double flops) {
  Case c;
  c.name = std::move(name);
  c.flops = flops;
  std::vector<ir::TensorType> types;
  std::vector<Layout> in;
  for (const Shape& s : shapes) {
    types.push_back({DType::F32, to_dims(s)});
    in.push_back(Layout::dense(DType::F32, s));
  }
  const ir::Attrs all = ir::complete_attrs(row(op), attrs);
  const auto out = ir::infer(row(op), types, all);
  c.kernel = codegen::make_kernel(row(op), all, types, out, {}, in);
  return c;
}

// Numbers for all operands and a place for the result.
void fill(Case& c) {
  std::mt19937 random(1);
  std::vector<Layout> all = c.kernel.in;
  all.push_back(c.kernel.out[0]);
  for (const Layout& o : all) {
    const int64_t count = element_count(o.shape);
    float* at = c.data.emplace_back(static_cast<size_t>(count) * sizeof(float)).floats();
    for (int64_t i = 0; i < count; ++i) at[i] = std::uniform_real_distribution<float>(-1, 1)(random);
    c.pointers.push_back(at);
  }
}

Case matmul(const std::string& what, int64_t m, int64_t k, int64_t n, const char* way = "NN", int64_t batches = 1) {
  const bool tx = way[0] == 'T', ty = way[1] == 'T';
  const Shape x = batches > 1 ? (tx ? Shape{batches, k, m} : Shape{batches, m, k}) : (tx ? Shape{k, m} : Shape{m, k});
  const Shape y = batches > 1 ? (ty ? Shape{batches, n, k} : Shape{batches, k, n}) : (ty ? Shape{n, k} : Shape{k, n});
  Case c = make_case(cat(what, " ", way, " ", batches > 1 ? cat(batches, "x") : "", m, "x", k, "x", n), "matmul",
                     {{"transpose_x", tx}, {"transpose_y", ty}}, {x, y},
                     2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(batches));
  c.m = m;
  c.n = n;
  c.k = k;
  c.batches = batches;
  c.transpose_x = tx;
  c.transpose_y = ty;
  return c;
}

using Ints = std::vector<int64_t>;

// The three products of one convolution of square images with square kernels.
void add_conv(std::vector<Case>& cases, const std::string& what, int64_t batch, int64_t size, int64_t channels, int64_t filters,
              int64_t kernel, int64_t stride, bool same) {
  const int64_t out = same ? (size + stride - 1) / stride : (size - kernel) / stride + 1;
  const int64_t pad = same ? std::max<int64_t>(0, (out - 1) * stride + kernel - size) : 0, low = pad / 2, high = pad - low;
  const double flops = 2.0 * static_cast<double>(batch * out * out * kernel * kernel * channels * filters);
  const std::string text = cat(what, " ", batch, "x", size, "x", size, "x", channels, "->", filters, " ", kernel, "x", kernel, "/", stride);
  const auto attrs = [&](int64_t s, int64_t d, int64_t lo, int64_t hi) {
    return ir::Attrs{{"strides", Ints{s, s}},  {"low", Dims{lo, lo}},          {"high", Dims{hi, hi}},
                     {"dilation", Ints{1, 1}}, {"input_dilation", Ints{d, d}}, {"groups", int64_t{1}}};
  };
  cases.push_back(make_case(cat(text, " y"), "general_conv", attrs(stride, 1, low, high),
                            {{batch, size, size, channels}, {kernel, kernel, channels, filters}}, flops));
  if (channels > 3) {
    const int64_t back_low = kernel - 1 - low, spread = (out - 1) * stride + 1;
    cases.push_back(make_case(cat(text, " dx"), "general_conv", attrs(1, stride, back_low, size + kernel - 1 - spread - back_low),
                              {{batch, out, out, filters}, {kernel, kernel, filters, channels}}, flops));
  }
  ir::Attrs back = attrs(stride, 1, low, high);
  back.set("kernel", Dims{kernel, kernel});
  cases.push_back(
      make_case(cat(text, " dw"), "conv_kernel_gradient", back, {{batch, size, size, channels}, {batch, out, out, filters}}, flops));
}

std::vector<Case> all_cases() {
  std::vector<Case> c;
  const auto layer = [&](const std::string& what, int64_t m, int64_t k, int64_t n) {
    c.push_back(matmul(what, m, k, n));
    c.push_back(matmul(what, m, n, k, "NT"));
    c.push_back(matmul(what, k, m, n, "TN"));
  };
  layer("mlp", 32, 1000, 128);
  layer("mlp", 32, 128, 1);
  layer("mlp_big", 256, 1024, 2048);
  layer("mlp_big", 256, 2048, 2048);
  layer("mlp_big", 256, 2048, 10);
  layer("transformer", 1024, 256, 256);
  layer("transformer", 1024, 256, 1024);
  layer("transformer", 1024, 1024, 256);
  layer("transformer", 1024, 256, 5000);
  c.push_back(matmul("attention", 128, 64, 128, "NT", 32));
  c.push_back(matmul("attention", 128, 128, 64, "NN", 32));
  c.push_back(matmul("attention", 128, 128, 64, "TN", 32));
  layer("lstm", 64, 128, 512);
  layer("lstm", 6400, 64, 512);
  c.push_back(matmul("lstm", 128, 6400, 512, "TN"));
  add_conv(c, "cnn", 128, 28, 1, 32, 3, 1, false);
  add_conv(c, "cnn", 128, 13, 32, 64, 3, 1, false);
  add_conv(c, "resnet", 64, 32, 3, 16, 3, 1, true);
  add_conv(c, "resnet", 64, 32, 16, 16, 3, 1, true);
  add_conv(c, "resnet", 64, 32, 16, 32, 3, 2, true);
  add_conv(c, "resnet", 64, 16, 32, 32, 3, 1, true);
  add_conv(c, "resnet", 64, 16, 32, 64, 3, 2, true);
  add_conv(c, "resnet", 64, 8, 64, 64, 3, 1, true);
  add_conv(c, "deep", 8, 28, 128, 128, 3, 1, true);
  add_conv(c, "deep", 8, 14, 256, 256, 3, 1, true);
  add_conv(c, "deep", 8, 7, 512, 512, 3, 1, true);
  add_conv(c, "resnet", 64, 32, 16, 32, 1, 2, true);
  add_conv(c, "resnet", 64, 16, 32, 64, 1, 2, true);
  return c;
}

struct Runner {
  std::string name;
  std::function<void()> run;
  double best = 1e9;
};

using Cblas = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
using Dnnl = int (*)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, float, float*, int64_t);
template <class F> F library_function(const char* variable, const char* file, const char* symbol) {
  const char* given = std::getenv(variable);
  void* library = dlopen(given ? given : file, RTLD_NOW | RTLD_LOCAL);
  return library ? reinterpret_cast<F>(dlsym(library, symbol)) : nullptr;
}

class Comparison {
 public:
  Comparison()
      : blis_(library_function<Cblas>("TANDEM_COMPARE_BLIS", "libblis.so.4", "cblas_sgemm")),
        dnnl_(library_function<Dnnl>("TANDEM_COMPARE_DNNL", "libdnnl.so.2", "dnnl_sgemm")) {}

  void print(Case& c, const std::string& only) {
    std::vector<Runner> runners;
    std::vector<std::shared_ptr<const cpu::CpuProgram>> programs;
    std::vector<Block> scratch;
    for (const cpu::KernelEntry& entry : cpu::kernel_list()) {
      if (!std::strncmp(entry.name, "linalg", 6) || !std::strncmp(entry.name, "host", 4)) continue;
      if (!std::strncmp(entry.name, "generated", 9) && c.flops > 4e7 && !programs.empty()) continue;
      std::string refusal;
      auto program = entry.make(c.kernel, tools_, refusal);
      if (!program) continue;
      programs.push_back(program);
      scratch.emplace_back(program->scratch_bytes() + 1);
      for (ThreadPool* pool : {&one_, &two_})
        runners.push_back({cat(program->kernel_name(), "*", pool->threads()), [&c, pool, p = program.get(), at = scratch.back().floats()] {
                             std::vector<void*> pointers(c.pointers.begin(), c.pointers.end());
                             p->run({pointers, at}, *pool);
                           }});
    }
    if (c.m) add_libraries(c, runners);
    std::erase_if(runners, [&](const Runner& r) { return r.name.find(only) == std::string::npos; });
    // In turn with the others, since a core's clock is not always the same.
    constexpr int64_t kPeakRounds = 20'000;
    Runner peak{"peak*1", [this] { result_ = multiply_adds::run(kPeakRounds); }};
    const auto time = [](Runner& r) {
      // One thread's time is what it had of a core; with two, what passed.
      const clockid_t clock = r.name.back() == '1' ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
      const double start = seconds(clock);
      r.run();
      r.best = std::min(r.best, seconds(clock) - start);
    };
    const double start = seconds(), limit = std::clamp(c.flops / 1e9, 0.15, 0.5);
    for (int round = 0; round < 400 && (round < 5 || seconds() - start < limit * static_cast<double>(runners.size())); ++round) {
      for (int again = 0; again < 4; ++again) time(peak);
      for (Runner& r : runners)
        for (int again = 0; again < 4; ++again) time(r);  // at once, as in a training step: threads are awake
    }
    const double peak_flops = multiply_adds::flops(kPeakRounds) / peak.best;
    std::printf("%-42s", c.name.c_str());
    for (const Runner& r : runners)
      std::printf(" %s %.1f (%.0f%%)", r.name.c_str(), c.flops / r.best * 1e-9,
                  100 * c.flops / r.best / peak_flops / (r.name.back() == '2' ? 2 : 1));
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  void add_libraries(Case& c, std::vector<Runner>& runners) {
    const auto at = [&c](int64_t b) {
      return std::array<float*, 3>{c.pointers[0] + b * c.m * c.k, c.pointers[1] + b * c.k * c.n, c.pointers[2] + b * c.m * c.n};
    };
    const int64_t lda = c.transpose_x ? c.m : c.k, ldb = c.transpose_y ? c.k : c.n;
    if (blis_)
      runners.push_back({"blis*1", [this, &c, at, lda, ldb] {
                           for (int64_t b = 0; b < c.batches; ++b) {
                             const auto p = at(b);
                             blis_(101, c.transpose_x ? 112 : 111, c.transpose_y ? 112 : 111, static_cast<int>(c.m), static_cast<int>(c.n),
                                   static_cast<int>(c.k), 1, p[0], static_cast<int>(lda), p[1], static_cast<int>(ldb), 0, p[2],
                                   static_cast<int>(c.n));
                           }
                         }});
    const char* threads = std::getenv("OMP_NUM_THREADS");
    if (dnnl_)
      runners.push_back({cat("dnnl*", threads ? threads : "2"), [this, &c, at, lda, ldb] {
                           for (int64_t b = 0; b < c.batches; ++b) {
                             const auto p = at(b);
                             dnnl_(c.transpose_x ? 'T' : 'N', c.transpose_y ? 'T' : 'N', c.m, c.n, c.k, 1, p[0], lda, p[1], ldb, 0, p[2],
                                   c.n);
                           }
                         }});
  }

  float result_ = 0;
  Cblas blis_;
  Dnnl dnnl_;
  cpu::CodeCache cache_{env::cache_dir()};
  ThreadPool one_{1}, two_{2};
  cpu::Toolbox tools_{cpu::host_target(env::get("TANDEM_CPU_ISA")), cache_, 2};
};

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  const std::string filter = argc > 1 ? argv[1] : "";
  const std::string only = argc > 2 ? argv[2] : "";
  std::printf("GFLOP/s, and how much that is of what as many cores can do at the most\n");
  tandem::Comparison comparison;
  for (tandem::Case& c : tandem::all_cases())
    if (c.name.find(filter) != std::string::npos) {
      tandem::fill(c);
      comparison.print(c, only);
      c.data.clear();
    }
}
