// Discrete Fourier transforms of one row in float64, in O(n log n) for every length.
#pragma once
#include <cstdint>
#include <vector>

namespace tandem::ops {

// std::complex multiplies with checks for infinities that cost more than the product.
struct Complex {
  double re = 0, im = 0;
  friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
  Complex conjugate() const { return {re, -im}; }
  Complex times_i() const { return {-im, re}; }
};

// What is the same for all rows of one length. Thread-safe once made.
class Fourier {
 public:
  explicit Fourier(int64_t length);
  int64_t length() const { return length_; }

  using Row = std::vector<Complex>;
  // x[k] becomes the sum of x[j] exp(-2 pi i jk/n), or exp(+…) for the inverse; nothing is divided by n. `scratch` is grown as needed.
  void forward(Row& x, Row& scratch) const;
  void inverse(Row& x, Row& scratch) const;

 private:
  void radix4(Complex* x, Complex* scratch) const;  // lengths that are powers of two
  void chirp(Complex* x, Row& scratch) const;       // the others: Bluestein's convolution of a power-of-two length

  int64_t length_, padded_;  // padded_: the power of two that is really transformed
  Row turns_;                // exp(-2 pi i k / padded)
  Row chirp_, filter_;       // exp(-pi i k^2 / n), and the transform of its conjugate
};

// Rows of real numbers and the first n/2+1 coefficients of their transforms (the others are conjugates of those).
class RealFourier {
 public:
  explicit RealFourier(int64_t length);
  int64_t coefficients() const { return length_ / 2 + 1; }
  void forward(const double* x, Complex* spectrum, Fourier::Row& work, Fourier::Row& scratch) const;
  void inverse(const Complex* spectrum, double* x, Fourier::Row& work, Fourier::Row& scratch) const;  // divides by n

 private:
  bool is_even() const { return length_ % 2 == 0; }
  int64_t length_;
  Fourier complex_;  // of half the length when that is even
  Fourier::Row turns_;
};

}  // namespace tandem::ops
