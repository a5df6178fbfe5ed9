// The device contract: about ten functions. A device has memory, makes programs of kernels, and runs them on streams in order.
// Nothing here knows graphs; one folder under devices/ implements it and nobody includes that folder.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel.hpp"

namespace tandem::device {

class Device;

struct DeviceInfo {
  std::string name;                                   // "cpu", "null"
  std::string description;                            // "2 threads, avx512"
  size_t memory_bytes = 0;                            // 0: as much as the host gives
  bool host_memory = false;                           // buffers can be read and written by the host through Buffer::data
  bool executes = true;                               // false: keeps time only, results are not computed
  size_t gap_bytes = 0;                               // to keep between values in small memory, where cores are in each other's way
  double flops_per_second = 0, bytes_per_second = 0;  // for the cost model; 0: unknown
};

// Bytes in a device's memory. Counted by hand, because one eager op must not pay for two allocations.
class Buffer {
 public:
  Buffer(Device& owner, void* memory, size_t bytes) : device_(&owner), data_(memory), bytes_(bytes) {}
  virtual ~Buffer() = default;
  Device& device() const { return *device_; }
  void* data() const { return data_; }  // a host pointer where info().host_memory, else the device's own handle
  size_t bytes() const { return bytes_; }

  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  bool unique() const { return references_.load(std::memory_order_acquire) == 1; }

 protected:
  virtual void destroy() { delete this; }  // a pooling device takes the memory back instead

 private:
  Device* device_;
  void* data_;
  size_t bytes_;
  std::atomic<int> references_{0};
};

class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(Buffer* b) : buffer_(b) {
    if (buffer_) buffer_->retain();
  }
  BufferRef(const BufferRef& o) : BufferRef(o.buffer_) {}
  BufferRef(BufferRef&& o) noexcept : buffer_(o.buffer_) { o.buffer_ = nullptr; }
  BufferRef& operator=(BufferRef o) noexcept {
    std::swap(buffer_, o.buffer_);
    return *this;
  }
  ~BufferRef() {
    if (buffer_) buffer_->release();
  }
  explicit operator bool() const { return buffer_ != nullptr; }
  Buffer* operator->() const { return buffer_; }
  Buffer& operator*() const { return *buffer_; }
  Buffer* get() const { return buffer_; }

 private:
  Buffer* buffer_ = nullptr;
};

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

// pointers: inputs, then outputs, each at its first byte; scratch: scratch_bytes() aligned to codegen::kAlignment.
struct LaunchArgs {
  void* const* pointers;
  void* scratch;
};

struct Event {
  uint64_t ticket = 0;
};

// Rows of host memory at equal steps, some of them, in any order.
struct HostRows {
  const void* first;
  int64_t step_bytes;
  size_t row_bytes;
  std::span<const int64_t> numbers;
};

// Work in order. A device that runs everything at once (cpu) has streams that do so.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void launch(const Program& program, const LaunchArgs& args) = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;  // within the device
  virtual void upload(void* to, const void* host, size_t bytes) = 0;
  virtual void upload_rows(void* to, const HostRows& rows) {  // one behind the other
    for (size_t i = 0; i < rows.numbers.size(); ++i)
      upload(static_cast<char*>(to) + i * rows.row_bytes, static_cast<const char*>(rows.first) + rows.numbers[i] * rows.step_bytes,
             rows.row_bytes);
  }
  virtual void download(void* host, const void* from, size_t bytes) = 0;
  virtual void fill(void* to, uint8_t value, size_t bytes) = 0;
  virtual Event record() = 0;
  virtual void wait(Event e) = 0;  // this stream goes on only after the event of another stream of this device
  virtual void synchronize() = 0;  // the host waits; errors of the work since the last call come out here at the latest
  virtual double elapsed_seconds() const { return 0; }  // devices that keep time by a model: how much has passed
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual BufferRef allocate(size_t bytes) = 0;  // aligned to codegen::kAlignment; ResourceError with numbers and a remedy
  virtual std::unique_ptr<Stream> make_stream() = 0;
  // Whether a composite comes to `load` as it is instead of being expanded. Symbols are not bound yet, and operands may lie in any strides:
  // what is kept must be loaded at all of them.
  virtual bool keeps(const ir::OpCall& call) const {
    (void)call;
    return false;
  }
  // Tries the device's ordered list of kernels, best first; each refusal is logged with its reason (TANDEM_LOG=dispatch).
  // UserError when nothing in the list takes the kernel.
  virtual std::shared_ptr<const Program> load(const codegen::Kernel& kernel) = 0;
  virtual size_t bytes_in_use() const = 0;
  virtual size_t peak_bytes() const = 0;
  virtual void trim() {}  // gives memory that is kept for the next allocations back to the system
};

// Devices by name, made on first use. The list of factories is generated from the folders under devices/.
struct Factory {
  std::string_view name;
  std::unique_ptr<Device> (*make)();
};
std::span<const Factory> factories();  // defined in the generated source
Device& get(std::string_view name);    // UserError lists the names there are
std::vector<std::string> names();

}  // namespace tandem::device
