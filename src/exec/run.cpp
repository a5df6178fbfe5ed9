#include "exec/run.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/caller_poll.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "exec/record.hpp"
#include "exec/step_profile.hpp"

namespace tandem::exec {
namespace {

using device::StreamKind;
using plan::Effect;
using plan::Plan;
using plan::Slot;
using plan::Step;

// The pointers of one step: on the stack for all but the widest.
class Pointers {
 public:
  explicit Pointers(size_t n) : size_(n) {
    if (n > few_.size()) many_.resize(n);
  }
  void*& operator[](size_t i) { return data()[i]; }
  void** data() { return size_ > few_.size() ? many_.data() : few_.data(); }

 private:
  size_t size_;
  std::array<void*, 24> few_;
  std::vector<void*> many_;
};

class Runner {
 public:
  // `events`: null in bodies, which run on one stream. `profile`, `record`: null where nobody looks.
  Runner(const Plan& p, const Machine& m, const Places& places, Events* events, StepProfile* profile, RunRecord* record)
      : plan_(p), machine_(m), places_(places), events_(events), profile_(profile), record_(record) {}

  size_t reached() const { return reached_; }
  void run() { run(0, plan_.steps.size()); }
  void run(size_t first, size_t end) {
    for (size_t i = first; i < end; ++i) {
      const Step& s = plan_.steps[i];
      ++reached_;
      try {
        if (record_)
          recorded(s, i);
        else
          all_of(s, i);
      } catch (const Error& e) {
        rethrow(e, s);
      }
    }
  }

 private:
  void all_of(const Step& s, size_t i) {
    for (const int32_t earlier : s.waits) wait(s, events_->of(static_cast<size_t>(earlier)));
    if (profile_ && s.bodies.empty())
      timed_step(s);
    else
      step(s);
    if (s.is_awaited) stream(s).record(events_->of(i));
  }

  // Streams say themselves when they did what they are given here.
  void recorded(const Step& s, size_t i) {
    const profile::Doing doing(record_->what(plan_, i, s.kind == plan::Kind::Upload ? at(s.effects[0]) : nullptr));
    if (!s.on_host || !s.bodies.empty()) return all_of(s, i);
    for (const int32_t earlier : s.waits) wait(s, events_->of(static_cast<size_t>(earlier)));
    const profile::Time begin = profile::now();
    if (profile_)
      timed_step(s);
    else
      step(s);
    record_->done_by_host(s, begin);
    if (s.is_awaited) stream(s).record(events_->of(i));
  }

  device::Stream& stream(const Step& s) const { return machine_.devices[static_cast<size_t>(s.device)]->stream(s.stream); }

  // The host waits itself for what it does itself, and for what an upload reads before the call returns.
  void wait(const Step& s, device::Event& event) const {
    if (s.on_host || reads_at_once(s)) return event.synchronize();
    stream(s).wait(event);
  }
  bool reads_at_once(const Step& s) const {
    if (s.kind != plan::Kind::Upload) return false;
    const Slot& from = s.effects[0].slot;
    return from.base != Slot::Base::Arena || plan_.arenas[static_cast<size_t>(from.index)].pinned_by != s.device;
  }

  char* at(const Slot& s) const { return start(s) + s.shift; }
  char* at(const Effect& e) const { return at(e.slot); }
  char* start(const Slot& s) const {
    const auto i = static_cast<size_t>(s.index);
    switch (s.base) {
      case Slot::Base::Arena: return static_cast<char*>(places_.arenas[i]) + s.offset;
      case Slot::Base::Input: return static_cast<char*>(places_.inputs[i]) + s.offset;
      case Slot::Base::Output: return static_cast<char*>(places_.outputs[i]) + s.offset;
      case Slot::Base::Constant: break;
    }
    return static_cast<char*>(machine_.constants[i]) + s.offset;
  }
  char* scratch(const Step& s) const { return s.scratch() ? at(*s.scratch()) : nullptr; }

