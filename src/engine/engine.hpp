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

// One plan, ready to run any number of times, also from several threads at once.
class Bound {
 public:
  Bound(plan::Plan plan, device::Device& device);
  ~Bound();
  const plan::Plan& plan() const { return plan_; }
  // `outputs` is replaced. An output that takes an input's place is written there when nobody else holds that buffer, else into a copy.
  void run(TensorRefs inputs, std::vector<TensorRef>& outputs);

 private:
  plan::Plan plan_;
  device::Device& device_;
  std::unique_ptr<device::Stream> stream_;
  std::vector<size_t> output_bytes_;
  std::atomic<device::Buffer*> spare_arena_{nullptr};  // kept between runs; a second run at the same time makes its own
};

// A compiled graph. Symbols are bound by the inputs' shapes at each call; each binding is planned once.
class Executable {
 public:
  Executable(ir::Graph graph, device::Device& device, std::vector<int32_t> donations);
  void run(TensorRefs inputs, std::vector<TensorRef>& outputs);
  Bound& bind(TensorRefs inputs);                    // the plan for these shapes and layouts
  const ir::Graph& graph() const { return graph_; }  // after passes
  size_t plan_count() const;

 private:
  ir::Graph graph_;
  device::Device& device_;
  std::vector<int32_t> donations_;
  std::vector<ir::TensorType> input_types_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Bound>> bound_;
  std::atomic<Bound*> last_{nullptr};
};

class Engine {
 public:
  explicit Engine(device::Device& device);
  device::Device& device() { return device_; }

  // Passes, then an executable. The same graph gives the same executable (kept by structure).
  std::shared_ptr<Executable> compile(const ir::Graph& graph, const std::vector<int32_t>& donations = {},
                                      Precision precision = Precision::Float32);
  // One op on tensors whose types are already final: a one-node graph, compiled once for each signature.
  void eager(const ir::OpDef& op, const ir::Attrs& attrs, TensorRefs inputs, std::vector<TensorRef>& outputs);

  struct Counters {
    uint64_t compiled = 0, eager_entries = 0;
  };
  Counters counters() const;

 private:
  ir::Graph passed(const ir::Graph& graph, Precision precision) const;  // through the pipeline, for this device
  struct EagerEntry;
  std::shared_ptr<EagerEntry> eager_entry(size_t hash, const ir::OpDef& op, const ir::Attrs& attrs, TensorRefs inputs);

  device::Device& device_;
  const uint64_t serial_;  // tells engines apart in the threads' own caches
  mutable std::mutex mutex_;
  struct Compiled {
    ir::Graph graph;
    std::vector<int32_t> donations;
    Precision precision;
    std::shared_ptr<Executable> executable;
  };
  std::unordered_multimap<size_t, Compiled> compiled_;
  std::unordered_multimap<size_t, std::shared_ptr<EagerEntry>> eager_;
};

// The default engine of this process, on the device that TANDEM_DEVICE names; made on first use.
Engine& default_engine();

}  // namespace tandem::engine
