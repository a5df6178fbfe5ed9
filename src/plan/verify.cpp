// The independent check of a plan: replays it over a map of bytes, knowing only what the steps declare.
#include <map>

#include "base/text.hpp"
#include "plan/plan.hpp"
#include "plan/queues.hpp"

namespace tandem::plan {
namespace {

using Place = std::pair<Slot::Base, int32_t>;

// Which value's bytes lie where, within one base. Writing over part of a value destroys all of it.
class Contents {
 public:
  void write(size_t offset, size_t bytes, int32_t value) {
    if (bytes == 0) return;
    auto it = held_.lower_bound(offset);
    if (it != held_.begin() && std::prev(it)->first + std::prev(it)->second.bytes > offset) --it;
    while (it != held_.end() && it->first < offset + bytes) it = held_.erase(it);
    held_[offset] = {bytes, value};
  }
  bool holds(size_t offset, size_t bytes, int32_t value) const {
    if (bytes == 0) return true;
    const auto it = held_.find(offset);
    return it != held_.end() && it->second.value == value && bytes <= it->second.bytes;
  }

 private:
  struct Held {
    size_t bytes;
    int32_t value;
  };
  std::map<size_t, Held> held_;
};

class Replay {
 public:
  Replay(const Plan& p, const Plan& outermost) : plan_(p), outermost_(outermost) {}

  void run() {
    for (size_t i = 0; i < plan_.steps.size(); ++i) check(i, plan_.steps[i]);
    for (size_t k = 0; k < plan_.outputs.size(); ++k) {
      const bool handed_on = plan_.aliases[k].input >= 0 || plan_.aliases[k].constant >= 0;
      if (handed_on || byte_size(plan_.outputs[k].shape, plan_.outputs[k].dtype) == 0) continue;
      const Slot::Base base = plan_.donated[k] >= 0 ? Slot::Base::Input : Slot::Base::Output;
      const int32_t index = plan_.donated[k] >= 0 ? plan_.donated[k] : static_cast<int32_t>(k);
      if (!written_.contains({base, index})) internal_error("I13: no step writes output ", k);
    }
    for (size_t k = 0; k < plan_.donated.size(); ++k)
      for (size_t l = k + 1; l < plan_.donated.size(); ++l)
        if (plan_.donated[k] >= 0 && plan_.donated[k] == plan_.donated[l])
          internal_error("I16: input ", plan_.donated[k], " is given away twice");
    check_streams();
  }

 private:
  struct Base {
    size_t bytes;
    int32_t device;
  };
  Base base_of(const Slot& s) const {
    const auto i = static_cast<size_t>(s.index);
    switch (s.base) {
      case Slot::Base::Arena: return {plan_.arenas.at(i).bytes, plan_.arenas[i].device};
      case Slot::Base::Input: return {byte_size(plan_.inputs.at(i).shape, plan_.inputs[i].dtype), plan_.input_devices.at(i)};
      case Slot::Base::Output: return {byte_size(plan_.outputs.at(i).shape, plan_.outputs[i].dtype), plan_.output_devices.at(i)};
      case Slot::Base::Constant: return {outermost_.constants.at(i).literal.bytes->size(), outermost_.constants[i].device};
    }
    return {};
  }

  template <class... T> [[noreturn]] void fail(size_t number, const T&... parts) const {
    internal_error("plan step ", number, " (", plan_.steps[number].label, "): ", parts...);
  }

  void check_place(size_t number, const Step& s, const Effect& e) const {
    const Slot& x = e.slot;
    if (x.base == Slot::Base::Arena && x.offset % codegen::kAlignment)
      fail(number, "I18: ", x, " is not aligned to ", codegen::kAlignment, " bytes");
    if (x.bytes == 0) return;
    const Base base = base_of(x);
    if (x.offset > base.bytes || x.bytes > base.bytes - x.offset) fail(number, "I18: ", x, " leaves its base of ", base.bytes, " bytes");
    const bool crosses = s.kind == Kind::Copy || (s.kind == Kind::Upload && e.kind == Effect::Kind::Read) ||
                         (s.kind == Kind::Download && e.kind == Effect::Kind::Write);
    if (base.device != s.device && !crosses) fail(number, "I8: ", x, " is memory of device ", base.device, ", the step runs on ", s.device);
  }

  void check(size_t number, const Step& s) {
    for (const Effect& e : s.effects) check_place(number, s, e);
    for (const Effect& e : s.reads()) {
      const Slot& r = e.slot;
      if (r.base == Slot::Base::Arena && r.bytes && r.shift >= r.bytes) fail(number, "I8: reads ", r, " from byte ", r.shift, " on");
      // A view that outlives its storage reads another value's bytes (I14).
      if (!holds(r)) fail(number, "I13: reads ", r, ", which does not hold that value");
    }
    for (size_t a = s.reads().size(); a < s.effects.size(); ++a) {
      const Slot& claimed = s.effects[a].slot;
      if (claimed.base == Slot::Base::Constant) fail(number, "I12: writes a constant");
      for (size_t b = a + 1; b < s.effects.size(); ++b)
        if (claimed.overlaps(s.effects[b].slot)) fail(number, "I12: ", claimed, " and ", s.effects[b].slot, " overlap");
      for (const Effect& e : s.reads()) {
        const Slot& r = e.slot;
        const bool same_place = e.in_place && s.effects[a].kind == Effect::Kind::Write && r.base == claimed.base &&
                                r.index == claimed.index && r.offset == claimed.offset && r.bytes == claimed.bytes;
        if (claimed.overlaps(r) && !same_place) fail(number, "I15: writes ", claimed, " while reading ", r);
      }
    }
    for (const Effect& e : s.writes()) {
      if (e.slot.base != Slot::Base::Input) continue;
      bool donated = false;
      for (int32_t d : plan_.donated) donated |= d == e.slot.index;
      if (!donated) fail(number, "I16: writes input ", e.slot.index, ", which is not given away");
    }
    for (const Effect& e : s.effects) {
      if (e.kind == Effect::Kind::Read) continue;
      contents_[{e.slot.base, e.slot.index}].write(e.slot.offset, e.slot.bytes, e.kind == Effect::Kind::Write ? e.slot.value : -1);
      written_[{e.slot.base, e.slot.index}] = true;
    }
    const size_t room = s.scratch() ? s.scratch()->bytes : 0;
    for (const auto& body : s.bodies) {
      if (body->arena_bytes() > room) fail(number, "I18: a sub-plan needs ", body->arena_bytes(), " bytes, its scratch has ", room);
      for (const Step& inner : body->steps)
        if (inner.device != s.device) fail(number, "I8: a step of its body is on device ", inner.device);
      Replay(*body, outermost_).run();
    }
  }

