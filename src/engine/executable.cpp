#include <algorithm>
#include <optional>
#include <variant>

#include "base/env.hpp"
#include "base/log.hpp"
#include "base/thread_kept.hpp"
#include "engine/engine.hpp"
#include "engine/within_budget.hpp"
#include "profile/recorder.hpp"

namespace tandem::engine {
namespace {

// Of one executable. A step takes a few hundred bytes, so this is some tens of megabytes at the most.
constexpr size_t kMostPlans = 256, kMostSteps = size_t{1} << 16;
constexpr size_t kMostDevices = 2;  // see Devices

bool verify_plans() {
#ifdef NDEBUG
  return env::get_flag("TANDEM_VERIFY");
#else
  return true;
#endif
}

// The thread's memory for pointers. Taken out while it is used: a host call may run another graph inside this one.
class ManyPointers {
 public:
  explicit ManyPointers(size_t n) {
    if (auto* kept = thread_kept<std::vector<void*>, Bound>()) std::swap(pointers_, *kept);
    if (pointers_.size() < n) pointers_.resize(n);
  }
  ~ManyPointers() {
    if (auto* kept = thread_kept<std::vector<void*>, Bound>(); kept && kept->size() < pointers_.size()) std::swap(pointers_, *kept);
  }
  ManyPointers(const ManyPointers&) = delete;
  ManyPointers& operator=(const ManyPointers&) = delete;
  void** data() { return pointers_.data(); }

 private:
  std::vector<void*> pointers_;
};

}  // namespace

int32_t Devices::number_of(const device::Buffer& buffer) const {
  if (count() == 1) return 0;  // the host's memory is one, whoever gave it
  for (size_t d = 0; d < count(); ++d)
    if (&at(d) == &buffer.home()) return static_cast<int32_t>(d);
  user_error("call: a tensor is on device ", buffer.home().info().name, ", the engine's devices are ", at(0).info().name, " and ",
             at(1).info().name);
}

// Of one run: plans with several streams have events, which belong to one run at a time.
class Bound::EventsOfRun {
 public:
  explicit EventsOfRun(Bound& b) : bound_(b) {
    if (!b.several_streams_) return;
    {
      std::lock_guard lock(b.mutex_);
      if (!b.events_.empty()) {
        own_ = std::move(b.events_.back());
        b.events_.pop_back();
      }
    }
    if (!own_) own_ = std::make_unique<exec::Events>(b.plan_, b.device_list_);
  }
  ~EventsOfRun() {
    if (!own_) return;
    std::lock_guard lock(bound_.mutex_);
    bound_.events_.push_back(std::move(own_));
  }
  EventsOfRun(const EventsOfRun&) = delete;
  EventsOfRun& operator=(const EventsOfRun&) = delete;
  exec::Events& get() { return own_ ? *own_ : none(); }

