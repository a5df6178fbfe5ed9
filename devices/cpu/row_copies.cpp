#include "row_copies.hpp"

#include <algorithm>
#include <cstring>

namespace tandem::cpu {
namespace {

constexpr size_t kChunkBytes = size_t{16} << 10;
constexpr size_t kSharedFromBytes = size_t{64} << 10;
constexpr size_t kLeastPiece = 512;  // of a row
constexpr int64_t kMostChunks = 16;

void copy_pieces(char* to, const device::HostRows& rows, size_t begin, size_t end, size_t piece_begin, size_t piece_end) {
  for (size_t i = begin; i < end; ++i)
    std::memcpy(to + i * rows.row_bytes + piece_begin,
                static_cast<const char*>(rows.first) + rows.numbers[i] * rows.step_bytes + piece_begin, piece_end - piece_begin);
}

}  // namespace

// Long rows are cut, not shared out: a product of few rows reads the same part of all of them in one thread (ADR 0021), and finds it in its
// core's cache.
void copy_rows(void* to, const device::HostRows& rows, ThreadPool& pool) {
  auto* start = static_cast<char*>(to);
  const size_t count = rows.numbers.size(), bytes = count * rows.row_bytes;
  if (bytes == 0) return;
  if (bytes < kSharedFromBytes) return copy_pieces(start, rows, 0, count, 0, rows.row_bytes);
  const bool cut_rows = rows.row_bytes >= 2 * kLeastPiece;
  const size_t extent = cut_rows ? rows.row_bytes : count, least = cut_rows ? kLeastPiece : 1;
  const auto chunks = std::clamp<int64_t>(static_cast<int64_t>(std::min(bytes / kChunkBytes, extent / least)), 1, kMostChunks);
  const auto bound = [&](int64_t i) { return extent * static_cast<size_t>(i) / static_cast<size_t>(chunks); };
  pool.run(chunks, [&](int64_t i) {
    if (cut_rows)
      copy_pieces(start, rows, 0, count, bound(i), bound(i + 1));
    else
      copy_pieces(start, rows, bound(i), bound(i + 1), 0, rows.row_bytes);
  });
}

}  // namespace tandem::cpu
