// Conversions between float and the two 16-bit formats, bit for bit as the processor's own instructions (F16C, AVX512-BF16
// on normal numbers) do them, so that an interpreted and a compiled kernel agree: nearest even, NaNs made quiet.
#include "base/half.hpp"

#include <bit>

namespace tandem {
namespace {

constexpr uint32_t kFloatInfinity = 0x7f800000;
constexpr uint32_t kFloatQuiet = 0x00400000;
constexpr uint32_t kExponentShift = (127 - 15) << 23;  // difference of the two exponent biases, in place in a float

// Drops the low `count` bits of x, rounding to nearest even. A carry runs into the exponent, which is what rounding up means there.
constexpr uint32_t round_off(uint32_t x, int count) {
  const uint32_t half_minus_one = (1u << (count - 1)) - 1;
  return (x + half_minus_one + (x >> count & 1u)) >> count;
}

}  // namespace

uint16_t float_to_half_bits(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  uint32_t result;
  if (magnitude > kFloatInfinity) {
    result = 0x7e00 | (magnitude >> 13 & 0x3ff);
  } else if (magnitude >= 0x477ff000) {  // 65520, halfway between the largest half and the next power of two
    result = 0x7c00;
  } else if (magnitude >= 0x38800000) {  // 2^-14, the smallest normal half
    result = round_off(magnitude - kExponentShift, 13);
  } else {
    // In [0.5, 1) floats are 2^-24 apart, exactly as subnormal halves are: adding 0.5 rounds, and leaves the count in the low bits.
    result = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  }
  return static_cast<uint16_t>(sign | result);
}

float half_bits_to_float(uint16_t h) {
  const uint32_t sign = (h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7fffu;
  uint32_t result;
  if (magnitude > 0x7c00) {
    result = kFloatInfinity | kFloatQuiet | magnitude << 13;
  } else if (magnitude == 0x7c00) {
    result = kFloatInfinity;
  } else if (magnitude >= 0x0400) {
    result = (magnitude << 13) + kExponentShift;
  } else {
    result = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);  // subnormal: a count of 2^-24
  }
  return std::bit_cast<float>(sign | result);
}

uint16_t float_to_bfloat16_bits(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > kFloatInfinity)
    return static_cast<uint16_t>((bits | kFloatQuiet) >> 16);  // rounding could carry it to infinity
  return static_cast<uint16_t>(round_off(bits, 16));
}

float bfloat16_bits_to_float(uint16_t h) { return std::bit_cast<float>(uint32_t{h} << 16); }

}  // namespace tandem
