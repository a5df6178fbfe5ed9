// Annealing of a sequence, with ruin and recreate.
#pragma once
#include <functional>

#include "plan/schedule_moves.hpp"
#include "plan/schedule_sequence.hpp"

namespace tandem::plan::scheduling {

struct Candidate {
  std::vector<int32_t> sequence;
  Score score;  // is_valid is false if there is none
};

class Search {
 public:
  Search(const Model& model, Evaluator& evaluator, uint64_t seed)
      : model_(model), evaluator_(evaluator), draft_(model), random_(seed), remaker_(model, draft_, random_) {}

  // Improves `best`, which fits or is at least valid, until it costs no more than `goal`, the steps are used or is_enough says so.
  void run(Candidate& best, int64_t goal, int64_t most_steps, const std::function<bool()>& is_enough);
  int64_t steps() const { return steps_ + draft_.steps() + remaker_.steps(); }

 private:
  struct State {
    int64_t cost = 0, excess = 0;
  };
  State state();
  double objective(const State& s) const;
  bool cycle(Candidate& best, int64_t goal, double hot, double cold, bool moves_firsts, int64_t until,
             const std::function<bool()>& is_enough);
  bool change(bool moves_firsts);
  int32_t full_position();
  bool evict();
  bool ruin();
  bool recreate();
  bool drop();
  bool shift();
  bool shift_block(bool moves_firsts);
  bool move_first();
  int32_t random_repeat();

  const Model& model_;
  Evaluator& evaluator_;
  Draft draft_;
  Random random_;
  Remaker remaker_;
  double excess_price_ = 0, penalty_ = 0;
  int64_t steps_ = 0;
  std::vector<int32_t> items_, runs_;
};

}  // namespace tandem::plan::scheduling
