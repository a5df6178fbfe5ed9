// What a thread of the host program looks for while the engine keeps it: signals. Called about every kPollEvery while the thread waits for
// a pipeline or turns in a loop; what it throws ends the call.
#pragma once
#include <chrono>
#include <cstdint>

namespace tandem {

using CallerPoll = void (*)();
extern constinit thread_local CallerPoll caller_poll;  // null: nothing to look for
inline constexpr std::chrono::milliseconds kPollEvery{50};

// For loops: asks after each trip whether it is time. Reads the coarse clock, which costs some nanoseconds and no call into the kernel.
class LoopPoll {
 public:
  LoopPoll() : last_(caller_poll ? coarse_ms() : 0) {}
  void operator()() {
    if (!caller_poll || coarse_ms() - last_ < kPollEvery.count()) return;
    caller_poll();
    last_ = coarse_ms();
  }

 private:
  static int64_t coarse_ms();
  int64_t last_;
};

}  // namespace tandem
