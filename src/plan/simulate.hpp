// When the steps of a plan run, and how long a run takes when others follow it: the clocks of the host and of each stream, moved as the
// executor gives work to them. A pure function: nothing runs.
#pragma once
#include "plan/seconds.hpp"

namespace tandem::plan {

struct Simulated {
  struct Span {
    double begin = 0, end = 0;
  };
  double seconds = 0;        // from the end of a run to that of the next one, when they follow each other
  std::vector<Span> steps;   // of a run that is alone, from its beginning
  std::vector<double> busy;  // of one run, by queue (queues.hpp): how long it works
};

Simulated simulate(const Plan& plan, const Speeds& speeds);

}  // namespace tandem::plan
