// The only composer: compile(graph, device) -> Executable, and the cache that makes an eager op a one-node graph through the same path.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <tandem/precision.hpp>

#include "base/lru_cache.hpp"
#include "engine/memory.hpp"
#include "exec/run.hpp"
#include "ir/graph.hpp"
#include "plan/plan.hpp"

namespace tandem::engine {

// A tensor as the engine takes it: bytes on a device and how they lie. `offset` is in bytes from the buffer's start.
struct TensorRef {
  device::BufferRef buffer;
  codegen::Operand layout;
  size_t offset = 0;
  void* data() const { return static_cast<char*>(buffer->data()) + offset; }
};

// Inputs are passed by address: copying a TensorRef touches a shared counter, which an eager op cannot afford.
using TensorRefs = std::span<const TensorRef* const>;

// Of types, extents and strides. Every eager op asks for it.
inline size_t layouts_hash(size_t h, TensorRefs inputs) {
  for (const TensorRef* t : inputs) {
    const codegen::Operand& o = t->layout;
    h = ir::hash_combine(h, static_cast<size_t>(o.dtype) << 8 | o.shape.size());
    for (size_t i = 0; i < o.shape.size(); ++i)
      h = ir::hash_combine(ir::hash_combine(h, static_cast<size_t>(o.shape[i])), static_cast<size_t>(o.strides[i]));
  }
  return h;
}

class Bound;

// The devices that an engine's plans are for, by number: 0 is its own, and where that has memory of its own, 1 is the CPU, which does what
// the other cannot.
struct Devices {
  std::vector<Memory*> memories;
  Memory* pinned = nullptr;  // host memory that copies of device 0 reach
  bool finds_least = true;   // a refusal says the smallest limit that works, for which plans are made
  int64_t plan_effort = -1;  // steps of search for a plan within a limit; below 0: what TANDEM_PLAN_EFFORT says
  size_t count() const { return memories.size(); }
  device::Device& at(size_t i) const { return memories[i]->device(); }
  int32_t number_of(const device::Buffer& buffer) const;  // UserError when it is on none of them
  // Whether the plan is for inputs that lie as these do. Every eager op asks. What waits on the host counts as on its device: a run
  // brings it where the plan wants it.
  bool match(const Bound& bound, TensorRefs inputs) const;
};

// A plan for these devices and the programs of its kernels: kernels are made first, since where things lie depends on what they need.
struct Planned {
  plan::Plan plan;
  std::vector<std::shared_ptr<const device::Program>> programs;
  std::vector<int32_t> homes;   // one an input: the device it belongs to. Where the plan has another one, it waits on the host for good
  size_t pinned_bytes = 0;      // of the host's memory that copies reach: what waits there, and the plan's own
  size_t state_bytes = 0;       // of inputs that wait there
  int64_t updates_on_host = 0;  // nodes that are computed there because of it
  std::vector<double> seconds;  // one a kernel, by the cost model; where a device has a limit or only keeps time
};
Planned planned(plan::Request request, const Devices& devices);

// One plan, ready to run any number of times, also from several threads at once.
class Bound {
 public:
  Bound(Planned planned, std::vector<int32_t> donations, const Devices& devices);
  const plan::Plan& plan() const { return plan_; }
  // `outputs` is replaced. An output that takes an input's place is written there: nobody else may hold that buffer.
  void run(TensorRefs inputs, std::vector<TensorRef>& outputs);
  // For which donations it was planned: those of inputs that nobody else held.
  const std::vector<int32_t> donations;
  const std::vector<int32_t> homes;  // Planned::homes

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

inline bool Devices::match(const Bound& bound, TensorRefs inputs) const {
  const plan::Plan& p = bound.plan();
  if (p.inputs.size() != inputs.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const codegen::Operand &wanted = p.inputs[i], &given = inputs[i]->layout;
    if (wanted.dtype != given.dtype || !(wanted.shape == given.shape) || !(wanted.strides == given.strides)) return false;
    if (count() > 1 && &at(static_cast<size_t>(bound.homes[i])) != &inputs[i]->buffer->home()) return false;
  }
  return true;
}

// A compiled graph. Symbols are bound by the inputs' shapes at each call; each binding is planned once, and again when it was not used for
// so long that its plan was dropped.
class Executable {
 public:
  Executable(ir::Graph graph, const Devices& devices, std::vector<int32_t> donations);
  void run(TensorRefs inputs, std::vector<TensorRef>& outputs) { bind(inputs)->run(inputs, outputs); }
  // The plan for these shapes and layouts. What somebody else holds is not overwritten, so which inputs those are is a part of it.
  std::shared_ptr<Bound> bind(TensorRefs inputs);
  const ir::Graph& graph() const { return graph_; }  // after passes
  size_t plan_count() const;
  std::string budget_summary() const;  // of the plan that was used last (plan::summary); empty when it needs nothing special
  void drop_plans();

 private:
  struct Wanted;
  std::shared_ptr<Bound> find(const Wanted& wanted);
  std::shared_ptr<Bound> make(const Wanted& wanted) const;

  ir::Graph graph_;
  const Devices& devices_;
  std::vector<int32_t> donations_;
  std::vector<ir::TensorType> input_types_;
  std::mutex planning_;       // held while a plan is made
  mutable std::mutex mutex_;  // of bound_, held for a moment only
  LruCache<std::shared_ptr<Bound>> bound_;
};

class Engine {
 public:
  explicit Engine(device::Device& device);
  device::Device& device() { return memory_.device(); }
  Memory& memory() { return memory_; }
  const Devices& devices() const { return devices_; }
  device::BufferRef allocate(size_t bytes) { return memory_.allocate(bytes); }

  // Passes, then an executable. The same graph gives the same executable (kept by structure).
  std::shared_ptr<Executable> compile(const ir::Graph& graph, const std::vector<int32_t>& donations = {},
                                      Precision precision = Precision::Float32);
  // One op on tensors whose types are already final: a one-node graph, compiled once for each signature.
  void eager(const ir::OpDef& op, const ir::Attrs& attrs, TensorRefs inputs, std::vector<TensorRef>& outputs);

  // Gives back all memory that is kept for later: spare arenas, plans, compiled graphs, eager ops. What is in use stays.
  void trim();
  // How often any engine was trimmed: who keeps compiled things elsewhere drops them when it has changed.
  static uint64_t trim_count() { return trims.load(std::memory_order_relaxed); }

 private:
  ir::Graph passed(const ir::Graph& graph, Precision precision) const;  // through the pipeline, for this device
  struct EagerEntry;
  struct Front;
  std::shared_ptr<EagerEntry> eager_entry(size_t hash, const ir::OpDef& op, const ir::Attrs& attrs, TensorRefs inputs);

  static std::atomic<uint64_t> trims;
  const uint64_t serial_;  // tells engines apart in the threads' own caches
  Memory memory_;
  std::unique_ptr<Memory> host_memory_, pinned_;  // where the device has memory of its own
  Devices devices_;
  std::mutex mutex_;
  struct Compiled {
    ir::Graph graph;
    std::vector<int32_t> donations;
    Precision precision;
    std::shared_ptr<Executable> executable;
  };
  LruCache<Compiled> compiled_;
  LruCache<std::shared_ptr<EagerEntry>> eager_;
  std::vector<std::weak_ptr<Executable>> executables_;  // all that live, for their plans
};

// The default engine of this process, on the device that TANDEM_DEVICE names; made on first use.
Engine& default_engine();

}  // namespace tandem::engine
