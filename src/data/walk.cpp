#include "data/walk.hpp"

#include "base/caller_poll.hpp"
#include "data/elements.hpp"

namespace tandem::data {
namespace {
thread_local int64_t inner_ns = 0;  // what timers inside the current one took
thread_local int64_t polled_ns = 0;
}  // namespace

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

SelfTimer::SelfTimer(Stage& stage) : stage_(stage), start_(now_ns()), outer_inner_(inner_ns) { inner_ns = 0; }
SelfTimer::~SelfTimer() {
  const int64_t all = now_ns() - start_;
  stage_.busy_ns.fetch_add(all - inner_ns, std::memory_order_relaxed);
  inner_ns = outer_inner_ + all;
}

WaitTimer::WaitTimer(Stage& stage) : stage_(stage), start_(now_ns()) {}
WaitTimer::~WaitTimer() {
  const int64_t all = now_ns() - start_;
  stage_.wait_ns.fetch_add(all, std::memory_order_relaxed);
  inner_ns += all;
}

template <> bool Flow<Element>::pull(Element& item) {
  const SelfTimer timer(stage_);
  try {
    if (caller_poll && timer.start() - polled_ns > std::chrono::nanoseconds(kPollEvery).count()) {
      polled_ns = timer.start();
      caller_poll();
    }
    if (!next(item)) return false;
  } catch (const Cancelled&) {
    throw;
  } catch (...) {
    stage_.errors.fetch_add(1, std::memory_order_relaxed);
    rethrow_located(stage_.name, number_++);
  }
  ++number_;
  stage_.elements.fetch_add(1, std::memory_order_relaxed);
  stage_.bytes.fetch_add(static_cast<int64_t>(bytes_of(item)), std::memory_order_relaxed);
  return true;
}

}  // namespace tandem::data
