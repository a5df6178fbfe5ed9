// An executable bound to sizes: its plan, its programs and its memory, and a run of it.
#include <algorithm>
#include <optional>
#include <variant>

#include "base/env.hpp"
#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/thread_kept.hpp"
#include "engine/engine.hpp"
#include "engine/improvement.hpp"
#include "engine/placement_log.hpp"
#include "engine/within_budget.hpp"
#include "ir/verify.hpp"
#include "plan/simulate.hpp"
#include "profile/recorder.hpp"

namespace tandem::engine {
namespace {

// Of one executable. A step takes a few hundred bytes, so this is some tens of megabytes at the most.
constexpr size_t kMostPlans = 256, kMostSteps = size_t{1} << 16;
constexpr int64_t kMostBackgroundSeconds = 1'000'000;
constexpr size_t kFewArenas = 2;  // more of them take memory of their own

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

// The memory of one run: on the stack for all but plans over many devices.
class Arenas {
 public:
  Arenas(const plan::Plan& plan, const Devices& devices) {
    const size_t count = plan.arenas.size();
    if (count > kFewArenas) {
      many_ = std::make_unique<std::optional<Memory::Arena>[]>(count);
      many_pointers_ = std::make_unique<void*[]>(count);
    }
    try {
      take(plan, devices);
    } catch (const ResourceError&) {
      if (count < 2) throw;
      // One arena may have got a spare that is much larger than it, and left no room for another: once more without spares.
      for (size_t a = 0; a < count; ++a) {
        arenas()[a].reset();
        memory_of(plan.arenas[a], devices).drop_spares();
      }
      take(plan, devices);
    }
  }
  Arenas(const Arenas&) = delete;
  Arenas& operator=(const Arenas&) = delete;
  void** pointers() { return many_pointers_ ? many_pointers_.get() : few_pointers_; }

 private:
  static Memory& memory_of(const plan::Arena& arena, const Devices& devices) {
    const auto& memories = arena.pinned_by >= 0 ? devices.pinned : devices.memories;
    return *memories[static_cast<size_t>(arena.pinned_by >= 0 ? arena.pinned_by : arena.device)];
  }
  std::optional<Memory::Arena>* arenas() { return many_ ? many_.get() : few_; }
  void take(const plan::Plan& plan, const Devices& devices) {
    for (size_t a = 0; a < plan.arenas.size(); ++a) {
      const plan::Arena& arena = plan.arenas[a];
      arenas()[a].emplace(memory_of(arena, devices), arena.bytes, arena.is_double_buffered);
      pointers()[a] = arenas()[a]->data();
    }
  }

