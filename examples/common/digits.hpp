// Data for the examples that needs no download: small pictures of the digits, drawn with noise.
#pragma once
#include <cstdint>
#include <vector>

namespace examples {

inline constexpr int kSide = 12;  // pixels
inline constexpr int kPixels = kSide * kSide;
inline constexpr int kClasses = 10;

struct Digits {
  std::vector<float> images;    // [count, kPixels]
  std::vector<int32_t> labels;  // [count]
  int64_t count = 0;
};

// Each digit is shifted, scaled and slanted at random; strokes vary in strength, and there is noise in every pixel.
Digits draw_digits(int64_t count, uint64_t seed);

}  // namespace examples
