#include "base/caller_poll.hpp"

#include <ctime>

namespace tandem {

constinit thread_local CallerPoll caller_poll = nullptr;

int64_t LoopPoll::coarse_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace tandem
