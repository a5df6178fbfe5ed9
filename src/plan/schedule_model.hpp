// A scheduling problem in flat arrays, checked, as the parts of schedule() read it.
#pragma once
#include <span>

#include "plan/schedule.hpp"

namespace tandem::plan::scheduling {

__extension__ using Wide = __int128;

// Lists of numbers behind each other.
class Lists {
 public:
  void add(int32_t x) { items_.push_back(x); }
  void end() { begin_.push_back(static_cast<int32_t>(items_.size())); }  // the next add() begins another list
  std::span<const int32_t> operator[](int32_t i) const {
    return {items_.data() + begin_[static_cast<size_t>(i)], items_.data() + begin_[static_cast<size_t>(i) + 1]};
  }

 private:
  std::vector<int32_t> items_, begin_{0};
};

// What becomes of a value that is needed after a moment: its maker runs again, or it stays in memory, or it comes back from the host.
enum class Fate : uint8_t { Again, Kept, Host };

// What a sequence is made of: the units, and then one fetch for each value that may be offloaded. A fetch makes the value as a unit would;
// that the value is offloaded when it is first made follows.
struct Model {
  explicit Model(const ScheduleProblem& problem);

  int32_t unit_count() const { return unit_count_; }
  int32_t item_count() const { return static_cast<int32_t>(cost.size()); }
  int32_t value_count() const { return static_cast<int32_t>(bytes.size()); }
  bool is_fetch(int32_t item) const { return item >= unit_count_; }
  int32_t fetched_value(int32_t item) const { return outputs[item][0]; }

  // Of items.
  std::vector<int64_t> cost, scratch;
  std::vector<Lane> lane;
  std::vector<uint8_t> once;
  Lists inputs, outputs;  // values that have a maker; others are always there
  Lists replaces;         // pairs: an input, and an output of the same size that may take its bytes
  Lists overwrites,
      reads_overwritten;           // values that are there from the start: those that it overwrites, those that it reads and another does
  Lists runs_before;               // items that must not have run yet: they overwrite what this one reads
  std::vector<uint8_t> has_rules;  // once, or has runs_before, or is in a list of those: may not just be moved
  // Of values.
  std::vector<int64_t> bytes;
  std::vector<uint8_t> on_host, is_result;
  std::vector<int32_t> maker, fetch;  // items, or -1
  std::vector<int64_t> copy_time;

  int64_t limit = 0, host_limit = 0;
  bool is_timed = false;   // there are more lanes than one, so that the cost is not a sum
  bool uses_host = false;  // something may be in the host's memory
  int64_t base_sum = 0;    // of the cost of every unit

 private:
  int32_t unit_count_ = 0;
};

// What a unit needs while it runs: what it reads and makes, and its scratch.
int64_t working_set(const Model& model, int32_t unit);

}  // namespace tandem::plan::scheduling
