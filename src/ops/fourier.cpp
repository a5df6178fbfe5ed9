#include "ops/fourier.hpp"

#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

namespace tandem::ops {
namespace {

Complex turn(double part) {  // exp(-2 pi i part)
  const double angle = 2 * std::numbers::pi * part;
  return {std::cos(angle), -std::sin(angle)};
}

bool is_power_of_two(int64_t n) { return std::has_single_bit(static_cast<uint64_t>(n)); }

void conjugate(Complex* x, int64_t n) {
  for (int64_t k = 0; k < n; ++k) x[k].im = -x[k].im;
}

}  // namespace

Fourier::Fourier(int64_t length) : length_(length) {
  const auto n = static_cast<uint64_t>(length);
  padded_ = static_cast<int64_t>(is_power_of_two(length) ? n : std::bit_ceil(2 * n - 1));
  for (int64_t k = 0; k < padded_; ++k) turns_.push_back(turn(static_cast<double>(k) / static_cast<double>(padded_)));
  if (padded_ == length_) return;
  filter_.resize(static_cast<size_t>(padded_));
  for (uint64_t k = 0; k < n; ++k) {
    // k^2 modulo 2n first: the angle of a large k^2 would have no digits left.
    chirp_.push_back(turn(static_cast<double>(k * k % (2 * n)) / static_cast<double>(2 * n)));
    filter_[k] = filter_[(static_cast<uint64_t>(padded_) - k) % static_cast<uint64_t>(padded_)] = chirp_[k].conjugate();
  }
  Row scratch(static_cast<size_t>(padded_));
  radix4(filter_.data(), scratch.data());
}

// Stockham's algorithm: every pass reads one buffer and writes the other in an order that needs no bit reversal at the end.
void Fourier::radix4(Complex* x, Complex* scratch) const {
  Complex *from = x, *to = scratch;
  int64_t n = padded_, stride = 1;
  for (; n >= 4; n /= 4, stride *= 4) {
    const int64_t quarter = n / 4;
    for (int64_t p = 0; p < quarter; ++p) {
      const auto at = static_cast<size_t>(p * stride);
      const Complex w1 = turns_[at], w2 = turns_[2 * at], w3 = turns_[3 * at];
      const Complex* in = from + stride * p;
      Complex* out = to + stride * 4 * p;
      for (int64_t q = 0; q < stride; ++q) {
        const Complex a = in[q], b = in[q + stride * quarter], c = in[q + stride * 2 * quarter], d = in[q + stride * 3 * quarter];
        const Complex sum = a + c, difference = a - c, other = b + d, turned = (b - d).times_i();
        out[q] = sum + other;
        out[q + stride] = w1 * (difference - turned);
        out[q + 2 * stride] = w2 * (sum - other);
        out[q + 3 * stride] = w3 * (difference + turned);
      }
    }
    std::swap(from, to);
  }
  if (n == 2) {
    for (int64_t q = 0; q < stride; ++q) {
      const Complex a = from[q], b = from[q + stride];
      to[q] = a + b;
      to[q + stride] = a - b;
    }
    std::swap(from, to);
  }
  if (from == x) return;
  for (int64_t k = 0; k < padded_; ++k) x[k] = from[k];
}

// jk = (j^2 + k^2 - (k-j)^2) / 2 makes the sum a convolution with a chirp.
void Fourier::chirp(Complex* x, Row& scratch) const {
  const auto n = static_cast<size_t>(length_), m = static_cast<size_t>(padded_);
  Complex *a = scratch.data(), *other = a + m;
  for (size_t k = 0; k < n; ++k) a[k] = x[k] * chirp_[k];
  for (size_t k = n; k < m; ++k) a[k] = {};
  radix4(a, other);
  for (size_t k = 0; k < m; ++k) a[k] = (a[k] * filter_[k]).conjugate();
  radix4(a, other);
  const double scale = 1 / static_cast<double>(m);
  for (size_t k = 0; k < n; ++k) {
    const Complex y = a[k].conjugate() * chirp_[k];
    x[k] = {y.re * scale, y.im * scale};
  }
}

void Fourier::forward(Row& x, Row& scratch) const {
  const auto needed = static_cast<size_t>(padded_ == length_ ? padded_ : 2 * padded_);
  if (scratch.size() < needed) scratch.resize(needed);
  if (padded_ == length_)
    radix4(x.data(), scratch.data());
  else
    chirp(x.data(), scratch);
}

void Fourier::inverse(Row& x, Row& scratch) const {
  conjugate(x.data(), length_);
  forward(x, scratch);
  conjugate(x.data(), length_);
}

RealFourier::RealFourier(int64_t length) : length_(length), complex_(length % 2 == 0 ? length / 2 : length) {
  if (!is_even()) return;
  for (int64_t k = 0; k < length / 2; ++k) turns_.push_back(turn(static_cast<double>(k) / static_cast<double>(length)));
}

// An even length: even and odd samples are the real and imaginary part of one row of half the length, and are taken apart afterwards.
void RealFourier::forward(const double* x, Complex* spectrum, Fourier::Row& work, Fourier::Row& scratch) const {
  const auto n = static_cast<size_t>(complex_.length());
  work.resize(n);
  if (!is_even()) {
    for (size_t k = 0; k < n; ++k) work[k] = {x[k], 0};
    complex_.forward(work, scratch);
    for (size_t k = 0; k <= n / 2; ++k) spectrum[k] = work[k];
    return;
  }
  for (size_t k = 0; k < n; ++k) work[k] = {x[2 * k], x[2 * k + 1]};
  complex_.forward(work, scratch);
  spectrum[0] = {work[0].re + work[0].im, 0};
  spectrum[n] = {work[0].re - work[0].im, 0};
  for (size_t k = 1; k < n; ++k) {
    const Complex z = work[k], mirror = work[n - k].conjugate(), even = z + mirror, odd = turns_[k] * (z - mirror).times_i();
    spectrum[k] = {0.5 * (even.re - odd.re), 0.5 * (even.im - odd.im)};
  }
}

void RealFourier::inverse(const Complex* spectrum, double* x, Fourier::Row& work, Fourier::Row& scratch) const {
  const auto n = static_cast<size_t>(complex_.length());
  const double scale = 1 / static_cast<double>(length_);
  work.resize(n);
  if (!is_even()) {
    work[0] = {spectrum[0].re, 0};
    for (size_t k = 1; k <= n / 2; ++k) {
      work[k] = spectrum[k];
      work[n - k] = spectrum[k].conjugate();
    }
    complex_.inverse(work, scratch);
    for (size_t k = 0; k < n; ++k) x[k] = work[k].re * scale;
    return;
  }
  // The imaginary parts of the first and the last coefficient belong to no real row, and do not count.
  work[0] = {spectrum[0].re + spectrum[n].re, spectrum[0].re - spectrum[n].re};
  for (size_t k = 1; k < n; ++k) {
    const Complex z = spectrum[k], mirror = spectrum[n - k].conjugate();
    work[k] = (z + mirror) + (turns_[k].conjugate() * (z - mirror)).times_i();
  }
  complex_.inverse(work, scratch);
  for (size_t k = 0; k < n; ++k) {
    x[2 * k] = work[k].re * scale;
    x[2 * k + 1] = work[k].im * scale;
  }
}

}  // namespace tandem::ops
