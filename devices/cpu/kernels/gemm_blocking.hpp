// How a product of matrices is cut into blocks: sizes, what is packed, and once for whom. Follows from the product, the tiles, the number
// of threads and the sizes of the caches; but for `terms` none of it changes a bit of the result.
#pragma once
#include <optional>
#include <string>

#include "codegen/product.hpp"
#include "half_pack.hpp"
#include "host_target.hpp"

namespace tandem::cpu {

// The product of a kernel that tiles can do and that is worth it; else the reason why not, or none when it is no product.
std::optional<codegen::Product> product_for_tiles(const codegen::Kernel& kernel, std::string& refusal);

struct Blocking {
  int64_t rows, columns, inner;  // of a block; inner: k-steps
  int64_t row_count, column_count;
  int64_t terms;  // k-steps of a part of the sum. Parts are added when all are known; they follow from the shapes alone (I10)
  int64_t batches_per_chunk = 1;
  int vectors;  // of a tile, at the most
  bool pack_x, pack_y;
  bool share_x, share_y;  // packed once, for all blocks
};
Blocking blocking(const codegen::Product& p, const HalfPack& pack, const Caches& caches, int threads);

// Whether a large transposed y is read along its rows, as out^T = y^T x^T, and the result transposed instead: that is less to move.
bool transposes_result(const codegen::Product& p, int64_t lanes);

}  // namespace tandem::cpu
