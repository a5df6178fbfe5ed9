#include "conv_geometry.hpp"

#include "base/text.hpp"
#include "half_pack.hpp"
#include "work.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tandem::cpu {

std::vector<Phase> phases(const ConvAxis& a) {
  const int64_t period = a.input_dilation / std::gcd(a.input_dilation, a.stride);
  std::vector<Phase> all;
  for (int64_t r = 0; r < std::min(period, a.out); ++r) {
    Phase p{r, period, (a.out - r + period - 1) / period, period * a.stride / a.input_dilation, {}};
    for (int64_t k = 0; k < a.kernel; ++k) {
      const int64_t at = r * a.stride + k * a.dilation - a.low;
      if (at % a.input_dilation == 0) p.taps.push_back({k, at / a.input_dilation});
    }
    all.push_back(std::move(p));
  }
  return all;
}

std::vector<Phase> split_at_edges(const std::vector<Phase>& phases, int64_t elements) {
  std::vector<Phase> all;
  for (const Phase& p : phases) {
    // Taps are in the order of their positions, so those that meet elements are a range.
    const auto range = [&](int64_t index) {
      size_t first = 0, last = p.taps.size();
      while (first < last && p.taps[first].position + index * p.stride < 0) ++first;
      while (last > first && p.taps[last - 1].position + index * p.stride >= elements) --last;
      return std::pair(first, last);
    };
    for (int64_t i = 0; i < p.count;) {
      const auto [first, last] = range(i);
      int64_t next = i + 1;
      while (next < p.count && range(next) == std::pair(first, last)) ++next;
      Phase part{p.first + i * p.step, p.step, next - i, p.stride, {}};
      for (size_t t = first; t < last; ++t) part.taps.push_back({p.taps[t].kernel, p.taps[t].position + i * p.stride});
      all.push_back(std::move(part));
      i = next;
    }
  }
  return all;
}

Reach reach(const std::vector<Phase>& phases, int64_t begin, int64_t end) {
  Reach r{INT64_MAX, INT64_MIN};
  for (const Phase& p : phases) {
    const int64_t from = p.index_from(begin), to = std::min(p.count, p.index_from(end));
    if (from >= to) continue;
    for (const Phase::Tap& t : p.taps) {
      r.first = std::min(r.first, t.position + from * p.stride);
      r.last = std::max(r.last, t.position + (to - 1) * p.stride);
    }
  }
  return r;
}

bool tiles_take(const Conv& conv, DType operands, DType result, std::string& refusal) {
  if (!tiles_sum(operands, result, refusal)) return false;
  if (conv.groups != 1)
    refusal = cat("takes one group, not ", conv.groups);
  else if (conv.work() < kTinyWork)  // also what is empty
    refusal = cat("too small, ", conv.work(), " multiplications");
  return refusal.empty();
}

}  // namespace tandem::cpu
