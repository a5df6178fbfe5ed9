// float16 and bfloat16 as C++ values: storage of 16 bits, arithmetic by conversion to float, rounding to nearest even.
#pragma once
#include <cstdint>

#include <tandem/dtype.hpp>

namespace tandem {

uint16_t float_to_half_bits(float x);
float half_bits_to_float(uint16_t h);
uint16_t float_to_bfloat16_bits(float x);
float bfloat16_bits_to_float(uint16_t h);

struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float x) : bits(float_to_half_bits(x)) {}
  explicit operator float() const { return half_bits_to_float(bits); }
};
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float x) : bits(float_to_bfloat16_bits(x)) {}
  explicit operator float() const { return bfloat16_bits_to_float(bits); }
};
template <> struct DTypeOf<Half> {
  static constexpr DType value = DType::F16;
};
template <> struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::BF16;
};

// Calls f with a value of the C++ type of `t`: dispatch(t, [&](auto zero) { using T = decltype(zero); … });
template <class F> decltype(auto) dispatch(DType t, F&& f) {
  switch (t) {
    case DType::Bool: return f(bool{});
    case DType::U8: return f(uint8_t{});
    case DType::U16: return f(uint16_t{});
    case DType::U32: return f(uint32_t{});
    case DType::U64: return f(uint64_t{});
    case DType::I8: return f(int8_t{});
    case DType::I16: return f(int16_t{});
    case DType::I32: return f(int32_t{});
    case DType::I64: return f(int64_t{});
    case DType::F16: return f(Half{});
    case DType::BF16: return f(BFloat16{});
    case DType::F32: return f(float{});
    case DType::F64: break;
  }
  return f(double{});
}

}  // namespace tandem
