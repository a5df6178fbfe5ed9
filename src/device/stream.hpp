// Streams: work that a device does in order. ADR 0038 has the rules; a device that does everything at once keeps them by itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace tandem::device {

// A kernel made ready for one device and one set of extents. Immutable; may run on several threads at once.
class Program {
 public:
  virtual ~Program() = default;
  virtual size_t scratch_bytes() const { return 0; }
  // Whether an output of as many bytes may take this input's place although the kernel does not say so (codegen::Kernel::replaceable):
  // what is kept whole has no loops to see it from.
  virtual bool is_replaceable(size_t input) const {
    (void)input;
    return false;
  }
  virtual std::string_view kernel_name() const = 0;  // which entry of the device's list it is: "generated", "gemm/openblas"
};

// pointers: inputs, then outputs, each at its first byte; scratch: scratch_bytes() aligned to codegen::kAlignment. Read during the call.
struct LaunchArgs {
  std::span<void* const> pointers;
  void* scratch = nullptr;
};

// Rows of host memory at equal steps, some of them, in any order.
struct HostRows {
  const void* first;
  int64_t step_bytes;
  size_t row_bytes;
  std::span<const int64_t> numbers;
};

// A point in a stream's work. Made once by its device and owned by who asked for it; each record() moves it. One that was never recorded
// has happened.
class Event {
 public:
  virtual ~Event() = default;
  virtual void synchronize() = 0;  // the host waits for it. Throws what the work before it failed with
  virtual bool has_happened() const = 0;
};

// Which of its streams a device does a thing on. Compute has the launches; the others are for copies that overlap with them.
enum class StreamKind : uint8_t { Compute, Upload, Download };
inline constexpr int kStreamKinds = 3;
constexpr std::string_view name(StreamKind kind) {
  return kind == StreamKind::Compute ? "compute" : kind == StreamKind::Upload ? "upload" : "download";
}

// May be called from several threads at once. Work that fails later than its call makes what follows it fail, on this stream and on those
// that wait for it, until somebody who synchronizes has been told.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void launch(const std::shared_ptr<const Program>& program, const LaunchArgs& args) = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;  // within the device
  // Pinned memory (Device::allocate_pinned) is read when the stream comes to it, and stays as it is until then; any other is read before
  // the call returns.
  virtual void upload(void* to, const void* host, size_t bytes) = 0;
  virtual void upload_rows(void* to, const HostRows& rows) {  // one behind the other
    for (size_t i = 0; i < rows.numbers.size(); ++i)
      upload(static_cast<char*>(to) + i * rows.row_bytes, static_cast<const char*>(rows.first) + rows.numbers[i] * rows.step_bytes,
             rows.row_bytes);
  }
  virtual void download(void* host, const void* from, size_t bytes) = 0;  // there when the stream has come to it
  virtual void fill(void* to, uint8_t value, size_t bytes) = 0;
  virtual void record(Event& event) = 0;                // one of this device's
  virtual void wait(Event& event) = 0;                  // what follows here comes after it; of any device
  virtual void synchronize() = 0;                       // the host waits for all of it. Throws what failed since the last time
  virtual double elapsed_seconds() const { return 0; }  // devices that keep time by a model: how much has passed
};

}  // namespace tandem::device
