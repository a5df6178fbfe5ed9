#include "gemm_blocking.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "work.hpp"

namespace tandem::cpu {
namespace {

using codegen::Product;

// Sources in brackets are sections of docs/performance/products.md.

// Several chunks a thread, so that one that is delayed does not delay the whole; 8 and 2 were no faster [Packing once].
constexpr int64_t kChunksPerThread = 4;
// Not larger than this; others were no faster [Sixteen registers; ADR 0011]. kBlockInner gives way to what L2 keeps, see kept_floats().
constexpr int64_t kBlockRows = 256, kBlockColumns = 512, kBlockInner = 512;

// Packing pays from so many uses on (docs/performance/products.md).
constexpr int64_t kPackFromRows = 96;       // of a block: with less, y is read where it lies
constexpr int64_t kPackLargeFromRows = 48;  // likewise a y that is larger than L2
constexpr int64_t kPackFromColumns = 64;    // likewise x
constexpr int64_t kSharedFloats =
    2 << 20;  // of an operand that is packed for all: 8 MiB (ADR 0011), a part of L3 and of what a run may take

// Steps that are unlucky for a cache, in floats. L1 has 64 sets of lines on every x86-64 processor: rows at a multiple of 4 KiB share one.
// What is far was found with the products x^T of [Packing once] (2 KiB, Sapphire Rapids) and [Sixteen registers] (512 bytes, Zen 3).
constexpr int64_t kCollidingStep = 1024;
constexpr int64_t kFarStep = 512;                      // between pieces of rows that lie together: each is a line in a page of its own
constexpr int64_t kFarStepOfShort = 128;               // likewise of short pieces, whose lines fill L1 with what is not used
constexpr int64_t kShortPiece = 8;                     // less than half a line
constexpr int64_t kLeastTransposedFloats = 64 * 1024;  // of y: 256 KiB; less is transposed within L2
constexpr int64_t kTransposedWaste = 6;                // lanes that may be empty where a result is transposed (measured, ADR 0011)

// Sums in parts: the numbers are part of what a product computes, so no cache of this machine may change them. From 32x1000x128 on
// two cores [What cores write].
constexpr int64_t kSumParts = 2;  // each thread has a half of y in its own L2
constexpr int64_t kMostRowsOfParts = 64;
constexpr int64_t kLeastTermsPerRow = 16;           // its results are few beside what it reads
constexpr int64_t kLeastFloatsOfParts = 64 * 1024;  // of y: 256 KiB; that example has 500, and what L1 keeps no core takes away for long

// Of y, in floats: what stays in L2 beside the rest that a block touches (Goto and van de Geijn give a packed block half of it), and what
// several chunks may read where it lies, each for itself.
int64_t kept_floats(const Caches& c) { return std::max<int64_t>(c.l2_bytes / 2, 512 << 10) / static_cast<int64_t>(sizeof(float)); }
int64_t read_again_floats(const Caches& c) { return kept_floats(c) / 2; }

// A few rows times a large matrix, as in a layer with a small batch. A part of the sum reads rows of y of its own, and so does the product
// for y's gradient with the optimizer in its epilogue. So a thread finds its rows where it left them, in its core's cache, and nobody else
// has a copy of them that a write must first take away. Cut by columns each line of y would wander between the cores in every step.
bool sums_in_parts(const Product& p) {
  return p.batches == 1 && p.m > 1 && p.m <= kMostRowsOfParts && p.y.column_step == 1 && p.k >= kLeastTermsPerRow * p.m &&
         p.k * p.n >= kLeastFloatsOfParts;
}

}  // namespace

std::optional<Product> product_for_tiles(const codegen::Kernel& kernel, std::string& refusal) {
  if (kernel.op->name != "matmul") return std::nullopt;
  const DType in = kernel.in[0].dtype, out = (kernel.epilogue ? kernel.epilogue->product : kernel.out[0]).dtype;
  if (!tiles_sum(in, out, refusal)) return std::nullopt;
  Product p = codegen::take_apart(kernel);
  if (p.work() * static_cast<double>(p.batches) < kTinyWork) {  // also what is empty
    refusal = cat("too small, ", p.m, "x", p.k, "x", p.n);
    return std::nullopt;
  }
  if (p.m == 1 && p.n == 1) {
    refusal = "a product of two vectors is a sum";
    return std::nullopt;
  }
  return p;
}

// A large transposed matrix, as in the gradient by a layer's input, costs more to transpose than the result and the other operand
// together.
bool transposes_result(const Product& p, int64_t lanes) {
  return p.batches == 1 && p.x.column_step == 1 && p.y.row_step == 1 && p.y.column_step != 1 && p.n >= 2 * p.m &&
         p.k * p.n >= kLeastTransposedFloats && round_up(p.m, lanes) <= p.m + kTransposedWaste;
}

Blocking blocking(const Product& p, const HalfPack& pack, const Caches& caches, int threads) {
  Blocking c{};
  const int64_t kept = kept_floats(caches), read_again = read_again_floats(caches);
  const TileSet& set = pack.tiles();
  c.vectors = p.m <= 4 ? 4 : 2;
  c.terms = sums_in_parts(p) ? round_up(parts(p.k, kSumParts), 4) : p.k;
  const int64_t width = c.vectors * set.lanes, height = set.most_rows[c.vectors];
  const bool transposed = p.y.column_step != 1, large_y = p.k * p.n > kept;
  const auto packs_y = [&](int64_t rows) { return pack || transposed || rows >= kPackFromRows || (large_y && rows >= kPackLargeFromRows); };
  const auto shares = [&](int64_t floats, int64_t uses) { return p.batches == 1 && c.terms == p.k && uses > 1 && floats <= kSharedFloats; };

  const double all = p.work() * static_cast<double>(p.batches);
  const auto wanted = std::clamp<int64_t>(static_cast<int64_t>(all / kChunkWork), 1, kChunksPerThread * threads);
  int64_t row_cuts = parts(p.m, kBlockRows), column_cuts = parts(p.n, kBlockColumns);
  while (p.batches * row_cuts * column_cuts < wanted) {
    const int64_t rows = parts(p.m, row_cuts), columns = parts(p.n, column_cuts);
    const bool cheap_rows = (packs_y(rows / 2) && shares(p.k * p.n, 2)) || (!transposed && p.k * columns <= read_again);
    if (columns >= 2 * width && (columns > rows || rows < 2 * height || !cheap_rows))
      column_cuts *= 2;
    else if (rows >= 2 * height && (cheap_rows || rows >= kBlockRows))
      row_cuts *= 2;
    else
      break;
  }
  c.rows = parts(p.m, row_cuts);
  c.columns = std::min(p.n, round_up(parts(p.n, column_cuts), width));
  c.row_count = parts(p.m, c.rows);
  c.column_count = parts(p.n, c.columns);

  const int64_t far = height < kShortPiece ? kFarStepOfShort : kFarStep;
  const bool collides = p.x.column_step == 1 ? p.x.row_step % kCollidingStep == 0 : p.x.row_step == 1 && p.x.column_step >= far;
  c.pack_x = pack || (p.x.column_step != 1 && p.x.row_step != 1) || (collides && c.columns >= kPackFromColumns);
  c.pack_y = packs_y(c.rows);
  c.share_x = c.pack_x && shares(p.m * p.k, c.column_count);
  c.share_y = c.pack_y && shares(p.k * p.n, c.row_count);
  const int64_t packed_inner = std::clamp(kept / c.columns, kBlockInner, 2 * kBlockInner) * pack.elements();
  const int64_t most_inner = c.pack_y || c.pack_x ? packed_inner : kept / c.columns;
  c.inner = round_up(parts(c.terms, parts(c.terms, most_inner)), 4);
  if (c.row_count * c.column_count == 1)
    c.batches_per_chunk = std::clamp<int64_t>(static_cast<int64_t>(kChunkWork / p.work()), 1, std::max<int64_t>(p.batches, 1));
  return c;
}

}  // namespace tandem::cpu
