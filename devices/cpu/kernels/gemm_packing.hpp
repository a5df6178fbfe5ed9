// Operands of a product in the order in which the tiles walk over them: y in panels as wide as a tile, x in panels of its rows.
#pragma once
#include "codegen/product.hpp"
#include "half_pack.hpp"

namespace tandem::cpu {

// How the tiles find x, where it lies or packed.
inline Stored stored_by(const codegen::Product& p) {
  return p.x.column_step != 1 && p.x.row_step == 1 ? Stored::ByColumns : Stored::ByRows;
}

class GemmPacking {
 public:
  // most_vectors, most_height: of a tile; most_units: along the sum, of a block.
  GemmPacking(const codegen::Product& p, const HalfPack& pack, const TileTable& tiles, int most_vectors, int64_t most_height,
              int64_t most_units);

  // `columns` of y from `from` on, over `length` k-steps: panels one behind the other, each [k-step][column of the tile].
  void pack_y(const void* from, int64_t columns, int64_t length, float* to) const;
  // `rows` of x from `from` on: panels one behind the other, as if each row had x_step().
  void pack_x(const void* from, int64_t rows, int64_t length, float* to) const;
  int64_t x_step() const { return x_step_; }

 private:
  int vectors_at(int64_t columns_left) const { return tiles_.vectors(columns_left, most_vectors_); }
  void copy_y(const float* y, int64_t columns, int64_t length, float* to) const;
  void pack_row(const void* from, int64_t length, float* to) const;

  const codegen::Product& p_;
  const HalfPack& pack_;
  const TileTable& tiles_;
  const TileSet& set_;
  int most_vectors_;
  int64_t most_height_, x_step_;
  bool x_by_columns_;
};

}  // namespace tandem::cpu
