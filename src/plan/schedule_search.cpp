// The moves of the search and when they are taken.
#include "plan/schedule_search.hpp"

#include <algorithm>
#include <cmath>

namespace tandem::plan::scheduling {
namespace {

constexpr int kCycles = 10;
// Temperatures, as shares of the time of every unit once; of so many units, where there are more.
constexpr double kHot = 1e-3, kCold = 3e-5;
constexpr double kMostUnits = 450;
// So many changes after each of which the price of memory is steered.
constexpr int kSteering = 200;
constexpr int kSampled = 12;       // values that are looked at for an eviction
constexpr int kMostRecreated = 6;  // evictions after a ruin

}  // namespace

Search::State Search::state() {
  if (!model_.is_timed) return {draft_.cost(), draft_.excess()};
  draft_.items(items_);
  steps_ += draft_.length();
  const Score score = evaluator_.score(items_);
  return score.is_valid ? State{score.cost, score.excess} : State{INT64_MAX / 4, INT64_MAX / 4};
}

double Search::objective(const State& s) const {
  return static_cast<double>(s.cost) + (s.excess > 0 ? excess_price_ * static_cast<double>(s.excess) + penalty_ : 0);
}

// A position above the limit, or any.
int32_t Search::full_position() {
  const int32_t n = draft_.length();
  const int32_t from = random_.below(n);
  if (draft_.excess() == 0) return from;
  for (int32_t i = 0; i < n; ++i) {
    const int32_t t = from + i < n ? from + i : from + i - n;
    if (draft_.memory(t) > model_.limit) return t;
  }
  return from;
}

int32_t Search::random_repeat() {
  if (draft_.repeat_count() == 0) return -1;
  for (int i = 0; i < 64; ++i) {
    const int32_t t = random_.below(draft_.length());
    if (draft_.is_repeat(t)) return t;
  }
  return -1;
}

// Takes a value out of memory at a full position.
bool Search::evict() {
  const int32_t t = full_position();
  double best_merit = 0;
  int32_t best = -1;
  const int wanted = draft_.excess() > 0 ? kSampled : 1;
  int found = 0;
  const int32_t n = model_.value_count();
  const int32_t start = random_.below(n);
  for (int32_t i = 0, v = start; i < n && found < wanted; ++i) {
    // A stride that is coprime to nearly every n visits the values in no order of theirs.
    v = static_cast<int32_t>((static_cast<int64_t>(start) + int64_t{i} * 7919) % n);
    if (draft_.bytes(v) == 0) continue;
    const Draft::Gap gap = draft_.gap(v, t);
    if (!gap) continue;
    ++found;
    const double relief = (wanted == 1 ? 1 : static_cast<double>(remaker_.relief(v, gap))) * (0.5 + random_.unit());
    if (!remaker_.plan(v, gap.to, best_merit > 0 ? relief / best_merit : Remaker::kAnyPrice)) continue;
    const double merit = relief / (remaker_.price() + 1);
    if (merit <= best_merit) continue;
    best_merit = merit;
    best = v;
  }
  if (best < 0 || !remaker_.plan(best, draft_.gap(best, t).to)) return false;
  remaker_.apply();
  return true;
}

bool Search::recreate() {
  for (int i = 0; i < kMostRecreated && draft_.excess() > 0; ++i)
    if (!evict()) break;
  return true;
}

bool Search::ruin() {
  int32_t t = random_repeat();
  if (t < 0) return false;
  const int count = 1 + random_.below(3);
  const bool near = random_.below(2) == 0;
  for (int i = 0; i < count; ++i) {
    draft_.erase(t);
    draft_.settle();
    if (near) {
      t = std::clamp(t + random_.below(41) - 20, 0, draft_.length() - 1);
      int32_t k = 0;
      while (k < 20 && t + k < draft_.length() && !draft_.is_repeat(t + k)) ++k;
      t += k;
      if (t >= draft_.length() || !draft_.is_repeat(t)) break;
    } else if (t = random_repeat(); t < 0) {
      break;
    }
  }
  return recreate();
}

// Erases a repeat.
bool Search::drop() {
  const int32_t t = random_repeat();
  if (t < 0) return false;
  draft_.erase(t);
  return true;
}

bool Search::shift() {
  const int32_t t = random_repeat();
  if (t < 0) return false;
  const int32_t item = draft_.item(t);
  const int32_t reach = random_.below(2) == 0 ? 8 : 60;
  const int32_t to = t + random_.below(2 * reach + 1) - reach;
  if (to < 0 || to > draft_.length() || to == t) return false;
  const int32_t before = draft_.run_at(to);
  draft_.erase(t);
  if (before != 0 && !draft_.is_run(before)) return true;
  const int32_t position = draft_.position_of(before);
  if (draft_.may_run(item, position)) draft_.insert(position, item);
  return true;
}

// Moves neighbouring items together.
bool Search::shift_block(bool moves_firsts) {
  int32_t t = moves_firsts ? random_.below(draft_.length()) : random_repeat();
  if (t < 0) return false;
  const int32_t count = 2 + random_.below(4);
  const int32_t to = t + random_.below(81) - 40;
  if (to < 0 || to > draft_.length() || (to >= t && to <= t + count)) return false;
  runs_.clear();
  for (int32_t i = 0; i < count && t + i < draft_.length(); ++i) runs_.push_back(draft_.run_at(t + i));
  const int32_t before = draft_.run_at(to);
  // In an order in which each may go where the others do not stop it.
  if (to > t) {
    int32_t anchor = before;
    for (size_t i = runs_.size(); i-- > 0;) {
      const int32_t run = runs_[i];
      if (!draft_.is_run(run) || !draft_.is_run(anchor)) continue;
      const int32_t at = draft_.position_of(run);
      if (draft_.is_repeat(at)) {
        const int32_t item = draft_.item(at);
        draft_.erase(at);
        if (!draft_.is_run(anchor)) continue;
        const int32_t position = draft_.position_of(anchor);
        if (draft_.may_run(item, position)) {
          draft_.insert(position, item);
          if (position < draft_.length() && draft_.item(position) == item) anchor = draft_.run_at(position);
        }
      } else if (moves_firsts) {
        const int32_t position = draft_.position_of(anchor);
        if (draft_.move_first(at, position) && draft_.is_run(anchor) && draft_.position_of(anchor) > 0)
          anchor = draft_.run_at(draft_.position_of(anchor) - 1);
      }
    }
    return true;
  }
  for (int32_t run : runs_) {
    if (!draft_.is_run(run) || !draft_.is_run(before)) continue;
    const int32_t at = draft_.position_of(run), position = draft_.position_of(before);
    if (draft_.is_repeat(at)) {
      const int32_t item = draft_.item(at);
      draft_.erase(at);
      if (draft_.is_run(before) && draft_.may_run(item, draft_.position_of(before))) draft_.insert(draft_.position_of(before), item);
    } else if (moves_firsts) {
      draft_.move_first(at, position);
    }
  }
  return true;
}

bool Search::move_first() {
  const int32_t from = random_.below(draft_.length());
  if (draft_.is_repeat(from)) return false;
  const int32_t reach = random_.below(2) == 0 ? 8 : 80;
  const int32_t to = from + random_.below(2 * reach + 1) - reach;
  return to >= 0 && to <= draft_.length() && draft_.move_first(from, to);
}

bool Search::change(bool moves_firsts) {
  const int32_t dice = random_.below(100);
  if (dice < 15) return ruin();
  if (dice < 22) {
    if (!evict()) return false;
    for (int i = 0; i < 3; ++i) drop();
    return true;
  }
  if (dice < 46) return evict();
  if (dice < 60) return drop();
  if (dice < 83) return shift();
  if (dice < 90 || !moves_firsts) return shift_block(moves_firsts);
  return move_first();
}

bool Search::cycle(Candidate& best, int64_t goal, double hot, double cold, bool moves_firsts, int64_t until,
                   const std::function<bool()>& is_enough) {
  draft_.assign(best.sequence);
  const int64_t begin = steps(), length = std::max<int64_t>(1, until - begin);
  State now = state();
  int feasible = 0, changes = 0;
  double temperature = hot;
  remaker_.noise = 0.5;
  while (steps() < until) {
    if (++changes % kSteering == 0) {
      const double part = std::min(1.0, static_cast<double>(steps() - begin) / static_cast<double>(length));
      temperature = hot * std::pow(cold / hot, part);
      penalty_ = temperature / 2;
      const double wanted = 0.3 + 0.4 * part;
      excess_price_ *= feasible < wanted * kSteering ? 1.08 : 1 / 1.08;
      feasible = 0;
      if (model_.is_timed) {
        remaker_.overlapped = random_.unit();
        remaker_.may_fetch = random_.below(4) > 0;
      }
      if (is_enough && is_enough()) return true;
    }
    remaker_.excess_price = excess_price_;
    draft_.mark();
    if (!change(moves_firsts)) {
      draft_.undo();
      ++steps_;
      feasible += now.excess == 0;
      continue;
    }
    draft_.settle();
    const State next = state();
    const double worse = objective(next) - objective(now);
    if (worse <= 0 || random_.unit() < std::exp(-worse / temperature)) {
      now = next;
      if (now.excess == 0 && (now.cost < best.score.cost || best.score.excess > 0)) {
        draft_.items(best.sequence);
        best.score = evaluator_.score(best.sequence);
        if (best.score.cost <= goal) return true;
      }
    } else {
      draft_.undo();
    }
    feasible += now.excess == 0;
  }
  return false;
}

void Search::run(Candidate& best, int64_t goal, int64_t most_steps, const std::function<bool()>& is_enough) {
  if (best.sequence.empty() || (best.score.excess == 0 && best.score.cost <= goal)) return;
  const int64_t begin = steps();
  const auto base = static_cast<double>(std::max<int64_t>(1, model_.base_sum));
  const double some = base * std::min(1.0, kMostUnits / model_.unit_count());
  int64_t bytes = 1;
  for (int64_t b : model_.bytes) bytes += b;
  excess_price_ = 0.1 * base / static_cast<double>(bytes);
  for (int c = 0; c < kCycles; ++c) {
    const double hot = kHot * some * (c % 2 == 1 ? 0.3 : 1);
    if (cycle(best, goal, hot, kCold * some, c % 2 == 1, begin + most_steps * (c + 1) / kCycles, is_enough)) return;
  }
}

}  // namespace tandem::plan::scheduling
