// Ctrl-C while a fit runs: the first one ends it at the next step, a second one ends the program as usual.
#pragma once

namespace tandem::nn {

// While one of these lives, SIGINT is caught; what was there before comes back with the last one. Any thread may hold one.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};
bool interrupted();  // since the first scope began; false when there is none

}  // namespace tandem::nn
