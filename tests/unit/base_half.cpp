// The 16-bit formats. Rounding is monotone, so the points where the result changes decide it: every boundary of every value is tried.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/half.hpp"

namespace tandem {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A 16-bit float from its definition, in double; exponent 31 (255) is not asked for, except as the power after the largest value.
struct Format {
  int mantissa_bits, bias;
  uint16_t infinity;
  uint16_t (*from_float)(float);
  float (*to_float)(uint16_t);

  double value(int magnitude) const {
    const int exponent = magnitude >> mantissa_bits;
    const int mantissa = magnitude & ((1 << mantissa_bits) - 1);
    if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  }
};

const Format kHalf{10, 15, 0x7c00, float_to_half_bits, half_bits_to_float};
const Format kBFloat16{7, 127, 0x7f80, float_to_bfloat16_bits, bfloat16_bits_to_float};

void check_values_and_round_trip(const Format& f) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto h = static_cast<uint16_t>(bits);
    const int magnitude = bits & 0x7fff;
    const float x = f.to_float(h);
    if (magnitude > f.infinity) {
      ASSERT_TRUE(std::isnan(x)) << std::hex << bits;
      const uint16_t back = f.from_float(x);
      ASSERT_GT(back & 0x7fff, f.infinity) << std::hex << bits;
      ASSERT_EQ(back | 1 << (f.mantissa_bits - 1), bits | 1 << (f.mantissa_bits - 1)) << "sign and payload, but for the quiet bit";
      continue;
    }
    const double expected = magnitude == f.infinity ? kInfinity : f.value(magnitude);
    ASSERT_EQ(std::fabs(x), expected) << std::hex << bits;
    ASSERT_EQ(std::signbit(x), bits >> 15 == 1) << std::hex << bits;
    ASSERT_EQ(f.from_float(x), h) << std::hex << bits;
  }
}

void check_rounding(const Format& f) {
  for (int low = 0; low < f.infinity; ++low) {
    // Beyond the largest value the neighbour is the power of two that would come next: IEEE rounds as if it existed.
    const double lower = f.value(low), upper = f.value(low + 1);
    const auto middle = static_cast<float>((lower + upper) / 2);  // exact, except in float's own subnormals
    ASSERT_EQ(middle, (lower + upper) / 2);
    const int even = low % 2 == 0 ? low : low + 1;
    const float sign_of[] = {1.0f, -1.0f};
    for (float sign : sign_of) {
      const int sign_bit = sign < 0 ? 0x8000 : 0;
      ASSERT_EQ(f.from_float(sign * std::nextafter(middle, 0.0f)), sign_bit | low) << std::hex << low;
      ASSERT_EQ(f.from_float(sign * middle), sign_bit | even) << std::hex << low;
      ASSERT_EQ(f.from_float(sign * std::nextafter(middle, kInfinity)), sign_bit | (low + 1)) << std::hex << low;
    }
  }
}

void check_extremes(const Format& f) {
  EXPECT_EQ(f.from_float(kInfinity), f.infinity);
  EXPECT_EQ(f.from_float(-kInfinity), 0x8000 | f.infinity);
  EXPECT_EQ(f.from_float(std::numeric_limits<float>::max()), f.infinity);
  EXPECT_EQ(f.from_float(-0.0f), 0x8000);
  // NaNs whose payload lies only in the bits that are cut off, or would carry all the way up.
  for (uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu, 0x7fc00000u}) {
    const uint16_t h = f.from_float(std::bit_cast<float>(bits));
    EXPECT_GT(h & 0x7fff, f.infinity) << std::hex << bits;
    EXPECT_EQ(h >> 15, bits >> 31) << std::hex << bits;
  }
}

TEST(Half, ValuesAndRoundTrip) { check_values_and_round_trip(kHalf); }
TEST(Half, RoundsToNearestEven) { check_rounding(kHalf); }
TEST(Half, Extremes) { check_extremes(kHalf); }
TEST(BFloat16, ValuesAndRoundTrip) { check_values_and_round_trip(kBFloat16); }
TEST(BFloat16, RoundsToNearestEven) { check_rounding(kBFloat16); }
TEST(BFloat16, Extremes) { check_extremes(kBFloat16); }

TEST(Half, KnownValues) {
  EXPECT_EQ(Half(1.0f).bits, 0x3c00);
  EXPECT_EQ(Half(-2.0f).bits, 0xc000);
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65519.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(Half(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(Half(std::numeric_limits<float>::denorm_min()).bits, 0x0000);
  EXPECT_EQ(static_cast<float>(Half(0.1f)), 0.0999755859375f);
  EXPECT_EQ(BFloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(static_cast<float>(BFloat16(0.1f)), 0.10009765625f);
}

TEST(Dispatch, GivesTheMatchingCppType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    dispatch(t, [&](auto zero) {
      EXPECT_EQ(DTypeOf<decltype(zero)>::value, t);
      EXPECT_EQ(sizeof zero, size_of(t)) << name(t);
    });
  }
}

}  // namespace
}  // namespace tandem
