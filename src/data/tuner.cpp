#include "data/tuner.hpp"

#include <algorithm>

namespace tandem::data {
namespace {

constexpr int64_t kLongestPeriod = 1'000'000'000;
constexpr double kBetter = 1.03;             // a change that brings less is taken back
constexpr double kIdle = 0.03;               // of the time: a reader that waits no more than this has nothing to gain
constexpr double kChanged = 0.5;             // a rate so far below the best one asks for another look
constexpr int64_t kToTry = 2, kToJudge = 8;  // elements in a period, before something is tried and before it is judged

}  // namespace

void Tuner::tick(int64_t from, int64_t to) {
  if (!context_.settings.autotune) return;
  if (began_ns_ == 0) {  // the first element starts threads, compiles and opens files
    began_ns_ = to;
    return;
  }
  ++elements_;
  waited_ns_ += to - from;
  const int64_t passed = to - began_ns_;
  if (passed < period_ns_ || elements_ < (change_.knob ? kToJudge : kToTry)) return;
  decide(static_cast<double>(elements_) * 1e9 / static_cast<double>(passed), static_cast<double>(waited_ns_) / static_cast<double>(passed));
  began_ns_ = to;
  elements_ = waited_ns_ = 0;
}

void Tuner::decide(double rate, double waiting) {
  if (change_.knob) {
    if (rate < change_.rate_before * kBetter) {
      change_.knob->value.store(change_.before, std::memory_order_relaxed);
      useless_.push_back(change_.knob);
    } else {
      useless_.clear();  // the bottleneck may be elsewhere now
    }
    change_ = {};
  }
  best_rate_ = std::max(best_rate_, rate);
  if (rate < best_rate_ * kChanged) {
    useless_.clear();
    best_rate_ = rate;
  }
  if (waiting < kIdle || !grow(rate)) period_ns_ = std::min(2 * period_ns_, kLongestPeriod);
}

// The stage whose threads are busiest gets one more, where there is a thread left; else a queue is doubled.
bool Tuner::grow(double rate) {
  Tunable* best = nullptr;
  double most = 0;
  int64_t threads = 0;
  context_.for_each_stage([&](Stage& s) {
    if (!s.parallel.automatic()) return;
    const int64_t value = s.parallel.value.load(std::memory_order_relaxed);
    threads += value;
    if (value >= s.parallel.high || std::ranges::find(useless_, &s.parallel) != useless_.end()) return;
    const double load = static_cast<double>(s.busy_ns.load(std::memory_order_relaxed)) / static_cast<double>(value);
    if (load > most) {
      most = load;
      best = &s.parallel;
    }
  });
  if (best && threads >= std::max(2, context_.settings.threads)) best = nullptr;
  if (!best)
    context_.for_each_stage([&](Stage& s) {
      const bool is_candidate =
          s.capacity.automatic() && s.capacity.value.load() < s.capacity.high && std::ranges::find(useless_, &s.capacity) == useless_.end();
      if (is_candidate && !best) best = &s.capacity;
    });
  if (!best) return false;
  const int64_t before = best->value.load(std::memory_order_relaxed);
  change_ = {best, before, rate};
  const bool is_queue = best->low > 1;  // queues begin with two
  best->value.store(std::min(best->high, is_queue ? 2 * before : before + 1), std::memory_order_relaxed);
  return true;
}

}  // namespace tandem::data
