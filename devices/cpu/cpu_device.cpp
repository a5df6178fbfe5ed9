// The CPU: runs every launch at once, on the calling thread and the engine's own pool.
#include <algorithm>

#include "base/cores.hpp"
#include "base/env.hpp"
#include "base/log.hpp"
#include "base/thread_pool.hpp"
#include "cpu_program.hpp"
#include "device/host_buffer.hpp"
#include "device/immediate.hpp"
#include "host_target.hpp"
#include "kernels/scratch.hpp"
#include "memory_pool.hpp"
#include "row_copies.hpp"

namespace tandem::cpu {
namespace {

constexpr int64_t kMostThreads = 4096, kMostCacheMib = int64_t{1} << 40;

class CpuStream final : public device::ImmediateStream {
 public:
  // `kept`: where its threads stay, and who launches; empty: anywhere.
  CpuStream(ThreadPool& pool, std::vector<int> kept) : pool_(pool), kept_(std::move(kept)) {}
  void launch(const std::shared_ptr<const device::Program>& program, const device::LaunchArgs& args) override {
    if (!kept_.empty()) cores::visit(kept_);
    static_cast<const CpuProgram&>(*program).run(args, pool_);
  }
  void upload_rows(void* to, const device::HostRows& rows) override { copy_rows(to, rows, pool_); }

 private:
  ThreadPool& pool_;
  const std::vector<int> kept_;
};

// Several devices of the CPU have cores of their own, which their threads stay on, and who computes with them; so do those of one when
// TANDEM_CORES asks for it.
struct Place {
  std::vector<int> cores;
  int threads;
  bool is_pinned;
};
Place place_of(const device::Part& part) {
  Place p{cores::part(cores::of_cpu(), part.index, part.count), part.threads, part.count > 1 || cores::are_pinned()};
  if (p.threads == 0) p.threads = static_cast<int>(env::get_count("TANDEM_THREADS", kMostThreads)) / part.count;
  if (p.threads == 0) p.threads = static_cast<int>(p.cores.size());
  return p;
}

class CpuDevice final : public device::Device {
 public:
  explicit CpuDevice(const device::Part& part) : CpuDevice(part, place_of(part)) {}
  CpuDevice(const device::Part& part, const Place& place)
      : pool_(place.threads, place.is_pinned ? std::span<const int>(place.cores) : std::span<const int>()),
        cache_(env::cache_dir(), static_cast<uint64_t>(env::get_count("TANDEM_CACHE_MIB", kMostCacheMib)) << 20),
        tools_{host_target(env::get("TANDEM_CPU_ISA")), cache_, pool_.threads()},
        memory_(part.name, part.limit_bytes),
        pinned_(cat(part.name, ", pinned")),
        stream_(pool_, place.is_pinned ? place.cores : std::vector<int>()) {
    info_.name = part.name;
    info_.memory_bytes = part.limit_bytes;
    info_.cores = cores::text(place.cores);
    info_.description = cat(pool_.threads(), pool_.threads() == 1 ? " thread" : " threads", place.is_pinned ? ", pinned, " : ", ",
                            tools_.target.wide ? "512-bit" : "256-bit", " vectors");
    info_.host_memory = true;
    info_.gap_bytes = pool_.threads() > 1 ? kGapBytes : 0;
    if (cache_.is_empty()) prepare_generator(tools_.target);
  }
  const device::DeviceInfo& info() const override { return info_; }
  device::BufferRef allocate(size_t bytes) override { return memory_.allocate(*this, bytes); }
  device::BufferRef allocate_pinned(size_t bytes) override { return device::BufferRef(new device::HostBuffer(*this, pinned_, bytes)); }
  device::Account& memory() override { return memory_.account(); }
  device::Account& pinned_memory() override { return pinned_; }
  void trim() override { memory_.trim(); }
  device::Stream& stream(device::StreamKind) override { return stream_; }
  std::unique_ptr<device::Event> make_event() override { return std::make_unique<device::ImmediateEvent>(); }

  bool keeps(const ir::OpCall& call) const override {
    return std::ranges::any_of(kernel_list(), [&](const KernelEntry& entry) { return entry.keeps && entry.keeps(call); });
  }
  std::shared_ptr<const device::Program> load(const codegen::Kernel& kernel) override {
    std::string reasons;
    for (const KernelEntry& entry : kernel_list()) {
      std::string refusal;
      if (auto program = entry.make(kernel, tools_, refusal)) {
        log::line(log::Topic::Dispatch, kernel.op->name, ": ", entry.name, reasons);
        return program;
      }
      if (!refusal.empty()) reasons += cat("; not ", entry.name, ": ", refusal);
    }
    if (kernel.op->decompose) internal_error("I11: ", kernel.op->name, ": the cpu keeps it whole and has no kernel for it", reasons);
    user_error(kernel.op->name, ": the cpu has no kernel for it", reasons);
  }

 private:
  device::DeviceInfo info_;
  ThreadPool pool_;
  CodeCache cache_;
  Toolbox tools_;
  MemoryPool memory_;
  device::Account pinned_;
  CpuStream stream_;
};

}  // namespace

std::vector<device::Candidate> enumerate() {
  return {{"cpu", [] { return std::make_unique<CpuDevice>(device::Part{.name = "cpu"}); }, "",
           [](const device::Part& part) { return std::make_unique<CpuDevice>(part); }}};
}

}  // namespace tandem::cpu
