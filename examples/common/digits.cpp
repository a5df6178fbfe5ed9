#include "digits.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace examples {
namespace {

// 5 x 7 pixels each, as on old displays.
constexpr int kWidth = 5, kHeight = 7;
constexpr const char* kFont[kClasses] = {
    ".###."
    "#...#"
    "#..##"
    "#.#.#"
    "##..#"
    "#...#"
    ".###.",
    "..#.."
    ".##.."
    "..#.."
    "..#.."
    "..#.."
    "..#.."
    ".###.",
    ".###."
    "#...#"
    "....#"
    "...#."
    "..#.."
    ".#..."
    "#####",
    ".###."
    "#...#"
    "....#"
    "..##."
    "....#"
    "#...#"
    ".###.",
    "...#."
    "..##."
    ".#.#."
    "#..#."
    "#####"
    "...#."
    "...#.",
    "#####"
    "#...."
    "####."
    "....#"
    "....#"
    "#...#"
    ".###.",
    ".###."
    "#...."
    "#...."
    "####."
    "#...#"
    "#...#"
    ".###.",
    "#####"
    "....#"
    "...#."
    "..#.."
    "..#.."
    ".#..."
    ".#...",
    ".###."
    "#...#"
    "#...#"
    ".###."
    "#...#"
    "#...#"
    ".###.",
    ".###."
    "#...#"
    "#...#"
    ".####"
    "....#"
    "....#"
    ".###.",
};

// The glyph between its pixels: the nearest four, by distance.
float ink(const char* glyph, float x, float y) {
  const auto at = [&](int i, int j) {
    return i < 0 || j < 0 || i >= kWidth || j >= kHeight ? 0.f : glyph[j * kWidth + i] == '#' ? 1.f : 0.f;
  };
  const int i = static_cast<int>(std::floor(x)), j = static_cast<int>(std::floor(y));
  const float u = x - static_cast<float>(i), v = y - static_cast<float>(j);
  return (at(i, j) * (1 - u) + at(i + 1, j) * u) * (1 - v) + (at(i, j + 1) * (1 - u) + at(i + 1, j + 1) * u) * v;
}

}  // namespace

Digits draw_digits(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  // std's distributions may differ from one standard library to the next; these do not.
  const auto uniform = [&](float low, float high) { return low + (high - low) * static_cast<float>(random() >> 40) / 16777216.f; };
  const auto noise = [&] { return uniform(-1, 1) + uniform(-1, 1) + uniform(-1, 1); };

  Digits d;
  d.count = count;
  d.images.resize(static_cast<size_t>(count * kPixels));
  d.labels.resize(static_cast<size_t>(count));
  for (int64_t n = 0; n < count; ++n) {
    const auto digit = static_cast<int32_t>(random() % kClasses);
    d.labels[static_cast<size_t>(n)] = digit;
    const float scale = uniform(0.65f, 0.95f), slant = uniform(-0.3f, 0.3f), strength = uniform(0.6f, 1.f);
    const float center_x = kSide / 2.f - 0.5f + uniform(-1.5f, 1.5f), center_y = kSide / 2.f - 0.5f + uniform(-1.2f, 1.2f);
    float* pixel = &d.images[static_cast<size_t>(n * kPixels)];
    for (int row = 0; row < kSide; ++row)
      for (int column = 0; column < kSide; ++column) {
        const float y = (static_cast<float>(row) - center_y) * scale, x = (static_cast<float>(column) - center_x) * scale + slant * y;
        *pixel++ = strength * ink(kFont[digit], x + (kWidth - 1) / 2.f, y + (kHeight - 1) / 2.f) + 0.15f * noise();
      }
  }
  return d;
}

}  // namespace examples
