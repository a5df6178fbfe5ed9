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

// One plan, ready to run any number of times, also from several threads at once.
class Bound {
 public:
  Bound(plan::Plan plan, Memory& memory);
  const plan::Plan& plan() const { return plan_; }
  // `outputs` is replaced. An output that takes an input's place is written there when nobody else holds that buffer, else into a copy.
  void run(TensorRefs inputs, std::vector<TensorRef>& outputs);

 private:
  plan::Plan plan_;
  Memory& memory_;
  std::unique_ptr<device::Stream> stream_;
  std::vector<size_t> output_bytes_;
};

// A compiled graph. Symbols are bound by the inputs' shapes at each call; each binding is planned once, and again when it was not used for
// so long that its plan was dropped.
class Executable {
 public:
  Executable(ir::Graph graph, Memory& memory, std::vector<int32_t> donations);
  void run(TensorRefs inputs, std::vector<TensorRef>& outputs) { bind(inputs)->run(inputs, outputs); }
  std::shared_ptr<Bound> bind(TensorRefs inputs);    // the plan for these shapes and layouts
  const ir::Graph& graph() const { return graph_; }  // after passes
  size_t plan_count() const;
  void drop_plans();

 private:
  std::shared_ptr<Bound> find(size_t hash, TensorRefs inputs);
  plan::Plan planned(TensorRefs inputs) const;

  ir::Graph graph_;
  Memory& memory_;
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