  std::optional<Memory::Arena> few_[kFewArenas];
  void* few_pointers_[kFewArenas];
  std::unique_ptr<std::optional<Memory::Arena>[]> many_;
  std::unique_ptr<void*[]> many_pointers_;
};

}  // namespace

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
      run_seconds(planned.run_seconds),
      plan_(std::move(planned.plan)),
      devices_(devices),
      programs_(std::move(planned.programs)) {
  for (size_t d = 0; d < devices.count(); ++d) device_list_.push_back(&devices.at(d));
  for (const codegen::Layout& o : plan_.outputs) output_bytes_.push_back(byte_size(o.shape, o.dtype));
  for (const plan::Constant& c : plan_.constants) {
    Memory& memory = *devices.memories[static_cast<size_t>(c.device)];
    constants_.push_back(memory.allocate_fixed(c.literal.bytes->size()));
    constant_pointers_.push_back(constants_.back()->data());
    const profile::Doing doing("a constant of a plan");
    memory.device().stream(device::StreamKind::Compute).upload(constants_.back()->data(), c.literal.bytes->data(), c.literal.bytes->size());
  }
  for (const int32_t d : plan_.output_devices) is_asynchronous_ |= !devices.has_host_memory(d) && devices.at(d).info().executes;
  for (const plan::Step& s : plan_.steps) several_streams_ |= s.is_awaited || !s.waits.empty() || s.stream != device::StreamKind::Compute;
}

Bound::~Bound() = default;

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
  Arenas arenas(plan_, devices_);
  EventsOfRun events(*this);
  size_t reached = 0;
  try {
    exec::run(plan_, {device_list_, programs_, constant_pointers_}, {pointers, results, arenas.pointers()}, events.get(), reached);
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
  std::map<device::Device*, uint32_t> runs;
  for (size_t k = 0; k < outputs.size(); ++k) {
    device::Device& home = outputs[k].buffer->home();
    if (plan_.aliases[k].input >= 0 || plan_.aliases[k].constant >= 0 || home.info().host_memory) continue;
    const auto [run, is_new] = runs.try_emplace(&home);
    if (is_new) run->second = home.losses().begin_run();
    outputs[k].buffer->set_run(run->second);
  }
}

Executable::Executable(ir::Graph traced, const Engine& engine, Options options)
    : traced_(std::move(traced)),
      engine_(&engine),
      only_(nullptr),
      options_(std::move(options)),
      input_types_(traced_.input_types()),
      bound_({kMostPlans, kMostSteps}) {
  if (!needs_call(devices())) placed({});
}

Executable::Executable(ir::Graph passed, const Devices& devices, std::vector<int32_t> donations)
    : engine_(nullptr),
      only_(&devices),
      options_{.donations = std::move(donations)},
      input_types_(passed.input_types()),
      placed_(std::make_shared<const Placed>(Placed{std::move(passed), &devices, {}, {}, {}})),
      bound_({kMostPlans, kMostSteps}) {}

const Devices& Executable::devices() const { return engine_ ? engine_->devices() : *only_; }

std::shared_ptr<const Placed> Executable::placed_now() const {
  std::lock_guard lock(mutex_);
  return placed_;
}

const ir::Graph& Executable::graph() const {
  std::lock_guard lock(mutex_);
  return placed_ ? placed_->graph : traced_;
}

// What is known of a call: bound symbols, and where its inputs are.
ToPlace Executable::to_place(TensorRefs inputs) const {
  ToPlace wanted{traced_, options_.precision, options_.donations, options_.is_state, options_.soft};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const codegen::Layout& o = inputs[i]->layout;
    if (o.dtype != input_types_[i].dtype) user_error("call: input ", i, " is ", name(o.dtype), ", the graph wants ", input_types_[i]);
    unify(input_types_[i].dims, o.shape, wanted.bindings, cat("input ", i));
    wanted.inputs.push_back(o);
    wanted.homes.push_back(devices().number_of(*inputs[i]->buffer));
  }
  return wanted;
}

// Its first call decides for all that follow: state must not move with each change of a batch. Another list of devices is another matter.
std::shared_ptr<const Placed> Executable::placed(TensorRefs inputs) {
  const Devices& now = devices();
  {
    std::lock_guard lock(mutex_);
    if (placed_ && (!engine_ || placed_->devices == &now)) return placed_;
  }
  auto made = std::make_shared<const Placed>(place(to_place(inputs), now));
  std::lock_guard lock(mutex_);
  if (placed_ && placed_->devices == &now) return placed_;  // by another thread, meanwhile
  bound_.clear();
  placed_ = std::move(made);
  return placed_;
}

struct Executable::Wanted {
  TensorRefs inputs;
  const std::vector<int32_t>& donations;
  const Devices& devices;
  size_t hash = 0;
  bool is(const Bound& b) const { return b.donations == donations && b.takes(devices, inputs); }
};

std::shared_ptr<Bound> Executable::find(const Wanted& wanted) {
  std::lock_guard lock(mutex_);
  auto* found = bound_.find(wanted.hash, [&](const std::shared_ptr<Bound>& b) { return wanted.is(*b); });
  if (!found) return nullptr;
  improve(*found);
  return *found;
}

// Takes the place of a plan that nobody else runs at the moment.
void Executable::improve(std::shared_ptr<Bound>& bound) const {
  if (!bound->improvement || !bound->improvement->count_run() || bound.use_count() > 1) return;
  std::optional<Planned> better = bound->improvement->take();
  bound->improvement.reset();
  if (!better) return;
  if (ir::verifying()) plan::verify(better->plan);
  if (log::enabled(log::Topic::Plan)) log::write(log::Topic::Plan, cat("a better plan was found\n", better->plan.str()));
  const std::vector<int32_t> donations = bound->donations;
  bound.reset();  // with its constants
  bound = std::make_shared<Bound>(std::move(*better), donations, *placed_->devices);
}

