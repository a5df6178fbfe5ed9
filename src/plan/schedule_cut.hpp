// What any schedule must pay at one moment, when a certain unit starts for the first time: a lower bound, and what to keep then. Integers
// only.
#pragma once
#include "plan/schedule_model.hpp"

namespace tandem::plan::scheduling {

// When unit w first starts, its ancestors have run and its descendants have not. Each value of an ancestor that is still needed is in
// memory, or comes from the host later, or its maker runs again, for which that one's inputs are needed. With a price on memory the
// cheapest choice is a minimum cut; the best price is found by bisection over integers, and what a price proves holds for every schedule.
class Moments {
 public:
  explicit Moments(const Model& model);

  // Looks at the units one by one until the steps are used. `memory`: of the units in their order without a limit; the fullest come first.
  void look(const std::vector<int64_t>& memory, int64_t most_steps);
  // Branches at the best moment on what is kept, until its exact answer is known, the bound reaches `goal` or the steps are used.
  void branch(int64_t goal, int64_t most_steps);

  int64_t bound() const { return bound_; }
  int32_t best_moment() const { return best_; }  // -1: no moment says more than that each unit runs
  int64_t steps() const { return steps_; }

  // What becomes of each value at a moment if memory were `limit`, by the price that makes it fit. Empty if nothing fits.
  std::vector<Fate> keep(int32_t moment, int64_t limit);
  // What the branching found to be best, or empty.
  const std::vector<Fate>& best_kept() const { return best_kept_; }

 private:
  // A cut: as a function of the price of a byte it is the line paid + price * (kept - room), in shares of a unit of time.
  struct Line {
    int64_t price = 0, kept = 0;
    Wide paid = 0;
    std::vector<Fate> fates;  // of the moment's values
  };
  enum class Fixed : uint8_t { Free, Kept, Gone };
  struct Node {
    int64_t bound;
    int64_t price;
    std::vector<Fixed> fixed;
    int32_t branch_on;
  };
  bool visit(int32_t moment);
  void weigh_copies(int32_t moment);
  std::vector<Fate> fates(const Line& line) const;
  bool enter(int32_t moment);  // false if nothing is needed later
  Line cut(int64_t price);
  // The best price at the moment: its bound. `low` keeps too much, `high` fits; both are lines that meet there.
  int64_t best_price(int64_t room, int64_t& price, Line& low, Line& high);
  int64_t bound_of(const Line& line, int64_t price, int64_t room) const;
  void add_arc(int32_t from, int32_t to, int64_t capacity);
  bool find_levels();
  int64_t push(int32_t source_arc_limit);
  int64_t maximum_flow();

  const Model& model_;
  std::vector<int64_t> bytes_;
  std::vector<uint8_t> can_come_from_host_;
  std::vector<std::vector<int32_t>> readers_;
  int shift_ = 0;
  int64_t most_price_ = 0;
  int64_t device_sum_ = 0, bound_ = 0, steps_ = 0;
  int32_t best_ = -1;
  int64_t best_price_ = 1;
  std::vector<Fate> best_kept_;

  // The moment that is entered.
  int32_t moment_ = -1;
  // Copies over the link take no less than a schedule's time without so much of the device's. `host_share_` of that inequality, and the
  // rest of the device's own time, which has what runs again in it; `again_share_` is what that weighs in both together.
  int64_t beside_ = 0, host_share_ = 0, again_share_ = 0;
  std::vector<int32_t> values_, units_;          // that matter
  std::vector<int32_t> value_node_, unit_node_;  // of all, -1: does not matter
  std::vector<uint8_t> is_required_;
  std::vector<Fixed> fixed_;

  // The flow network: arcs in pairs, forth and back.
  std::vector<int32_t> head_, next_, to_, level_, current_, queue_, path_;
  std::vector<int64_t> capacity_;
};

}  // namespace tandem::plan::scheduling
