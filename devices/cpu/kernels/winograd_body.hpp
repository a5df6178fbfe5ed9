// Winograd's transforms as templates over an instruction set. Included only by the files that are compiled for one. Only sums are added up
// and scaled at last by powers of two, so no compiler can fuse a multiplication into an addition and change bits.
#pragma once
#include "unroll.hpp"
#include "winograd.hpp"

namespace tandem::cpu {
namespace {

// One axis each: `kFrom` vectors to `kTo`.
template <class I> struct WindowLine {
  using Vector = typename I::Vector;
  static constexpr int kFrom = kWindow, kTo = kWindow;
  static void run(const Vector* d, Vector* to) {
    to[0] = I::subtract(d[0], d[2]);
    to[1] = I::add(d[1], d[2]);
    to[2] = I::subtract(d[2], d[1]);
    to[3] = I::subtract(d[1], d[3]);
  }
};
template <class I> struct KernelLine {  // twice G in the middle
  using Vector = typename I::Vector;
  static constexpr int kFrom = kTaps, kTo = kWindow;
  static void run(const Vector* w, Vector* to) {
    const Vector ends = I::add(w[0], w[2]);
    to[0] = w[0];
    to[1] = I::add(ends, w[1]);
    to[2] = I::subtract(ends, w[1]);
    to[3] = w[2];
  }
};
template <class I> struct GradientLine {  // A^T but for the sign of the last, which KernelGradientLine turns
  using Vector = typename I::Vector;
  static constexpr int kFrom = kOutputs, kTo = kWindow;
  static void run(const Vector* g, Vector* to) {
    to[0] = g[0];
    to[1] = I::add(g[0], g[1]);
    to[2] = I::subtract(g[0], g[1]);
    to[3] = g[1];
  }
};
template <class I> struct OutputLine {
  using Vector = typename I::Vector;
  static constexpr int kFrom = kWindow, kTo = kOutputs;
  static void run(const Vector* m, Vector* to) {
    to[0] = I::add(I::add(m[0], m[1]), m[2]);
    to[1] = I::subtract(I::subtract(m[1], m[2]), m[3]);
  }
};
template <class I> struct KernelGradientLine {  // twice G^T in the middle
  using Vector = typename I::Vector;
  static constexpr int kFrom = kWindow, kTo = kTaps;
  static void run(const Vector* m, Vector* to) {
    const Vector middle = I::add(m[1], m[2]);
    to[0] = I::add(m[0], middle);
    to[1] = I::subtract(m[1], m[2]);
    to[2] = I::subtract(middle, m[3]);
  }
};

// Down, then across.
template <class I, class Line> struct Plane {
  using Vector = typename I::Vector;
  static constexpr int kFrom = Line::kFrom, kTo = Line::kTo;
  Vector to[kTo][kTo];
  template <class Load> __attribute__((always_inline)) explicit Plane(const Load& load) {
    Vector down[kTo][kFrom];
    TANDEM_UNROLL for (int j = 0; j < kFrom; ++j) {
      Vector column[kFrom], transformed[kTo];
      TANDEM_UNROLL for (int i = 0; i < kFrom; ++i) column[i] = load(i * kFrom + j);
      Line::run(column, transformed);
      TANDEM_UNROLL for (int i = 0; i < kTo; ++i) down[i][j] = transformed[i];
    }
    TANDEM_UNROLL for (int i = 0; i < kTo; ++i) Line::run(down[i], to[i]);
  }
};

constexpr bool middle(int i) { return i == 1 || i == 2; }

enum class Halves : uint8_t { None, Middle };  // of the middle points along each axis

template <class I, class Line, Halves H> void to_points(const float* const* from, int64_t count, float* points, int64_t step) {
  using P = Plane<I, Line>;
  const auto vectors = [&](const auto& load) __attribute__((always_inline)) {
    P plane(load);
    TANDEM_UNROLL for (int i = 0; i < kWindow; ++i) {
      TANDEM_UNROLL for (int j = 0; j < kWindow; ++j) {
        typename I::Vector v = plane.to[i][j];
        if (H == Halves::Middle && (middle(i) || middle(j))) v = I::multiply(v, I::set(middle(i) && middle(j) ? 0.25f : 0.5f));
        I::store(points + (i * kWindow + j) * step, v);
      }
    }
  };
  int64_t c = 0;
  for (; c + I::kLanes <= count; c += I::kLanes, points += I::kLanes)
    vectors([&](int i) __attribute__((always_inline)) { return I::load(from[i] + c); });
  if (c == count) return;
  const auto rest = I::mask(static_cast<int>(count - c));
  vectors([&](int i) __attribute__((always_inline)) { return I::load(from[i] + c, rest); });
}

template <class I, class Line> void from_points(const float* points, int64_t step, int64_t count, float* const* to) {
  using P = Plane<I, Line>;
  const auto load = [&](int i) __attribute__((always_inline)) { return I::load(points + i * step); };
  int64_t c = 0;
  for (; c + I::kLanes <= count; c += I::kLanes, points += I::kLanes) {
    P plane(load);
    TANDEM_UNROLL for (int i = 0; i < P::kTo * P::kTo; ++i) if (to[i]) I::store(to[i] + c, plane.to[i / P::kTo][i % P::kTo]);
  }
  if (c == count) return;
  const auto rest = I::mask(static_cast<int>(count - c));
  P plane(load);
  TANDEM_UNROLL for (int i = 0; i < P::kTo * P::kTo; ++i) if (to[i]) I::store(to[i] + c, plane.to[i / P::kTo][i % P::kTo], rest);
}

template <class I> constexpr WinogradSet winograd_set() {
  return {to_points<I, WindowLine<I>, Halves::None>, to_points<I, KernelLine<I>, Halves::Middle>,
          to_points<I, GradientLine<I>, Halves::Middle>, from_points<I, OutputLine<I>>, from_points<I, KernelGradientLine<I>>};
}

}  // namespace
}  // namespace tandem::cpu
