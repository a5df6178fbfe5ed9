// A sequence of items that is changed in small steps: after each, what it costs and what memory holds is known again at once.
#pragma once
#include <algorithm>

#include "plan/schedule_model.hpp"

namespace tandem::plan::scheduling {

// Counts the device's memory and the sum of costs; times and the host's memory are the Evaluator's. A run is one occurrence of an item.
class Draft {
 public:
  explicit Draft(const Model& model);

  // A valid sequence; repeats without use are left out.
  void assign(std::span<const int32_t> items);

  int32_t length() const { return static_cast<int32_t>(runs_.size()) - 1; }
  int32_t item(int32_t position) const { return item_of_[static_cast<size_t>(runs_[static_cast<size_t>(position)])]; }
  void items(std::vector<int32_t>& result) const;
  int64_t cost() const { return cost_; }
  int64_t excess() const { return excess_; }
  int64_t memory(int32_t position) const { return memory_[static_cast<size_t>(position)]; }
  std::span<const int64_t> memory(int32_t from, int32_t to) const {  // before `to`
    return std::span(memory_).subspan(static_cast<size_t>(from), static_cast<size_t>(std::max(0, to - from)));
  }
  int64_t bytes(int32_t value) const { return bytes_[static_cast<size_t>(value)]; }  // 0 if on the host
  bool is_repeat(int32_t position) const;
  int32_t first(int32_t item) const;  // position; length() if it does not run
  int32_t run_at(int32_t position) const { return runs_[static_cast<size_t>(position)]; }
  int32_t position_of(int32_t run) const { return position_[static_cast<size_t>(run)]; }
  bool is_run(int32_t run) const { return position_[static_cast<size_t>(run)] >= 0; }
  int32_t repeat_count() const { return length() - model_.unit_count(); }

  // The stretch without a use of a live value around a position at which it is not used: it is made or used at `from`, and next used at
  // `to` (length() for a result at the end). Nothing if it is not live there.
  struct Gap {
    int32_t from = -1, to = -1;
    explicit operator bool() const { return from >= 0; }
  };
  Gap gap(int32_t value, int32_t position) const;
  bool is_live_before(int32_t value, int32_t position) const;  // as it must be to be read there
  int32_t last_touch(int32_t value, int32_t position) const;   // the last time before the position that it is made or used; -1: never
  int32_t next_touch(int32_t value, int32_t position) const;   // at the position or later; length(): never

  // Changes. They keep the sequence valid if the item may run there. settle() takes out the repeats that became useless.
  bool may_run(int32_t item, int32_t position) const;
  void insert(int32_t position, int32_t item);
  void erase(int32_t position);  // of a repeat
  // A first run goes elsewhere; false if it may not be there. `to` counts before it is taken out.
  bool move_first(int32_t from, int32_t to);
  void settle();
  void mark() { log_.clear(); }  // undo() comes back to here
  void undo();
  int64_t steps() const { return steps_; }

 private:
  static constexpr int32_t kEnd = 0;  // the run that reads the results, behind all others
  struct Life {
    int32_t from, to;    // runs
    bool is_taken_over;  // the last reader's output takes its bytes
  };
  struct Stretch {
    int32_t after, last;  // positions that it covers: (after, last]
  };
  struct Change {
    int32_t position, item;
    bool is_insertion;
  };
  void find_lives(int32_t value, std::vector<Life>& lives) const;
  void stretches(const std::vector<Life>& lives, std::vector<Stretch>& result) const;
  void update(int32_t value, bool is_new);
  void add(int32_t first, int32_t last, int64_t bytes);
  void put(int32_t position, int32_t item);
  void take(int32_t position);
  void look_at(int32_t run) { suspects_.push_back(run); }
  bool is_of_use(int32_t position) const;
  int64_t over(int64_t bytes) const { return bytes > model_.limit ? bytes - model_.limit : 0; }
  int32_t maker_before(int32_t value, int32_t position) const;  // run, or -1
  template <class F> void each_maker(int32_t value, F&& f) const;
  template <class F> void each_reader(int32_t value, F&& f) const;

  const Model& model_;
  std::vector<int64_t> bytes_, own_;         // of values; of items: outputs and scratch
  std::vector<uint8_t> replaces_any_;        // of items
  Lists readers_;                            // of values: items
  std::vector<int32_t> runs_;                // by position, and then kEnd
  std::vector<int64_t> memory_;              // by position, and then the results
  std::vector<int32_t> item_of_, position_;  // of runs
  std::vector<int32_t> free_runs_;
  std::vector<std::vector<int32_t>> runs_of_;  // of items, in order
  std::vector<std::vector<Life>> lives_;       // of values
  std::vector<Life> new_lives_;
  std::vector<Stretch> old_stretches_, new_stretches_;
  std::vector<Change> log_;
  std::vector<int32_t> suspects_;
  int64_t cost_ = 0, excess_ = 0;
  mutable int64_t steps_ = 0;
};

}  // namespace tandem::plan::scheduling
