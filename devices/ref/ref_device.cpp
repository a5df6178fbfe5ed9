// The reference: interprets every kernel on the calling thread. Slow, plain, and what other devices are compared with.
#include "codegen/interpret_kernel.hpp"
#include "device/device.hpp"
#include "device/host_buffer.hpp"
#include "device/immediate.hpp"

namespace tandem::ref {
namespace {

constexpr size_t kMemoryBytes = size_t{16} << 30;

class RefProgram final : public device::Program {
 public:
  explicit RefProgram(const codegen::Kernel& k) : kernel_(k) {}
  std::string_view kernel_name() const override { return kernel_.stages.empty() ? "host" : "interpreted"; }
  size_t scratch_bytes() const override { return kernel_.partial_bytes(); }
  void run(const device::LaunchArgs& args) const { codegen::interpret(kernel_, args.pointers, args.scratch); }

 private:
  codegen::Kernel kernel_;
};

class RefStream final : public device::ImmediateStream {
 public:
  void launch(const std::shared_ptr<const device::Program>& program, const device::LaunchArgs& args) override {
    static_cast<const RefProgram&>(*program).run(args);
  }
};

class RefDevice final : public device::Device {
 public:
  RefDevice() {
    info_.name = "ref";
    info_.description = "interpreter, 1 thread";
    info_.memory_bytes = kMemoryBytes;
    info_.host_memory = true;
  }
  const device::DeviceInfo& info() const override { return info_; }
  device::BufferRef allocate(size_t bytes) override { return device::BufferRef(new device::HostBuffer(*this, memory_, bytes)); }
  device::BufferRef allocate_pinned(size_t bytes) override { return device::BufferRef(new device::HostBuffer(*this, pinned_, bytes)); }
  device::Account& memory() override { return memory_; }
  device::Account& pinned_memory() override { return pinned_; }
  device::Stream& stream(device::StreamKind) override { return stream_; }
  std::unique_ptr<device::Event> make_event() override { return std::make_unique<device::ImmediateEvent>(); }
  std::shared_ptr<const device::Program> load(const codegen::Kernel& kernel) override {
    codegen::check_interpretable(kernel);
    return std::make_shared<RefProgram>(kernel);
  }

 private:
  device::DeviceInfo info_;
  device::Account memory_{"ref", kMemoryBytes}, pinned_{"ref, pinned"};
  RefStream stream_;
};

}  // namespace

std::vector<device::Candidate> enumerate() {
  return {{.name = "ref", .make = [] { return std::make_unique<RefDevice>(); }, .only_when_named = true}};
}

}  // namespace tandem::ref
