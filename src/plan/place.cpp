#include "plan/place.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "plan/allocate.hpp"
#include "plan/in_place.hpp"
#include "plan/order.hpp"
#include "plan/waits.hpp"

namespace tandem::plan {
namespace {

constexpr size_t kSmallBytes = size_t{16} << 10;         // of what goes up from the host's memory
constexpr size_t kMostGapBytes = size_t{1} << 20;        // of an arena
constexpr size_t kGapFromBytes = 4096;                   // of a value
constexpr size_t kPredicateBytes = codegen::kAlignment;  // in front of a loop's scratch: where its condition writes
constexpr int64_t kArenaEffortShare = 8;                 // of a thorough search for addresses: it may be asked for several times

class Placer {
 public:
  Placer(Units units, const Facts& facts, BodyPlans& bodies, std::span<const size_t> capacities)
      : units_(std::move(units)), facts_(facts.kernels), devices_(facts.devices), bodies_(bodies), capacities_(capacities) {}

  // The program's own, or the arena of the bodies.
  size_t scratch_bytes(const Unit& u) {
    size_t bytes = u.kernel >= 0 ? facts_[static_cast<size_t>(u.kernel)].scratch_bytes : 0;
    for (const auto& body : u.bodies) bytes = std::max(bytes, body_plan(body)->arena_bytes());
    return u.kind == Kind::While ? bytes + kPredicateBytes : bytes;
  }

  Plan run() {
    plan_.bindings = std::move(units_.bindings);
    plan_.inputs = std::move(units_.inputs);
    plan_.input_devices = std::move(units_.input_devices);
    plan_.outputs = std::move(units_.outputs);
    plan_.output_devices = std::move(units_.output_devices);
    plan_.aliases = std::move(units_.aliases);
    plan_.donated.assign(plan_.outputs.size(), -1);
    sequence_ = std::move(units_.units);
    for (Unit& u : sequence_) {
      if (is_prefetch(u)) ++plan_.prefetches;
      add_step(u);
    }
    find_lives();
    donate();
    take_places();
    allocate_arenas();
    for (size_t i = 0; i < sequence_.size(); ++i) add_effects(i);
    add_waits(plan_);
    return std::move(plan_);
  }

 private:
  struct Life {
    int first = -1, last = -1;  // from its first write to its last use, counted in steps
    bool is_uploaded = false;   // from the host
    size_t offset = 0;          // in its arena
  };
  static size_t at(const Access& a) { return static_cast<size_t>(a.block); }
  const DeviceFacts& device(int32_t d) const { return devices_[static_cast<size_t>(d)]; }
  bool is_prefetch(const Unit& u) const { return u.kind == Kind::Upload && units_.blocks[at(u.writes[0])].is_prefetched; }

  // ---- steps ----
  void add_step(Unit& u) {
    Step s;
    s.kind = u.kind;
    s.device = u.device;
    s.on_host = device(u.device).host_memory;
    if (u.kind == Kind::Upload) s.stream = device::StreamKind::Upload;
    if (u.kind == Kind::Download) s.stream = device::StreamKind::Download;
    s.kernel = u.kernel;
    s.carries = u.carries;
    s.sequences = u.sequences;
    s.trips = u.trips;
    s.reverse = u.reverse;
    s.may_fail = u.kind == Kind::Launch && u.may_fail;
    s.is_again = u.is_again;
    s.label = std::move(u.label);
    s.location = u.location;
    if (u.kernel >= 0) {
      const KernelFacts& f = facts_[static_cast<size_t>(u.kernel)];
      s.kernel_name = f.name;
      s.cost = f.cost;
    }
    for (const auto& body : u.bodies) s.bodies.push_back(body_plan(body));
    const size_t scratch = scratch_bytes(u);
    scratch_.push_back({-1, scratch});
    if (scratch) {
      scratch_.back().block = static_cast<int32_t>(units_.blocks.size());
      units_.blocks.push_back({Block::Kind::Local, -1, u.device, scratch});
    }
    plan_.steps.push_back(std::move(s));
  }

  const std::shared_ptr<const Plan>& body_plan(const std::shared_ptr<const Units>& body) {
    std::shared_ptr<const Plan>& plan = bodies_[body.get()];
    if (!plan) plan = std::make_shared<const Plan>(place(in_order(*body), {facts_, devices_}, bodies_));
    return plan;
  }

