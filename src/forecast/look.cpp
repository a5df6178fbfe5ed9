// What a plan does in time and with memory, read off its steps.
#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "device/account.hpp"
#include "forecast/planner.hpp"
#include "plan/simulate.hpp"

namespace tandem::forecast {
namespace {

using plan::Effect;
using plan::Kind;
using plan::Plan;
using plan::Slot;

// How long steps take, and when they run.
class Clock {
 public:
  Clock(const engine::Planned& planned, const engine::Devices& devices) : plan_(planned.plan), seconds_(planned.seconds) {
    for (size_t d = 0; d < devices.count(); ++d)
      facts_.push_back({.host_memory = devices.at(d).info().host_memory, .rates = devices.at(d).rates()});
    simulated_ = plan::simulate(plan_, {seconds_, facts_});
  }

  double seconds(const plan::Step& s) const { return plan::seconds_of(s, {seconds_, facts_}); }

  std::vector<Moment> moments() const {
    std::vector<Moment> all;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const plan::Step& s = plan_.steps[i];
      Moment m{.begin = simulated_.steps[i].begin, .end = simulated_.steps[i].end, .is_again = s.is_again, .label = s.label};
      m.lane = s.on_host                                 ? Moment::Lane::Host
               : s.stream == device::StreamKind::Compute ? Moment::Lane::Compute
               : s.stream == device::StreamKind::Upload  ? Moment::Lane::Upload
                                                         : Moment::Lane::Download;
      all.push_back(std::move(m));
    }
    return all;
  }

 private:
  const Plan& plan_;
  const std::vector<double>& seconds_;
  std::vector<plan::DeviceFacts> facts_;
  plan::Simulated simulated_;
};

// What each value in an arena is for.
class Roles {
 public:
  Roles(const Plan& plan, const TrainingStep& step) : plan_(plan), step_(step) {
    for (const plan::Step& s : plan.steps) {
      for (const Effect& w : s.writes())
        if (w.slot.base == Slot::Base::Arena) set(w.slot, Role::Activation);
      if (const Slot* scratch = s.scratch()) set(*scratch, Role::Workspace);
      if (is_copy(s)) set(s.writes()[0].slot, of(s.reads()[0].slot));
    }
    // Backwards: what goes into a variable is that variable's, and what is as large as it and read for that is its gradient.
    for (size_t i = plan.steps.size(); i-- > 0;) {
      const plan::Step& s = plan.steps[i];
      for (const Effect& w : s.writes()) {
        const Role written = of(w.slot);
        if (written != Role::Weight && written != Role::OptimizerState) continue;
        for (const Effect& r : s.reads()) {
          if (r.slot.base != Slot::Base::Arena || of(r.slot) != Role::Activation) continue;
          if (is_copy(s))
            set(r.slot, written);
          else if (written == Role::Weight && r.slot.bytes == w.slot.bytes)
            set(r.slot, Role::Gradient);
        }
      }
    }
    for (const plan::Step& s : plan.steps)  // gradients that wait on the host and come back
      if (is_copy(s) && s.writes()[0].slot.base == Slot::Base::Arena && of(s.writes()[0].slot) == Role::Activation)
        set(s.writes()[0].slot, of(s.reads()[0].slot));
  }

  Role of(const Slot& s) const {
    if (s.base == Slot::Base::Input) return step_.inputs[static_cast<size_t>(s.index)].role;
    if (s.base != Slot::Base::Arena) return Role::Other;
    const auto it = of_.find({s.index, s.value});
    return it == of_.end() ? Role::Activation : it->second;
  }
  static bool is_copy(const plan::Step& s) { return s.kind == Kind::Upload || s.kind == Kind::Download || s.kind == Kind::Copy; }

 private:
  void set(const Slot& s, Role role) {
    if (s.base == Slot::Base::Arena) of_[{s.index, s.value}] = role;
  }
  const Plan& plan_;
  const TrainingStep& step_;
  std::map<std::pair<int32_t, int32_t>, Role> of_;  // by arena and value
};

class Looker {
 public:
  Looker(const engine::Planned& planned, const TrainingStep& step, const engine::Devices& devices)
      : plan_(planned.plan),
        homes_(planned.homes),
        step_(step),
        clock_(planned, devices),
        roles_(planned.plan, step),
        link_(devices.at(0).rates().link_bytes_per_second) {}

