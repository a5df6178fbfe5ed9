// The table of element types and the lattice by which they are promoted.
#include <tandem/dtype.hpp>

#include <array>
#include <bit>

namespace tandem {
namespace {

constexpr std::array<DTypeInfo, kDTypeCount + 1> kInfo = {{
    // name, bytes, is_float, is_signed, is_int
    {"bool", 1, false, false, false},
    {"uint8", 1, false, false, true},
    {"uint16", 2, false, false, true},
    {"uint32", 4, false, false, true},
    {"uint64", 8, false, false, true},
    {"int8", 1, false, true, true},
    {"int16", 2, false, true, true},
    {"int32", 4, false, true, true},
    {"int64", 8, false, true, true},
    {"float16", 2, true, true, false},
    {"bfloat16", 2, true, true, false},
    {"float32", 4, true, true, false},
    {"float64", 8, true, true, false},
    {"string", 0, false, false, false},  // kString, on the host only
}};

// Promotion is the join of Keras 3.15's lattice, which is JAX's without complex numbers:
//
//   bool - int* -+- uint8 -+- uint16 -+- uint32 -+- uint64 -+
//                |          \          \          \         +- float* -+- float16  -+- float32 - float64
//                +- int8 ---- int16 ---- int32 ---- int64 --+          +- bfloat16 -+
//
// where int* and float* are the weak types of bare numbers. uint64 meets a signed type in float*: no integer holds both.
// Keras then narrows 64 bits to 32 on backends without 64-bit types; we have them, so we do not.
//
// The nodes are numbered so that every edge goes from a lower to a higher number. Then the least of the common upper bounds is
// the one with the lowest number, and a join is one bit scan.
enum Node : unsigned { Bool, WeakInt, U8, U16, U32, U64, I8, I16, I32, I64, WeakFloat, F16, BF16, F32, F64, kNodeCount };

constexpr unsigned bit(Node n) { return 1u << n; }

// For each node, itself and everything above it.
constexpr std::array<unsigned, kNodeCount> kUpperBounds = [] {
  std::array<unsigned, kNodeCount> above = {};
  above[Bool] = bit(WeakInt);
  above[WeakInt] = bit(U8) | bit(I8);
  above[U8] = bit(U16) | bit(I16);
  above[U16] = bit(U32) | bit(I32);
  above[U32] = bit(U64) | bit(I64);
  above[I8] = bit(I16);
  above[I16] = bit(I32);
  above[I32] = bit(I64);
  above[U64] = above[I64] = bit(WeakFloat);
  above[WeakFloat] = bit(F16) | bit(BF16);
  above[F16] = above[BF16] = bit(F32);
  above[F32] = bit(F64);
  for (unsigned n = kNodeCount; n-- > 0;) {  // downwards, so what lies above is already complete
    for (unsigned m = n + 1; m < kNodeCount; ++m)
      if (above[n] >> m & 1u) above[n] |= above[m];
    above[n] |= 1u << n;
  }
  return above;
}();

// The nodes are the types in their own order, with each weak type put in front of the kind it stands for.
constexpr unsigned node_of(PromotionType t) {
  const auto index = static_cast<unsigned>(t.dtype);
  if (is_float(t.dtype)) return t.weak ? WeakFloat : index + 2;
  if (is_int(t.dtype)) return t.weak ? WeakInt : index + 1;
  return Bool;
}
constexpr PromotionType type_of(unsigned node) {
  if (node == WeakInt) return {DType::I32, true};
  if (node == WeakFloat) return {DType::F32, true};
  return {static_cast<DType>(node - (node > WeakInt) - (node > WeakFloat))};
}

}  // namespace

const DTypeInfo& info(DType t) { return kInfo[static_cast<size_t>(t)]; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (size_t i = 0; i < kDTypeCount; ++i)
    if (kInfo[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

PromotionType promote(PromotionType a, PromotionType b) {
  const unsigned common = kUpperBounds[node_of(a)] & kUpperBounds[node_of(b)];
  return type_of(static_cast<unsigned>(std::countr_zero(common)));
}

DType result_type(std::span<const PromotionType> types) {
  if (types.empty()) return DType::F32;  // as Keras: the type of an empty list of numbers
  PromotionType result = types.front();
  for (PromotionType t : types) result = promote(result, t);  // also turns a lone weak type into its default width
  return result.dtype;
}

DType floating_type(DType t) { return is_float(t) ? t : DType::F32; }

}  // namespace tandem
