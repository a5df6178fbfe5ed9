// The only composer: compile(graph, device) -> Executable, and the cache that makes an eager op a one-node graph through the same path.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <tandem/precision.hpp>

#include "base/lru_cache.hpp"
#include "engine/placement.hpp"
#include "exec/run.hpp"
#include "ir/graph.hpp"
#include "plan/plan.hpp"

namespace tandem::engine {

// A tensor as the engine takes it: bytes on a device and how they lie. `offset` is in bytes from the buffer's start.
struct TensorRef {
  device::BufferRef buffer;
  codegen::Layout layout;
  size_t offset = 0;
  void* data() const { return static_cast<char*>(buffer->data()) + offset; }
};

// Inputs are passed by address: copying a TensorRef touches a shared counter, which an eager op cannot afford.
using TensorRefs = std::span<const TensorRef* const>;

// Of types, extents and strides. Every eager op asks for it.
inline size_t layouts_hash(size_t h, TensorRefs inputs) {
  for (const TensorRef* t : inputs) {
    const codegen::Layout& o = t->layout;
    h = ir::hash_combine(h, static_cast<size_t>(o.dtype) << 8 | o.shape.size());
    for (size_t i = 0; i < o.shape.size(); ++i)
      h = ir::hash_combine(ir::hash_combine(h, static_cast<size_t>(o.shape[i])), static_cast<size_t>(o.strides[i]));
  }
  return h;
}

class Bound;
class Engine;
class Improvement;

// A plan for these devices and the programs of its kernels: kernels are made first, since where things lie depends on what they need.
struct Planned {
  plan::Plan plan;
  std::vector<std::shared_ptr<const device::Program>> programs;
  std::vector<int32_t> homes;   // one an input: the device it belongs to. Where the plan has another one, it waits on the host for good
  size_t pinned_bytes = 0;      // of the host's memory that copies reach: what waits there, and the plan's own
  size_t state_bytes = 0;       // of inputs that wait there
  int64_t updates_on_host = 0;  // nodes that are computed there because of it
  // Where times are asked for: one a kernel, and of a run among others, with what overlaps (plan/simulate.hpp).
  std::vector<double> seconds;
  double run_seconds = 0;
};
// Times are always asked for where a limit makes a difference or a device only keeps time.
enum class Times : uint8_t { IfNeeded, Wanted };
// A request that names no devices is for number 0. `own_pinned_bytes`: of inputs that wait on the host already.
Planned planned(plan::Request request, const Devices& devices, Times times = Times::IfNeeded, size_t own_pinned_bytes = 0);

// One plan, ready to run any number of times, also from several threads at once.
class Bound {
 public:
  Bound(Planned planned, std::vector<int32_t> donations, const Devices& devices);
  ~Bound();
  const plan::Plan& plan() const { return plan_; }
  // Whether the plan is for this list of devices and inputs that lie as these do. Every eager op asks. What waits on the host counts as on
  // its device: a run brings it where the plan wants it.
  bool takes(const Devices& now, TensorRefs inputs) const {
    const plan::Plan& p = plan_;
    if (&devices_ != &now || p.inputs.size() != inputs.size()) return false;
    const bool several = now.count() > 1;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const codegen::Layout &wanted = p.inputs[i], &given = inputs[i]->layout;
      if (wanted.dtype != given.dtype || !(wanted.shape == given.shape) || !(wanted.strides == given.strides)) return false;
      if (several && &now.at(homes[i]) != &inputs[i]->buffer->home()) return false;
    }
    return true;
  }
  // `outputs` is replaced. An output that takes an input's place is written there: nobody else may hold that buffer.
  void run(TensorRefs inputs, std::vector<TensorRef>& outputs);
  // For which donations it was planned: those of inputs that nobody else held.
  const std::vector<int32_t> donations;
  const std::vector<int32_t> homes;          // Planned::homes
  const double run_seconds;                  // Planned::run_seconds; 0: nobody has asked for times
  std::unique_ptr<Improvement> improvement;  // of a plan that a limit makes slower; its executable's

