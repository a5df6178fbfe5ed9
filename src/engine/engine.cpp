#include "engine/engine.hpp"

#include "base/env.hpp"
#include "base/thread_kept.hpp"
#include "ops/table.hpp"
#include "passes/pipeline.hpp"
#include "profile/profile.hpp"
#include "profile/recorder.hpp"

namespace tandem::engine {
namespace {

// A program that never repeats a shape must not fill the memory. An eager op takes some ten kilobytes, a node of a graph about one.
constexpr LruLimits kEagerLimits{2048, 2048};
constexpr LruLimits kCompiledLimits{256, size_t{1} << 18};
constexpr size_t kFrontEntries = 256;  // power of two

size_t signature_hash(const ir::OpDef& op, const ir::Attrs& attrs, TensorRefs inputs) {
  size_t h = static_cast<size_t>(op.id) + 1;
  if (!attrs.entries().empty()) h = ir::hash_combine(h, attrs.hash());
  return layouts_hash(h, inputs);
}

std::atomic<uint64_t> engines{0};

}  // namespace

std::atomic<uint64_t> Engine::trims{0};

struct Engine::EagerEntry {
  uint64_t engine;
  const ir::OpDef* op;
  ir::Attrs attrs;
  std::shared_ptr<Bound> bound;

  bool matches(uint64_t serial, const Devices& devices, const ir::OpDef& o, const ir::Attrs& a, TensorRefs in) const {
    return engine == serial && op == &o && devices.match(*bound, in) && attrs == a;
  }
};

// What this thread did lately: no lock on the way of a repeated op.
struct Engine::Front {
  struct Slot {
    size_t hash = 0;
    std::shared_ptr<EagerEntry> entry;
  };
  Slot slots[kFrontEntries];
  uint64_t trims = 0;

  void refresh() {
    if (trims == trim_count()) [[likely]]
      return;
    trims = trim_count();
    for (Slot& s : slots) s = {};
  }
};

Engine::Engine(device::Device& device)
    : serial_(++engines), memory_(device, [this] { trim(); }), compiled_(kCompiledLimits), eager_(kEagerLimits) {
  ops::table();
  devices_.memories.push_back(&memory_);
  if (device.info().host_memory || !device.info().executes) return;
  const auto give_back = [this] { trim(); };
  host_memory_ = std::make_unique<Memory>(device::get("cpu"), give_back);
  pinned_ = std::make_unique<Memory>(device, give_back, Memory::Kind::Pinned);
  memory_.let_spill_to(host_memory_->device());
  devices_.memories.push_back(host_memory_.get());
  devices_.pinned = pinned_.get();
}

ir::Graph Engine::passed(const ir::Graph& graph, Precision precision) const {
  const profile::Span compiling(profile::Kind::Compile, "passes");
  return passes::run_pipeline(ops::table(), graph, [this](const ir::OpCall& call) { return memory_.device().keeps(call); }, precision);
}

std::shared_ptr<Executable> Engine::compile(const ir::Graph& graph, const std::vector<int32_t>& donations, Precision precision) {
  const size_t h = hash(graph);
  {
    std::lock_guard lock(mutex_);
    const Compiled* found =
        compiled_.find(h, [&](const Compiled& c) { return c.donations == donations && c.precision == precision && c.graph == graph; });
    if (found) return found->executable;
  }
  auto made = std::make_shared<Executable>(passed(graph, precision), devices_, donations);
  const size_t weight = graph.nodes.size() + made->graph().nodes.size();
  const bool is_kept = !ir::calls_host(graph);  // each trace has functions of its own: it would never be asked for again
  std::lock_guard lock(mutex_);
  // Swept when it would grow: each sweep is paid for by the entries that came since.
  if (executables_.size() == executables_.capacity()) std::erase_if(executables_, [](const auto& e) { return e.expired(); });
  executables_.push_back(made);
  if (is_kept) compiled_.add(h, weight, {graph, donations, precision, made});
  return made;
}

std::shared_ptr<Engine::EagerEntry> Engine::eager_entry(size_t h, const ir::OpDef& op, const ir::Attrs& attrs, TensorRefs inputs) {
  {
    std::lock_guard lock(mutex_);
    const auto* found =
        eager_.find(h, [&](const std::shared_ptr<EagerEntry>& e) { return e->matches(serial_, devices_, op, attrs, inputs); });
    if (found) return *found;
  }
  ir::Builder b(ops::table());
  std::vector<ir::Value> in;
  for (const TensorRef* t : inputs) in.push_back(b.input({t->layout.dtype, to_dims(t->layout.shape)}));
  const std::vector<ir::Value> out = b.node(op, in, attrs);
  auto entry = std::make_shared<EagerEntry>();
  entry->engine = serial_;
  entry->op = &op;
  entry->attrs = attrs;
  // Its shapes are fixed: of the executable only the one plan is needed.
  entry->bound = Executable(passed(b.finish(out, std::string(op.name)), Precision::Float32), devices_, {}).bind(inputs);
  std::lock_guard lock(mutex_);
  return eager_.add(h, 1, std::move(entry));
}

void Engine::eager(const ir::OpDef& op, const ir::Attrs& attrs, TensorRefs inputs, std::vector<TensorRef>& outputs) {
  const size_t h = signature_hash(op, attrs, inputs);
  Front* front = thread_kept<Front>();
  if (!front) return eager_entry(h, op, attrs, inputs)->bound->run(inputs, outputs);
  front->refresh();
  Front::Slot& f = front->slots[h & (kFrontEntries - 1)];
  if (f.hash != h || !f.entry || !f.entry->matches(serial_, devices_, op, attrs, inputs)) {
    f.entry = eager_entry(h, op, attrs, inputs);
    f.hash = h;
  }
  f.entry->bound->run(inputs, outputs);
}

void Engine::trim() {
  ++trims;
  std::vector<std::weak_ptr<Executable>> executables;
  {
    std::lock_guard lock(mutex_);
    eager_.clear();
    compiled_.clear();
    std::erase_if(executables_, [](const auto& e) { return e.expired(); });
    executables = executables_;
  }
  for (const auto& weak : executables)
    if (const auto e = weak.lock()) e->drop_plans();
  for (Memory* m : {&memory_, host_memory_.get(), pinned_.get()})
    if (m) m->drop_spares();
}

Engine& default_engine() {
  // Never destroyed: tensors in static storage may outlive any order of destruction.
  static Engine& engine = [&]() -> Engine& {
    auto& made = *new Engine(device::get(env::get("TANDEM_DEVICE")));
    profile::begin_as_environment_says();
    return made;
  }();
  return engine;
}

}  // namespace tandem::engine
