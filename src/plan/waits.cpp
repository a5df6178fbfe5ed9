#include "plan/waits.hpp"

#include <map>
#include <set>

#include "plan/queues.hpp"

namespace tandem::plan {
namespace {

// Who touched which bytes of one base last.
class Touched {
 public:
  explicit Touched(size_t queues) : queues_(queues) {}

  // Adds to `before` the steps that the access has to come after, and notes it.
  void add(const Slot& slot, bool writes, size_t queue, int32_t step, std::set<int32_t>& before) {
    if (slot.bytes == 0) return;
    cut(slot.offset);
    cut(slot.offset + slot.bytes);
    for (auto it = pieces_.lower_bound(slot.offset); it != pieces_.end() && it->first < slot.offset + slot.bytes; ++it) {
      Piece& p = it->second;
      if (p.writer >= 0) before.insert(p.writer);
      if (!writes) {
        p.readers[queue] = step;
        continue;
      }
      for (const int32_t reader : p.readers)
        if (reader >= 0) before.insert(reader);
      p.writer = step;
      p.readers.assign(queues_, -1);
    }
  }

 private:
  struct Piece {
    int32_t writer = -1;
    std::vector<int32_t> readers;  // the last one of each queue
  };
  // A piece begins at the offset.
  void cut(size_t offset) {
    auto it = pieces_.upper_bound(offset);
    if (it == pieces_.begin()) {
      pieces_.emplace(offset, Piece{-1, std::vector<int32_t>(queues_, -1)});
    } else if (--it; it->first != offset) {
      pieces_.emplace(offset, it->second);
    }
  }
  size_t queues_;
  std::map<size_t, Piece> pieces_;  // by first byte; each goes on to the next
};

}  // namespace

void add_waits(Plan& plan) {
  const size_t queues = queue_count(plan);
  if (queues == 1) return;
  std::map<std::pair<Slot::Base, int32_t>, Touched> touched;
  std::vector<Clock> known(queues, Clock(queues, -1)), at_step;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    Step& s = plan.steps[i];
    const size_t queue = queue_of(s);
    const auto number = static_cast<int32_t>(i);
    std::set<int32_t> before;
    for (const Effect& e : s.effects)
      touched.try_emplace({e.slot.base, e.slot.index}, queues)
          .first->second.add(e.slot, e.kind != Effect::Kind::Read, queue, number, before);
    Clock clock = known[queue];
    merge(clock, known[0]);
    // The latest first: what it waited for need not be waited for again.
    for (auto it = before.rbegin(); it != before.rend(); ++it) {
      const size_t other = queue_of(plan.steps[static_cast<size_t>(*it)]);
      if (*it == number || other == queue || clock[other] >= *it) continue;
      s.waits.push_back(*it);
      plan.steps[static_cast<size_t>(*it)].is_awaited = true;
      merge(clock, at_step[static_cast<size_t>(*it)]);
    }
    clock[queue] = number;
    known[queue] = clock;
    at_step.push_back(std::move(clock));
  }
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    Step& s = plan.steps[i];
    if (s.on_host || s.kind != Kind::Download) continue;
    const Slot& to = s.writes()[0].slot;
    if (to.base != Slot::Base::Output && to.base != Slot::Base::Input) continue;
    plan.waits_at_end.push_back(static_cast<int32_t>(i));
    s.is_awaited = true;
  }
}

}  // namespace tandem::plan
