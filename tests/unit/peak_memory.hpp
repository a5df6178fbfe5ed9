// How much memory something takes at its peak, besides what was there before.
#pragma once
#include <fstream>
#include <string>

namespace tandem {

inline size_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == key + ":") {
      size_t kib = 0;
      status >> kib;
      return kib * 1024;
    }
  return 0;
}

template <class F> size_t peak_growth_bytes(F f) {
  std::ofstream("/proc/self/clear_refs") << "5" << std::flush;  // the peak begins anew
  const size_t before = status_bytes("VmRSS");
  f();
  const size_t peak = status_bytes("VmHWM");
  return peak > before ? peak - before : 0;
}

}  // namespace tandem