 private:
  class EventsOfRun;
  void bring(TensorRefs inputs, Residents::Pins& pins) const;
  void mark_lost(size_t reached, const std::vector<TensorRef>& outputs, const std::exception& why);
  void number_results(const std::vector<TensorRef>& outputs);

  plan::Plan plan_;
  const Devices& devices_;
  std::vector<device::Device*> device_list_;
  std::vector<std::shared_ptr<const device::Program>> programs_;
  std::vector<device::BufferRef> constants_;
  std::vector<void*> constant_pointers_;
  std::vector<size_t> output_bytes_;
  bool several_streams_ = false, is_asynchronous_ = false;
  std::mutex mutex_;
  std::vector<std::unique_ptr<exec::Events>> events_;  // that no run uses
};

// A compiled graph. Symbols are bound by the inputs' shapes at each call; each binding is planned once, and again when it was not used for
// so long that its plan was dropped.
class Executable {
 public:
  struct Options {
    std::vector<int32_t> donations = {};
    Precision precision = Precision::Float32;
    std::vector<bool> is_state = {};  // one an input, or empty: it may move to another device for good
    bool soft = true;                 // what a device that was asked for cannot do is the CPU's
    friend bool operator==(const Options&, const Options&) = default;
  };
  // A graph as it was traced; its passes run for the devices on which it is placed.
  Executable(ir::Graph traced, const Engine& engine, Options options);
  // One that has been through the passes, on device 0 alone.
  Executable(ir::Graph passed, const Devices& devices, std::vector<int32_t> donations);

  void run(TensorRefs inputs, std::vector<TensorRef>& outputs) { bind(inputs)->run(inputs, outputs); }
  // The plan for these shapes and layouts. What somebody else holds is not overwritten, so which inputs those are is a part of it.
  std::shared_ptr<Bound> bind(TensorRefs inputs);
  // Where it is placed, for a call with these inputs if that decides.
  std::shared_ptr<const Placed> placed(TensorRefs inputs);
  const ir::Graph& graph() const;  // after passes; as it was traced where its first call decides
  Estimate explain() const;        // of the call that was planned last; UserError when there is none
  double run_seconds() const;      // of its plan, likewise (Estimate::run_seconds)
  size_t plan_count() const;
  // Of each device whose limit some plan has to do something for: the report of the plan that takes most without a limit.
  std::vector<plan::BudgetReport> budgets() const;
  void drop_plans();

 private:
  struct Wanted;
  const Devices& devices() const;
  ToPlace to_place(TensorRefs inputs) const;
  plan::Request request_for(const ToPlace& call, const Placed& where) const;
  ToPlace last_call() const;
  std::shared_ptr<const Placed> placed_now() const;
  std::shared_ptr<Bound> find(const Wanted& wanted);
  void improve(std::shared_ptr<Bound>& bound) const;
  std::shared_ptr<Bound> make(const Wanted& wanted, const std::shared_ptr<const Placed>& where) const;

  const ir::Graph traced_;
  const Engine* const engine_;  // null: it was passed already
  const Devices* const only_;   // then
  const Options options_;
  std::vector<ir::TensorType> input_types_;
  std::mutex planning_;       // held while a plan is made
  mutable std::mutex mutex_;  // of what follows, held for a moment only
  std::shared_ptr<const Placed> placed_;
  mutable std::unique_ptr<ToPlace> last_;  // what was planned for last
  LruCache<std::shared_ptr<Bound>> bound_;
};