std::shared_ptr<Bound> Executable::bind(TensorRefs inputs) {
  if (inputs.size() != input_types_.size()) user_error("call: ", inputs.size(), " tensors for ", input_types_.size(), " inputs");
  const auto is_held = [&](int32_t j) { return j >= 0 && !inputs[static_cast<size_t>(j)]->buffer->unique(); };
  std::vector<int32_t> without_held;
  if (std::ranges::any_of(options_.donations, is_held)) {  // somebody still looks at an old value
    without_held = options_.donations;
    std::ranges::replace_if(without_held, is_held, -1);
  }
  Wanted wanted{inputs, without_held.empty() ? options_.donations : without_held, devices()};
  {
    std::lock_guard lock(mutex_);
    if (auto* last = bound_.newest(); last && wanted.is(**last)) {
      improve(*last);
      return *last;
    }
  }
  const std::shared_ptr<const Placed> where = placed(inputs);  // plans for other devices are gone now
  wanted.hash = layouts_hash(inputs.size(), inputs);
  if (wanted.devices.count() > 1)
    for (const TensorRef* t : inputs) wanted.hash = ir::hash_combine(wanted.hash, reinterpret_cast<size_t>(&t->buffer->home()));
  for (const int32_t j : without_held) wanted.hash = ir::hash_combine(wanted.hash, static_cast<size_t>(j));
  if (auto found = find(wanted)) return found;
  std::lock_guard planning(planning_);
  if (auto found = find(wanted)) return found;  // another thread has made it meanwhile
  auto bound = make(wanted, where);
  std::lock_guard lock(mutex_);
  return bound_.add(wanted.hash, bound->plan().steps.size() + 1, bound);
}

namespace {

plan::KernelFacts facts_of(const codegen::Kernel& kernel, const device::Program& program) {
  plan::KernelFacts facts{
      .scratch_bytes = program.scratch_bytes(), .in_place = kernel.replaceable, .name = std::string(program.kernel_name())};
  for (size_t i = 0; i < facts.in_place.size(); ++i) facts.in_place[i] = facts.in_place[i] || program.is_replaceable(i);
  facts.cost = codegen::cost_of(kernel);
  return facts;
}

int32_t device_of(const plan::Request& request, const Devices& devices, const ir::Node& n) {
  if (request.device_of) return request.device_of(n);
  return can(devices.at(0), request.graph, n) ? 0 : devices.host;
}

plan::Request on_graph(const plan::Request& r, const ir::Graph& graph) {
  return {graph, r.bindings,      r.inputs,         r.donations,   r.outputs_own_memory,
          {},    r.input_devices, r.output_devices, r.host_memory, r.fresh_inputs};
}

bool fits(const plan::Plan& plan, std::span<const plan::DeviceFacts> facts) {
  for (size_t d = 0; d < facts.size(); ++d)
    if (!facts[d].host_memory && facts[d].limit_bytes > 0 && plan.peak_bytes(static_cast<int32_t>(d)) > facts[d].limit_bytes) return false;
  return true;
}

// I19. Decisions are made for the first device whose limit a plan goes over.
[[noreturn]] void refuse_several(const plan::Plan& plan, std::span<const plan::DeviceFacts> facts, const Devices& devices,
                                 const std::string& name) {
  std::string over;
  for (size_t d = 0; d < facts.size(); ++d) {
    const size_t peak = plan.peak_bytes(static_cast<int32_t>(d));
    if (!facts[d].host_memory && facts[d].limit_bytes > 0 && peak > facts[d].limit_bytes)
      over += cat(over.empty() ? "" : ", ", devices.at(d).info().name, " (", peak, " bytes of ", facts[d].limit_bytes, ")");
  }
  resource_error(ErrorCode::ResourceExhausted, name.empty() ? "call" : name,
                 ": it does not fit into the limits of several devices at once: ", over,
                 "\n  hint: a larger limit, a smaller batch, or all of it on one device");
}

// Whether a limit costs time: then a better plan may save some of it.
bool is_slower_for_it(const plan::Plan& plan) {
  return std::ranges::any_of(plan.budgets, [](const plan::BudgetReport& r) { return r.seconds > r.unlimited_seconds; });
}

// What is left of the host's memory for copies, besides what pipelines hold and what waits there; 0: there is no limit. Spare arenas go:
// the new plan may have their place. `own_bytes`: of the step's own state that waits there, which stays where it is or leaves.
size_t pinned_limit(const Devices& devices, size_t own_bytes) {
  size_t left = SIZE_MAX;
  for (Memory* m : devices.pinned) {
    if (!m || m->device().pinned_memory().limit() == 0) continue;
    m->drop_spares();
    for (const device::Account* a : {&std::as_const(m->device().pinned_memory()), &std::as_const(device::host_account())})
      if (a->limit() > 0) left = std::min(left, a->limit() - std::min(a->limit(), a->in_use()));
  }
  return left == SIZE_MAX ? 0 : std::max<size_t>(left + own_bytes, 1);
}

}  // namespace

