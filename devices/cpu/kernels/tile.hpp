// The register tile that every product and convolution is made of: a few rows by a few vectors of columns, summed in registers.
//
// c[i, j] = sum over segments s and k of a[s.a + i * row_step + k * k_step] * b[s.b + k * b_step + j]
//
// Each element is one chain of fused multiply-adds in the order of s and k, whatever the tile's size: where a product is cut into tiles
// or continued in a later call does not change a bit.
#pragma once
#include <cstdint>

#include "prefetch.hpp"

namespace tandem::cpu {

struct Segment {
  int64_t a, b;  // elements from the start of the operands
};

inline constexpr Segment kWholeSegment{0, 0};

struct Tile {
  const float *a, *b;
  int64_t a_step;                            // between the rows of a when k lies at steps of 1, else between its k-steps (see Stored)
  int64_t b_step;                            // between the k-steps of b
  const Segment* segments = &kWholeSegment;  // a sum is one unless it says otherwise
  int64_t segment_count = 1, length;         // k runs over [0, length) in each segment
  float* c;
  int64_t c_step;   // between the rows of c
  int last;         // columns in the last vector, 1 to lanes; b is not read and c not touched beyond them
  bool accumulate;  // go on from what c holds
  // So many tiles one after the other, each so much further on: for short sums, a call costs as much as a part of them.
  int64_t count = 1, a_next = 0, b_next = 0, c_next = 0;
  Prefetch* prefetch = nullptr;  // in the course of the sums, so many steps a tile
  int64_t prefetch_steps = 0;
};

enum class Stored : uint8_t { ByRows, ByColumns };  // of a: the k-steps of a row are contiguous, or the rows of a k-step are
using TileFunction = void (*)(const Tile& tile);

inline constexpr int kMostVectors = 4, kMostTileRows = 16;

// The code of one instruction set.
struct TileSet {
  int lanes;             // floats in a vector
  const int* most_rows;  // [vectors]: the most rows of a tile of so many vectors; 0: no such tile
  TileFunction (*get)(int rows, int vectors, Stored stored, bool prefetches);
  // c[i] = a[i * a_step + k] . b[k], summed in a fixed pattern that depends on `length` alone.
  void (*dots)(const float* a, int64_t a_step, const float* b, int64_t rows, int64_t length, float* c);
  // to[p * panel_step + i * step + j] = from[i * from_step + p * columns + j] for `panels` of so many columns side by side, i < rows. What
  // is written beyond the columns, up to a whole number of vectors, is the place of a later row, or the caller's to spare.
  void (*copy)(const float* from, int64_t from_step, int64_t columns, int64_t rows, float* to, int64_t step, int64_t panels,
               int64_t panel_step);
  // to[k * step + j] = from[j * from_step + k] for j < columns; rows of `to` are filled up with zeros to `step`.
  void (*transpose)(const float* from, int64_t from_step, int64_t columns, int64_t length, float* to, int64_t step);
  // to[i] = the float16 or bfloat16 with the bits from[i].
  void (*widen_float16)(const uint16_t* from, int64_t count, float* to);
  void (*widen_bfloat16)(const uint16_t* from, int64_t count, float* to);
  // to[i] = 32 bits: first[i] in the lower half, second[i] (or 0 when there is no second) in the upper one.
  void (*pair)(const uint16_t* first, const uint16_t* second, int64_t count, float* to);
};
extern const TileSet kTilesAvx2, kTilesAvx512;
// Its tiles take two bfloat16 in the place of one float: k counts pairs. What it is summed up to is still a float each.
extern const TileSet kTilesAvx512Pairs;
inline const TileSet& tiles(bool wide) { return wide ? kTilesAvx512 : kTilesAvx2; }

}  // namespace tandem::cpu