class Engine {
 public:
  // Of one device, and the CPU beside it where that has memory of its own.
  explicit Engine(device::Device& device) : Engine(std::vector{&device}) {}
  // `preferred`: has what nobody asked a device for; kAny: where it costs least.
  explicit Engine(std::vector<device::Device*> all, int32_t preferred = 0);
  device::Device& device() const { return devices().at(size_t{0}); }
  Memory& memory() const { return *devices().memories[0]; }
  const Devices& devices() const { return *devices_.load(std::memory_order_acquire); }
  device::BufferRef allocate(size_t bytes) const { return allocate(bytes, devices().for_new(kAny)); }
  device::BufferRef allocate(size_t bytes, int32_t device) const {
    return devices().memories[static_cast<size_t>(device)]->allocate(bytes);
  }
  // More devices, which get the next numbers. Those it has already stay as they are.
  void add(const std::vector<device::Device*>& more);
  void prefer(int32_t device);
  // Whether what a device that was asked for cannot do is done by the CPU.
  bool is_soft() const { return is_soft_.load(std::memory_order_relaxed); }
  void set_soft(bool soft);
  // The tensor where it belongs to that device: itself, or a copy.
  TensorRef at(const TensorRef& t, int32_t device) const;

  // Passes, then an executable. The same graph gives the same executable (kept by structure).
  std::shared_ptr<Executable> compile(const ir::Graph& graph, const std::vector<int32_t>& donations = {},
                                      Precision precision = Precision::Float32, std::vector<bool> is_state = {});
  // One op on tensors whose types are already final: a one-node graph, compiled once for each signature. `wish`: the device that was asked
  // for; without one it is computed where its operands lie.
  void eager(const ir::OpDef& op, const ir::Attrs& attrs, TensorRefs inputs, std::vector<TensorRef>& outputs, int32_t wish = kAny);

  // Gives back all memory that is kept for later: spare arenas, plans, compiled graphs, eager ops. What is in use stays.
  void trim();
  // How often any engine was trimmed: who keeps compiled things elsewhere drops them when it has changed.
  static uint64_t trim_count() { return trims.load(std::memory_order_relaxed); }

 private:
  struct EagerEntry;
  struct Front;
  std::shared_ptr<EagerEntry> eager_entry(size_t hash, const ir::OpDef& op, const ir::Attrs& attrs, TensorRefs inputs, int32_t wish);
  int32_t with_operands(TensorRefs inputs, int32_t wish) const;
  Memory& add_memory(device::Device& device, Memory::Kind kind);
  void publish(Devices next);
  void forget();  // what was made for other devices

  static std::atomic<uint64_t> trims;
  const uint64_t serial_;  // tells engines apart in the threads' own caches
  std::atomic<const Devices*> devices_{nullptr};
  std::atomic<bool> is_soft_{true};
  std::mutex growing_;                                 // of the two that follow
  std::vector<std::unique_ptr<const Devices>> lists_;  // all there ever were
  std::vector<std::unique_ptr<Memory>> memories_;
  std::mutex mutex_;
  struct Compiled {
    ir::Graph graph;
    Executable::Options options;
    std::shared_ptr<Executable> executable;
  };
  LruCache<Compiled> compiled_;
  LruCache<std::shared_ptr<EagerEntry>> eager_;
  std::vector<std::weak_ptr<Executable>> executables_;  // all that live, for their plans
};

// The engine of this process, over the CPU, the device that TANDEM_DEVICE names, and every GPU once somebody may want one; made on first
// use.
Engine& default_engine();
bool has_default_engine();  // whether it was made already
// Has looked for all devices of this machine, which loads drivers.
Engine& engine_with_all_devices();
// Only these, and the default device, will be found. UserError when the engine was made already.
void show_devices_only(std::vector<std::string> names);
std::optional<std::vector<std::string>> shown_devices();  // what was given; nothing: all are
// From now on each plan that is made says on stderr which op runs where.
void log_placement(bool on);
// TensorFlow's name: "/job:localhost/replica:0/task:0/device:GPU:0"; devices with memory of their own count as GPUs, in order.
std::string tensorflow_name(const Devices& devices, int32_t device);

}  // namespace tandem::engine
