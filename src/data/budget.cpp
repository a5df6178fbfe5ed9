#include "data/budget.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include "base/text.hpp"

namespace tandem::data {
namespace {

// The number in a file that holds nothing else; SIZE_MAX when there is none ("max").
size_t number_in(const char* file) {
  std::ifstream in(file);
  size_t number = 0;
  return in >> number ? number : SIZE_MAX;
}

}  // namespace

size_t free_memory_bytes() {
  size_t available = SIZE_MAX;
  std::ifstream info("/proc/meminfo");
  for (std::string word; info >> word;)
    if (word == "MemAvailable:") {
      size_t kib = 0;
      if (info >> kib) available = kib * 1024;
      break;
    }
  const size_t limit = number_in("/sys/fs/cgroup/memory.max"), used = number_in("/sys/fs/cgroup/memory.current");
  if (limit != SIZE_MAX && used != SIZE_MAX) available = std::min(available, limit > used ? limit - used : 0);
  return available == SIZE_MAX ? size_t{4} << 30 : available;
}

bool Budget::take(size_t bytes) {
  size_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ - std::min(limit_, used)) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  raise_peak(used + bytes);
  return true;
}

void Budget::take_anyway(size_t bytes) { raise_peak(used_.fetch_add(bytes, std::memory_order_relaxed) + bytes); }

void Budget::raise_peak(size_t used) {
  size_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < used && !peak_.compare_exchange_weak(peak, used, std::memory_order_relaxed)) {
  }
}

void Held::add(size_t bytes, const char* what) {
  if (!budget_.take(bytes)) {
    const MemoryUse use = budget_.use();
    resource_error(what, " holds ", bytes_, " bytes and ", bytes, " more do not fit into the RAM budget of ", use.budget_bytes, " (",
                   use.bytes, " are in use)\n  hint: a smaller buffer, or options({.ram_budget_bytes = ...})");
  }
  bytes_ += bytes;
}

}  // namespace tandem::data
