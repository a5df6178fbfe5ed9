#include "data/budget.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include "base/text.hpp"
#include "device/account.hpp"

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
  std::lock_guard lock(mutex_);
  const size_t used = ahead_ + most_held_;
  if (used > limit_ || bytes > limit_ - used || !device::host_account().try_take_counted(bytes)) return false;
  ahead_ += bytes;
  raise_peak();
  return true;
}

void Budget::take_anyway(size_t bytes) {
  device::host_account().take_counted_anyway(bytes);
  std::lock_guard lock(mutex_);
  ahead_ += bytes;
  raise_peak();
}

void Budget::give(size_t bytes) {
  device::host_account().give_back_counted(bytes);
  std::lock_guard lock(mutex_);
  ahead_ -= bytes;
}

bool Budget::hold(size_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes > limit_ - held_ || !device::host_account().try_take_counted(bytes)) return false;
  held_ += bytes;
  most_held_ = std::max(most_held_, held_);
  raise_peak();
  return true;
}

void Budget::release(size_t bytes) {
  device::host_account().give_back_counted(bytes);
  std::lock_guard lock(mutex_);
  held_ -= bytes;
}

MemoryUse Budget::use() const {
  std::lock_guard lock(mutex_);
  return {ahead_ + held_, peak_, limit_};
}

void Budget::raise_peak() { peak_ = std::max(peak_, ahead_ + held_); }

void Held::add(size_t bytes, const char* what) {
  if (!budget_.hold(bytes)) {
    const MemoryUse use = budget_.use();
    const device::Account& host = device::host_account();
    if (const size_t limit = host.limit(); limit && host.in_use() + bytes > limit)
      resource_error(ErrorCode::ResourceExhausted, what, " holds ", bytes_, " bytes and ", bytes,
                     " more do not fit into the host's memory limit of ", limit, " (TANDEM_HOST_MEMORY; ", host.in_use(),
                     " are in use)\n  hint: a smaller buffer, or a higher limit");
    resource_error(ErrorCode::ResourceExhausted, what, " holds ", bytes_, " bytes and ", bytes, " more do not fit into the RAM budget of ",
                   use.budget_bytes, " (", use.bytes, " are in use)\n  hint: a smaller buffer, or options({.ram_budget_bytes = ...})");
  }
  bytes_ += bytes;
}

}  // namespace tandem::data
