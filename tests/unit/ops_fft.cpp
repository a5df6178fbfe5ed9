// Fourier transforms of every small length and some large ones against the definition.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "evaluate.hpp"
#include "ops/fourier.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
namespace {

Fourier::Row wave(int64_t n) {
  Fourier::Row x;
  for (int64_t k = 0; k < n; ++k)
    x.push_back({std::sin(0.7 * static_cast<double>(k * k % 97)), std::cos(1.3 * static_cast<double>(k)) + 0.1});
  return x;
}

Fourier::Row by_definition(const Fourier::Row& x, int sign) {
  const auto n = x.size();
  Fourier::Row y(n);
  for (size_t k = 0; k < n; ++k)
    for (size_t j = 0; j < n; ++j) {
      const double angle = sign * 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      y[k] = y[k] + x[j] * Complex{std::cos(angle), std::sin(angle)};
    }
  return y;
}

void expect_near(const Fourier::Row& a, const Fourier::Row& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    EXPECT_NEAR(a[k].re, b[k].re, tolerance) << k << " of " << a.size();
    EXPECT_NEAR(a[k].im, b[k].im, tolerance) << k << " of " << a.size();
  }
}

std::vector<int64_t> lengths() {
  std::vector<int64_t> all;
  for (int64_t n = 1; n <= 40; ++n) all.push_back(n);
  for (int64_t n : {64, 97, 100, 128, 243, 256, 360, 512, 997}) all.push_back(n);
  return all;
}

TEST(Fft, EveryLength) {
  for (int64_t n : lengths()) {
    const Fourier plan(n);
    Fourier::Row x = wave(n), scratch;
    const Fourier::Row original = x;
    plan.forward(x, scratch);
    expect_near(x, by_definition(original, -1), 1e-11);
    Fourier::Row y = original;
    plan.inverse(y, scratch);
    expect_near(y, by_definition(original, 1), 1e-11);
  }
}

TEST(Fft, RealRowsOfEveryLength) {
  for (int64_t n : lengths()) {
    const RealFourier plan(n);
    Fourier::Row x = wave(n), work, scratch, spectrum(static_cast<size_t>(plan.coefficients()));
    std::vector<double> real, back(static_cast<size_t>(n));
    for (Complex& c : x) {
      real.push_back(c.re);
      c.im = 0;
    }
    plan.forward(real.data(), spectrum.data(), work, scratch);
    Fourier::Row expected = by_definition(x, -1);
    expected.resize(spectrum.size());
    expect_near(spectrum, expected, 1e-11);
    spectrum[0].im = 5;  // belongs to no real row
    plan.inverse(spectrum.data(), back.data(), work, scratch);
    for (size_t k = 0; k < real.size(); ++k) EXPECT_NEAR(back[k], real[k], 1e-13) << k << " of " << n;
  }
}

TEST(Fft, LargeLengthsGoThereAndBack) {
  for (int64_t n : {1 << 16, 100000, 65537}) {
    const Fourier plan(n);
    Fourier::Row x = wave(n), scratch;
    const Fourier::Row original = x;
    plan.forward(x, scratch);
    plan.inverse(x, scratch);
    for (Complex& c : x) c = {c.re / static_cast<double>(n), c.im / static_cast<double>(n)};
    for (size_t k = 0; k < x.size(); k += 997) EXPECT_NEAR(x[k].re, original[k].re, 1e-12);
  }
}

TEST(Fft, Errors) {
  const auto error = [](std::string_view op, const std::vector<ir::TensorType>& in, const ir::Attrs& attrs = {}) -> std::string {
    ir::Builder b(table());
    std::vector<ir::Value> operands;
    for (const ir::TensorType& t : in) operands.push_back(b.input(t));
    try {
      b.nodes(op, operands, attrs);
    } catch (const UserError& e) {
      return e.what();
    }
    return "no error";
  };
  const auto f32 = [](Dims d) { return ir::TensorType{DType::F32, std::move(d)}; };
  EXPECT_EQ(error("fft", {f32({3}), f32({4})}), "fft: the real part is float32[3], the imaginary part is float32[4]");
  EXPECT_EQ(error("fft", {f32({2, 0}), f32({2, 0})}), "fft: there must be at least one point to transform, there are 0 in float32[2,0]");
  EXPECT_EQ(error("irfft", {f32({1}), f32({1})}), "irfft: there must be at least one point to transform, there are 0 in float32[1]");
  EXPECT_EQ(error("rfft", {f32({})}), "rfft: transforms the last axis, and float32[] has none");
}

// A batch size that is not known yet.
TEST(Fft, SymbolicExtents) {
  ir::Builder b(table());
  const Dim batch = Dim::symbol("b");
  const ir::Expr x(b, b.input({DType::F64, {batch, 6}}));
  const std::vector<ir::Expr> y = ir::call(b, "rfft", {x}, {{"length", int64_t{8}}});
  EXPECT_EQ(y[0].type().str(), "float64[b,5]");
  const ir::Expr z = ir::call(b, "irfft", {y[0], y[1]})[0];
  EXPECT_EQ(z.type().str(), "float64[b,8]");
  const test::Array in = test::Array::of(DType::F64, {1, 6}, {1, 2, 3, 4, 5, 6});
  const auto out = test::evaluate(table(), b.finish({z.value()}), {in})[0].values();
  for (size_t k = 0; k < 8; ++k) EXPECT_NEAR(out[k], k < 6 ? static_cast<double>(k + 1) : 0.0, 1e-14);
}

}  // namespace
}  // namespace tandem::ops