  // Inputs and constants hold their own value until a step writes there.
  bool holds(const Slot& r) {
    const Place place{r.base, r.index};
    if ((r.base == Slot::Base::Input && !written_.contains(place)) || r.base == Slot::Base::Constant) return true;
    return contents_[place].holds(r.offset, r.bytes, r.value);
  }

  // I17 between runs: what does not wait for the run before touches nothing that it uses.
  void check_prefetches() const {
    for (size_t i = 0; i < plan_.prefetches; ++i) {
      const Step& s = plan_.steps.at(i);
      if (s.kind != Kind::Upload || !s.waits.empty()) fail(i, "I17: comes before the run begins, and is no upload that waits for nothing");
      const Slot &from = s.reads()[0].slot, &to = s.writes()[0].slot;
      if (from.base != Slot::Base::Input || std::ranges::find(plan_.donated, from.index) != plan_.donated.end())
        fail(i, "I17: brings ", from, " before the run begins, which is no operand that stays as it is");
      if (to.base != Slot::Base::Arena || !plan_.arenas[static_cast<size_t>(to.index)].is_double_buffered)
        fail(i, "I17: writes ", to, " before the run begins, which the run before may still use");
    }
  }

  // I17, by each pair of steps that touch the same bytes: the later one knows that the earlier one has happened.
  void check_streams() const {
    check_prefetches();
    const size_t queues = queue_count(plan_);
    if (queues == 1) return;
    std::vector<Clock> now(queues, Clock(queues, -1)), after;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& s = plan_.steps[i];
      const size_t queue = queue_of(s);
      Clock known = now[queue];
      merge(known, now[0]);
      for (const int32_t w : s.waits) {
        if (w < 0 || w >= static_cast<int32_t>(i)) fail(i, "I17: waits for step ", w);
        if (!plan_.steps[static_cast<size_t>(w)].is_awaited) fail(i, "I17: waits for step ", w, ", which does not say when it is done");
        merge(known, after[static_cast<size_t>(w)]);
      }
      for (size_t j = 0; j < i; ++j)
        if (known[queue_of(plan_.steps[j])] < static_cast<int32_t>(j) && conflicts(plan_.steps[j], s))
          fail(i, "I17: touches what step ", j, " (", plan_.steps[j].label, ") does on another stream, and does not wait for it");
      known[queue] = static_cast<int32_t>(i);
      now[queue] = known;
      after.push_back(std::move(known));
    }
    for (const Step& s : plan_.steps) {
      if (s.on_host || s.kind != Kind::Download || s.writes()[0].slot.base == Slot::Base::Arena) continue;
      const auto number = static_cast<int32_t>(&s - plan_.steps.data());
      if (std::ranges::find(plan_.waits_at_end, number) == plan_.waits_at_end.end())
        internal_error("I24: nobody waits for step ", number, " (", s.label, "), which writes a result in the host's memory");
    }
    for (const int32_t w : plan_.waits_at_end)
      if (w < 0 || w >= static_cast<int32_t>(plan_.steps.size()) || !plan_.steps[static_cast<size_t>(w)].is_awaited)
        internal_error("I24: the run ends with step ", w, ", which does not say when it is done");
  }
  static bool conflicts(const Step& a, const Step& b) {
    for (const Effect& x : a.effects)
      for (const Effect& y : b.effects)
        if ((x.kind != Effect::Kind::Read || y.kind != Effect::Kind::Read) && x.slot.overlaps(y.slot)) return true;
    return false;
  }

  const Plan& plan_;
  const Plan& outermost_;
  std::map<Place, Contents> contents_;
  std::map<Place, bool> written_;
};

}  // namespace

namespace {

// I19. A plan that is known not to fit says so itself, and nobody runs it.
void check_limits(const Plan& plan) {
  if (std::ranges::any_of(plan.budgets, [](const BudgetReport& r) { return !r.fits; })) return;
  for (const Limit& l : plan.limits)
    if (const size_t bytes = l.is_pinned ? plan.pinned_bytes() : plan.peak_bytes(l.device); bytes > l.bytes)
      internal_error("I19: the plan takes ", bytes, " bytes of device ", l.device, l.is_pinned ? " for copies" : "", ", its limit is ",
                     l.bytes);
}

}  // namespace

void verify(const Plan& plan) {
  Replay(plan, plan).run();
  check_limits(plan);
}

}  // namespace tandem::plan
