// The same loops compiled twice: for what every x86-64 has, and for what most have. Integers, so the results are the same.
#include "plan/schedule_scan.hpp"

#include <algorithm>

namespace tandem::plan::scheduling {
namespace {

[[gnu::always_inline]] inline int64_t sum(const int64_t* memory, size_t count, int64_t floor, int64_t most) {
  int64_t total = 0;
  for (size_t i = 0; i < count; ++i) total += std::min(std::max<int64_t>(memory[i] - floor, 0), most);
  return total;
}

[[gnu::always_inline]] inline int64_t raise(int64_t* memory, size_t count, int64_t bytes, int64_t limit) {
  int64_t more = 0;
  for (size_t i = 0; i < count; ++i) {
    const int64_t before = memory[i], after = before + bytes;
    memory[i] = after;
    more += std::max(after, limit) - std::max(before, limit);
  }
  return more;
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] int64_t wide_sum(const int64_t* memory, size_t count, int64_t floor, int64_t most) {
  return sum(memory, count, floor, most);
}
[[gnu::target("avx2")]] int64_t wide_raise(int64_t* memory, size_t count, int64_t bytes, int64_t limit) {
  return raise(memory, count, bytes, limit);
}
bool has_wide() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}
#else
int64_t wide_sum(const int64_t* memory, size_t count, int64_t floor, int64_t most) { return sum(memory, count, floor, most); }
int64_t wide_raise(int64_t* memory, size_t count, int64_t bytes, int64_t limit) { return raise(memory, count, bytes, limit); }
bool has_wide() { return true; }
#endif

// Shorter stretches are not worth the look at the processor.
constexpr size_t kShort = 8;

}  // namespace

int64_t sum_above(std::span<const int64_t> memory, int64_t floor, int64_t most) {
  const bool is_wide = memory.size() > kShort && has_wide();
  return is_wide ? wide_sum(memory.data(), memory.size(), floor, most) : sum(memory.data(), memory.size(), floor, most);
}

int64_t add_bytes(std::span<int64_t> memory, int64_t bytes, int64_t limit) {
  const bool is_wide = memory.size() > kShort && has_wide();
  return is_wide ? wide_raise(memory.data(), memory.size(), bytes, limit) : raise(memory.data(), memory.size(), bytes, limit);
}

}  // namespace tandem::plan::scheduling
