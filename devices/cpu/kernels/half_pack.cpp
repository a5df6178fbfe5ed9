#include "half_pack.hpp"

#include <cstring>

#include "base/text.hpp"

namespace tandem::cpu {
namespace {
constexpr int64_t kPiece = 64;  // columns and units that are transposed at a time: two pieces stay in the L1 cache
}

bool tiles_sum(DType operands, DType result, std::string& refusal) {
  if (result != DType::F32)
    refusal = cat("gives float32, not ", result);
  else if (operands != DType::F32 && operands != DType::F16 && operands != DType::BF16)
    refusal = cat("takes float32, float16 and bfloat16, not ", operands);
  return refusal.empty();
}

HalfPack::HalfPack(DType t, const Target& target, Pairs pairs)
    : dtype_(t),
      elements_(t == DType::BF16 && target.pairs && pairs == Pairs::Allowed ? 2 : 1),
      set_(elements_ == 2 ? kTilesAvx512Pairs : cpu::tiles(target.wide)) {}

void HalfPack::convert(const uint16_t* from, int64_t length, float* to) const {
  if (elements_ == 1) return (dtype_ == DType::F16 ? set_.widen_float16 : set_.widen_bfloat16)(from, length, to);
  if (length % 2) to[length / 2] = 0;  // the half that is not there
  std::memcpy(to, from, static_cast<size_t>(length) * sizeof *from);
}

void HalfPack::along(const void* from, int64_t step, int64_t length, float* to) const {
  const auto* x = static_cast<const uint16_t*>(from);
  if (step == 1) return convert(x, length, to);
  uint16_t piece[2 * kPiece];
  for (int64_t k = 0; k < length; k += 2 * kPiece) {
    const int64_t count = std::min(2 * kPiece, length - k);
    for (int64_t i = 0; i < count; ++i) piece[i] = x[(k + i) * step];
    convert(piece, count, to + units(k));
  }
}

void HalfPack::block(const void* from, int64_t step, int64_t column_step, int64_t columns, int64_t length, float* to,
                     int64_t to_step) const {
  const auto* x = static_cast<const uint16_t*>(from);
  if (column_step == 1) {
    for (int64_t k = 0; k < length; k += elements_, x += elements_ * step, to += to_step) {
      if (elements_ == 1)
        convert(x, columns, to);
      else
        set_.pair(x, k + 1 < length ? x + step : nullptr, columns, to);
    }
    return;
  }
  alignas(64) float lines[kPiece * kPiece], transposed[kPiece * kPiece];
  for (int64_t k = 0; k < length; k += kPiece * elements_) {
    const int64_t count = std::min(kPiece * elements_, length - k);
    for (int64_t j = 0; j < columns; j += kPiece) {
      const int64_t width = std::min(kPiece, columns - j);
      for (int64_t i = 0; i < width; ++i) along(x + k * step + (j + i) * column_step, step, count, lines + i * kPiece);
      set_.transpose(lines, kPiece, width, units(count), transposed, kPiece);
      for (int64_t u = 0; u < units(count); ++u)
        std::memcpy(to + (units(k) + u) * to_step + j, transposed + u * kPiece, static_cast<size_t>(width) * sizeof(float));
    }
  }
}

}  // namespace tandem::cpu
