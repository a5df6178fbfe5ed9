#include "device/kernel_times.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/blob_cache.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "device/calibration.hpp"
#include "profile/recorder.hpp"

namespace tandem::device {
namespace {

constexpr std::string_view kVersion = "kernel time 1";
constexpr double kLongEnough = 2e-3;  // seconds of what is timed at once: so many launches behind each other
constexpr int kMostLaunches = 100;
constexpr int kRuns = 3;              // of which the fastest counts, since others may be at work
constexpr double kLongForOne = 0.25;  // seconds of a launch that is timed no second time

std::string text_of(std::span<const int64_t> numbers) {
  std::string text = "[";
  for (const int64_t n : numbers) text += cat(n, " ");
  return text + "]";
}

// All that its code and its time follow from.
std::string key_of(const DeviceInfo& info, const codegen::Kernel& kernel, const Program& program) {
  std::string key = cat(kVersion, "\n", identity(info), "\n", program.kernel_name(), "\n", kernel.op->name);
  for (const auto* operands : {&kernel.in, &kernel.out}) {
    key += "\n";
    for (const codegen::Layout& o : *operands) key += cat(name(o.dtype), text_of(o.shape), text_of(o.strides), " ");
  }
  if (kernel.stages.empty())
    for (const auto& [name, value] : kernel.attrs.entries()) key += cat("\n", name, "=", ir::str(value));
  for (const codegen::LoopKernel& s : kernel.stages)
    key += cat("\n", s.key, text_of(s.extents), text_of(s.reduce_extents), text_of(s.params));
  return key;
}

// The bytes that an operand spans, and where its first element is among them.
struct Span {
  size_t bytes = 0, start = 0;
};
Span span_of(const codegen::Layout& o) {
  size_t before = 0, behind = 0;
  for (size_t d = 0; d < o.shape.size(); ++d) {
    if (o.shape[d] == 0) return {};
    const auto far = static_cast<size_t>(o.shape[d] - 1) * static_cast<size_t>(std::abs(o.strides[d]));
    (o.strides[d] < 0 ? before : behind) += far;
  }
  return {(before + behind + 1) * size_of(o.dtype), before * size_of(o.dtype)};
}

// One launch's operands in one piece of memory. Where there is little of it, all inputs are the same bytes.
class Operands {
 public:
  Operands(const codegen::Kernel& kernel, size_t scratch_bytes, bool shares_inputs) {
    size_t widest = 0;
    for (const codegen::Layout& o : kernel.in) {
      const Span s = span_of(o);
      places_.push_back((shares_inputs ? 0 : bytes_) + s.start);
      if (!shares_inputs) bytes_ += codegen::align_up(s.bytes);
      widest = std::max(widest, s.bytes);
    }
    if (shares_inputs) bytes_ = codegen::align_up(widest);
    for (const codegen::Layout& o : kernel.out) {
      places_.push_back(bytes_);
      bytes_ += codegen::align_up(span_of(o).bytes);
    }
    scratch_ = bytes_;
    bytes_ += codegen::align_up(scratch_bytes);
  }
  size_t bytes() const { return bytes_; }
  std::vector<void*> pointers(char* memory) const {
    std::vector<void*> all;
    for (const size_t place : places_) all.push_back(memory + place);
    return all;
  }
  void* scratch(char* memory) const { return memory + scratch_; }

 private:
  std::vector<size_t> places_;
  size_t scratch_ = 0, bytes_ = 0;
};

std::optional<double> timed(Device& device, const codegen::Kernel& kernel, const std::shared_ptr<const Program>& program,
                            const KernelTimes::Allocate& allocate) {
  const Account::Untraced untraced(device.memory());
  std::optional<Operands> operands;
  BufferRef memory;
  for (const bool shares : {false, true}) {
    operands.emplace(kernel, program->scratch_bytes(), shares);
    if ((memory = allocate(operands->bytes()))) break;
  }
  if (!memory) return {};
  const profile::Doing doing("timing a kernel");
  auto* const at = static_cast<char*>(memory->data());
  const std::vector<void*> pointers = operands->pointers(at);
  Stream& stream = device.stream(StreamKind::Compute);
  const auto seconds = [&](int launches) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    for (int i = 0; i < launches; ++i) stream.launch(program, {pointers, operands->scratch(at)});
    stream.synchronize();
    return std::max(std::chrono::duration<double>(Clock::now() - begin).count(), 1e-9) / launches;
  };
  stream.fill(at, 0, operands->bytes());
  seconds(1);  // memory is there, and what was compiled late
  double best = seconds(1);
  if (best > kLongForOne) return best;
  const int launches = std::clamp(static_cast<int>(kLongEnough / best), 1, kMostLaunches);
  if (launches > 1) best = INFINITY;  // it was the waiting that was timed
  for (int run = 0; run < kRuns; ++run) best = std::min(best, seconds(launches));
  return best;
}

BlobCache cache() { return BlobCache(env::cache_dir()); }

}  // namespace

std::optional<double> KernelTimes::of(Device& device, const codegen::Kernel& kernel, const std::shared_ptr<const Program>& program,
                                      const Allocate& allocate) {
  if (device.info().host_memory && kernel.stages.empty() && !kernel.op->decompose) return {};
  const std::string key = key_of(device.info(), kernel, *program);
  const std::lock_guard lock(mutex_);  // also while one is timed: two at once would be in each other's way
  if (const auto it = known_.find(key); it != known_.end()) return it->second;
  std::vector<char> blob;
  double seconds = 0;
  if (cache().read(key, blob) && from_text({blob.data(), blob.size()}, seconds)) return known_[key] = seconds;
  if (!allocate) return {};
  device.finish();  // what failed before is not this kernel's
  try {
    const std::optional<double> found = timed(device, kernel, program, allocate);
    if (!found) return {};
    seconds = *found;
  } catch (const UserError&) {  // a number that it does not take
    return {};
  } catch (const ResourceError&) {
    return {};
  }
  const std::string text = to_text(seconds);
  cache().write(key, {text.begin(), text.end()});
  return known_[key] = seconds;
}

double kernel_seconds(Device& device, const codegen::Kernel& kernel, const std::shared_ptr<const Program>& program,
                      const KernelTimes::Allocate& allocate) {
  if (device.is_measured())
    if (const std::optional<double> seconds = device.kernel_times().of(device, kernel, program, allocate)) return *seconds;
  return device.seconds(kernel);
}

}  // namespace tandem::device