 private:
  static exec::Events& none() {
    static exec::Events& events = *new exec::Events(plan::Plan{}, {});
    return events;
  }
  Bound& bound_;
  std::unique_ptr<exec::Events> own_;
};

Bound::Bound(Planned planned, std::vector<int32_t> donations, const Devices& devices)
    : donations(std::move(donations)),
      homes(std::move(planned.homes)),
      plan_(std::move(planned.plan)),
      devices_(devices),
      programs_(std::move(planned.programs)) {
  for (size_t d = 0; d < devices.count(); ++d) device_list_.push_back(&devices.at(d));
  for (const codegen::Operand& o : plan_.outputs) output_bytes_.push_back(byte_size(o.shape, o.dtype));
  for (const plan::Constant& c : plan_.constants) {
    Memory& memory = *devices.memories[static_cast<size_t>(c.device)];
    constants_.push_back(memory.allocate_fixed(c.literal.bytes->size()));
    constant_pointers_.push_back(constants_.back()->data());
    memory.device().stream(device::StreamKind::Compute).upload(constants_.back()->data(), c.literal.bytes->data(), c.literal.bytes->size());
  }
  is_asynchronous_ = !devices.at(0).info().host_memory && devices.at(0).info().executes;
  for (const plan::Step& s : plan_.steps) several_streams_ |= s.is_awaited || !s.waits.empty() || s.stream != device::StreamKind::Compute;
}

// Each input to where the plan wants it. What goes comes first: it makes room.
void Bound::bring(TensorRefs inputs, Residents::Pins& pins) const {
  for (const TensorRef* t : inputs) pins.add(*t->buffer);
  for (const bool to_host : {true, false})
    for (size_t i = 0; i < inputs.size(); ++i)
      if ((plan_.input_devices[i] != homes[i]) == to_host)
        pins.put(*inputs[i]->buffer, to_host,
                 [&](size_t bytes) { return devices_.memories[static_cast<size_t>(homes[i])]->allocate_fixed(bytes); });
}

void Bound::run(TensorRefs inputs, std::vector<TensorRef>& outputs) {
  Residents::Pins pins;
  if (devices_.count() > 1) bring(inputs, pins);
  // Few tensors live on the stack: this is the path of every eager op. For more of them the thread keeps memory: a step allocates nothing.
  constexpr size_t kFew = 16;
  void* few[2 * kFew];
  const size_t n = inputs.size(), m = plan_.outputs.size();
  std::optional<ManyPointers> many;
  if (n + m > 2 * kFew) many.emplace(n + m);
  void** pointers = many ? many->data() : few;
  void** results = pointers + n;
  for (size_t i = 0; i < n; ++i) {
    pointers[i] = inputs[i]->data();
    if (inputs[i]->buffer->run() != 0) device::check_not_lost(*inputs[i]->buffer, "call");
  }

  outputs.clear();
  outputs.reserve(m);
  for (size_t k = 0; k < m; ++k) {
    const plan::OutputAlias& alias = plan_.aliases[k];
    TensorRef& out = outputs.emplace_back();
    out.layout = plan_.outputs[k];
    if (alias.input >= 0) {
      out.buffer = inputs[static_cast<size_t>(alias.input)]->buffer;
      out.offset = inputs[static_cast<size_t>(alias.input)]->offset + alias.offset;
    } else if (alias.constant >= 0) {
      out.buffer = constants_[static_cast<size_t>(alias.constant)];
      out.offset = alias.offset;
    } else if (const int32_t j = plan_.donated[k]; j >= 0) {
      out.buffer = inputs[static_cast<size_t>(j)]->buffer;
      out.offset = inputs[static_cast<size_t>(j)]->offset;
    } else {
      out.buffer = devices_.memories[static_cast<size_t>(plan_.output_devices[k])]->allocate(output_bytes_[k]);
      if (devices_.count() > 1) pins.add(*out.buffer);
    }
    results[k] = out.data();
  }
  // One a device at the most.
  std::optional<Memory::Arena> arenas[kMostDevices];
  void* arena_pointers[kMostDevices];
  for (size_t a = 0; a < plan_.arenas.size(); ++a) {
    const plan::Arena& arena = plan_.arenas[a];
    arenas[a].emplace(arena.pinned_by >= 0 ? *devices_.pinned : *devices_.memories[static_cast<size_t>(arena.device)], arena.bytes);
    arena_pointers[a] = arenas[a]->data();
  }
  EventsOfRun events(*this);
  size_t reached = 0;
  try {
    exec::run(plan_, {device_list_, programs_, constant_pointers_}, {pointers, results, arena_pointers}, events.get(), reached);
  } catch (const std::exception& e) {
    mark_lost(reached, outputs, e);
    throw;
  }
  if (is_asynchronous_) number_results(outputs);
}

// A step that failed may have begun to write over variables.
void Bound::mark_lost(size_t reached, const std::vector<TensorRef>& outputs, const std::exception& why) {
  std::vector<bool> is_begun(plan_.inputs.size());
  for (size_t i = 0; i < reached; ++i) {
    const plan::Step& s = plan_.steps[i];
    if (i + 1 == reached && s.may_fail) continue;  // a host routine that refuses has not written yet
    for (const plan::Effect& w : s.writes())
      if (w.slot.base == plan::Slot::Base::Input) is_begun[static_cast<size_t>(w.slot.index)] = true;
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    const int32_t j = plan_.donated[k];
    if (j < 0 || !is_begun[static_cast<size_t>(j)]) continue;
    device::Buffer& buffer = *outputs[k].buffer;
    buffer.set_run(buffer.home().losses().fail(why.what()));
  }
}

// Their work may fail when nobody looks.
void Bound::number_results(const std::vector<TensorRef>& outputs) {
  const uint32_t run = devices_.at(0).losses().begin_run();
  for (size_t k = 0; k < outputs.size(); ++k)
    if (plan_.aliases[k].input < 0 && plan_.aliases[k].constant < 0) outputs[k].buffer->set_run(run);
}

Executable::Executable(ir::Graph graph, const Devices& devices, std::vector<int32_t> donations)
    : graph_(std::move(graph)),
      devices_(devices),
      donations_(std::move(donations)),
      input_types_(graph_.input_types()),
      bound_({kMostPlans, kMostSteps}) {}

struct Executable::Wanted {
  TensorRefs inputs;
  const std::vector<int32_t>& donations;
  const Devices& devices;
  size_t hash = 0;
  bool is(const Bound& b) const { return b.donations == donations && devices.match(b, inputs); }
};

std::shared_ptr<Bound> Executable::find(const Wanted& wanted) {
  std::lock_guard lock(mutex_);
  const auto* found = bound_.find(wanted.hash, [&](const std::shared_ptr<Bound>& b) { return wanted.is(*b); });
  return found ? *found : nullptr;
}

std::shared_ptr<Bound> Executable::bind(TensorRefs inputs) {
  if (inputs.size() != input_types_.size()) user_error("call: ", inputs.size(), " tensors for ", input_types_.size(), " inputs");
  const auto is_held = [&](int32_t j) { return j >= 0 && !inputs[static_cast<size_t>(j)]->buffer->unique(); };
  std::vector<int32_t> without_held;
  if (std::ranges::any_of(donations_, is_held)) {  // somebody still looks at an old value
    without_held = donations_;
    std::ranges::replace_if(without_held, is_held, -1);
  }
  Wanted wanted{inputs, without_held.empty() ? donations_ : without_held, devices_};
  {
    std::lock_guard lock(mutex_);
    if (const auto* last = bound_.newest(); last && wanted.is(**last)) return *last;
  }
  wanted.hash = layouts_hash(inputs.size(), inputs);
  for (const int32_t j : without_held) wanted.hash = ir::hash_combine(wanted.hash, static_cast<size_t>(j));
  if (auto found = find(wanted)) return found;
  std::lock_guard planning(planning_);
  if (auto found = find(wanted)) return found;  // another thread has made it meanwhile
  auto bound = make(wanted);
  std::lock_guard lock(mutex_);
  return bound_.add(wanted.hash, bound->plan().steps.size() + 1, bound);
}

namespace {

// Whether a device can do a node, with everything in its bodies.
bool can(const device::Device& device, const ir::Graph& g, const ir::Node& n) {
  if (n.op->name == "input" || n.op->name == "constant") return true;
  for (const auto& [key, value] : n.attrs.entries())
    if (const auto* graphs = std::get_if<ir::Graphs>(&value))
      return std::ranges::all_of(*graphs, [&](const ir::GraphRef& body) {
        return std::ranges::all_of(body->nodes, [&](const ir::Node& inner) { return can(device, *body, inner); });
      });
  std::vector<ir::TensorType> in;
  for (ir::Value v : n.inputs) in.push_back(g.type(v));
  return device.can({*n.op, in, n.attrs});
}

plan::KernelFacts facts_of(const codegen::Kernel& kernel, const device::Program& program) {
  plan::KernelFacts facts{
      .scratch_bytes = program.scratch_bytes(), .in_place = kernel.replaceable, .name = std::string(program.kernel_name())};
  for (size_t i = 0; i < facts.in_place.size(); ++i) facts.in_place[i] = facts.in_place[i] || program.is_replaceable(i);
  facts.cost = codegen::cost_of(kernel);
  return facts;
}

}  // namespace

Planned planned(plan::Request request, const Devices& devices) {
  std::vector<plan::DeviceFacts> device_facts;
  for (size_t d = 0; d < devices.count(); ++d) {
    const device::DeviceInfo& info = devices.at(d).info();
    request.host_memory.push_back(info.host_memory);
    plan::DeviceFacts facts{.host_memory = info.host_memory, .gap_bytes = info.gap_bytes, .launch_seconds = info.rates.launch_seconds};
    if (!info.host_memory) facts.limit_bytes = devices.at(d).memory().limit();
    if (info.host_memory && devices.pinned) facts.limit_bytes = devices.pinned->device().pinned_memory().limit();
    if (!info.host_memory) facts.link_bytes_per_second = link_rate(devices.at(d));
    device_facts.push_back(facts);
  }
  const bool is_timed = !devices.at(0).info().executes ||
                        std::ranges::any_of(device_facts, [](const plan::DeviceFacts& f) { return f.limit_bytes > 0; });
  Planner planner;
  // Kernels first, since where things lie depends on what they need.
  planner.plan = [&](const plan::Request& r, std::span<const plan::DeviceFacts> facts, const plan::PlanOptions& options) {
    plan::Tables tables;
    plan::Units units = plan::lower(r, tables);
    Planned made;
    std::vector<plan::KernelFacts> kernels;
    for (const plan::Tables::Entry& e : tables.kernels) {
      device::Device& device = devices.at(static_cast<size_t>(e.device));
      made.programs.push_back(device.load(e.kernel));
      kernels.push_back(facts_of(e.kernel, *made.programs.back()));
      if (is_timed) made.seconds.push_back(kernels.back().seconds = predicted_seconds(device, e.kernel));
    }
    made.plan = plan::make_plan(std::move(units), std::move(tables), kernels, facts, options);
    return made;
  };
  planner.device_of = [&](const ir::Graph& g, const ir::Node& n) { return devices.count() < 2 || can(devices.at(0), g, n) ? 0 : 1; };
  if (devices.count() > 1) request.device_of = [&](const ir::Node& n) { return planner.device_of(request.graph, n); };
  Planned made = planned_within(request, devices, std::move(device_facts), planner);
  made.homes = request.input_devices;
  return made;
}

std::shared_ptr<Bound> Executable::make(const Wanted& wanted) const {
  const profile::Span compiling(profile::Kind::Compile, "kernels and plan");
  plan::Request request{graph_};
  request.donations = wanted.donations;
  for (size_t i = 0; i < wanted.inputs.size(); ++i) {
    const codegen::Operand& o = wanted.inputs[i]->layout;
    if (o.dtype != input_types_[i].dtype) user_error("call: input ", i, " is ", name(o.dtype), ", the graph wants ", input_types_[i]);
    unify(input_types_[i].dims, o.shape, request.bindings, cat("input ", i));
    request.inputs.push_back(o);
    request.input_devices.push_back(devices_.number_of(*wanted.inputs[i]->buffer));
  }
  Planned made = planned(std::move(request), devices_);
  if (verify_plans()) plan::verify(made.plan);
  if (log::enabled(log::Topic::Plan)) log::write(log::Topic::Plan, made.plan.str());
  return std::make_shared<Bound>(std::move(made), wanted.donations, devices_);
}

size_t Executable::plan_count() const {
  std::lock_guard lock(mutex_);
  return bound_.size();
}

std::string Executable::budget_summary() const {
  std::lock_guard lock(mutex_);
  const auto* last = bound_.newest();
  std::string text;
  if (last)
    for (const plan::BudgetReport& r : (*last)->plan().budgets)
      text += cat(text.empty() ? "" : "\n", plan::summary(r, devices_.at(static_cast<size_t>(r.device)).info().name));
  return text;
}

void Executable::drop_plans() {
  std::lock_guard lock(mutex_);
  bound_.clear();
}

}  // namespace tandem::engine
