#include "device/calibration.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include "base/blob_cache.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "ops/table.hpp"

namespace tandem::device {
namespace {

constexpr std::string_view kVersion = "rates 1";
constexpr double kLongEnough = 0.01;  // seconds of a run, to be measured well
constexpr int kRuns = 3;              // of which the fastest counts
constexpr int kLaunches = 200;        // behind each other, for what one costs
constexpr int64_t kLeastRows = 32, kMostRows = 1024;
constexpr int64_t kLeastNumbers = int64_t{1} << 14, kMostNumbers = int64_t{1} << 23;
constexpr size_t kShareOfMemory = 8;  // of what is free, the part that one operand may take

class Bench {
 public:
  explicit Bench(Device& device) : device_(device), stream_(device.stream(StreamKind::Compute)) {}

  Rates measure() {
    Rates r;
    const Timed tiny = timed("add", {1}, kLaunches);
    r.launch_seconds = tiny.seconds / kLaunches;
    const size_t most_bytes = room();
    for (int64_t rows = kLeastRows; rows <= kMostRows && bytes_of({rows, rows}) <= most_bytes; rows *= 2) {
      const Timed t = timed("matmul", {rows, rows}, 1);
      const auto n = static_cast<double>(rows);
      r.flops_per_second = std::max(r.flops_per_second, 2 * n * n * n / t.seconds);
      if (t.seconds > kLongEnough) break;
    }
    for (int64_t numbers = kLeastNumbers; numbers <= kMostNumbers && bytes_of({numbers}) <= most_bytes; numbers *= 4) {
      const Timed t = timed("add", {numbers}, 1);
      r.bytes_per_second = 3 * static_cast<double>(bytes_of({numbers})) / t.seconds;  // the last one: beyond the caches
      if (t.seconds > kLongEnough) break;
    }
    if (!device_.info().host_memory) r.link_bytes_per_second = link(most_bytes);
    return r;
  }

 private:
  struct Timed {
    double seconds;
  };
  static size_t bytes_of(const Shape& s) { return byte_size(s, DType::F32); }
  size_t room() {
    const size_t limit = device_.memory().limit() ? device_.memory().limit() : device_.info().memory_bytes;
    if (limit == 0) return SIZE_MAX;
    const size_t used = device_.memory().in_use();
    return (limit > used ? limit - used : 0) / kShareOfMemory;
  }
  template <class F> static double fastest(F&& f) {
    using Clock = std::chrono::steady_clock;
    double best = INFINITY;
    for (int i = 0; i < kRuns; ++i) {
      const auto begin = Clock::now();
      f();
      best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return std::max(best, 1e-9);
  }

  // op(x, y) for operands of one shape.
  Timed timed(std::string_view op, const Shape& shape, int launches) {
    const ir::OpDef& row = ops::table().at(op);
    const ir::Attrs attrs = ir::complete_attrs(row, {});
    const ir::TensorType types[] = {{DType::F32, to_dims(shape)}, {DType::F32, to_dims(shape)}};
    const codegen::Operand in[] = {codegen::Operand::dense(DType::F32, shape), codegen::Operand::dense(DType::F32, shape)};
    const auto program = device_.load(codegen::make_kernel(row, attrs, types, ir::infer(row, types, attrs), {}, in));
    const size_t bytes = bytes_of(shape);
    const BufferRef x = device_.allocate(bytes), y = device_.allocate(bytes), out = device_.allocate(bytes),
                    scratch = device_.allocate(program->scratch_bytes());
    stream_.fill(x->data(), 0, bytes);
    stream_.fill(y->data(), 0, bytes);
    void* pointers[] = {x->data(), y->data(), out->data()};
    const auto run = [&] {
      for (int i = 0; i < launches; ++i) stream_.launch(program, {pointers, scratch->data()});
      stream_.synchronize();
    };
    run();  // memory is there, and what was compiled late
    return {fastest(run)};
  }

  // The slower of both ways.
  double link(size_t most_bytes) {
    const size_t bytes = std::min(bytes_of({kMostNumbers / 4}), most_bytes);
    if (bytes == 0) return 0;
    const BufferRef here = device_.allocate_pinned(bytes), there = device_.allocate(bytes);
    std::fill_n(static_cast<char*>(here->data()), bytes, '\0');
    const auto up = [&] {
      stream_.upload(there->data(), here->data(), bytes);
      stream_.synchronize();
    };
    const auto down = [&] {
      stream_.download(here->data(), there->data(), bytes);
      stream_.synchronize();
    };
    up();
    return static_cast<double>(bytes) / std::max(fastest(up), fastest(down));
  }

  Device& device_;
  Stream& stream_;
};

std::string key_of(const DeviceInfo& info) {
  return cat(kVersion, "\n", info.name, "\n", info.description, "\n", info.driver, "\n", info.cores, "\n", info.memory_bytes, "\n",
             info.rates.link_bytes_per_second);
}
BlobCache cache() { return BlobCache(env::cache_dir()); }

}  // namespace

Rates measure(Device& device) { return Bench(device).measure(); }

Rates measured_again(Device& device) {
  const Rates r = measure(device);
  const std::string text = to_text(r);
  cache().write(key_of(device.info()), {text.begin(), text.end()});
  return r;
}

Rates calibrated(Device& device) {
  std::vector<char> blob;
  Rates r;
  if (cache().read(key_of(device.info()), blob) && from_text({blob.data(), blob.size()}, r)) return r;
  return measured_again(device);
}

std::string to_text(const Rates& r) {
  std::string text;
  for (const double v : {r.flops_per_second, r.bytes_per_second, r.link_bytes_per_second, r.launch_seconds}) {
    char digits[32];  // so many that the same number is read
    text += cat(text.empty() ? "" : " ", std::string_view(digits, std::to_chars(digits, std::end(digits), v).ptr));
  }
  return text;
}
bool from_text(std::string_view text, Rates& rates) {
  double* const all[] = {&rates.flops_per_second, &rates.bytes_per_second, &rates.link_bytes_per_second, &rates.launch_seconds};
  for (double* value : all) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    // A link may be none: of memory that is the host's.
    if (error != std::errc() || !std::isfinite(*value) || *value < 0 || (*value == 0 && value != all[2])) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  return text.empty();
}

}  // namespace tandem::device
