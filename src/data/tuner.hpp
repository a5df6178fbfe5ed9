// Tuner: finds degrees of parallelism and sizes of queues while an iterator runs. It changes one number, measures, and keeps the change
// when elements come faster: hill climbing on what was measured, within a number of threads; bytes are limited by the budget itself.
#pragma once
#include <cstdint>
#include <vector>

#include "data/context.hpp"

namespace tandem::data {

class Tuner {
 public:
  explicit Tuner(Context& context) : context_(context) {}
  // After each element: it was asked for at `from` and there at `to`, in nanoseconds.
  void tick(int64_t from, int64_t to);

 private:
  struct Change {
    Tunable* knob = nullptr;
    int64_t before = 0;
    double rate_before = 0;
  };
  void decide(double rate, double waiting);
  bool grow(double rate);

  Context& context_;
  int64_t period_ns_ = 10'000'000, began_ns_ = 0, waited_ns_ = 0, elements_ = 0;
  Change change_;
  std::vector<Tunable*> useless_;  // growing them did not help; tried again when the rate has changed
  double best_rate_ = 0;
};

}  // namespace tandem::data
