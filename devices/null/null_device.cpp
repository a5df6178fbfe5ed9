#include "null_device.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "base/text.hpp"
#include "codegen/cost.hpp"

namespace tandem::null {
namespace {

// Counts bytes and hands out addresses that nobody may touch; an address is never given twice.
class Memory {
 public:
  explicit Memory(size_t limit) : limit_(limit) {}
  void* take(size_t bytes) {
    const size_t size = rounded(bytes);
    size_t used = in_use_.load();
    do {
      if (size < bytes || size > limit_ - used)
        resource_error(ErrorCode::ResourceExhausted, "null: cannot allocate ", bytes, " bytes (", bytes >> 20, " MiB): ", used, " of ",
                       limit_, " bytes are in use (", used >> 20, " of ", limit_ >> 20,
                       " MiB)\n  hint: a smaller batch, or fewer tensors kept alive");
    } while (!in_use_.compare_exchange_weak(used, used + size));
    for (size_t peak = peak_.load(); used + size > peak && !peak_.compare_exchange_weak(peak, used + size);) {
    }
    return reinterpret_cast<void*>(next_.fetch_add(size));
  }
  void give_back(size_t bytes) { in_use_.fetch_sub(rounded(bytes)); }
  size_t in_use() const { return in_use_.load(); }
  size_t peak() const { return peak_.load(); }

 private:
  static size_t rounded(size_t bytes) { return codegen::align_up(std::max<size_t>(bytes, 1)); }
  size_t limit_;
  std::atomic<size_t> in_use_{0}, peak_{0};
  std::atomic<uintptr_t> next_{uintptr_t{1} << 56};  // beyond what a process can map
};

class NullBuffer final : public device::Buffer {
 public:
  NullBuffer(device::Device& owner, Memory& memory, size_t bytes) : Buffer(owner, memory.take(bytes), bytes), memory_(memory) {}
  ~NullBuffer() override { memory_.give_back(bytes()); }

 private:
  Memory& memory_;
};

class NullProgram final : public device::Program {
 public:
  NullProgram(const codegen::Kernel& k, const Model& m) : scratch_(k.partial_bytes()) {
    const codegen::Cost c = codegen::cost_of(k);
    const double launches = static_cast<double>(std::max<size_t>(k.stages.size(), 1));
    seconds_ = std::max(c.bytes / m.bytes_per_second, c.flops / m.flops_per_second) + launches * m.launch_seconds;
  }
  std::string_view kernel_name() const override { return "timed"; }
  size_t scratch_bytes() const override { return scratch_; }
  double seconds() const { return seconds_; }

 private:
  size_t scratch_;
  double seconds_;
};

// A clock of its own; an event is the time at which it was recorded.
class NullStream final : public device::Stream {
 public:
  explicit NullStream(const Model& model) : model_(model) {}
  void launch(const device::Program& program, const device::LaunchArgs&) override {
    now_ += static_cast<const NullProgram&>(program).seconds();
  }
  void copy(void*, const void*, size_t bytes) override { pass(2 * static_cast<double>(bytes) / model_.bytes_per_second); }
  void upload(void*, const void*, size_t bytes) override { pass(static_cast<double>(bytes) / model_.link_bytes_per_second); }
  void download(void* host, const void*, size_t bytes) override {
    if (bytes) std::memset(host, 0, bytes);
    pass(static_cast<double>(bytes) / model_.link_bytes_per_second);
  }
  void fill(void*, uint8_t, size_t bytes) override { pass(static_cast<double>(bytes) / model_.bytes_per_second); }
  device::Event record() override { return {std::bit_cast<uint64_t>(now_)}; }
  void wait(device::Event e) override { now_ = std::max(now_, std::bit_cast<double>(e.ticket)); }
  void synchronize() override {}
  double elapsed_seconds() const override { return now_; }

 private:
  void pass(double seconds) { now_ += seconds + model_.launch_seconds; }
  const Model& model_;
  double now_ = 0;
};

class NullDevice final : public device::Device {
 public:
  explicit NullDevice(const Model& model) : model_(model), memory_(model.memory_bytes) {
    info_.name = "null";
    info_.description = cat("keeps time only: ", model.flops_per_second / 1e12, " TFLOP/s, ", model.bytes_per_second / 1e9, " GB/s");
    info_.memory_bytes = model.memory_bytes;
    info_.executes = false;
    info_.flops_per_second = model.flops_per_second;
    info_.bytes_per_second = model.bytes_per_second;
  }
  const device::DeviceInfo& info() const override { return info_; }
  device::BufferRef allocate(size_t bytes) override { return device::BufferRef(new NullBuffer(*this, memory_, bytes)); }
  std::unique_ptr<device::Stream> make_stream() override { return std::make_unique<NullStream>(model_); }
  std::shared_ptr<const device::Program> load(const codegen::Kernel& kernel) override {
    if (kernel.stages.empty() && !kernel.op->evaluate) user_error(kernel.op->name, ": the op has neither loops nor a host routine");
    return std::make_shared<NullProgram>(kernel, model_);
  }
  size_t bytes_in_use() const override { return memory_.in_use(); }
  size_t peak_bytes() const override { return memory_.peak(); }

 private:
  Model model_;
  device::DeviceInfo info_;
  Memory memory_;
};

}  // namespace

std::unique_ptr<device::Device> make_device(const Model& model) { return std::make_unique<NullDevice>(model); }
std::unique_ptr<device::Device> make_device() { return make_device(Model{}); }

}  // namespace tandem::null