  Situation run() {
    s_.peak_bytes = plan_.peak_bytes(0);
    s_.moments = clock_.moments();
    for (const Moment& m : s_.moments) s_.seconds = std::max(s_.seconds, m.end);
    add_fixed();
    add_arena();
    find_moves();
    return std::move(s_);
  }

 private:
  static size_t counted(const codegen::Layout& o) { return device::Account::counted(byte_size(o.shape, o.dtype)); }
  static size_t at(Role r) { return static_cast<size_t>(r); }

  // What is there for the whole step.
  void add_fixed() {
    for (size_t i = 0; i < plan_.inputs.size(); ++i) {
      const size_t bytes = counted(plan_.inputs[i]);
      if (plan_.input_devices[i] == 0) {
        fixed_[at(step_.inputs[i].role)] += bytes;
      } else if (homes_[i] == 0) {
        s_.state_on_host += 1;
        s_.state_on_host_bytes += bytes;
        s_.host_bytes += bytes;
      }
    }
    for (size_t k = 0; k < plan_.outputs.size(); ++k)
      if (plan_.output_devices[k] == 0 && plan_.aliases[k].input < 0 && plan_.aliases[k].constant < 0 && plan_.donated[k] < 0)
        fixed_[at(Role::Other)] += counted(plan_.outputs[k]);
    for (const plan::Constant& c : plan_.constants)
      if (c.device == 0) fixed_[at(Role::Other)] += device::Account::counted(c.literal.bytes->size());
  }

  // One place in the arena, from the first step that uses it to the last.
  struct Life {
    size_t first, last, begin, end;
    Role role;
  };

  void add_arena() {
    int32_t arena = -1;
    for (size_t a = 0; a < plan_.arenas.size(); ++a) {
      if (plan_.arenas[a].is_double_buffered)
        fixed_[at(Role::Batch)] += device::Account::counted(plan_.arenas[a].taken_bytes());
      else if (plan_.arenas[a].device == 0)
        arena = static_cast<int32_t>(a);
      else
        s_.host_bytes += plan_.arenas[a].bytes;
    }
    std::map<int32_t, Life> lives;  // by value
    for (size_t i = 0; i < plan_.steps.size(); ++i)
      for (const Effect& e : plan_.steps[i].effects) {
        if (e.slot.base != Slot::Base::Arena || e.slot.index != arena) continue;
        const auto [it, is_new] =
            lives.try_emplace(e.slot.value, Life{i, i, e.slot.offset, e.slot.offset + e.slot.bytes, roles_.of(e.slot)});
        it->second.last = i;
        it->second.end = std::max(it->second.end, e.slot.offset + e.slot.bytes);
      }
    std::vector<std::vector<const Life*>> begins(plan_.steps.size());
    for (const auto& [value, life] : lives) begins[life.first].push_back(&life);
    std::vector<const Life*> alive;
    size_t most = 0, peak = 0;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      std::erase_if(alive, [&](const Life* l) { return l->last < i; });
      alive.insert(alive.end(), begins[i].begin(), begins[i].end());
      // By address; where a result takes an operand's place, the place counts once.
      std::ranges::stable_sort(alive, {}, &Life::begin);
      Parts& parts = s_.moments[i].parts;
      parts = fixed_;
      size_t reached = 0;
      for (const Life* l : alive) {
        const size_t from = std::max(l->begin, reached);
        if (l->end <= from) continue;
        parts[at(l->role)] += l->end - from;
        reached = l->end;
      }
      if (const size_t bytes = sum(parts); bytes > most) most = bytes, peak = i;
    }
    s_.parts = plan_.steps.empty() ? fixed_ : s_.moments[peak].parts;
    const size_t live = sum(s_.parts);
    if (s_.peak_bytes > live) s_.parts[at(Role::Gap)] = s_.peak_bytes - live;
  }

