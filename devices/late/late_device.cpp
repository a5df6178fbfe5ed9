#include "late_device.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/text.hpp"
#include "device/host_buffer.hpp"
#include "late_program.hpp"
#include "late_stream.hpp"

namespace tandem::late {
namespace {

constexpr size_t kMostFreeBytes = size_t{16} << 20;  // that wait to be handed out again

class Late;

// Goes back to its device, which poisons it in the order of the compute stream and may hand it out again at once.
class LateBuffer final : public device::Buffer {
 public:
  LateBuffer(Late& owner, void* block, size_t bytes);
  ~LateBuffer() override;

 private:
  Late& late_;
};

class PinnedBuffer final : public device::HostBuffer {
 public:
  PinnedBuffer(Late& owner, device::Account& account, size_t bytes);
  ~PinnedBuffer() override;

 private:
  Late& late_;
};

class Late final : public LateDevice, public Memories {
 public:
  explicit Late(const Options& o) : memory_(o.name, o.memory_bytes) {
    info_.name = o.name;
    info_.description = "interpreter on threads that wait, for tests";
    info_.memory_bytes = o.memory_bytes;
    // Only plans within a limit ask.
    info_.rates = {
        .flops_per_second = 1e9, .bytes_per_second = 1e9, .link_bytes_per_second = o.link_bytes_per_second, .launch_seconds = 1e-5};
    for (size_t i = 0; i < streams_.size(); ++i)
      streams_[i] =
          std::make_unique<LateStream>(*this, static_cast<device::StreamKind>(i), o.seed * streams_.size() + i, o.longest_delay_us);
  }
  ~Late() override {
    for (auto& s : streams_) s.reset();  // they work off what is queued
    for (auto& [size, block] : free_) std::free(block);
  }

  const device::DeviceInfo& info() const override { return info_; }
  device::BufferRef allocate(size_t bytes) override {
    if (due(Operation::Allocation)) memory_.refuse(bytes);
    memory_.take(bytes);
    const size_t size = device::Account::counted(bytes);
    void* block = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (const auto it = free_.find(size); it != free_.end()) {
        block = it->second;
        free_bytes_ -= size;
        free_.erase(it);
      }
    }
    if (!block) {
      block = std::aligned_alloc(codegen::kAlignment, size);
      if (!block) {
        memory_.give_back(bytes);
        memory_.refuse(bytes);
      }
      std::memset(block, kPoison, size);
    }
    return device::BufferRef(new LateBuffer(*this, block, bytes));
  }
  device::BufferRef allocate_pinned(size_t bytes) override {
    if (due(Operation::Allocation)) pinned_.refuse(bytes);
    return device::BufferRef(new PinnedBuffer(*this, pinned_, bytes));
  }
  device::Account& memory() override { return memory_; }
  device::Account& pinned_memory() override { return pinned_; }
  void trim() override {
    // What waits to be poisoned is still written to, so the queue goes first.
    stream(device::StreamKind::Compute).synchronize();
    std::lock_guard lock(mutex_);
    for (auto& [size, block] : free_) std::free(block);
    free_.clear();
    free_bytes_ = 0;
  }

  device::Stream& stream(device::StreamKind kind) override { return *streams_[static_cast<size_t>(kind)]; }
  std::unique_ptr<device::Event> make_event() override { return std::make_unique<LateEvent>(); }
  // What only a routine of the host computes is the CPU's: as on any device with memory of its own.
  bool can(const ir::OpCall& call) const override { return call.op.body || call.op.loops || call.op.decompose || call.op.name == "fused"; }
  std::shared_ptr<const device::Program> load(const codegen::Kernel& kernel) override {
    if (kernel.stages.empty()) user_error(kernel.op->name, ": late has no kernel for it: the row has only a routine on host memory");
    return std::make_shared<LateProgram>(kernel);
  }

  void fail(Operation operation, int64_t n, Lasts lasts) override {
    Counter& c = counters_[static_cast<size_t>(operation)];
    std::lock_guard lock(mutex_);
    c.failing = n ? c.done + n : -1;
    c.lasts = lasts;
  }
  int64_t count(Operation operation) const override {
    std::lock_guard lock(mutex_);
    return counters_[static_cast<size_t>(operation)].done;
  }

  // --- for streams and buffers ---
  bool is_pinned(const void* host) const override {
    std::lock_guard lock(mutex_);
    const auto it = pinned_ranges_.upper_bound(static_cast<const char*>(host));
    return it != pinned_ranges_.begin() && static_cast<const char*>(host) < std::prev(it)->second;
  }
  void count_copy() override { count(Operation::Copy, "copy"); }
  void count_launch() override { count(Operation::Launch, "launch"); }
  void take_back(void* block, size_t bytes) {
    const size_t size = device::Account::counted(bytes);
    // Whoever gets the block next orders what it does behind this, or is poisoned.
    memory_.give_back(bytes);
    {
      std::lock_guard lock(mutex_);
      if (free_bytes_ + size <= kMostFreeBytes) {
        compute().poison(block, size);
        free_bytes_ += size;
        free_.emplace(size, block);
        return;
      }
    }
    compute().free(block);
  }
  void pin(const void* memory, size_t bytes) {
    std::lock_guard lock(mutex_);
    pinned_ranges_[static_cast<const char*>(memory)] = static_cast<const char*>(memory) + bytes;
  }
  void unpin(const void* memory) {
    std::lock_guard lock(mutex_);
    pinned_ranges_.erase(static_cast<const char*>(memory));
  }

 private:
  struct Counter {
    int64_t done = 0, failing = -1;
    Lasts lasts = Lasts::Once;
  };
  LateStream& compute() { return *streams_[0]; }
  bool due(Operation operation) {
    std::lock_guard lock(mutex_);
    Counter& c = counters_[static_cast<size_t>(operation)];
    ++c.done;
    return c.done == c.failing || (c.lasts == Lasts::On && c.failing > 0 && c.done > c.failing);
  }
  void count(Operation operation, const char* what) {
    if (due(operation)) resource_error(ErrorCode::Unavailable, "late: a ", what, " failed, as a test asked for");
  }

  device::DeviceInfo info_;
  device::Account memory_, pinned_{"late, pinned", 0, &device::host_account()};
  mutable std::mutex mutex_;
  std::array<Counter, kOperations> counters_;
  std::multimap<size_t, void*> free_;
  size_t free_bytes_ = 0;
  std::map<const char*, const char*> pinned_ranges_;
  std::array<std::unique_ptr<LateStream>, device::kStreamKinds> streams_;
};

LateBuffer::LateBuffer(Late& owner, void* block, size_t bytes) : Buffer(owner, to_device(block), bytes), late_(owner) {}
LateBuffer::~LateBuffer() { late_.take_back(to_host(data()), bytes()); }

PinnedBuffer::PinnedBuffer(Late& owner, device::Account& account, size_t bytes) : HostBuffer(owner, account, bytes), late_(owner) {
  late_.pin(data(), bytes);
}
PinnedBuffer::~PinnedBuffer() {
  std::memset(data(), kPoison, bytes());
  late_.unpin(data());
}

}  // namespace

std::unique_ptr<LateDevice> make_device(const Options& options) { return std::make_unique<Late>(options); }

std::vector<device::Candidate> enumerate() {
  return {{.name = "late", .make = [] { return make_device({}); }, .only_when_named = true}};
}

}  // namespace tandem::late
