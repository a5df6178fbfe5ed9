#include "device/calibration.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include "base/blob_cache.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "ops/table.hpp"

namespace tandem::device {
namespace {

constexpr std::string_view kVersion = "rates 2";
constexpr double kLongEnough = 0.01;  // seconds of a run, to be measured well
constexpr int kRuns = 3;              // of which the fastest counts
constexpr int kLaunches = 200;        // behind each other, for what one costs
constexpr int kCopies = 50;           // likewise, each waiting for a launch and a launch for it
constexpr int kLargeCopies = 5;
constexpr size_t kSmallCopy = size_t{1} << 16;  // bytes
constexpr int64_t kLeastRows = 32, kMostRows = 1024;
constexpr int64_t kLeastNumbers = int64_t{1} << 14, kMostNumbers = int64_t{1} << 23;
constexpr size_t kShareOfMemory = 8;  // of what is free, the part that one operand may take

class Bench {
 public:
  explicit Bench(Device& device) : device_(device), stream_(device.stream(StreamKind::Compute)) {}

  Rates measure() {
    Rates r;
    r.launch_seconds = timed("add", {1}, kLaunches).seconds / kLaunches;
    r.run_seconds = std::max(timed("add", {1}, 1).seconds - r.launch_seconds, 0.0);
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
    if (!device_.info().host_memory) measure_link(r, most_bytes);
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
  struct Op {
    std::shared_ptr<const Program> program;
    BufferRef x, y, out, scratch;
    void launch(Stream& stream) const {
      void* pointers[] = {x->data(), y->data(), out->data()};
      stream.launch(program, {pointers, scratch->data()});
    }
  };
  Op make(std::string_view op, const Shape& shape) {
    const ir::OpDef& row = ops::table().at(op);
    const ir::Attrs attrs = ir::complete_attrs(row, {});
    const ir::TensorType types[] = {{DType::F32, to_dims(shape)}, {DType::F32, to_dims(shape)}};
    const codegen::Layout in[] = {codegen::Layout::dense(DType::F32, shape), codegen::Layout::dense(DType::F32, shape)};
    const auto program = device_.load(codegen::make_kernel(row, attrs, types, ir::infer(row, types, attrs), {}, in));
    const size_t bytes = bytes_of(shape);
    Op made{program, device_.allocate(bytes), device_.allocate(bytes), device_.allocate(bytes), device_.allocate(program->scratch_bytes())};
    stream_.fill(made.x->data(), 0, bytes);
    stream_.fill(made.y->data(), 0, bytes);
    return made;
  }
  Timed timed(std::string_view op, const Shape& shape, int launches) {
    const Op made = make(op, shape);
    const auto run = [&] {
      for (int i = 0; i < launches; ++i) made.launch(stream_);
      stream_.synchronize();
    };
    run();  // memory is there, and what was compiled late
    return {fastest(run)};
  }

  // The slower of both ways. A large copy beside a small one shows the rate; what is left of the small one is what every copy costs.
  void measure_link(Rates& r, size_t most_bytes) {
    const size_t large = std::min(bytes_of({kMostNumbers / 4}), most_bytes), small = std::min(kSmallCopy, large / 2);
    if (small == 0) return;
    const BufferRef here = device_.allocate_pinned(large), there = device_.allocate(large);
    std::fill_n(static_cast<char*>(here->data()), large, '\0');
    const Op tiny = make("add", {1});
    const auto launched = device_.make_event(), copied = device_.make_event();
    for (const StreamKind way : {StreamKind::Upload, StreamKind::Download}) {
      Stream& stream = device_.stream(way);
      const auto copies = [&](size_t bytes, int count) {
        for (int i = 0; i < count; ++i) {
          tiny.launch(stream_);
          stream_.record(*launched);
          stream.wait(*launched);
          if (way == StreamKind::Upload)
            stream.upload(there->data(), here->data(), bytes);
          else
            stream.download(here->data(), there->data(), bytes);
          stream.record(*copied);
          stream_.wait(*copied);
        }
        stream_.synchronize();
      };
      copies(large, 1);  // memory is there
      const double of_small = fastest([&] { copies(small, kCopies); }) / kCopies;
      const double of_large = fastest([&] { copies(large, kLargeCopies); }) / kLargeCopies;
      const double rate = static_cast<double>(large - small) / std::max(of_large - of_small, 1e-9);
      r.link_bytes_per_second = r.link_bytes_per_second > 0 ? std::min(r.link_bytes_per_second, rate) : rate;
      r.copy_seconds = std::max(r.copy_seconds, of_small - r.launch_seconds - static_cast<double>(small) / rate);
    }
  }

  Device& device_;
  Stream& stream_;
};

std::string key_of(const DeviceInfo& info) {
  return cat(kVersion, "\n", identity(info), "\n", info.memory_bytes, "\n", info.rates.link_bytes_per_second);
}
BlobCache cache() { return BlobCache(env::cache_dir()); }

constexpr size_t kNumbers = 6;
// Those behind the first ones may be 0: of memory that is the host's.
std::array<double*, kNumbers> numbers_of(Rates& r) {
  return {&r.flops_per_second, &r.bytes_per_second, &r.launch_seconds, &r.link_bytes_per_second, &r.copy_seconds, &r.run_seconds};
}
constexpr size_t kPositive = 3;

bool take_number(std::string_view& text, double& value) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string identity(const DeviceInfo& info) { return cat(info.name, "\n", info.description, "\n", info.driver, "\n", info.cores); }

Rates measure(Device& device) {
  Rates r = Bench(device).measure();
  if (const double said = device.info().rates.link_bytes_per_second; said > 0)  // one that is emulated
    r.link_bytes_per_second = std::min(r.link_bytes_per_second, said);
  return r;
}

Rates measured_again(Device& device) {
  const Rates r = measure(device);
  const std::string text = to_text(r);
  cache().write(key_of(device.info()), {text.begin(), text.end()});
  return r;
}

bool read_calibration(const DeviceInfo& info, Rates& rates) {
  std::vector<char> blob;
  return cache().read(key_of(info), blob) && from_text({blob.data(), blob.size()}, rates);
}

Rates calibrated(Device& device) {
  Rates r;
  return read_calibration(device.info(), r) ? r : measured_again(device);
}

std::string to_text(double seconds) {
  char digits[32];  // so many that the same number is read
  return {digits, std::to_chars(digits, std::end(digits), seconds).ptr};
}
bool from_text(std::string_view text, double& seconds) { return take_number(text, seconds) && text.empty() && seconds > 0; }

std::string to_text(const Rates& rates) {
  Rates r = rates;
  std::string text;
  for (const double* v : numbers_of(r)) text += cat(text.empty() ? "" : " ", to_text(*v));
  return text;
}
bool from_text(std::string_view text, Rates& rates) {
  const auto all = numbers_of(rates);
  for (size_t i = 0; i < all.size(); ++i)
    if (!take_number(text, *all[i]) || (i < kPositive && *all[i] == 0)) return false;
  return text.empty();
}

}  // namespace tandem::device
