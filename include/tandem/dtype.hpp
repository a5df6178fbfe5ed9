// Element types: their names, sizes and the rules by which two of them meet.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tandem {

enum class DType : uint8_t { Bool, U8, U16, U32, U64, I8, I16, I32, I64, F16, BF16, F32, F64 };
inline constexpr int kDTypeCount = 13;

struct DTypeInfo {
  std::string_view name;  // "float32"
  uint8_t bytes;
  bool is_float, is_signed, is_int;  // bool is none of the three
};
const DTypeInfo& info(DType t);

inline std::string_view name(DType t) { return info(t).name; }
inline size_t size_of(DType t) { return info(t).bytes; }
constexpr bool is_float(DType t) { return t >= DType::F16; }
constexpr bool is_int(DType t) { return t >= DType::U8 && t <= DType::I64; }
constexpr bool is_signed(DType t) { return t >= DType::I8; }
std::optional<DType> parse_dtype(std::string_view name);

// A type as it takes part in promotion. A weak type is that of a bare number (`x + 1.5`): it has a kind but no width,
// so it widens the kind of the other operand and never its width.
struct PromotionType {
  DType dtype;
  bool weak = false;
};

// The rule of Keras 3's `result_type`: the least type in Keras's lattice that both convert to. `int` and `float` without a
// width become int32 and float32. Both are total: any two types meet.
PromotionType promote(PromotionType a, PromotionType b);
DType result_type(std::span<const PromotionType> types);

// The floating type that an integer or bool operand of exp, sqrt, true division … computes in: itself if floating, else float32.
DType floating_type(DType t);

// C++ element type -> DType; Half and BFloat16 are in base/half.hpp.
template <class T> struct DTypeOf;
template <> struct DTypeOf<bool> {
  static constexpr DType value = DType::Bool;
};
template <> struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::U8;
};
template <> struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::U16;
};
template <> struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::U32;
};
template <> struct DTypeOf<uint64_t> {
  static constexpr DType value = DType::U64;
};
template <> struct DTypeOf<int8_t> {
  static constexpr DType value = DType::I8;
};
template <> struct DTypeOf<int16_t> {
  static constexpr DType value = DType::I16;
};
template <> struct DTypeOf<int32_t> {
  static constexpr DType value = DType::I32;
};
template <> struct DTypeOf<int64_t> {
  static constexpr DType value = DType::I64;
};
template <> struct DTypeOf<float> {
  static constexpr DType value = DType::F32;
};
template <> struct DTypeOf<double> {
  static constexpr DType value = DType::F64;
};

}  // namespace tandem
