#include "device/losses.hpp"

#include <algorithm>

namespace tandem::device {
namespace {
// Of failures that are remembered. A value that an older one cost is long gone, or was said to be lost.
constexpr size_t kMostFailures = 1024;
}  // namespace

void Losses::confirm(uint32_t run) {
  std::lock_guard lock(mutex_);
  confirmed_ = std::max(confirmed_, run);
}

uint32_t Losses::fail(const std::string& why) {
  std::lock_guard lock(mutex_);
  const uint32_t last = begin_run();  // at least one, so that what the caller marks has a number that is lost
  if (lost_.size() == kMostFailures) lost_.erase(lost_.begin());
  lost_.push_back({confirmed_ + 1, last, why.substr(0, why.find('\n'))});
  confirmed_ = last;
  any_.store(true, std::memory_order_relaxed);
  return last;
}

std::string Losses::of(uint32_t run) const {
  if (run == 0 || !any()) return {};
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(lost_, [&](const Lost& l) { return l.first <= run && run <= l.last; });
  return found == lost_.end() ? std::string() : found->why;
}

}  // namespace tandem::device