Planned plan_of(const Lowered& lowered, std::span<const plan::DeviceFacts> facts, const plan::PlanOptions& options) {
  Planned made;
  made.programs = lowered.programs;
  made.seconds = lowered.seconds;
  made.plan = plan::make_plan(lowered.units, lowered.tables, lowered.kernels, facts, options);
  if (lowered.is_timed) made.run_seconds = plan::simulate(made.plan, {made.seconds, facts}).seconds;
  return made;
}

Planned planned(plan::Request request, const Devices& devices, Times times, size_t own_pinned_bytes) {
  std::vector<plan::DeviceFacts> device_facts;
  request.host_memory.clear();
  for (size_t d = 0; d < devices.count(); ++d) {
    const device::DeviceInfo& info = devices.at(d).info();
    request.host_memory.push_back(info.host_memory);
    plan::DeviceFacts facts{.host_memory = info.host_memory, .gap_bytes = info.gap_bytes};
    if (!info.host_memory) facts.limit_bytes = devices.at(d).memory().limit();
    device_facts.push_back(facts);
  }
  bool is_timed = false;
  const auto know_times = [&] {
    is_timed = true;
    for (size_t d = 0; d < devices.count(); ++d) device_facts[d].rates = devices.at(d).rates();
  };
  if (times == Times::Wanted || !devices.at(0).info().executes) know_times();
  Planner planner;
  // Kernels first, since where things lie depends on what they need.
  planner.lower = [&](const plan::Request& r) {
    Lowered made;
    made.is_timed = is_timed;
    made.units = plan::lower(r, made.tables);
    for (plan::Tables::Entry& e : made.tables.kernels) {
      device::Device& device = devices.at(e.device);
      const Working loading(Working::Thread::Own);  // it has locks, unlike the search
      made.programs.push_back(device.load(e.kernel));
      made.kernels.push_back(facts_of(e.kernel, *made.programs.back()));
      if (is_timed) made.seconds.push_back(made.kernels.back().seconds = timed_seconds(devices, e, made.programs.back()));
      e.kernel = {};
    }
    return made;
  };
  // Nodes carry where they run: decisions about memory may rewrite the graph.
  ir::Graph graph;
  if (devices.count() > 1) {
    graph = request.graph;
    for (size_t n = 0; n < graph.nodes.size(); ++n) graph.nodes[n].device = device_of(request, devices, request.graph.nodes[n]);
  }
  planner.device_of = [](const ir::Graph&, const ir::Node& n) { return std::max(n.device, 0); };
  plan::Request placed = devices.count() > 1 ? on_graph(request, graph) : request;
  if (devices.count() > 1) placed.device_of = [&](const ir::Node& n) { return planner.device_of(graph, n); };
  // Times are only asked for where a limit makes a difference: a device may have to be measured for them.
  const std::optional<plan::Baseline> baseline = plan::baseline_of(env::get("TANDEM_PLAN_MEANS"));
  const auto without_limit = [&](const Lowered& lowered) {
    std::vector<plan::DeviceFacts> free = device_facts;
    for (plan::DeviceFacts& f : free) f.limit_bytes = 0;
    return plan_of(lowered, free, {.baseline = baseline});
  };
  Lowered lowered = planner.lower(placed);
  Planned made = without_limit(lowered);
  const bool prefetches = made.plan.prefetches > 0;
  if (prefetches && !fits(made.plan, device_facts)) {  // which takes a batch's memory twice
    lowered.units.fresh_inputs.clear();
    made = without_limit(lowered);
  }
  if (!baseline && !fits(made.plan, device_facts)) {
    know_times();
    for (plan::DeviceFacts& f : device_facts)
      if (f.host_memory) f.limit_bytes = pinned_limit(devices, own_pinned_bytes);
    lowered = planner.lower(placed);  // with times
    const double free_seconds = without_limit(lowered).run_seconds;
    if (prefetches) lowered.units.fresh_inputs.clear();
    made = planned_within(placed, std::move(lowered), devices, device_facts, planner);
    for (plan::BudgetReport& r : made.plan.budgets) {
      r.predicted_seconds = made.run_seconds;
      r.unlimited_predicted_seconds = free_seconds;
    }
    if (!fits(made.plan, device_facts)) refuse_several(made.plan, device_facts, devices, request.graph.name);
  }
  made.homes = request.input_devices;
  made.plan.limits = plan::limits_of(device_facts);
  for (plan::Limit& l : made.plan.limits)
    if (l.is_pinned) l.bytes -= std::min(l.bytes, made.state_bytes);
  return made;
}

