// Memory that will be needed soon, given out a little at a time: a tile asks for it in the course of its sum, so that it arrives while the
// tile computes. Asked for all at once before a tile, it held the tile up (ADR 0023).
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tandem::cpu {

// Bytes that lie together. They are asked for in steps of kAheadStep.
struct AheadRun {
  const char *begin, *end;
};
inline constexpr int64_t kAheadStep = 128;  // bytes: two lines

// Matrices with rows of equal length, walked together: the first row of each, then the second.
class LinesAhead {
 public:
  // NOLINTNEXTLINE(modernize-use-equals-default): that would clear the matrices, and one is made for every few tiles
  LinesAhead() {}
  LinesAhead(int64_t rows, int64_t row_bytes) : rows_(rows), row_bytes_(row_bytes) {}
  bool full() const { return matrices_ == kMostMatrices; }
  void add(const void* start, int64_t step_bytes) { matrix_[matrices_++] = {static_cast<const char*>(start), step_bytes}; }
  // Of all that there is.
  int64_t steps() const { return rows_ * static_cast<int64_t>(matrices_) * (row_bytes_ / kAheadStep + 1); }

  // The next runs, of up to `steps` in all; gives where they end.
  AheadRun* take(int64_t steps, AheadRun* to, const AheadRun* last) {
    for (; steps > 0 && to != last && row_ < rows_ && matrices_ > 0; ++to) {
      const char *row = matrix_[current_].start + row_ * matrix_[current_].step, *end = row + row_bytes_;
      *to = {row + done_, std::min(end, row + done_ + steps * kAheadStep)};
      done_ += to->end - to->begin;
      steps -= (to->end - to->begin + kAheadStep - 1) / kAheadStep;
      if (to->end < end) continue;
      done_ = 0;
      if (++current_ < matrices_) continue;
      current_ = 0;
      ++row_;
    }
    return to;
  }

 private:
  static constexpr size_t kMostMatrices = 8;
  struct Matrix {
    const char* start;
    int64_t step;
  };
  int64_t rows_ = 0, row_bytes_ = 0;
  size_t matrices_ = 0;
  std::array<Matrix, kMostMatrices> matrix_;
  // Where it goes on: the row, the matrix, bytes of its row.
  int64_t row_ = 0;
  size_t current_ = 0;
  int64_t done_ = 0;
};

}  // namespace tandem::cpu
