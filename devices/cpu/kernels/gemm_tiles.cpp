// Products of matrices of float32, and of 16-bit floats with a float32 result, from our own register tiles. Blocks, panels and the order
// of sums follow from the shapes alone.
//
// As in Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008): a block of y is packed so that it stays in the
// second-level cache, a panel of x's rows stays in the first, and the tile runs over both. An operand of float32 that lies well is not
// packed when it would be used only a few times; one of 16 bits always is, which is where it becomes what the tiles take. What several
// blocks would pack is packed once, by all threads, before the first of them.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "codegen/product.hpp"
#include "cpu_program.hpp"
#include "epilogue.hpp"
#include "half_pack.hpp"
#include "partial_sums.hpp"
#include "scratch.hpp"
#include "tile_table.hpp"

namespace tandem::cpu {
namespace {

using codegen::Product;
using codegen::swap_sides;
using codegen::take_apart;

constexpr double kTinyWork = 4096;       // multiplications below which generated code is as good
constexpr double kChunkWork = 400e3;     // multiplications a chunk should have at the least: about 10 us
constexpr double kChunkDotWork = 65536;  // a product with a vector only reads memory
constexpr int64_t kChunksPerThread = 4;  // as far as there is work: one that is delayed should not delay the whole
constexpr int64_t kBlockRows = 256, kBlockColumns = 512, kBlockInner = 512;
constexpr int64_t kPackFromRows = 96;            // of a block: with less, y is read where it lies
constexpr int64_t kPackLargeFromRows = 48;       // likewise a y that no cache of a core holds
constexpr int64_t kPackFromColumns = 64;         // likewise x
constexpr int64_t kKeptFloats = 128 * 1024;      // of a packed y
constexpr int64_t kDirectFloats = 128 * 1024;    // of y that several panels of x meet in turn
constexpr int64_t kReadAgainFloats = 64 * 1024;  // of y that several chunks may read where it lies, each for itself
constexpr int64_t kSharedFloats = 2 << 20;       // of an operand that is packed for all
constexpr int64_t kCollidingStep = 1024;         // floats: rows at a multiple of it share few sets of the first cache
constexpr int64_t kFarStep = 512;                // floats between pieces of rows that lie together: each is a line in a page of its own
constexpr int64_t kFarStepOfShort = 128;         // likewise of short pieces, whose lines fill the first cache with what is not used
constexpr int64_t kShortPiece = 8;               // floats: less than half a line
constexpr int64_t kPanelGap = 16;                // floats between packed rows of x, so that they do not meet in one set of the cache
constexpr int64_t kTurnedWaste = 6;              // lanes that may be empty where a large matrix need not be turned around, measured
constexpr int64_t kFetchFloats = 1 << 20;        // of an operand: less is in a cache already
constexpr int64_t kSumParts = 2;                 // of a sum that is cut
constexpr int64_t kMostRowsOfParts = 64;
constexpr int64_t kLeastTermsPerRow = 16;           // of a sum that is cut: its results are few beside what it reads
constexpr int64_t kLeastFloatsOfParts = 64 * 1024;  // of y

// How a product is cut. Each element is one chain of additions however that is, but for `terms`, which depend on the shapes alone.
struct Cut {
  int64_t rows, columns, inner;  // of a block
  int64_t row_count, column_count;
  int64_t terms;  // of a part of the sum, which are added when all are known
  int64_t batches_per_chunk = 1;
  int vectors;  // of a tile, at the most
  bool pack_x, pack_y;
  bool share_x, share_y;  // packed once, for all blocks
};

// A few rows times a large matrix, as in a layer with a small batch. A part of the sum reads rows of y of its own, and so does the product
// for y's gradient with the optimizer in its end. So a thread finds its rows where it left them, in its core's cache, and nobody else has
// a copy of them that a write must first take away. Cut by columns each line of y would wander between the cores in every step.
bool sums_in_parts(const Product& p) {
  return p.batches == 1 && p.m > 1 && p.m <= kMostRowsOfParts && p.y.column_step == 1 && p.k >= kLeastTermsPerRow * p.m &&
         p.k * p.n >= kLeastFloatsOfParts;
}

// How the product lies in the kernel's result: as it is, as the one column that is its one row, or turned around.
enum class Result : uint8_t { Plain, OneColumn, Turned };

// A large transposed matrix, as in the gradient by a layer's input, costs more to turn around than the result and the other operand
// together.
bool is_turned(const Product& p, int64_t lanes) {
  return p.batches == 1 && p.x.column_step == 1 && p.y.row_step == 1 && p.y.column_step != 1 && p.n >= 2 * p.m &&
         p.k * p.n >= kReadAgainFloats && round_up(p.m, lanes) <= p.m + kTurnedWaste;
}

Cut cut(const Product& p, const HalfPack& pack, int threads) {
  Cut c{};
  const TileSet& set = pack.tiles();
  c.vectors = p.m <= 4 ? 4 : 2;
  c.terms = sums_in_parts(p) ? round_up(parts(p.k, kSumParts), 4) : p.k;
  const int64_t width = c.vectors * set.lanes, height = set.most_rows[c.vectors];
  const bool transposed = p.y.column_step != 1, large_y = p.k * p.n > kDirectFloats;
  const auto packs_y = [&](int64_t rows) { return pack || transposed || rows >= kPackFromRows || (large_y && rows >= kPackLargeFromRows); };
  const auto shares = [&](int64_t floats, int64_t uses) { return p.batches == 1 && c.terms == p.k && uses > 1 && floats <= kSharedFloats; };

  const double all = p.work() * static_cast<double>(p.batches);
  const auto wanted = std::clamp<int64_t>(static_cast<int64_t>(all / kChunkWork), 1, kChunksPerThread * threads);
  int64_t row_cuts = parts(p.m, kBlockRows), column_cuts = parts(p.n, kBlockColumns);
  while (p.batches * row_cuts * column_cuts < wanted) {
    const int64_t rows = parts(p.m, row_cuts), columns = parts(p.n, column_cuts);
    const bool cheap_rows = (packs_y(rows / 2) && shares(p.k * p.n, 2)) || (!transposed && p.k * columns <= kReadAgainFloats);
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
  const int64_t packed_inner = std::clamp(kKeptFloats / c.columns, kBlockInner, 2 * kBlockInner) * pack.elements();
  const int64_t most_inner = c.pack_y || c.pack_x ? packed_inner : kDirectFloats / c.columns;
  c.inner = round_up(parts(c.terms, parts(c.terms, most_inner)), 4);
  if (c.row_count * c.column_count == 1)
    c.batches_per_chunk = std::clamp<int64_t>(static_cast<int64_t>(kChunkWork / p.work()), 1, std::max<int64_t>(p.batches, 1));
  return c;
}

class TileGemm final : public CpuProgram {
 public:
  TileGemm(const codegen::Kernel& kernel, Product p, Result result, Toolbox& tools)
      : p_(std::move(p)),
        pack_(kernel.in[0].dtype, tools.target, Pairs::Allowed),
        way_(p_.x.column_step != 1 && p_.x.row_step == 1 ? Rows::Together : Rows::Apart),
        tiles_(pack_.tiles(), way_),
        set_(tiles_.set()),
        cut_(cut(p_, pack_, tools.threads)),
        most_units_(pack_.units(cut_.inner)),
        inputs_(kernel.in.size()),
        result_(result),
        most_height_(std::min(tiles_.most_rows(cut_.vectors), cut_.rows)) {
    block_step_ = round_up(cut_.columns, set_.lanes);
    if (cut_.terms < p_.k)
      sums_.emplace(kernel, parts(p_.k, cut_.terms), p_.m, p_.n, tools);
    else if (kernel.end)
      epilogue_ = Epilogue(kernel, result == Result::Plain ? block_step_ : result == Result::OneColumn ? 1 : turned_step(), tools);
    const int64_t slabs = parts(p_.k, cut_.inner);
    const int64_t shared_y = cut_.share_y ? slabs * y_slab() : 0, shared_x = cut_.share_x ? slabs * x_slab() + set_.lanes : 0;
    shared_x_at_ = round_up(shared_y, 16);
    const int64_t shared_floats = shared_x_at_ + shared_x;
    shared_bytes_ = sums_ ? sums_->scratch_bytes() : codegen::align_up(static_cast<size_t>(shared_floats) * sizeof(float));

    const int64_t y_floats = cut_.pack_y && !cut_.share_y ? most_units_ * block_step_ : 0;
    const int64_t x_rows = way_ == Rows::Together ? cut_.rows : most_height_;
    const int64_t x_floats = cut_.pack_x && !cut_.share_x ? x_step() * x_rows + set_.lanes : 0;
    const int64_t block_floats = !in_buffer() ? 0 : (by_panel() ? most_height_ : cut_.rows) * block_step_;
    x_at_ = round_up(y_floats, 16);
    block_at_ = x_at_ + round_up(x_floats, 16);
    turned_at_ = block_at_ + round_up(block_floats, 16);
    const int64_t turned_floats = result == Result::Turned ? cut_.columns * turned_step() : 0;
    scratch_ = WorkerScratch(static_cast<size_t>(turned_at_ + turned_floats) * sizeof(float), tools.threads);
  }
  std::string_view kernel_name() const override { return "gemm/tiles"; }
  size_t scratch_bytes() const override { return shared_bytes_ + scratch_.bytes(); }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    const int64_t each = cut_.row_count * cut_.column_count;
    if (sums_) {
      pool.run(parts(p_.k, cut_.terms) * each, [&](int64_t i) { block(args, 0, i % each, i / each); });
      sums_->finish(args, pool);
      return;
    }
    if (cut_.share_x || cut_.share_y) pack_for_all(args, pool);
    if (each > 1) {
      pool.run(p_.batches * each, [&](int64_t i) { block(args, i / each, i % each); });
      return;
    }
    pool.run(parts(p_.batches, cut_.batches_per_chunk), [&](int64_t i) {
      const int64_t begin = i * cut_.batches_per_chunk, end = std::min(p_.batches, begin + cut_.batches_per_chunk);
      for (int64_t b = begin; b < end; ++b) block(args, b, 0);
    });
  }

 private:
  static constexpr int64_t kRowsAtATime = 8;  // of memory, while packing along them
  static constexpr int64_t kCopyAhead = 32;   // rows
  static constexpr int64_t kLineFloats = 16, kFewLines = 8 * kLineFloats;
  static constexpr auto kBytes = static_cast<int64_t>(sizeof(float));

  // Whether blocks are made in scratch memory, and whether a panel of one is finished at a time.
  bool in_buffer() const { return epilogue_ || result_ == Result::Turned; }
  bool by_panel() const { return result_ != Result::Turned && cut_.inner >= p_.k; }
  int64_t turned_step() const { return round_up(cut_.rows, set_.lanes); }

  int vectors_at(int64_t columns_left) const { return tiles_.vectors(columns_left, cut_.vectors); }

  void pack_y(const void* from, int64_t columns, int64_t length, float* to) const {
    if (pack_) {
      for (int64_t j = 0; j < columns;) {
        const int64_t width = vectors_at(columns - j) * set_.lanes;
        pack_.block(pack_.element(from, j * p_.y.column_step), p_.y.row_step, p_.y.column_step, std::min(width, columns - j), length,
                    to + j * pack_.units(length), width);
        j += width;
      }
      return;
    }
    const auto* y = static_cast<const float*>(from);
    if (p_.y.column_step == 1) return copy_y(y, columns, length, to);
    for (int64_t j = 0; j < columns;) {
      const int64_t width = vectors_at(columns - j) * set_.lanes, used = std::min(width, columns - j);
      const float* column = y + j * p_.y.column_step;
      float* panel = to + j * length;
      if (p_.y.row_step == 1) {
        set_.transpose(column, p_.y.column_step, used, length, panel, width);
      } else {
        for (int64_t k = 0; k < length; ++k)
          for (int64_t i = 0; i < used; ++i) panel[k * width + i] = column[k * p_.y.row_step + i * p_.y.column_step];
      }
      j += width;
    }
  }

  // Along the rows, a few at a time. Where a row is only a few lines no hardware fetches the next ones ahead.
  void copy_y(const float* y, int64_t columns, int64_t length, float* to) const {
    for (int64_t k = 0; k < length; k += kRowsAtATime) {
      if (columns <= kFewLines)
        for (int64_t i = k + kCopyAhead; i < std::min(length, k + kCopyAhead + kRowsAtATime); ++i)
          for (int64_t j = 0; j < columns; j += kLineFloats) __builtin_prefetch(y + i * p_.y.row_step + j, 0, 2);
      for (int64_t j = 0; j < columns;) {
        const int64_t width = vectors_at(columns - j) * set_.lanes, panels = std::max<int64_t>(1, (columns - j) / width);
        set_.copy(y + k * p_.y.row_step + j, p_.y.row_step, std::min(width, columns - j), std::min(kRowsAtATime, length - k),
                  to + j * length + k * width, width, panels, width * length);
        j += panels * width;
      }
    }
  }

  // Panels one behind the other, as if each row had x_step().
  void pack_x(const void* from, int64_t rows, int64_t length, float* to) const {
    if (way_ == Rows::Together && !pack_) {
      // Along the rows, a few ks at a time: the pieces of one panel lie far apart, and the next panel needs the rest of their lines.
      const auto* x = static_cast<const float*>(from);
      for (int64_t k = 0; k < length; k += kRowsAtATime)
        for_even_runs(rows, most_height_, [&](int64_t row, int64_t height, int64_t count) {
          set_.copy(x + k * p_.x.column_step + row, p_.x.column_step, height, std::min(kRowsAtATime, length - k),
                    to + row * x_step() + k * height, height, count, height * x_step());
        });
      return;
    }
    for_even_parts(rows, most_height_, [&](int64_t row, int64_t height) {
      const void* x = pack_.element(from, row * p_.x.row_step);
      float* panel = to + row * x_step();
      if (way_ == Rows::Together) return pack_.block(x, p_.x.column_step, 1, height, length, panel, height);
      for (int64_t i = 0; i < height; ++i) pack_row(pack_.element(x, i * p_.x.row_step), length, panel + i * x_step());
    });
  }
  void pack_row(const void* from, int64_t length, float* to) const {
    if (pack_) return pack_.along(from, p_.x.column_step, length, to);
    const auto* x = static_cast<const float*>(from);
    if (p_.x.column_step == 1)
      std::memcpy(to, x, static_cast<size_t>(length) * sizeof(float));
    else
      for (int64_t k = 0; k < length; ++k) to[k] = x[k * p_.x.column_step];
  }
  int64_t x_step() const { return most_units_ + kPanelGap; }

  // --- what is packed for all blocks: for each part of the sum all of x or y ---
  int64_t x_slab() const { return p_.m * x_step(); }
  int64_t y_slab() const { return cut_.column_count * block_step_ * most_units_; }
  float* shared_x(const device::LaunchArgs& args, int64_t k, int64_t row) const {
    return static_cast<float*>(args.scratch) + shared_x_at_ + k / cut_.inner * x_slab() + row * x_step();
  }
  float* shared_y(const device::LaunchArgs& args, int64_t k, int64_t column) const {
    return static_cast<float*>(args.scratch) + k / cut_.inner * y_slab() + column / cut_.columns * block_step_ * most_units_;
  }
  void pack_for_all(const device::LaunchArgs& args, ThreadPool& pool) const {
    const int64_t slabs = parts(p_.k, cut_.inner);
    const int64_t y_blocks = cut_.share_y ? cut_.column_count : 0, x_blocks = cut_.share_x ? cut_.row_count : 0;
    pool.run(slabs * (y_blocks + x_blocks), [&](int64_t i) {
      const int64_t k = i % slabs * cut_.inner, length = std::min(cut_.inner, p_.k - k), index = i / slabs;
      if (index < y_blocks) {
        const int64_t column = index * cut_.columns;
        const void* y = pack_.element(args.pointers[p_.y_input], p_.offset(p_.y, 0) + column * p_.y.column_step + k * p_.y.row_step);
        pack_y(y, std::min(cut_.columns, p_.n - column), length, shared_y(args, k, column));
      } else {
        const int64_t row = (index - y_blocks) * cut_.rows;
        const void* x = pack_.element(args.pointers[p_.x_input], p_.offset(p_.x, 0) + row * p_.x.row_step + k * p_.x.column_step);
        pack_x(x, std::min(cut_.rows, p_.m - row), length, shared_x(args, k, row));
      }
    });
  }

  // Blocks follow each other along the rows: where two threads share the rows of a result, each fetches what the other writes.
  void block(const device::LaunchArgs& args, int64_t batch, int64_t index, int64_t part = 0) const {
    const int64_t row0 = index / cut_.column_count * cut_.rows, column0 = index % cut_.column_count * cut_.columns;
    const int64_t rows = std::min(cut_.rows, p_.m - row0), columns = std::min(cut_.columns, p_.n - column0);
    const void* x = pack_.element(args.pointers[p_.x_input], p_.offset(p_.x, batch) + row0 * p_.x.row_step);
    const void* y = pack_.element(args.pointers[p_.y_input], p_.offset(p_.y, batch) + column0 * p_.y.column_step);
    auto* scratch = static_cast<float*>(scratch_.mine(static_cast<char*>(args.scratch) + shared_bytes_));
    float* buffer = scratch + block_at_;
    float* result = sums_ ? sums_->part(args, part) : static_cast<float*>(args.pointers[inputs_]);
    float* c = in_buffer() ? buffer : result + (batch * p_.m + row0) * p_.n + column0;
    const int64_t c_step = in_buffer() ? block_step_ : p_.n;
    const int64_t begin = part * cut_.terms, end = std::min(p_.k, begin + cut_.terms);
    for (int64_t k = begin; k < end; k += cut_.inner) {
      const int64_t length = std::min(cut_.inner, end - k);
      const YBlock y_block = y_of(args, pack_.element(y, k * p_.y.row_step), k, column0, columns, length, scratch);
      const void* x_block = pack_.element(x, k * p_.x.column_step);
      const bool by_block = cut_.pack_x && !cut_.share_x && way_ == Rows::Together;
      if (by_block) pack_x(x_block, rows, length, scratch + x_at_);
      for_even_parts(rows, most_height_, [&](int64_t row, int64_t height) {
        const void* x_panel = pack_.element(x_block, row * p_.x.row_step);
        int64_t a_step = way_ == Rows::Apart ? p_.x.row_step : p_.x.column_step;
        if (cut_.pack_x) {
          if (!cut_.share_x && !by_block) pack_x(x_panel, height, length, scratch + x_at_);
          x_panel = cut_.share_x ? shared_x(args, k, row0 + row) : scratch + x_at_ + (by_block ? row * x_step() : 0);
          a_step = way_ == Rows::Apart ? x_step() : height;
        }
        float* c_panel = epilogue_ && by_panel() ? c : c + row * c_step;
        const bool last = epilogue_ && result_ != Result::Turned && k + length == p_.k;
        const int64_t first_row = batch * p_.m + row0 + row;
        LinesAhead lines;
        if (last && result_ == Result::Plain) epilogue_.ask(args, first_row, height, column0, columns, lines);
        ask_next_x(x, row, height, rows, k, length, lines);
        tile_row(static_cast<const float*>(x_panel), a_step, height, y_block, columns, pack_.units(length), c_panel, c_step, k > begin,
                 lines);
        if (last) finish(args, c_panel, first_row, height, column0, columns);
      });
    }
    if (result_ == Result::Turned) turn(args, c, row0, rows, column0, columns, scratch + turned_at_);
  }

  // The panel of x behind the one at `row` and `k`, if it will be packed from where it lies.
  void ask_next_x(const void* x, int64_t row, int64_t height, int64_t rows, int64_t k, int64_t length, LinesAhead& lines) const {
    if (pack_ || !cut_.pack_x || cut_.share_x || way_ != Rows::Apart || p_.m * p_.k < kFetchFloats) return;
    row += height;
    if (row == rows) {
      row = 0;
      k += length;
    }
    if (k >= p_.k || lines.full()) return;
    lines.add({.row = static_cast<const char*>(pack_.element(x, row * p_.x.row_step + k)),
               .row_step = p_.x.row_step * kBytes,
               .row_bytes = std::min(cut_.inner, p_.k - k) * kBytes,
               .rows = std::min(height, rows - row)});
  }

  // A block whose rows are columns of the result.
  void turn(const device::LaunchArgs& args, const float* c, int64_t row, int64_t rows, int64_t column, int64_t columns, float* to) const {
    set_.transpose(c, block_step_, rows, columns, to, turned_step());
    if (epilogue_) return epilogue_.run(args, to, column, column + columns, row, row + rows);
    float* result = static_cast<float*>(args.pointers[inputs_]) + column * p_.m + row;
    for (int64_t i = 0; i < columns; ++i) std::memcpy(result + i * p_.m, to + i * turned_step(), static_cast<size_t>(rows) * sizeof(float));
  }

  // Where the tiles find a part of y.
  struct YBlock {
    const float* at;
    bool packed;
  };
  YBlock y_of(const device::LaunchArgs& args, const void* from, int64_t k, int64_t column, int64_t columns, int64_t length,
              float* scratch) const {
    if (cut_.share_y) return {.at = shared_y(args, k, column), .packed = true};
    if (!cut_.pack_y) return {.at = static_cast<const float*>(from), .packed = false};
    pack_y(from, columns, length, scratch);
    return {.at = scratch, .packed = true};
  }

  // One panel of x against all columns of the block. Meanwhile it asks for `lines`, as far as the sums are long enough.
  void tile_row(const float* x, int64_t a_step, int64_t height, const YBlock& y, int64_t columns, int64_t length, float* c, int64_t c_step,
                bool accumulate, LinesAhead& lines) const {
    Tile t{.a = x, .a_step = a_step, .length = length, .c_step = c_step, .accumulate = accumulate};
    t.ahead = &lines;
    t.ahead_steps = parts(lines.steps(), parts(columns, cut_.vectors * set_.lanes));
    for (int64_t j = 0; j < columns;) {
      const int vectors = vectors_at(columns - j);
      const int64_t width = vectors * set_.lanes;
      t.b = y.at + (y.packed ? j * length : j);
      t.b_step = y.packed ? width : p_.y.row_step;
      t.c = c + j;
      t.last = tiles_.last(columns - j, vectors);
      t.count = std::max<int64_t>(1, (columns - j) / width);
      t.b_next = y.packed ? width * length : width;
      t.c_next = width;
      tiles_.run(height, vectors, t);
      j += t.count * width;
    }
  }

  void finish(const device::LaunchArgs& args, const float* c, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    if (result_ == Result::OneColumn)  // the one row of every product is its only column
      epilogue_.run(args, c, row * p_.n + column, row * p_.n + column + columns, 0, 1);
    else
      epilogue_.run(args, c, row, row + rows, column, column + columns);
  }

  Product p_;
  HalfPack pack_;
  Rows way_;
  TileTable tiles_;
  const TileSet& set_;
  Cut cut_;
  int64_t most_units_;  // along the sum, of a block
  size_t inputs_;
  Result result_;
  int64_t most_height_;
  std::optional<PartialSums> sums_;  // runs the end instead of `epilogue_`
  Epilogue epilogue_;
  int64_t block_step_ = 0, shared_x_at_ = 0, x_at_ = 0, block_at_ = 0, turned_at_ = 0;  // floats
  size_t shared_bytes_ = 0;                                                             // of scratch memory, before the threads' pieces
  WorkerScratch scratch_;
};

// A matrix whose rows lie contiguously times a vector: one dot product a row.
class Dots final : public CpuProgram {
 public:
  Dots(const codegen::Kernel& kernel, Product p, Toolbox& tools)
      : p_(std::move(p)), set_(tiles(tools.target.wide)), inputs_(kernel.in.size()) {
    rows_are_columns_ = p_.m == 1;
    if (rows_are_columns_) swap_sides(p_);
    const auto rows = static_cast<int64_t>(kChunkDotWork / static_cast<double>(p_.k));
    chunk_rows_ = std::clamp<int64_t>(rows, 1, p_.m);
    copied_ = p_.y.row_step != 1;
    if (kernel.end) epilogue_ = Epilogue(kernel, rows_are_columns_ ? chunk_rows_ : 1, tools);
    const int64_t floats = (copied_ ? round_up(p_.k, 16) : 0) + (epilogue_ ? chunk_rows_ : 0);
    scratch_ = WorkerScratch(static_cast<size_t>(floats) * sizeof(float), tools.threads);
  }
  std::string_view kernel_name() const override { return "gemm/dots"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    const auto* matrix = static_cast<const float*>(args.pointers[p_.x_input]);
    const auto* vector = static_cast<const float*>(args.pointers[p_.y_input]);
    const int64_t each = parts(p_.m, chunk_rows_), batch_chunk = std::max<int64_t>(1, static_cast<int64_t>(kChunkDotWork / p_.work()));
    pool.run(parts(p_.batches * each, batch_chunk), [&](int64_t chunk) {
      for (int64_t i = chunk * batch_chunk; i < std::min(p_.batches * each, (chunk + 1) * batch_chunk); ++i) {
        const int64_t b = i / each, row = i % each * chunk_rows_;
        rows_of(args, matrix + p_.offset(p_.x, b) + row * p_.x.row_step, vector + p_.offset(p_.y, b), b, row);
      }
    });
  }

