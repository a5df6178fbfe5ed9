// A better plan within a limit for a step that trains for long, looked for while it runs. Plans within a limit give the same bits, so
// taking another one changes only how long a step takes.
#pragma once
#include <memory>
#include <optional>

#include "engine/engine.hpp"

namespace tandem::engine {

class Improvement {
 public:
  // `request`: of `where`, of which the plan in use was made. `search_seconds`: how long the search may take; it begins when the step has
  // run for as long.
  Improvement(std::shared_ptr<const Placed> where, plan::Request request, const Devices& devices, const Planned& in_use,
              double search_seconds);
  ~Improvement();  // what is not found yet is not looked for any more
  Improvement(const Improvement&) = delete;
  Improvement& operator=(const Improvement&) = delete;

  // Before each run, from one thread at a time. True: the search is over and take() has what it found.
  bool count_run();
  std::optional<Planned> take();  // nothing when none was better

 private:
  class Search;
  class Worker;
  const double seconds_;
  double left_seconds_;  // until the search begins
  std::shared_ptr<Search> search_;
  bool is_given_ = false;
};

}  // namespace tandem::engine
