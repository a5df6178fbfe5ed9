#include "exec/record.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace tandem::exec {
namespace {

using plan::Effect;
using plan::Plan;
using plan::Slot;
using plan::Step;
using profile::Kind;
using profile::Recorder;

Kind kind_of(const Step& s) {
  switch (s.kind) {
    case plan::Kind::Copy: return Kind::Copy;
    case plan::Kind::Upload: return Kind::Upload;
    case plan::Kind::Download: return Kind::Download;
    default: return Kind::Launch;
  }
}

uint32_t task_of(const Step& s) { return Recorder::get().task(s.label, s.kernel_name, s.location, s.cost.flops, s.cost.bytes); }

bool touches(std::span<const Effect> effects, const Slot& slot) {
  return std::ranges::any_of(effects, [&](const Effect& e) { return e.slot.overlaps(slot); });
}

// The step on the host that made what goes up or uses what came down; where the program gave it or gets it, the step on the device.
const Step* partner_of(const Plan& plan, size_t i) {
  const Step& s = plan.steps[i];
  if (s.kind != plan::Kind::Upload && s.kind != plan::Kind::Download) return nullptr;
  const Slot &from = s.effects[0].slot, &to = s.effects[1].slot;
  const auto writer = [&]() -> const Step* {
    for (size_t j = i; j-- > 0;)
      if (touches(plan.steps[j].writes(), from)) return &plan.steps[j];
    return nullptr;
  };
  const auto reader = [&]() -> const Step* {
    for (size_t j = i + 1; j < plan.steps.size(); ++j)
      if (touches(plan.steps[j].reads(), to)) return &plan.steps[j];
    return nullptr;
  };
  const Step* on_host = s.kind == plan::Kind::Upload ? writer() : reader();
  if (on_host) return on_host;
  return s.kind == plan::Kind::Upload ? reader() : writer();
}

profile::DeviceNote note_of(const device::Device& d) {
  const device::DeviceInfo& info = d.info();
  const device::Rates rates = d.known_rates();
  return {.name = info.name,
          .description = info.description,
          .memory_bytes = info.memory_bytes,
          .is_host = info.host_memory,
          .flops_per_second = rates.flops_per_second,
          .bytes_per_second = rates.bytes_per_second,
          .link_bytes_per_second = rates.link_bytes_per_second,
          .launch_seconds = rates.launch_seconds};
}

}  // namespace

RunRecord::RunRecord(const Plan& plan, std::span<device::Device* const> devices)
    : devices_(devices), generation_(Recorder::get().generation()) {
  for (const device::Device* d : devices) {
    tracks_.push_back(Recorder::get().thread_track(d->info().name));
    if (!Recorder::get().knows(d->info().name)) Recorder::get().note(note_of(*d));
  }
  if (plan.steps.size() > 1) run_.emplace(Kind::Run, cat("run of ", plan.steps.size(), " steps"));
  sample();
}
RunRecord::~RunRecord() { sample(); }

// Memory is taken before a run begins and given back after it.
void RunRecord::sample() const {
  for (device::Device* d : devices_) {
    const std::string& name = d->info().name;
    Recorder::get().sample(name, "memory", d->memory().in_use(), d->memory().limit());
    if (!d->info().host_memory) Recorder::get().sample(name, "pinned", d->pinned_memory().in_use(), d->pinned_memory().limit());
  }
}

profile::Doing::What RunRecord::what(const Plan& plan, size_t i, const void* uploaded) const {
  const Step& s = plan.steps[i];
  profile::Doing::What what{.generation = generation_, .task = task_of(s)};
  if (const Step* partner = partner_of(plan, i)) what.partner = task_of(*partner);
  if (!uploaded) return what;
  // Only what was there before the run can be looked at now.
  const Slot& from = s.effects[0].slot;
  if (from.base == Slot::Base::Constant) what.source = profile::Source::Constant;
  if (from.base == Slot::Base::Input) {
    const bool is_state = std::ranges::find(plan.donated, from.index) != plan.donated.end();
    what.source = is_state ? profile::Source::State : profile::Source::Input;
    if (!is_state) what.mark = profile::mark_of(uploaded, from.bytes);
  }
  return what;
}

void RunRecord::done_by_host(const Step& s, profile::Time begin) const {
  const profile::Kind kind = kind_of(s);
  Recorder::get().add({.begin = begin,
                       .end = profile::now(),
                       .given = begin,
                       .task = profile::Doing::current().task,
                       .partner = profile::Doing::current().partner,
                       .bytes = kind == Kind::Launch ? 0 : s.effects[1].slot.bytes,
                       .track = tracks_[static_cast<size_t>(s.device)],
                       .kind = kind},
                      generation_);
}

}  // namespace tandem::exec