ToPlace Executable::last_call() const {
  std::lock_guard lock(mutex_);
  if (!last_) user_error(ErrorCode::FailedPrecondition, "explain: nothing was run yet\n  hint: the first call decides where it runs");
  return *last_;
}

Estimate Executable::explain() const {
  const ToPlace call = last_call();
  const std::shared_ptr<const Placed> where = placed_now();
  Estimate e = estimate(request_of(*where, call), *where->devices, where.get(), KernelSeconds::Timed);
  e.run_seconds = run_seconds();
  return e;
}

plan::Request Executable::request_for(const ToPlace& call, const Placed& where) const {
  plan::Request request = request_of(where, call);
  request.input_devices = call.homes;  // as they are: state that is to move has done so before
  for (const bool is_state : options_.is_state) request.fresh_inputs.push_back(!is_state);
  for (size_t k = 0; k < call.donations.size(); ++k)
    if (call.donations[k] >= 0) request.output_devices[k] = call.homes[static_cast<size_t>(call.donations[k])];
  return request;
}

// A plan that was made without times is made again with them: it is the same one.
double Executable::run_seconds() const {
  const ToPlace call = last_call();
  const std::shared_ptr<const Placed> where = placed_now();
  {
    std::lock_guard lock(mutex_);
    if (const auto* last = bound_.newest(); last && (*last)->run_seconds > 0) return (*last)->run_seconds;
  }
  return planned(request_for(call, *where), *where->devices, Times::Wanted).run_seconds;
}

std::shared_ptr<Bound> Executable::make(const Wanted& wanted, const std::shared_ptr<const Placed>& where) const {
  const profile::Span compiling(profile::Kind::Compile, "kernels and plan");
  ToPlace call = to_place(wanted.inputs);
  call.donations = wanted.donations;
  plan::Request request = request_for(call, *where);
  if (is_logging_placement()) write_placement(request, *where);
  size_t waiting = 0;
  for (size_t i = 0; i < wanted.inputs.size(); ++i)
    if (const device::Buffer& b = *wanted.inputs[i]->buffer; &b.device() != &b.home()) waiting += device::Account::counted(b.bytes());
  Planned made = planned(request, *where->devices, Times::IfNeeded, waiting);
  std::unique_ptr<Improvement> improvement;
  const auto background_seconds = static_cast<double>(env::get_count("TANDEM_PLAN_BACKGROUND", kMostBackgroundSeconds));
  if (background_seconds > 0 && is_slower_for_it(made.plan))
    improvement = std::make_unique<Improvement>(where, std::move(request), *where->devices, made, background_seconds);
  {
    std::lock_guard lock(mutex_);
    call.donations = options_.donations;  // the others are the caller's
    last_ = std::make_unique<ToPlace>(std::move(call));
  }
  if (ir::verifying()) plan::verify(made.plan);
  if (log::enabled(log::Topic::Plan)) log::write(log::Topic::Plan, made.plan.str());
  auto bound = std::make_shared<Bound>(std::move(made), wanted.donations, *where->devices);
  bound->improvement = std::move(improvement);
  return bound;
}

size_t Executable::plan_count() const {
  std::lock_guard lock(mutex_);
  return bound_.size();
}

std::vector<plan::BudgetReport> Executable::budgets() const {
  std::lock_guard lock(mutex_);
  std::vector<plan::BudgetReport> most;
  bound_.for_each([&](const std::shared_ptr<Bound>& b) { plan::keep_largest(most, b->plan().budgets); });
  return most;
}

void Executable::drop_plans() {
  std::lock_guard lock(mutex_);
  bound_.clear();
}

}  // namespace tandem::engine
