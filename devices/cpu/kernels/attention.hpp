// What attention forward and backward share: sizes, where operands lie, and products of blocks covered by tiles.
//
// Scores are made transposed, a panel at a time: rows are sources, columns a few vectors of targets. So keys and values are read where they
// lie, a softmax runs in the lanes, and only queries have to be transposed, once for all sources (as in Dao, "FlashAttention-2", 2023,
// the weights of all sources are never there at once).
#pragma once
#include <array>

#include "attention_vectors.hpp"
#include "codegen/kernel.hpp"
#include "tile_table.hpp"

namespace tandem::cpu {

inline constexpr int kPanelVectors = 2;        // of targets
inline constexpr int64_t kBlockSources = 128;  // rows of a panel
inline constexpr int64_t kBlockTargets = 128;  // of panels that meet a block of sources one after the other, at the most

// [batch, length, heads, depth] somewhere in memory, in elements.
struct HeadStrides {
  int64_t batch, row, head, depth;
  int64_t at(int64_t b, int64_t i, int64_t h) const { return b * batch + i * row + h * head; }
};
HeadStrides head_strides(const codegen::Layout& o);

// Something that broadcasts to [batch, heads, targets, sources].
struct Broadcast {
  int input = -1;  // of the kernel; -1: there is none
  std::array<int64_t, 4> strides{};
  bool is_there() const { return input >= 0; }
  bool is_number() const { return strides == std::array<int64_t, 4>{}; }
};

// Sizes of a call, from its operands: query, key, value first, bias and mask at `seen_at` and behind it.
struct AttentionCall {
  AttentionCall(const codegen::Kernel& kernel, size_t seen_at);
  int64_t batch, targets, sources, heads, key_heads, depth, value_depth;
  int64_t group() const { return heads / key_heads; }
  HeadStrides query, key, value;
  float scale;
  bool is_causal;
  Broadcast bias, mask;
};

// Rows of an operand as tiles can read them: where they lie, or packed where the depth is not contiguous, or where rows that are used
// several times collide in the cache.
class RowReader {
 public:
  RowReader(const HeadStrides& strides, int64_t most_rows, int64_t depth, int64_t uses);
  int64_t scratch_floats() const { return packs_ ? most_rows_ * packed_step_ : 0; }
  int64_t step() const { return packs_ ? packed_step_ : strides_.row; }
  const float* read(const float* from, int64_t b, int64_t first, int64_t rows, int64_t h, float* scratch) const;

 private:
  HeadStrides strides_;
  int64_t most_rows_, depth_, packed_step_;
  bool packs_;
};

// The code of one instruction set, and covers by it.
class AttentionTiles {
 public:
  explicit AttentionTiles(bool wide)
      : vectors(attention_set(wide)), by_rows_(tiles(wide), Stored::ByRows), by_columns_(tiles(wide), Stored::ByColumns) {}
  const TileSet& set() const { return by_rows_.set(); }
  int64_t width() const { return kPanelVectors * set().lanes; }  // columns of a panel
  // c[rows, columns] = a b, where t has a, b, the sum and c.
  void cover(Stored stored, int64_t rows, int64_t columns, const Tile& t) const;
  // `count` rows [count, depth] as the columns of a panel [depth, width()], which is filled up with zeros.
  void transpose(const float* rows, int64_t step, int64_t count, int64_t depth, float* panel) const;

  const AttentionSet& vectors;

 private:
  TileTable by_rows_, by_columns_;
};

// The part of a panel's softmax that does not depend on products: bias and what is hidden.
class SeenReader {
 public:
  SeenReader(const AttentionCall& call, int64_t width) : call_(call), width_(width) {}
  int64_t scratch_floats() const;
  // A panel of `targets` from `target` on and `sources` from `source` on, with its scores at steps of `step`.
  ScorePanel panel(void* const* pointers, int64_t b, int64_t h, int64_t target, int64_t targets, int64_t source, int64_t sources,
                   const AttentionTiles& tiles, float* scores, int64_t step, float* scratch) const;

 private:
  const AttentionCall& call_;
  int64_t width_;
};

// Places in a worker's scratch memory, one after the other, each at a multiple of a cache line.
class ScratchPlaces {
 public:
  int64_t add(int64_t floats) {
    const int64_t place = floats_;
    floats_ += round_up(floats, 16);
    return place;
  }
  size_t bytes() const { return static_cast<size_t>(floats_) * sizeof(float); }

 private:
  int64_t floats_ = 0;
};

}  // namespace tandem::cpu