  void timed_step(const Step& s) {
    const auto begin = std::chrono::steady_clock::now();
    step(s);
    stream(s).synchronize();
    profile_->add(s, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }

  void step(const Step& s) {
    switch (s.kind) {
      case plan::Kind::Launch: return launch(s);
      case plan::Kind::Copy: return stream(s).copy(at(s.effects[1]), at(s.effects[0]), s.effects[1].slot.bytes);
      case plan::Kind::Upload: return stream(s).upload(at(s.effects[1]), at(s.effects[0]), s.effects[1].slot.bytes);
      case plan::Kind::Download: return stream(s).download(at(s.effects[1]), at(s.effects[0]), s.effects[1].slot.bytes);
      case plan::Kind::Branch: return branch(s);
      case plan::Kind::While: return loop(s);
      case plan::Kind::Scan: return scan(s);
    }
  }

  void launch(const Step& s) {
    Pointers p(s.effects.size());
    size_t n = 0;
    void* scratch = nullptr;
    for (const Effect& e : s.effects) {
      if (e.kind == Effect::Kind::Scratch)
        scratch = at(e);
      else
        p[n++] = at(e);
    }
    stream(s).launch(machine_.programs[static_cast<size_t>(s.kernel)], {{p.data(), n}, scratch});
  }

  void run_body(const Plan& body, void* arena, void* const* inputs, void* const* outputs) const {
    Runner(body, machine_, {inputs, outputs, &arena}, nullptr, profile_, record_).run();
  }

  static int64_t read_index(device::Stream& stream, const char* from, size_t bytes) {
    int64_t wide = 0;
    int32_t narrow = 0;
    stream.download(bytes == 8 ? static_cast<void*>(&wide) : &narrow, from, bytes);
    stream.synchronize();
    return bytes == 8 ? wide : narrow;
  }

  void branch(const Step& s) {
    const auto reads = s.reads(), writes = s.writes();
    // An index out of range is clamped, as the row says: data must not be able to stop a step.
    const int64_t last = static_cast<int64_t>(s.bodies.size()) - 1;
    const auto b = static_cast<size_t>(std::clamp<int64_t>(read_index(stream(s), at(reads[0]), reads[0].slot.bytes), 0, last));
    Pointers in(reads.size()), out(writes.size());
    for (size_t i = 1; i < reads.size(); ++i) in[i - 1] = at(reads[i]);
    for (size_t i = 0; i < writes.size(); ++i) out[i] = at(writes[i]);
    run_body(*s.bodies[b], scratch(s), in.data(), out.data());
  }

  // Trips alternate between two sets of carries; which set holds the result is settled at the end.
  void loop(const Step& s) {
    const auto reads = s.reads(), writes = s.writes(), others = s.of(Effect::Kind::Carry);
    const size_t n = writes.size();
    Pointers now(n), next(n);
    for (size_t i = 0; i < n; ++i) {
      now[i] = at(writes[i]);
      next[i] = at(others[i]);
      stream(s).copy(now[i], at(reads[i]), writes[i].slot.bytes);
    }
    char* predicate = scratch(s);
    char* arena = predicate + codegen::kAlignment;
    bool flipped = false;
    LoopPoll poll;
    for (int64_t trip = 0; s.trips < 0 || trip < s.trips; ++trip) {
      void* condition = predicate;
      run_body(*s.bodies[0], arena, now.data(), &condition);
      bool again = false;
      stream(s).download(&again, predicate, 1);
      stream(s).synchronize();
      if (!again) break;
      poll();
      run_body(*s.bodies[1], arena, now.data(), next.data());
      std::swap(now, next);
      flipped = !flipped;
    }
    if (flipped)
      for (size_t i = 0; i < n; ++i) stream(s).copy(next[i], now[i], writes[i].slot.bytes);
  }

  void scan(const Step& s) {
    const auto ins = s.reads(), outs = s.writes(), others = s.of(Effect::Kind::Carry);
    const auto carries = static_cast<size_t>(s.carries), sequences = static_cast<size_t>(s.sequences);
    const size_t reads = ins.size(), writes = outs.size();
    Pointers in(reads), out(writes);
    for (size_t i = 0; i < carries; ++i) stream(s).copy(at(outs[i]), at(ins[i]), outs[i].slot.bytes);
    for (size_t i = carries + sequences; i < reads; ++i) in[i] = at(ins[i]);
    bool flipped = false;
    LoopPoll poll;
    for (int64_t t = 0; t < s.trips; ++t) {
      const auto row = static_cast<size_t>(s.reverse ? s.trips - 1 - t : t), trips = static_cast<size_t>(s.trips);
      for (size_t i = 0; i < carries; ++i) {
        in[i] = at(flipped ? others[i] : outs[i]);
        out[i] = at(flipped ? outs[i] : others[i]);
      }
      for (size_t i = carries; i < carries + sequences; ++i) in[i] = at(ins[i]) + row * (ins[i].slot.bytes / trips);
      for (size_t i = carries; i < writes; ++i) out[i] = at(outs[i]) + row * (outs[i].slot.bytes / trips);
      run_body(*s.bodies[0], scratch(s), in.data(), out.data());
      flipped = !flipped;
      poll();
    }
    if (flipped)
      for (size_t i = 0; i < carries; ++i) stream(s).copy(at(outs[i]), at(others[i]), outs[i].slot.bytes);
  }

  [[noreturn]] static void rethrow(const Error& e, const Step& s) {
    std::string text = e.what();
    if (s.location && text.find("\n  at ") == std::string::npos) text += cat("\n  at ", s.location.str());
    if (dynamic_cast<const UserError*>(&e)) throw UserError(text, e.code());
    if (dynamic_cast<const ResourceError*>(&e)) throw ResourceError(text, e.code());
    throw;
  }

  const Plan& plan_;
  const Machine& machine_;
  const Places& places_;
  Events* const events_;
  StepProfile* const profile_;
  RunRecord* const record_;
  size_t reached_ = 0;
};

// I24: everything that was given to streams has been done when this returns, so memory may go back.
void drain(const Plan& plan, std::span<device::Device* const> devices) {
  std::vector<bool> seen(devices.size());
  for (const Step& s : plan.steps) {
    if (s.on_host || seen[static_cast<size_t>(s.device)]) continue;
    seen[static_cast<size_t>(s.device)] = true;
    devices[static_cast<size_t>(s.device)]->drain();
  }
}

}  // namespace

Events::Events(const Plan& plan, std::span<device::Device* const> devices) : events_(plan.steps.size()) {
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (plan.steps[i].is_awaited) events_[i] = devices[static_cast<size_t>(plan.steps[i].device)]->make_event();
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& s = plan.steps[i];
    if (s.on_host || s.stream == StreamKind::Compute) continue;
    const auto d = static_cast<size_t>(s.device);
    if (streams_.size() <= d) streams_.resize(d + 1);
    for (auto& start : streams_[d].starts)
      if (!start) start = devices[d]->make_event();
    if (i >= plan.prefetches && std::ranges::none_of(streams_[d].copies, [&](const auto& c) { return c.first == s.stream; }))
      streams_[d].copies.emplace_back(s.stream, devices[d]->make_event());
  }
}

void Events::wait_for_earlier() {
  if (streams_.empty()) return;  // runs without copies may share one
  turn_ ^= 1;
  for (const Streams& s : streams_)
    if (s.starts[turn_]) s.starts[turn_]->synchronize();
}

void Events::begin(std::span<device::Device* const> devices) {
  for (size_t d = 0; d < streams_.size(); ++d) {
    if (!streams_[d].starts[turn_]) continue;
    devices[d]->stream(StreamKind::Compute).record(*streams_[d].starts[turn_]);
    for (auto& [kind, event] : streams_[d].copies) devices[d]->stream(kind).wait(*streams_[d].starts[turn_]);
  }
}

void Events::end(std::span<device::Device* const> devices) {
  for (size_t d = 0; d < streams_.size(); ++d)
    for (auto& [kind, event] : streams_[d].copies) {
      devices[d]->stream(kind).record(*event);
      devices[d]->stream(StreamKind::Compute).wait(*event);
    }
}

// I22: the plan's steps in the plan's order, in the plan's memory. I23: the first error ends it, and is thrown when all streams are done.
void run(const Plan& plan, const Machine& machine, const Places& places, Events& events, size_t& reached) {
  std::optional<StepProfile> profile;
  if (log::enabled(log::Topic::Step)) profile.emplace();
  std::optional<RunRecord> record;
  if (profile::Recorder::is_on()) record.emplace(plan, machine.devices);
  Runner runner(plan, machine, places, &events, profile ? &*profile : nullptr, record ? &*record : nullptr);
  try {
    events.wait_for_earlier();
    runner.run(0, plan.prefetches);
    events.begin(machine.devices);
    runner.run(plan.prefetches, plan.steps.size());
    events.end(machine.devices);
    for (const int32_t step : plan.waits_at_end) events.of(static_cast<size_t>(step)).synchronize();
  } catch (...) {
    reached = runner.reached();
    drain(plan, machine.devices);
    throw;
  }
  if (!profile) return;
  for (const std::string& line : profile->lines()) log::write(log::Topic::Step, line);
}

}  // namespace tandem::exec