 private:
  void rows_of(const device::LaunchArgs& args, const float* matrix, const float* vector, int64_t batch, int64_t row) const {
    const int64_t rows = std::min(chunk_rows_, p_.m - row);
    auto* scratch = static_cast<float*>(scratch_.mine(args.scratch));
    if (copied_) {
      for (int64_t k = 0; k < p_.k; ++k) scratch[k] = vector[k * p_.y.row_step];
      vector = scratch;
      scratch += round_up(p_.k, 16);
    }
    float* c = epilogue_ ? scratch : static_cast<float*>(args.pointers[inputs_]) + batch * p_.m + row;
    set_.dots(matrix, p_.x.row_step, vector, rows, p_.k, c);
    if (!epilogue_) return;
    if (rows_are_columns_)
      epilogue_.run(args, c, batch, batch + 1, row, row + rows);
    else
      epilogue_.run(args, c, batch * p_.m + row, batch * p_.m + row + rows, 0, 1);
  }

  Product p_;
  const TileSet& set_;
  size_t inputs_;
  bool rows_are_columns_ = false, copied_ = false;
  int64_t chunk_rows_ = 1;
  Epilogue epilogue_;
  WorkerScratch scratch_;
};

}  // namespace

std::shared_ptr<const CpuProgram> make_gemm_tiles(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  if (kernel.op->name != "matmul") return nullptr;
  const DType in = kernel.in[0].dtype, out = (kernel.end ? kernel.end->product : kernel.out[0]).dtype;
  if (!tiles_sum(in, out, refusal)) return nullptr;
  Product p = take_apart(kernel);
  if (p.work() * static_cast<double>(p.batches) < kTinyWork) {  // also what is empty
    refusal = cat("too small, ", p.m, "x", p.k, "x", p.n);
    return nullptr;
  }
  if (p.m == 1 && p.n == 1) {
    refusal = "a product of two vectors is a sum";
    return nullptr;
  }
  const bool row_dots = p.n == 1 && p.x.column_step == 1, column_dots = p.m == 1 && p.y.row_step == 1 && p.y.column_step != 1;
  if (in == DType::F32 && (row_dots || column_dots)) return std::make_shared<Dots>(kernel, std::move(p), tools);
  const bool turned = in == DType::F32 && is_turned(p, tiles(tools.target.wide).lanes);
  const Result result = p.n == 1 ? Result::OneColumn : turned ? Result::Turned : Result::Plain;
  if (result != Result::Plain) swap_sides(p);
  return std::make_shared<TileGemm>(kernel, std::move(p), result, tools);
}

}  // namespace tandem::cpu
