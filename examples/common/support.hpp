// What the examples share: digits as tensors, a check of what they promise, and how they end.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <functional>

#include <tandem/tandem.hpp>

#include "digits.hpp"

namespace examples {

struct Set {
  tandem::Tensor x, y;  // float32[count, kPixels] in [0, 1], int32[count]
};
inline Set digits(int64_t count, uint64_t seed) {
  const Digits d = draw_digits(count, seed);
  return {tandem::Tensor::from(d.images, {count, kPixels}), tandem::Tensor::from(d.labels, {count})};
}

// Ends the program when an example does not do what it says.
inline void expect(bool is_so, const char* what) {
  if (is_so) return;
  std::fprintf(stderr, "expected: %s\n", what);
  std::exit(1);
}

inline int run(const std::function<void()>& program) {
  try {
    program();
    return 0;
  } catch (const tandem::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

}  // namespace examples
