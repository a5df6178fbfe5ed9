// The device contract. A device has memory, makes programs of kernels, and runs them on streams in order. Nothing here knows graphs; one
// folder under devices/ implements it and nobody includes that folder.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/cost.hpp"
#include "codegen/kernel.hpp"
#include "device/account.hpp"
#include "device/buffer.hpp"
#include "device/kernel_times.hpp"
#include "device/losses.hpp"
#include "device/stream.hpp"

namespace tandem::device {

// What the cost model knows of a device. 0: unknown.
struct Rates {
  double flops_per_second = 0, bytes_per_second = 0;
  double link_bytes_per_second = 0;  // to and from the host
  double launch_seconds = 0;         // of a launch, whatever it does
  double copy_seconds = 0;           // of a copy over the link beside its bytes, until what waits for it begins. 0: as a launch
  double run_seconds = 0;            // what giving a run of a plan and waiting for its end costs, beside its steps
};
double seconds(const codegen::Cost& cost, size_t launches, const Rates& rates);  // the longer of computing and moving bytes
double copy_seconds(double bytes, const Rates& rates);                           // over the link
double move_seconds(double bytes, const Rates& rates);                           // from one place in the device's memory to another

struct DeviceInfo {
  std::string name;          // "cpu", "null", "opencl:0"
  std::string description;   // "2 threads, avx512"
  std::string driver;        // and its version; empty: none
  std::string cores;         // of the host that it computes on, "0-3,6"; empty: none
  size_t memory_bytes = 0;   // 0: as much as the host gives
  bool host_memory = false;  // buffers can be read and written by the host through Buffer::data
  bool executes = true;      // false: keeps time only, results are not computed
  size_t gap_bytes = 0;      // to keep between values in small memory, where cores are in each other's way
  Rates rates;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // Aligned to codegen::kAlignment; ResourceError with numbers and a remedy. What a buffer held before it was given back may still be used
  // by work on the compute stream that was given before; so whoever uses new memory on another stream lets that wait for the compute
  // stream.
  virtual BufferRef allocate(size_t bytes) = 0;
  // Host memory that copies reach without another copy in between, counted by an account of its own. The host may use it at any time.
  virtual BufferRef allocate_pinned(size_t bytes) = 0;
  virtual Account& memory() = 0;
  virtual Account& pinned_memory() = 0;
  virtual void trim() {}  // gives memory that is kept for the next allocations back to the system

  virtual Stream& stream(StreamKind kind) = 0;  // the device's own, the same one each time
  virtual std::unique_ptr<Event> make_event() = 0;

  // Whether it can compute the op at all. What it cannot is computed on the CPU, with copies that the plan names.
  virtual bool can(const ir::OpCall& call) const {
    (void)call;
    return true;
  }
  // Whether a composite comes to `load` as it is instead of being expanded. Symbols are not bound yet, and operands may lie in any strides:
  // what is kept must be loaded at all of them.
  virtual bool keeps(const ir::OpCall& call) const {
    (void)call;
    return false;
  }
  // Tries the device's ordered list of kernels, best first; each refusal is logged with its reason (TANDEM_LOG=dispatch).
  // UserError when nothing in the list takes the kernel.
  virtual std::shared_ptr<const Program> load(const codegen::Kernel& kernel) = 0;
  // How long a kernel takes, by the cost model and rates().
  virtual double seconds(const codegen::Kernel& kernel) const;
  // What info() says of itself, and what it does not say as it was measured once (device/calibration.hpp): the first call may take a
  // second.
  const Rates& rates() const;
  void set_rates(const Rates& rates);  // instead, from now on: of what is planned for, and in tests
  Rates known_rates() const;           // the same as far as it is known without measuring: nothing is run for it
  // Whether rates() are measured: then single kernels can be timed as well (device/kernel_times.hpp).
  bool is_measured() const;
  KernelTimes& kernel_times() { return kernel_times_; }

  Losses& losses() { return losses_; }
  // The host waits for the compute stream, on which every run ends. Throws what failed, and then what was made meanwhile is lost.
  void finish();
  // The host waits for all streams, behind an error that is on its way. What failed is lost.
  void drain();

 private:
  bool says_its_rates() const { return info().rates.flops_per_second > 0 && info().rates.bytes_per_second > 0; }

  Losses losses_;
  KernelTimes kernel_times_;
  mutable std::once_flag rates_once_;
  mutable std::atomic<bool> are_rates_known_ = false;
  bool are_rates_set_ = false;
  mutable Rates rates_;
};

// ResourceError when the buffer's value is lost: which it is, why, and what to do.
void check_not_lost(const Buffer& buffer, std::string_view what);

// One of several devices that share a physical one, each with an account and cores of its own; the whole of it when there is one.
struct Part {
  std::string name = {};
  size_t limit_bytes = 0;  // 0: what the device has
  int threads = 0;         // of a device that computes on the host's cores; 0: as many as its cores
  int index = 0, count = 1;
};
// One device that a folder under devices/ can make. `skipped`: why there is none of it on this machine. `divide`: makes a part of it; not
// all devices have parts.
struct Candidate {
  std::string name;
  std::function<std::unique_ptr<Device>()> make;
  std::string skipped = {};
  std::function<std::unique_ptr<Device>(const Part&)> divide = {};
  bool is_listed = true;         // false: found by its name only
  bool only_when_named = false;  // for tests, oracles and models of time: no program gets it without asking
};
// A folder's devices. Looked at once, and only when no folder before it has what is asked for: drivers take time to load.
struct Factory {
  std::string_view folder;
  std::vector<Candidate> (*enumerate)();
};
std::span<const Factory> factories();  // defined in the generated source

// Devices by name, made on first use. UserError lists the names there are; ResourceError says why one was skipped.
Device& get(std::string_view name);
std::unique_ptr<Device> make(std::string_view name);  // another one, which nobody else sees: to plan for
std::vector<std::string> names();                     // also of those that were skipped
std::vector<std::string> ordinary_names();            // of those that a program may get without asking
std::vector<std::string> physical_names();            // the same, before they were divided
bool may_have_cards();                                // whether the system shows any: a driver need not be loaded for a machine without

// Before its first use: a device gets a limit, or becomes several, `cpu:0` and `cpu:1` of "cpu", `gpu:0:0` and `gpu:0:1` of "gpu:0". Its
// own name is then that of the first. UserError when it was made already or cannot be divided.
void configure(std::string_view name, std::span<const size_t> limits_bytes);
std::vector<size_t> limits_of_parts(std::string_view name);  // that configure() was given; empty: it was not called
// Threads of the cpu device, before its first use, instead of TANDEM_THREADS; several of it share them.
void set_threads(int threads);
int threads();  // as set; 0: not set
inline constexpr int kMostThreads = 4096;
bool is_made(std::string_view name);
std::string skipped_because(std::string_view name);  // why it is not used; empty: it may be

}  // namespace tandem::device
