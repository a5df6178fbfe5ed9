// Stage: what one stage of an iterator has done so far, and the knobs that autotuning may turn. Outlives the walks over it.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

namespace tandem::data {

// A number that is fixed, or found while running.
struct Tunable {
  std::atomic<int64_t> value{1};
  int64_t low = 1, high = 1;  // equal: fixed
  bool automatic() const { return low < high; }
};

struct Stage {
  std::string name;  // "map"
  std::string text;  // "map(parallel_calls=2)"
  int depth = 0;     // how many stages are behind it

  std::atomic<int64_t> elements{0}, bytes{0}, errors{0};
  std::atomic<int64_t> busy_ns{0};                  // of all its threads, without what its inputs took
  std::atomic<int64_t> wait_ns{0};                  // that its reader waited for its queue
  std::atomic<int64_t> queued{0}, queued_bytes{0};  // now
  std::atomic<int64_t> fill_sum{0}, fill_count{0};  // how full the queue was when its reader came
  Tunable parallel, capacity;                       // capacity 0: a multiple of the threads
  bool has_queue = false;
  std::atomic<int64_t> block{1};           // elements that a thread makes in one go
  std::atomic<int64_t> largest_bytes{-1};  // of its elements so far; -1: nobody knows yet

  void count_index() { elements.store(elements.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
};

// Adds the time of its life, less that of timers inside it on the same thread, to a stage.
class SelfTimer {
 public:
  explicit SelfTimer(Stage& stage);
  ~SelfTimer();
  SelfTimer(const SelfTimer&) = delete;
  SelfTimer& operator=(const SelfTimer&) = delete;
  int64_t start() const { return start_; }

 private:
  Stage& stage_;
  int64_t start_, outer_inner_;
};
// The same for time that a stage's reader waits: nobody is busy then.
class WaitTimer {
 public:
  explicit WaitTimer(Stage& stage);
  ~WaitTimer();
  WaitTimer(const WaitTimer&) = delete;
  WaitTimer& operator=(const WaitTimer&) = delete;

 private:
  Stage& stage_;
  int64_t start_;
};
int64_t now_ns();

}  // namespace tandem::data
