// The tiles as templates over an instruction set. Included only by the files that are compiled for one: nothing here, and nothing it
// includes, may leave code behind that another file could link to.
#pragma once
#include <immintrin.h>

#include <type_traits>

#include "tile.hpp"
#include "unroll.hpp"

namespace tandem::cpu {
namespace {

constexpr int64_t kLine = 64;  // bytes of a cache's line

inline __attribute__((always_inline)) void prefetch_step(Prefetch& p) {
  if (p.at < p.end) {
    TANDEM_UNROLL for (int64_t i = 0; i < kPrefetchStep; i += kLine) __builtin_prefetch(p.at + i, 0, 2);
    p.at += kPrefetchStep;
  } else if (p.done < p.count) {
    PrefetchRows& rows = p.rows[p.done];
    p.at = rows.row;
    p.end = rows.row + rows.row_bytes;
    rows.row += rows.row_step;
    if (--rows.rows == 0) ++p.done;
  }
}

template <class I, int H, int V, Stored S, bool P> void run_tile(const Tile& t) {
  using Vector = typename I::Vector;
  Vector sum[H][V];
  const auto last = I::mask(t.last);
  const bool full = t.last == I::kLanes;
  const float *a0 = t.a, *b0 = t.b;
  float* c0 = t.c;
  const int64_t a_step = t.a_step, b_step = t.b_step;
  for (int64_t n = 0; n < t.count; ++n, a0 += t.a_next, b0 += t.b_next, c0 += t.c_next) {
    TANDEM_UNROLL for (int i = 0; i < H; ++i) { TANDEM_UNROLL for (int v = 0; v < V; ++v) sum[i][v] = I::zero(); }
    if (t.accumulate) {
      TANDEM_UNROLL for (int i = 0; i < H; ++i) {
        const float* c = c0 + i * t.c_step;
        TANDEM_UNROLL for (int v = 0; v < V; ++v) sum[i][v] = v + 1 < V ? I::load(c + v * I::kLanes) : I::load(c + v * I::kLanes, last);
      }
    } else {
      // The place of the result is fetched while the sum goes on: a store that misses would hold up those behind it.
      constexpr int kVectorsInLine = 16 / I::kLanes;
      TANDEM_UNROLL for (int i = 0; i < H; ++i) {
        TANDEM_UNROLL for (int v = 0; v < V; v += kVectorsInLine) __builtin_prefetch(c0 + i * t.c_step + v * I::kLanes, 1);
      }
    }
    [[maybe_unused]] int64_t prefetches = t.prefetch_steps;
    const auto prefetch = [&]() __attribute__((always_inline)) {
      if constexpr (P) {
        if (prefetches-- > 0) prefetch_step(*t.prefetch);
      }
    };
    const auto sum_up = [&](auto masked) __attribute__((always_inline)) {
      for (int64_t s = 0; s < t.segment_count; ++s) {
        const float* a = a0 + t.segments[s].a;
        const float* b = b0 + t.segments[s].b;
        // One k: a row of b against one element of every row of a. The fewer of the two wait in registers for the others.
        const auto step = [&](const auto& element) __attribute__((always_inline)) {
          const auto y = [&](int v) __attribute__((always_inline)) {
            return masked && v + 1 == V ? I::load(b + v * I::kLanes, last) : I::load(b + v * I::kLanes);
          };
          const auto x = [&](int i) __attribute__((always_inline)) { return I::set(element(i)); };
          if constexpr (H < V) {
            Vector all[H];
            TANDEM_UNROLL for (int i = 0; i < H; ++i) all[i] = x(i);
            TANDEM_UNROLL for (int v = 0; v < V; ++v) {
              const Vector one = y(v);
              TANDEM_UNROLL for (int i = 0; i < H; ++i) sum[i][v] = I::multiply_add(all[i], one, sum[i][v]);
            }
          } else {
            Vector all[V];
            TANDEM_UNROLL for (int v = 0; v < V; ++v) all[v] = y(v);
            TANDEM_UNROLL for (int i = 0; i < H; ++i) {
              const Vector one = x(i);
              TANDEM_UNROLL for (int v = 0; v < V; ++v) sum[i][v] = I::multiply_add(one, all[v], sum[i][v]);
            }
          }
          b += b_step;
        };
        int64_t left = t.length;
        if constexpr (S == Stored::ByRows) {
          // Every third row has a pointer, the next two are reached by one and two steps from it: so all addresses stay in registers.
          constexpr int kPointers = (H + 2) / 3;
          const float* rows[kPointers];
          TANDEM_UNROLL for (int p = 0; p < kPointers; ++p) rows[p] = a + 3 * p * a_step;
          const auto steps = [&](int count) __attribute__((always_inline)) {
            TANDEM_UNROLL for (int u = 0; u < count; ++u)
                step([&](int i) __attribute__((always_inline)) { return rows[i / 3][i % 3 * a_step + u]; });
            TANDEM_UNROLL for (int p = 0; p < kPointers; ++p) rows[p] += count;
          };
          for (; left >= 4; left -= 4) {
            steps(4);
            prefetch();
          }
          if (left & 2) steps(2);
          if (left & 1) steps(1);
        } else {
          const auto steps = [&](int count) __attribute__((always_inline)) {
            TANDEM_UNROLL for (int u = 0; u < count; ++u) {
              step([&](int i) __attribute__((always_inline)) { return a[i]; });
              a += a_step;
            }
          };
          for (; left >= 4; left -= 4) {
            steps(4);
            prefetch();
          }
          if (left & 2) steps(2);
          if (left & 1) steps(1);
        }
      }
    };
    // Where a mask takes a vector register, whole vectors go without one.
    if (I::kFreeMasks || !full)
      sum_up(std::true_type());
    else
      sum_up(std::false_type());
    TANDEM_UNROLL for (int i = 0; i < H; ++i) {
      float* c = c0 + i * t.c_step;
      TANDEM_UNROLL for (int v = 0; v < V; ++v) {
        if (v + 1 < V || full)  // masked stores are slow
          I::store(c + v * I::kLanes, sum[i][v]);
        else
          I::store(c + v * I::kLanes, sum[i][v], last);
      }
    }
  }
}

template <class I, Stored S, bool P, int V, int H> TileFunction find(int rows) {
  if constexpr (H == 0)
    return nullptr;
  else
    return rows == H ? run_tile<I, H, V, S, P> : find<I, S, P, V, H - 1>(rows);
}
template <class I, Stored S, bool P> TileFunction find(int rows, int vectors) {
  switch (vectors) {
    case 1: return find<I, S, P, 1, I::kMostRows[1]>(rows);
    case 2: return find<I, S, P, 2, I::kMostRows[2]>(rows);
    case 4: return find<I, S, P, 4, I::kMostRows[4]>(rows);
    default: return nullptr;
  }
}
template <class I, Stored S> TileFunction find(int rows, int vectors, bool prefetches) {
  return prefetches ? find<I, S, true>(rows, vectors) : find<I, S, false>(rows, vectors);
}
template <class I> TileFunction find_tile(int rows, int vectors, Stored stored, bool prefetches) {
  return stored == Stored::ByRows ? find<I, Stored::ByRows>(rows, vectors, prefetches)
                                  : find<I, Stored::ByColumns>(rows, vectors, prefetches);
}

// Four vectors of partial sums a row, added pairwise at the end.
template <class I> void run_dots(const float* a, int64_t a_step, const float* b, int64_t rows, int64_t length, float* c) {
  constexpr int kSums = 4, kBlock = kSums * I::kLanes;
  for (int64_t i = 0; i < rows; ++i, a += a_step) {
    typename I::Vector sum[kSums];
    TANDEM_UNROLL for (int v = 0; v < kSums; ++v) sum[v] = I::zero();
    int64_t k = 0;
    for (; k + kBlock <= length; k += kBlock) {
      TANDEM_UNROLL for (int v = 0; v < kSums; ++v) {
        const int64_t at = k + v * I::kLanes;
        sum[v] = I::multiply_add(I::load(a + at), I::load(b + at), sum[v]);
      }
    }
    for (int v = 0; k < length; k += I::kLanes, v = (v + 1) % kSums) {
      const auto mask = I::mask(length - k < I::kLanes ? static_cast<int>(length - k) : I::kLanes);
      sum[v] = I::multiply_add(I::load(a + k, mask), I::load(b + k, mask), sum[v]);
    }
    c[i] = I::total(I::add(I::add(sum[0], sum[1]), I::add(sum[2], sum[3])));
  }
}

template <class I, int V>
void copy_panels(const float* from, int64_t from_step, int64_t columns, int64_t rows, float* to, int64_t step, int64_t panels,
                 int64_t panel_step) {
  const auto last = I::mask(static_cast<int>(columns) - (V - 1) * I::kLanes);
  for (int64_t p = 0; p < panels; ++p, from += columns, to += panel_step) {
    const float* row = from;
    float* at = to;
    for (int64_t i = 0; i < rows; ++i, row += from_step, at += step)
      TANDEM_UNROLL for (int v = 0; v < V; ++v)
          I::store(at + v * I::kLanes, v + 1 < V ? I::load(row + v * I::kLanes) : I::load(row + v * I::kLanes, last));
  }
}
template <class I>
void run_copy(const float* from, int64_t from_step, int64_t columns, int64_t rows, float* to, int64_t step, int64_t panels,
              int64_t panel_step) {
  switch ((columns + I::kLanes - 1) / I::kLanes) {
    case 1: return copy_panels<I, 1>(from, from_step, columns, rows, to, step, panels, panel_step);
    case 2: return copy_panels<I, 2>(from, from_step, columns, rows, to, step, panels, panel_step);
    case 4: return copy_panels<I, 4>(from, from_step, columns, rows, to, step, panels, panel_step);
    default: return;  // no tile is of another width
  }
}

// f gives a vector from the elements at an index; the last, incomplete one from a copy that is filled up with zeros.
template <class I, class F> void for_vectors(const uint16_t* from, int64_t count, float* to, F f) {
  int64_t i = 0;
  for (; i + I::kLanes <= count; i += I::kLanes) I::store(to + i, f(from + i));
  if (i == count) return;
  uint16_t rest[I::kLanes] = {};
  for (int64_t j = i; j < count; ++j) rest[j - i] = from[j];
  I::store(to + i, f(rest), I::mask(static_cast<int>(count - i)));
}
template <class I> void run_widen_float16(const uint16_t* from, int64_t count, float* to) {
  for_vectors<I>(from, count, to, [](const uint16_t* p) { return I::from_float16(p); });
}
template <class I> void run_widen_bfloat16(const uint16_t* from, int64_t count, float* to) {
  for_vectors<I>(from, count, to, [](const uint16_t* p) { return I::from_bfloat16(p); });
}
template <class I> void run_pair(const uint16_t* first, const uint16_t* second, int64_t count, float* to) {
  if (!second) return for_vectors<I>(first, count, to, [](const uint16_t* p) { return I::lower(p); });
  const int64_t whole = count / I::kLanes * I::kLanes;
  for (int64_t i = 0; i < whole; i += I::kLanes) I::store(to + i, I::either(I::lower(first + i), I::from_bfloat16(second + i)));
  if (whole == count) return;
  uint16_t a[I::kLanes] = {}, b[I::kLanes] = {};
  for (int64_t i = whole; i < count; ++i) {
    a[i - whole] = first[i];
    b[i - whole] = second[i];
  }
  I::store(to + whole, I::either(I::lower(a), I::from_bfloat16(b)), I::mask(static_cast<int>(count - whole)));
}

void transpose_8x8(const float* from, int64_t from_step, float* to, int64_t step) {
  __m256 r[8], s[8];
  TANDEM_UNROLL for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_step);
  TANDEM_UNROLL for (int i = 0; i < 8; i += 2) {
    s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  TANDEM_UNROLL for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
  }
  TANDEM_UNROLL for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * step, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * step, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

template <class I> void run_transpose(const float* from, int64_t from_step, int64_t columns, int64_t length, float* to, int64_t step) {
  int64_t j = 0;
  for (; j + 8 <= columns; j += 8) {
    int64_t k = 0;
    for (; k + 8 <= length; k += 8) transpose_8x8(from + j * from_step + k, from_step, to + k * step + j, step);
    for (; k < length; ++k)
      for (int64_t i = 0; i < 8; ++i) to[k * step + j + i] = from[(j + i) * from_step + k];
  }
  for (; j < columns; ++j)
    for (int64_t k = 0; k < length; ++k) to[k * step + j] = from[j * from_step + k];
  for (; j < step; ++j)
    for (int64_t k = 0; k < length; ++k) to[k * step + j] = 0;
}

template <class I> constexpr TileSet tile_set() {
  return {I::kLanes,        I::kMostRows,         find_tile<I>,          run_dots<I>, run_copy<I>,
          run_transpose<I>, run_widen_float16<I>, run_widen_bfloat16<I>, run_pair<I>};
}

}  // namespace
}  // namespace tandem::cpu
