// 16-bit operands on their way into the register tiles: they are copied into units of 32 bits, each a float or, where the processor
// multiplies pairs of bfloat16, two neighbours along the sum. Either way a tile sums in float32.
#pragma once
#include <string>

#include <tandem/dtype.hpp>

#include "target.hpp"
#include "tile_table.hpp"

namespace tandem::cpu {

// Whether the tiles sum operands of one type to results of another; else the reason why not.
bool tiles_sum(DType operands, DType result, std::string& refusal);

enum class Pairs : uint8_t { Allowed, Never };  // Never: where neighbours along the sum do not lie side by side

class HalfPack {
 public:
  // For operands of this type; of float32 it only gives the tiles.
  HalfPack(DType t, const Target& target, Pairs pairs);
  explicit operator bool() const { return dtype_ != DType::F32; }
  const TileSet& tiles() const { return set_; }
  int64_t elements() const { return elements_; }  // of a unit: 1 or 2
  int64_t units(int64_t length) const { return parts(length, elements_); }

  // Where an element of such an operand lies.
  const void* element(const void* operand, int64_t index) const {
    return static_cast<const char*>(operand) + index * static_cast<int64_t>(size_of(dtype_));
  }

  // to[unit] for `length` elements along the sum, `step` apart.
  void along(const void* from, int64_t step, int64_t length, float* to) const;
  // to[unit * to_step + column] for a block of `length` elements along the sum by `columns`.
  void block(const void* from, int64_t step, int64_t column_step, int64_t columns, int64_t length, float* to, int64_t to_step) const;

 private:
  void convert(const uint16_t* from, int64_t length, float* to) const;  // neighbours

  DType dtype_;
  int64_t elements_;
  const TileSet& set_;
};

}  // namespace tandem::cpu
