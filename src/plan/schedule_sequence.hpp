// Sequences of items, with repeats: what a schedule is while it is searched for. When a value is freed follows: after its last use before
// it is made again. So any change of a sequence is easy to judge.
#pragma once
#include "plan/schedule_model.hpp"

namespace tandem::plan::scheduling {

struct Score {
  bool is_valid = false;  // each unit runs, what it reads is there, and the rules of order hold
  int64_t cost = 0;
  int64_t excess = 0;  // bytes above the limits, summed over the items
  int64_t peak = 0, host_peak = 0;
};

// Judges sequences. What it last saw can be asked for.
class Evaluator {
 public:
  explicit Evaluator(const Model& model);

  Score score(std::span<const int32_t> sequence);

  // Of the last valid one: without the repeats that nobody needs; the device's bytes while each item runs.
  std::span<const int32_t> kept() const { return {kept_.data() + first_, kept_.size() - first_}; }
  std::span<const int64_t> memory() const { return {memory_.data() + first_, memory_.size() - first_}; }
  std::vector<ScheduleAction> actions() const;

  int64_t steps() const { return steps_; }

 private:
  bool walk_back(std::span<const int32_t> sequence, Score& score);
  void add_times(Score& score);

  struct Event {
    int32_t position;  // of kept_
    int32_t value;
  };
  // Bytes that the order has freed and another lane may still use.
  struct Pending {
    int64_t until, bytes;
  };
  static int64_t wait(const std::vector<Pending>& pending, int64_t start, int64_t room);
  static void free_at(std::vector<Pending>& pending, int64_t until, int64_t bytes);

  const Model& model_;
  std::vector<int32_t> count_;       // of items: how often they are still to come
  std::vector<uint8_t> is_needed_;   // of values: read later, before they are made again; kDiesHere while that is found out
  std::vector<uint8_t> is_fetched_;  // of values: fetched later
  std::vector<int32_t> kept_;
  std::vector<int64_t> memory_, host_memory_;
  std::vector<Event> deaths_;    // a value is freed after the position, ~value: its offloaded copy; the latest first
  std::vector<Event> offloads_;  // a value is copied to the host after the position; the latest first
  size_t first_ = 0;             // where kept_ begins
  std::vector<int64_t> ready_, busy_until_, host_ready_;  // of values: when they are there, when nobody uses them any more
  std::vector<Pending> pending_, host_pending_;
  int64_t steps_ = 0;
};

}  // namespace tandem::plan::scheduling