  void find_moves() {
    std::map<std::string, size_t> seen;  // moves by what they are, several times the same counts as one
    const auto add = [&](Move::Kind kind, const std::string& what, size_t bytes, double seconds, double instead, const Location& line) {
      const std::string place = line && step_.has_lines ? cat(line.file, ":", line.line) : std::string();
      const auto [it, is_new] = seen.try_emplace(cat(static_cast<int>(kind), what, place), s_.moves.size());
      if (is_new) s_.moves.push_back({kind, what, 0, 0, 0, place});
      Move& m = s_.moves[it->second];
      m.bytes += bytes;
      m.seconds += seconds;
      m.instead += instead;
    };
    std::map<std::pair<int32_t, int32_t>, size_t> writer;  // of a value in an arena: its first step
    std::set<std::pair<int32_t, int32_t>> fetched;         // values of the host's that come back
    for (const plan::Step& s : plan_.steps)
      if (s.kind == Kind::Upload && s.reads()[0].slot.base == Slot::Base::Arena)
        fetched.emplace(s.reads()[0].slot.index, s.reads()[0].slot.value);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const plan::Step& s = plan_.steps[i];
      const double seconds = clock_.seconds(s);
      if (s.kind == Kind::Upload || s.kind == Kind::Download) s_.copy_seconds += seconds;
      for (const Effect& w : s.writes())
        if (w.slot.base == Slot::Base::Arena) writer.try_emplace({w.slot.index, w.slot.value}, i);
      if (s.is_again && s.kind != Kind::Upload) {
        size_t bytes = 0;
        for (const Effect& w : s.writes()) bytes += w.slot.bytes;
        s_.recomputed += 1;
        s_.recomputed_bytes += bytes;
        s_.recomputed_seconds += seconds;
        add(Move::Kind::Recomputed, s.label, bytes, seconds, 0, s.location);
      }
      if (s.kind == Kind::Download && s.reads()[0].slot.base == Slot::Base::Arena && s.writes()[0].slot.base == Slot::Base::Arena) {
        const size_t bytes = s.writes()[0].slot.bytes;
        const bool returns = fetched.contains({s.writes()[0].slot.index, s.writes()[0].slot.value});
        if (returns) {
          s_.offloaded += 1;
          s_.offloaded_bytes += bytes;
        }
        const auto from = writer.find({s.reads()[0].slot.index, s.reads()[0].slot.value});
        const plan::Step* made = from == writer.end() ? nullptr : &plan_.steps[from->second];
        add(returns ? Move::Kind::Offloaded : Move::Kind::ToHost, made ? made->label : s.label, bytes, (returns ? 2 : 1) * seconds,
            made ? clock_.seconds(*made) : 0, made ? made->location : s.location);
      }
    }
    for (size_t i = 0; i < plan_.inputs.size(); ++i) {
      if (homes_[i] != 0 || plan_.input_devices[i] == 0) continue;
      double seconds = 0;
      for (const plan::Step& s : plan_.steps)
        if (Roles::is_copy(s))
          for (const Effect& e : s.effects)
            if (e.slot.base == Slot::Base::Input && e.slot.index == static_cast<int32_t>(i)) seconds += clock_.seconds(s);
      add(Move::Kind::StateOnHost, cat(step_.inputs[i].name, " (", name(step_.inputs[i].role), ")"), counted(plan_.inputs[i]), seconds, 0,
          {});
    }
    for (Move& m : s_.moves)  // what copying there and back would take
      if (m.kind == Move::Kind::Recomputed && link_ > 0) m.instead = 2 * static_cast<double>(m.bytes) / link_;
    std::ranges::stable_sort(s_.moves, std::greater{}, &Move::bytes);
  }

  const Plan& plan_;
  const std::vector<int32_t>& homes_;
  const TrainingStep& step_;
  const Clock clock_;
  const Roles roles_;
  const double link_;
  Parts fixed_{};
  Situation s_;
};

}  // namespace

Situation looked_at(const engine::Planned& planned, const TrainingStep& step, const engine::Devices& devices) {
  return Looker(planned, step, devices).run();
}

}  // namespace tandem::forecast
