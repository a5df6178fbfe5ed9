#include "null_device.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/text.hpp"
#include "codegen/interpret_kernel.hpp"
#include "device/host_buffer.hpp"

namespace tandem::null {
namespace {

// Addresses that nobody may touch; one is never given twice.
class Addresses {
 public:
  void* take(size_t bytes) { return reinterpret_cast<void*>(next_.fetch_add(device::Account::counted(bytes))); }

 private:
  std::atomic<uintptr_t> next_{uintptr_t{1} << 56};  // beyond what a process can map
};

class NullBuffer final : public device::Buffer {
 public:
  NullBuffer(device::Device& owner, device::Account& account, Addresses& addresses, size_t bytes)
      : Buffer(owner, (account.take(bytes), addresses.take(bytes)), bytes), account_(account) {}
  ~NullBuffer() override { account_.give_back(bytes()); }

 private:
  device::Account& account_;
};

class NullProgram final : public device::Program {
 public:
  NullProgram(const codegen::Kernel& k, double seconds) : scratch_(k.partial_bytes()), seconds_(seconds) {}
  std::string_view kernel_name() const override { return "timed"; }
  size_t scratch_bytes() const override { return scratch_; }
  double seconds() const { return seconds_; }

 private:
  size_t scratch_;
  double seconds_;
};

class NullEvent final : public device::Event {
 public:
  void synchronize() override {}
  bool has_happened() const override { return true; }
  std::atomic<double> time{0};  // at which it was recorded
};

// What all streams of a device share: one copy after the other goes each way over the link, and kernels and copies within memory take
// turns.
class Shared {
 public:
  enum class What : uint8_t { Compute, Up, Down };
  // From when on somebody has it, who wants it from `now` on for so long; gives when he is done.
  double take(What what, double now, double seconds) {
    std::lock_guard lock(mutex_);
    double& free = free_[static_cast<size_t>(what)];
    free = std::max(free, now) + seconds;
    return free;
  }

 private:
  std::mutex mutex_;
  std::array<double, 3> free_{};
};

// A clock of its own; waiting for an event moves it forward.
class NullStream final : public device::Stream {
 public:
  using What = Shared::What;
  NullStream(const device::Rates& rates, Shared& shared) : rates_(rates), shared_(shared) {}
  void launch(const std::shared_ptr<const device::Program>& program, const device::LaunchArgs&) override {
    pass(What::Compute, static_cast<const NullProgram&>(*program).seconds());
  }
  void copy(void*, const void*, size_t bytes) override { pass(What::Compute, device::move_seconds(static_cast<double>(bytes), rates_)); }
  void upload(void*, const void*, size_t bytes) override { pass(What::Up, device::copy_seconds(static_cast<double>(bytes), rates_)); }
  void download(void* host, const void*, size_t bytes) override {
    if (bytes) std::memset(host, 0, bytes);
    pass(What::Down, device::copy_seconds(static_cast<double>(bytes), rates_));
  }
  void fill(void*, uint8_t, size_t bytes) override {
    pass(What::Compute, device::seconds({.flops = 0, .bytes = static_cast<double>(bytes)}, 1, rates_));
  }
  void record(device::Event& event) override { static_cast<NullEvent&>(event).time = elapsed_seconds(); }
  void wait(device::Event& event) override {
    event.synchronize();
    if (const auto* ours = dynamic_cast<const NullEvent*>(&event)) {
      std::lock_guard lock(mutex_);
      now_ = std::max(now_, ours->time.load());
    }
  }
  void synchronize() override {}
  double elapsed_seconds() const override {
    std::lock_guard lock(mutex_);
    return now_;
  }

 private:
  void pass(What what, double seconds) {
    std::lock_guard lock(mutex_);
    now_ = shared_.take(what, now_, seconds);
  }
  const device::Rates& rates_;
  Shared& shared_;
  mutable std::mutex mutex_;
  double now_ = 0;
};

class NullDevice final : public device::Device {
 public:
  explicit NullDevice(const Model& model) : memory_(model.name, model.memory_bytes) {
    info_.name = model.name;
    info_.description =
        cat("keeps time only: ", model.rates.flops_per_second / 1e12, " TFLOP/s, ", model.rates.bytes_per_second / 1e9, " GB/s");
    info_.memory_bytes = model.memory_bytes;
    info_.host_memory = model.host_memory;
    info_.executes = false;
    info_.rates = model.rates;
    for (auto& stream : streams_) stream = std::make_unique<NullStream>(info_.rates, shared_);
  }
  const device::DeviceInfo& info() const override { return info_; }
  device::BufferRef allocate(size_t bytes) override { return device::BufferRef(new NullBuffer(*this, memory_, addresses_, bytes)); }
  device::BufferRef allocate_pinned(size_t bytes) override { return device::BufferRef(new device::HostBuffer(*this, pinned_, bytes)); }
  device::Account& memory() override { return memory_; }
  device::Account& pinned_memory() override { return pinned_; }
  device::Stream& stream(device::StreamKind kind) override { return *streams_[static_cast<size_t>(kind)]; }
  std::unique_ptr<device::Event> make_event() override { return std::make_unique<NullEvent>(); }
  std::shared_ptr<const device::Program> load(const codegen::Kernel& kernel) override {
    codegen::check_interpretable(kernel);
    return std::make_shared<NullProgram>(kernel, seconds(kernel));
  }

 private:
  device::DeviceInfo info_;
  device::Account memory_, pinned_{"null, pinned"};
  Addresses addresses_;
  Shared shared_;
  std::array<std::unique_ptr<NullStream>, device::kStreamKinds> streams_;
};

}  // namespace

Model model_of(const device::Card& card) {
  return {.name = std::string(card.name), .memory_bytes = device::usable_bytes(card), .rates = device::rates_of(card)};
}

Model host_model() { return {.name = "host", .host_memory = true, .memory_bytes = 0, .rates = device::kHostBesideACard}; }

std::unique_ptr<device::Device> make_device(const Model& model) { return std::make_unique<NullDevice>(model); }

std::vector<device::Candidate> enumerate() {
  std::vector<device::Candidate> all{{.name = "null", .make = [] { return make_device(Model{}); }, .only_when_named = true}};
  all.push_back({.name = "null:host", .make = [] { return make_device(host_model()); }, .is_listed = false, .only_when_named = true});
  for (const device::Card& card : device::cards()) {
    const std::string name = cat("null:", card.name);
    all.push_back({.name = name, .make = [&card] { return make_device(model_of(card)); }, .is_listed = false, .only_when_named = true});
  }
  return all;
}

}  // namespace tandem::null
