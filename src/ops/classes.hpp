// Class numbers as data: which of them is none. The row check_classes and the training loop, which looks before a step, share this.
#pragma once
#include <cmath>
#include <span>
#include <string>

#include "base/text.hpp"
#include "ops/host.hpp"

namespace tandem::ops {

template <class T> double as_double(T label) {
  if constexpr (kIsHalf<T>)
    return static_cast<double>(static_cast<float>(label));
  else
    return static_cast<double>(label);
}

template <class T> bool is_class(T label, int64_t classes) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(label) < static_cast<uint64_t>(classes);  // a negative one is beyond them all
  } else {
    const double v = as_double(label);
    return v >= 0 && v < static_cast<double>(classes) && v == std::floor(v);
  }
}

// The first of `count` labels that is neither a whole number in [0, classes) nor one of `ignored`; `count` when there is none.
inline int64_t first_non_class(const void* labels, DType dtype, int64_t count, int64_t classes, std::span<const int64_t> ignored) {
  return dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* in = static_cast<const T*>(labels);
    bool all_good = true;
    for (int64_t i = 0; i < count; ++i) all_good &= is_class(in[i], classes);
    if (all_good) return count;
    for (int64_t i = 0; i < count; ++i) {
      if (is_class(in[i], classes)) continue;
      bool is_ignored = false;
      for (const int64_t c : ignored) is_ignored |= as_double(in[i]) == static_cast<double>(c);
      if (!is_ignored) return i;
    }
    return count;
  });
}

// "class 7", "NaN" or "1.5": the label as a message names it.
inline std::string label_text(const void* labels, DType dtype, int64_t at) {
  return dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T label = static_cast<const T*>(labels)[at];
    if constexpr (std::is_integral_v<T>)
      return cat("class ", static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(label));
    const double v = as_double(label);
    if (std::isnan(v)) return std::string("NaN");
    return v == std::floor(v) ? cat("class ", v) : cat(v);
  });
}

}  // namespace tandem::ops
