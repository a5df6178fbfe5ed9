// How kernels cover a matrix with tiles: which tile, and in which parts.
#pragma once
#include <algorithm>
#include <array>

#include "tile.hpp"

namespace tandem::cpu {

inline int64_t parts(int64_t n, int64_t each) { return (n + each - 1) / each; }
inline int64_t round_up(int64_t n, int64_t unit) { return parts(n, unit) * unit; }

// As few parts as `most` allows, which are nearly of one size: f(begin, size, count) for so many of a size one after the other, the larger
// ones first.
template <class F> void for_even_runs(int64_t n, int64_t most, const F& f) {
  if (n == 0) return;
  const int64_t count = parts(n, most), size = n / count, larger = n % count;
  if (larger > 0) f(0, size + 1, larger);
  f(larger * (size + 1), size, count - larger);
}
// The same parts one by one: f(begin, size).
template <class F> void for_even_parts(int64_t n, int64_t most, const F& f) {
  for_even_runs(n, most, [&](int64_t begin, int64_t size, int64_t count) {
    for (int64_t i = 0; i < count; ++i) f(begin + i * size, size);
  });
}

// The tiles of an instruction set for one order in which a is stored, at hand without a search.
class TileTable {
 public:
  TileTable(const TileSet& set, Stored stored) : set_(set) {
    for (int v = 1; v <= kMostVectors; ++v)
      for (int h = 1; h <= set.most_rows[v]; ++h)
        for (const bool prefetches : {false, true}) functions_[index(prefetches)][index(v)][index(h)] = set.get(h, v, stored, prefetches);
  }
  const TileSet& set() const { return set_; }
  int64_t most_rows(int vectors) const { return set_.most_rows[vectors]; }
  void run(int64_t rows, int vectors, const Tile& t) const { functions_[index(t.prefetch_steps > 0)][index(vectors)][index(rows)](t); }

  // How many vectors the next tile is wide, of those that exist.
  int vectors(int64_t columns_left, int most) const {
    if (columns_left >= int64_t{most} * set_.lanes) return most;  // nearly always, and a division takes as long as a few k-steps
    const auto needed = static_cast<int>(parts(columns_left, set_.lanes));
    return needed == 3 ? 2 : needed;
  }
  // What Tile::last is for it.
  int last(int64_t columns_left, int vectors) const {
    return static_cast<int>(std::min<int64_t>(columns_left, vectors * set_.lanes) - (vectors - 1) * set_.lanes);
  }

  // `rows` of a product, as wide as one tile: t is the first one, `a_row` lies between the rows of a.
  void down(Tile t, int64_t rows, int vectors, int64_t a_row) const {
    const Tile first = t;
    for_even_runs(rows, most_rows(vectors), [&](int64_t row, int64_t height, int64_t count) {
      t.a = first.a + row * a_row;
      t.c = first.c + row * t.c_step;
      t.count = count;
      t.a_next = height * a_row;
      t.c_next = height * t.c_step;
      run(height, vectors, t);
    });
  }

  // A whole product, `rows` by `columns`, from tiles of up to `most_vectors`: t is the first one, as for down(). Columns of b lie side by
  // side within a tile, and `b_column` for each column further on in the next one.
  void cover(Tile t, int64_t rows, int64_t columns, int64_t a_row, int64_t b_column, int most_vectors) const {
    const Tile first = t;
    for (int64_t f = 0; f < columns;) {
      const int across = vectors(columns - f, most_vectors);
      t.b = first.b + f * b_column;
      t.c = first.c + f;
      t.last = last(columns - f, across);
      down(t, rows, across, a_row);
      f += across * set_.lanes;
    }
  }

 private:
  const TileSet& set_;
  template <class T> static size_t index(T i) { return static_cast<size_t>(i); }
  std::array<std::array<std::array<TileFunction, kMostTileRows + 1>, kMostVectors + 1>, 2> functions_{};  // [prefetches][vectors][rows]
};

}  // namespace tandem::cpu
