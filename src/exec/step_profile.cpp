#include "exec/step_profile.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

#include "base/text.hpp"

namespace tandem::exec {
namespace {

using plan::Step;

// What people know it by: the label, which kernel of the device's list runs it, and where it was asked for.
std::string name_of(const Step& s) {
  return cat(s.label, s.kernel_name.empty() ? std::string() : cat(" [", s.kernel_name, "]"), s.location ? cat("  at ", s.location) : "");
}

template <class... T> std::string format(const char* pattern, T... values) {
  char text[160];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

}  // namespace

void StepProfile::add(const Step& step, double seconds) {
  Row& row = rows_[&step];
  row.seconds += seconds;
  ++row.count;
  row.cost.bytes += step.cost.bytes;
  row.cost.flops += step.cost.flops;
}

std::vector<std::string> StepProfile::lines() const {
  std::map<std::string, Row> alike;  // ordered, so that equal times come out the same every time
  Row all;
  for (const auto& [step, row] : rows_)
    for (Row* sum : {&alike[name_of(*step)], &all}) {
      sum->seconds += row.seconds;
      sum->count += row.count;
      sum->cost.bytes += row.cost.bytes;
      sum->cost.flops += row.cost.flops;
    }
  std::vector<std::pair<std::string, Row>> sorted(alike.begin(), alike.end());
  std::ranges::stable_sort(sorted, std::greater{}, [](const auto& entry) { return entry.second.seconds; });

  std::vector<std::string> text{format("%.1f us in %lld launches", 1e6 * all.seconds, static_cast<long long>(all.count)),
                                "  share         us  times         MB    GB/s  GFLOP/s  kernel"};
  for (const auto& [name, r] : sorted)
    text.push_back(cat(format("%6.1f%% %10.1f %6lld %10.3f %7.1f ", 100 * r.seconds / all.seconds, 1e6 * r.seconds,
                              static_cast<long long>(r.count), r.cost.bytes / 1e6, r.cost.bytes / r.seconds / 1e9),
                       r.cost.flops > 0 ? format("%8.1f", r.cost.flops / r.seconds / 1e9) : "       -", "  ", name));
  return text;
}

}  // namespace tandem::exec
