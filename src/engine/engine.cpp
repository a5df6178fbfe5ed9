#include "engine/engine.hpp"

#include "base/env.hpp"
#include "base/log.hpp"
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
  int32_t wish;
  std::shared_ptr<Bound> bound;

  bool matches(uint64_t serial, const Devices& devices, const ir::OpDef& o, const ir::Attrs& a, TensorRefs in, int32_t w) const {
    return engine == serial && op == &o && wish == w && bound->takes(devices, in) && attrs == a;
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

Engine::Engine(std::vector<device::Device*> all, int32_t preferred) : serial_(++engines), compiled_(kCompiledLimits), eager_(kEagerLimits) {
  ops::table();
  // What a device with memory of its own cannot do is the CPU's.
  const bool has_host = std::ranges::any_of(all, [](const device::Device* d) { return d->info().host_memory || !d->info().executes; });
  if (!has_host) all.push_back(&device::get("cpu"));
  Devices first;
  first.preferred = preferred;
  publish(std::move(first));
  add(all);
}

Memory& Engine::add_memory(device::Device& device, Memory::Kind kind) {
  return *memories_.emplace_back(std::make_unique<Memory>(device, [this] { trim(); }, kind));
}

void Engine::publish(Devices next) {
  devices_.store(lists_.emplace_back(std::make_unique<const Devices>(std::move(next))).get(), std::memory_order_release);
}

void Engine::add(const std::vector<device::Device*>& more) {
  std::lock_guard growing(growing_);
  Devices next = devices();
  for (device::Device* d : more) {
    if (next.find(*d) >= 0) continue;
    next.memories.push_back(&add_memory(*d, Memory::Kind::OfDevice));
    next.pinned.push_back(d->info().host_memory || !d->info().executes ? nullptr : &add_memory(*d, Memory::Kind::Pinned));
  }
  if (next.count() == devices().count()) return;
  while (static_cast<size_t>(next.host) + 1 < next.count() && !next.has_host_memory(next.host)) ++next.host;
  for (Memory* m : next.memories)
    if (next.pinned[static_cast<size_t>(next.find(m->device()))] && !m->residents()) m->let_spill_to(next.at(next.host));
  publish(std::move(next));
  forget();
}

void Engine::prefer(int32_t device) {
  std::lock_guard growing(growing_);
  Devices next = devices();
  if (next.preferred == device) return;
  next.preferred = device;
  publish(std::move(next));
  forget();
}

void Engine::set_soft(bool soft) {
  if (is_soft_.exchange(soft) != soft) forget();
}

void Engine::forget() {
  ++trims;
  std::lock_guard lock(mutex_);
  eager_.clear();
  compiled_.clear();
}

TensorRef Engine::at(const TensorRef& t, int32_t device) const {
  const Devices& all = devices();
  if (&t.buffer->home() == &all.at(device)) return t;
  // A plan that does nothing else: its copies are the ones that every plan has.
  ir::Builder b(ops::table());
  const ir::Value x = b.input({t.layout.dtype, to_dims(t.layout.shape)});
  const ir::Graph graph = b.finish({x}, "to");
  plan::Request request{graph};
  request.inputs = {t.layout};
  request.input_devices = {all.number_of(*t.buffer)};
  request.output_devices = {device};
  request.device_of = [device](const ir::Node&) { return device; };
  std::vector<TensorRef> out;
  const TensorRef* inputs[] = {&t};
  Bound(planned(std::move(request), all), {}, all).run(inputs, out);
  return out.front();
}

std::shared_ptr<Executable> Engine::compile(const ir::Graph& graph, const std::vector<int32_t>& donations, Precision precision,
                                            std::vector<bool> is_state) {
  const Executable::Options options{donations, precision, std::move(is_state), is_soft()};
  const size_t h = hash(graph);
  {
    std::lock_guard lock(mutex_);
    const Compiled* found = compiled_.find(h, [&](const Compiled& c) { return c.options == options && c.graph == graph; });
    if (found) return found->executable;
  }
  auto made = std::make_shared<Executable>(graph, *this, options);
  const size_t weight = graph.nodes.size() + made->graph().nodes.size();
  const bool is_kept = !ir::calls_host(graph);  // each trace has functions of its own: it would never be asked for again
  std::lock_guard lock(mutex_);
  // Swept when it would grow: each sweep is paid for by the entries that came since.
  if (executables_.size() == executables_.capacity()) std::erase_if(executables_, [](const auto& e) { return e.expired(); });
  executables_.push_back(made);
  if (is_kept) compiled_.add(h, weight, {graph, options, made});
  return made;
}

// An operand on a card pulls the op there, unless something else was asked for.
int32_t Engine::with_operands(TensorRefs inputs, int32_t wish) const {
  if (wish >= 0) return wish;
  const Devices& all = devices();
  for (const TensorRef* t : inputs)
    if (!t->buffer->home().info().host_memory) return all.find(t->buffer->home());
  return all.preferred;
}

std::shared_ptr<Engine::EagerEntry> Engine::eager_entry(size_t h, const ir::OpDef& op, const ir::Attrs& attrs, TensorRefs inputs,
                                                        int32_t wish) {
  {
    std::lock_guard lock(mutex_);
    const auto* found =
        eager_.find(h, [&](const std::shared_ptr<EagerEntry>& e) { return e->matches(serial_, devices(), op, attrs, inputs, wish); });
    if (found) return *found;
  }
  ir::Builder b(ops::table());
  std::vector<ir::Value> in;
  for (const TensorRef* t : inputs) in.push_back(b.input({t->layout.dtype, to_dims(t->layout.shape)}));
  if (devices().count() > 1) b.device = with_operands(inputs, wish);
  const std::vector<ir::Value> out = b.node(op, in, attrs);
  auto entry = std::make_shared<EagerEntry>();
  entry->engine = serial_;
  entry->op = &op;
  entry->attrs = attrs;
  entry->wish = wish;
  // Its shapes are fixed: of the executable only the one plan is needed.
  entry->bound = Executable(b.finish(out, std::string(op.name)), *this, {.soft = wish < 0 || is_soft()}).bind(inputs);
  std::lock_guard lock(mutex_);
  return eager_.add(h, 1, std::move(entry));
}

void Engine::eager(const ir::OpDef& op, const ir::Attrs& attrs, TensorRefs inputs, std::vector<TensorRef>& outputs, int32_t wish) {
  const Devices& all = devices();
  size_t h = signature_hash(op, attrs, inputs);
  if (all.count() > 1) {
    for (const TensorRef* t : inputs) h = ir::hash_combine(h, reinterpret_cast<size_t>(&t->buffer->home()));
    h = ir::hash_combine(h, static_cast<size_t>(wish + 1));
  } else {
    wish = kAny;
  }
  Front* front = thread_kept<Front>();
  if (!front) return eager_entry(h, op, attrs, inputs, wish)->bound->run(inputs, outputs);
  front->refresh();
  Front::Slot& f = front->slots[h & (kFrontEntries - 1)];
  if (f.hash != h || !f.entry || !f.entry->matches(serial_, all, op, attrs, inputs, wish)) {
    f.entry = eager_entry(h, op, attrs, inputs, wish);
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
  for (const auto* list : {&devices().memories, &devices().pinned})
    for (Memory* m : *list)
      if (m) m->drop_spares();
}

namespace {

std::atomic<bool> is_made{false};
// Empty: all of them.
std::optional<std::vector<std::string>>& visible() {
  static auto& names = *new std::optional<std::vector<std::string>>;
  return names;
}

// What a program may be given without naming it: one that cannot be made now is left out, and its name says why when it is asked for.
std::vector<device::Device*> ordinary_devices() {
  std::vector<device::Device*> all;
  for (const std::string& name : device::ordinary_names()) {
    const auto is_of = [&](const std::string& v) { return name == v || name.starts_with(v + ":"); };  // itself, or a part of it
    if (visible() && std::ranges::none_of(*visible(), is_of)) continue;
    try {
      all.push_back(&device::get(name));
    } catch (const Error& e) {
      log::line(log::Topic::Dispatch, e.what());
    }
  }
  return all;
}

enum class Placement : uint8_t { Cost, Tensorflow };
Placement placement_asked_for() {
  constexpr std::string_view kNames[] = {"cost", "tensorflow"};
  const std::vector<std::string> names = env::get_names("TANDEM_PLACEMENT", kNames);
  return !names.empty() && names.back() == "tensorflow" ? Placement::Tensorflow : Placement::Cost;
}

Engine& made() {
  is_made = true;
  const std::string name = env::get("TANDEM_DEVICE");
  Engine& engine = *new Engine(device::get(name.empty() ? "cpu" : name));
  if (!name.empty()) return engine;
  // Nobody says which: the cost decides, where there is a choice. Drivers are loaded only where a card may be there.
  engine.prefer(kAny);
  const bool first_card = placement_asked_for() == Placement::Tensorflow;
  if (first_card || !env::get("TANDEM_EMULATE_GPU").empty() || device::may_have_cards()) engine.add(ordinary_devices());
  const std::vector<int32_t> cards = engine.devices().accelerators();
  if (first_card && !cards.empty()) engine.prefer(cards.front());
  return engine;
}

}  // namespace

Engine& default_engine() {
  // Never destroyed: tensors in static storage may outlive any order of destruction.
  static Engine& engine = []() -> Engine& {
    Engine& first = made();
    profile::begin_as_environment_says();
    return first;
  }();
  return engine;
}

bool has_default_engine() { return is_made; }

void show_devices_only(std::vector<std::string> names) {
  if (is_made) user_error(ErrorCode::FailedPrecondition, "devices: which are visible must be said before the first is used");
  visible() = std::move(names);
}

std::optional<std::vector<std::string>> shown_devices() { return visible(); }

Engine& engine_with_all_devices() {
  static Engine& engine = []() -> Engine& {
    default_engine().add(ordinary_devices());
    return default_engine();
  }();
  return engine;
}

}  // namespace tandem::engine