  void find_lives() {
    lives_.resize(units_.blocks.size());
    const auto use = [&](const Access& a, int step) {
      if (a.block < 0) return;
      Life& l = lives_[at(a)];
      if (l.first < 0) l.first = step;
      l.last = step;
    };
    for (size_t i = 0; i < sequence_.size(); ++i) {
      const int step = static_cast<int>(i);
      for (const auto* list : {&sequence_[i].reads, &sequence_[i].writes, &sequence_[i].other_carries})
        for (const Access& a : *list) use(a, step);
      use(scratch_[i], step);
      if (sequence_[i].kind != Kind::Upload || sequence_[i].is_again) continue;
      lives_[at(sequence_[i].writes[0])].is_uploaded = true;
      // The host goes on at once instead of waiting for this place; what is large is not worth the memory.
      if (Life& from = lives_[at(sequence_[i].reads[0])]; units_.blocks[at(sequence_[i].reads[0])].bytes <= kSmallBytes)
        from.last = static_cast<int>(sequence_.size());
    }
    root_.resize(units_.blocks.size());
    std::iota(root_.begin(), root_.end(), 0);
  }

  // ---- places of others ----
  bool may_replace(size_t step, int32_t block, size_t bytes) const {
    return plan::may_replace(sequence_[step], facts_, block, units_.blocks[static_cast<size_t>(block)].bytes, bytes, root_);
  }

  // An output that may overwrite an input does so when nothing reads the input after it is written.
  void donate() {
    for (size_t k = 0; k < units_.donations.size(); ++k) {
      const int32_t j = units_.donations[k], out = units_.output_blocks[k];
      if (j < 0 || out < 0) continue;
      const auto input = static_cast<size_t>(j);
      const bool handed_on = std::ranges::any_of(plan_.aliases, [&](const OutputAlias& a) { return a.input == j; });
      const bool taken = std::ranges::find(plan_.donated, j) != plan_.donated.end();
      if (handed_on || taken || !plan_.inputs[input].is_dense() || plan_.input_devices[input] != plan_.output_devices[k]) continue;
      Block& o = units_.blocks[static_cast<size_t>(out)];
      const int32_t in = units_.input_blocks[input];
      const Life &ol = lives_[static_cast<size_t>(out)], &il = lives_[static_cast<size_t>(in)];
      if (o.bytes != units_.blocks[static_cast<size_t>(in)].bytes || ol.first < il.last) continue;
      if (ol.first == il.last && !may_replace(static_cast<size_t>(ol.first), in, o.bytes)) continue;
      o.kind = Block::Kind::Input;
      o.index = j;
      plan_.donated[k] = j;
    }
  }

  // Results that may, take the places of operands that die in their step.
  void take_places() {
    for (size_t i = 0; i < sequence_.size(); ++i) {
      const int step = static_cast<int>(i);
      for (const Access& w : sequence_[i].writes) {
        const Life& out = lives_[at(w)];
        if (units_.blocks[at(w)].kind != Block::Kind::Local || out.first != step) continue;
        for (const Access& r : sequence_[i].reads) {
          const int32_t in = root_[at(r)];
          Life& life = lives_[static_cast<size_t>(in)];
          if (units_.blocks[static_cast<size_t>(in)].kind != Block::Kind::Local || life.last != step) continue;
          if (!may_replace(i, in, units_.blocks[at(w)].bytes)) continue;
          root_[at(w)] = in;
          life.last = std::max(out.last, step + 1);  // so that no other result of this step takes it
          break;
        }
      }
    }
  }

  // ---- addresses: one arena a device, and of the host's memory one for each device whose copies reach it ----
  void allocate_arenas() {
    arena_of_.assign(units_.blocks.size(), -1);
    find_pins();
    for (size_t d = 0; d < devices_.size(); ++d) {
      std::map<int32_t, std::vector<size_t>> by_pin;
      std::vector<size_t> prefetched;
      for (size_t i = 0; i < units_.blocks.size(); ++i) {
        const Block& b = units_.blocks[i];
        if (b.kind != Block::Kind::Local || b.device != static_cast<int32_t>(d) || root_[i] != static_cast<int32_t>(i)) continue;
        if (lives_[i].first < 0) continue;
        (b.is_prefetched ? prefetched : by_pin[devices_[d].host_memory ? pins_[i] : -1]).push_back(i);
      }
      for (const auto& [pin, placed] : by_pin) allocate_arena(d, pin, placed, false);
      if (!prefetched.empty()) allocate_arena(d, -1, prefetched, true);
    }
  }
  void allocate_arena(size_t d, int32_t pin, const std::vector<size_t>& placed, bool is_double_buffered) {
    std::vector<Lifetime> lifetimes;
    const size_t capacity = capacities_.empty() ? 0 : capacities_[d];
    for (const size_t i : placed) {
      // Without a limit, what comes from the host has its place from the beginning, so it need not wait for whoever used that before.
      const bool is_early = capacity == 0 && lives_[i].is_uploaded;
      lifetimes.push_back({is_early ? 0 : lives_[i].first, lives_[i].last, units_.blocks[i].bytes});
    }
    keep_apart(lifetimes, devices_[d].gap_bytes);
    const Allocation allocation = allocate(lifetimes, {.alignment = codegen::kAlignment,
                                                       .capacity = capacity,
                                                       .effort = capacity ? thorough_effort(lifetimes.size()) / kArenaEffortShare : 0});
    for (size_t k = 0; k < placed.size(); ++k) {
      lives_[placed[k]].offset = allocation.offsets[k];
      arena_of_[placed[k]] = static_cast<int32_t>(plan_.arenas.size());
    }
    plan_.arenas.push_back({.device = static_cast<int32_t>(d),
                            .pinned_by = pin,
                            .bytes = codegen::align_up(allocation.peak),
                            .is_double_buffered = is_double_buffered});
  }
  // By block: the device that copies from it, or else to it. What is only the host's own lies with the others.
  void find_pins() {
    pins_.assign(units_.blocks.size(), -1);
    for (const Kind kind : {Kind::Upload, Kind::Download})
      for (const Unit& u : sequence_) {
        if (u.kind != kind) continue;
        int32_t& pin = pins_[static_cast<size_t>(root_[at(kind == Kind::Upload ? u.reads[0] : u.writes[0])])];
        if (pin < 0) pin = u.device;
      }
    const int32_t most = pinning_device();
    for (int32_t& pin : pins_)
      if (pin < 0) pin = most;
  }
  // The first device whose copies reach memory of the host; -1: there is none.
  int32_t pinning_device() const {
    for (const Step& s : plan_.steps)
      if (!s.on_host) return s.device;
    return -1;
  }
  // Where values are so few and small that all stay in caches, what lies between them may take some memory.
  static void keep_apart(std::vector<Lifetime>& lifetimes, size_t gap) {
    if (lifetimes.size() * gap > kMostGapBytes) return;
    for (Lifetime& l : lifetimes)
      if (l.bytes >= kGapFromBytes) l.bytes += gap;
  }

  // ---- effects ----
  Slot slot(const Access& a) const {
    const Block& b = units_.blocks[static_cast<size_t>(root_[at(a)])];
    Slot s;
    s.bytes = a.bytes;
    s.shift = a.shift;
    s.value = a.block;
    switch (b.kind) {
      case Block::Kind::Local:
        s.base = Slot::Base::Arena;
        s.index = arena_of_[static_cast<size_t>(root_[at(a)])];
        s.offset = lives_[static_cast<size_t>(root_[at(a)])].offset;
        return s;
      case Block::Kind::Input: s.base = Slot::Base::Input; break;
      case Block::Kind::Output: s.base = Slot::Base::Output; break;
      case Block::Kind::Constant: s.base = Slot::Base::Constant; break;
    }
    s.index = b.index;
    return s;
  }
  void add_effects(size_t i) {
    const Unit& u = sequence_[i];
    std::vector<Effect>& effects = plan_.steps[i].effects;
    const std::vector<bool> none, &in_place = u.kernel < 0 ? none : facts_[static_cast<size_t>(u.kernel)].in_place;
    effects.reserve(u.reads.size() + u.writes.size() + u.other_carries.size() + 1);
    for (size_t r = 0; r < u.reads.size(); ++r)
      effects.push_back({Effect::Kind::Read, slot(u.reads[r]), r < in_place.size() && in_place[r]});
    for (const Access& w : u.writes) effects.push_back({Effect::Kind::Write, slot(w)});
    for (const Access& c : u.other_carries) effects.push_back({Effect::Kind::Carry, slot(c)});
    if (scratch_[i].block >= 0) effects.push_back({Effect::Kind::Scratch, slot(scratch_[i])});
  }

  Units units_;
  std::span<const KernelFacts> facts_;
  std::span<const DeviceFacts> devices_;
  BodyPlans& bodies_;
  std::span<const size_t> capacities_;
  Plan plan_;
  std::vector<Unit> sequence_;     // as they run
  std::vector<Access> scratch_;    // one a step; block -1: none
  std::vector<Life> lives_;        // by block
  std::vector<int32_t> root_;      // by block: the one whose place it has
  std::vector<int32_t> arena_of_;  // by block that is a root
  std::vector<int32_t> pins_;      // by block, where it lies in the host's memory: whose copies reach it
};

}  // namespace

Units in_order(Units units) {
  std::vector<Unit> sequence;
  for (const int32_t n : order(units)) sequence.push_back(std::move(units.units[static_cast<size_t>(n)]));
  units.units = std::move(sequence);
  return units;
}

Plan place(Units units, const Facts& facts, BodyPlans& bodies, std::span<const size_t> capacities) {
  return Placer(std::move(units), facts, bodies, capacities).run();
}

size_t scratch_bytes(const Unit& unit, const Facts& facts, BodyPlans& bodies) { return Placer({}, facts, bodies, {}).scratch_bytes(unit); }

}  // namespace tandem::plan
