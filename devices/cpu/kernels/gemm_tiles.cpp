// Products of matrices of float32, and of 16-bit floats with a float32 result, from our own register tiles. Blocks, panels and the order
// of sums follow from the shapes alone.
//
// As in Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008): a block of y is packed so that it stays in the
// L2 cache, a panel of x's rows stays in the first, and the tile runs over both. An operand of float32 that is contiguous is not
// packed when it would be used only a few times; one of 16 bits always is, which is where it becomes what the tiles take. What several
// blocks would pack is packed once, by all threads, before the first of them.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "cpu_program.hpp"
#include "epilogue.hpp"
#include "gemm_blocking.hpp"
#include "gemm_packing.hpp"
#include "partial_sums.hpp"
#include "scratch.hpp"

namespace tandem::cpu {
namespace {

using codegen::Product;
using codegen::swap_sides;

constexpr int64_t kFetchFloats = 1 << 20;  // of an operand: less is in a cache already

// How the product lies in the kernel's result: as it is, as the one column that is its one row, or transposed.
enum class Result : uint8_t { Plain, OneColumn, Transposed };

class TileGemm final : public CpuProgram {
 public:
  TileGemm(const codegen::Kernel& kernel, Product p, Result result, Toolbox& tools)
      : p_(std::move(p)),
        pack_(kernel.in[0].dtype, tools.target, Pairs::Allowed),
        stored_(stored_by(p_)),
        tiles_(pack_.tiles(), stored_),
        set_(tiles_.set()),
        blocking_(blocking(p_, pack_, tools.target.caches, tools.threads)),
        most_units_(pack_.units(blocking_.inner)),
        inputs_(kernel.in.size()),
        result_(result),
        most_height_(std::min(tiles_.most_rows(blocking_.vectors), blocking_.rows)),
        packing_(p_, pack_, tiles_, blocking_.vectors, most_height_, most_units_) {
    block_step_ = round_up(blocking_.columns, set_.lanes);
    if (blocking_.terms < p_.k)
      sums_.emplace(kernel, parts(p_.k, blocking_.terms), p_.m, p_.n, tools);
    else if (kernel.epilogue)
      epilogue_ = CompiledEpilogue(kernel,
                                   result == Result::Plain       ? block_step_
                                   : result == Result::OneColumn ? 1
                                                                 : transposed_step(),
                                   tools);
    const int64_t slabs = parts(p_.k, blocking_.inner);
    const int64_t shared_y = blocking_.share_y ? slabs * y_slab() : 0, shared_x = blocking_.share_x ? slabs * x_slab() + set_.lanes : 0;
    shared_x_at_ = round_up(shared_y, 16);
    const int64_t shared_floats = shared_x_at_ + shared_x;
    shared_bytes_ = sums_ ? sums_->scratch_bytes() : codegen::align_up(static_cast<size_t>(shared_floats) * sizeof(float));

    const int64_t y_floats = blocking_.pack_y && !blocking_.share_y ? most_units_ * block_step_ : 0;
    const int64_t x_rows = stored_ == Stored::ByColumns ? blocking_.rows : most_height_;
    const int64_t x_floats = blocking_.pack_x && !blocking_.share_x ? packing_.x_step() * x_rows + set_.lanes : 0;
    const int64_t block_floats = !in_buffer() ? 0 : (by_panel() ? most_height_ : blocking_.rows) * block_step_;
    x_at_ = round_up(y_floats, 16);
    block_at_ = x_at_ + round_up(x_floats, 16);
    transposed_at_ = block_at_ + round_up(block_floats, 16);
    const int64_t transposed_floats = result == Result::Transposed ? blocking_.columns * transposed_step() : 0;
    scratch_ = WorkerScratch(static_cast<size_t>(transposed_at_ + transposed_floats) * sizeof(float), tools.threads);
  }
  std::string_view kernel_name() const override { return "gemm/tiles"; }
  size_t scratch_bytes() const override { return shared_bytes_ + scratch_.bytes(); }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    const int64_t each = blocking_.row_count * blocking_.column_count;
    if (sums_) {
      pool.run(parts(p_.k, blocking_.terms) * each, [&](int64_t i) { block(args, 0, i % each, i / each); });
      sums_->finish(args, pool);
      return;
    }
    if (blocking_.share_x || blocking_.share_y) pack_for_all(args, pool);
    if (each > 1) {
      pool.run(p_.batches * each, [&](int64_t i) { block(args, i / each, i % each); });
      return;
    }
    pool.run(parts(p_.batches, blocking_.batches_per_chunk), [&](int64_t i) {
      const int64_t begin = i * blocking_.batches_per_chunk, end = std::min(p_.batches, begin + blocking_.batches_per_chunk);
      for (int64_t b = begin; b < end; ++b) block(args, b, 0);
    });
  }

 private:
  static constexpr auto kBytes = static_cast<int64_t>(sizeof(float));

  // Whether blocks are made in scratch memory, and whether a panel of one is finished at a time.
  bool in_buffer() const { return epilogue_ || result_ == Result::Transposed; }
  bool by_panel() const { return result_ != Result::Transposed && blocking_.inner >= p_.k; }
  int64_t transposed_step() const { return round_up(blocking_.rows, set_.lanes); }

  int vectors_at(int64_t columns_left) const { return tiles_.vectors(columns_left, blocking_.vectors); }

  // --- what is packed for all blocks: for each part of the sum all of x or y ---
  int64_t x_slab() const { return p_.m * packing_.x_step(); }
  int64_t y_slab() const { return blocking_.column_count * block_step_ * most_units_; }
  float* shared_x(const device::LaunchArgs& args, int64_t k, int64_t row) const {
    return static_cast<float*>(args.scratch) + shared_x_at_ + k / blocking_.inner * x_slab() + row * packing_.x_step();
  }
  float* shared_y(const device::LaunchArgs& args, int64_t k, int64_t column) const {
    return static_cast<float*>(args.scratch) + k / blocking_.inner * y_slab() + column / blocking_.columns * block_step_ * most_units_;
  }
  void pack_for_all(const device::LaunchArgs& args, ThreadPool& pool) const {
    const int64_t slabs = parts(p_.k, blocking_.inner);
    const int64_t y_blocks = blocking_.share_y ? blocking_.column_count : 0, x_blocks = blocking_.share_x ? blocking_.row_count : 0;
    pool.run(slabs * (y_blocks + x_blocks), [&](int64_t i) {
      const int64_t k = i % slabs * blocking_.inner, length = std::min(blocking_.inner, p_.k - k), index = i / slabs;
      if (index < y_blocks) {
        const int64_t column = index * blocking_.columns;
        const void* y = pack_.element(args.pointers[p_.y_input], p_.offset(p_.y, 0) + column * p_.y.column_step + k * p_.y.row_step);
        packing_.pack_y(y, std::min(blocking_.columns, p_.n - column), length, shared_y(args, k, column));
      } else {
        const int64_t row = (index - y_blocks) * blocking_.rows;
        const void* x = pack_.element(args.pointers[p_.x_input], p_.offset(p_.x, 0) + row * p_.x.row_step + k * p_.x.column_step);
        packing_.pack_x(x, std::min(blocking_.rows, p_.m - row), length, shared_x(args, k, row));
      }
    });
  }

  // Blocks follow each other along the rows: where two threads share the rows of a result, each fetches what the other writes.
  void block(const device::LaunchArgs& args, int64_t batch, int64_t index, int64_t part = 0) const {
    const int64_t row0 = index / blocking_.column_count * blocking_.rows, column0 = index % blocking_.column_count * blocking_.columns;
    const int64_t rows = std::min(blocking_.rows, p_.m - row0), columns = std::min(blocking_.columns, p_.n - column0);
    const void* x = pack_.element(args.pointers[p_.x_input], p_.offset(p_.x, batch) + row0 * p_.x.row_step);
    const void* y = pack_.element(args.pointers[p_.y_input], p_.offset(p_.y, batch) + column0 * p_.y.column_step);
    auto* scratch = static_cast<float*>(scratch_.mine(static_cast<char*>(args.scratch) + shared_bytes_));
    float* buffer = scratch + block_at_;
    float* result = sums_ ? sums_->part(args, part) : static_cast<float*>(args.pointers[inputs_]);
    float* c = in_buffer() ? buffer : result + (batch * p_.m + row0) * p_.n + column0;
    const int64_t c_step = in_buffer() ? block_step_ : p_.n;
    const int64_t begin = part * blocking_.terms, end = std::min(p_.k, begin + blocking_.terms);
    for (int64_t k = begin; k < end; k += blocking_.inner) {
      const int64_t length = std::min(blocking_.inner, end - k);
      const YBlock y_block = y_of(args, pack_.element(y, k * p_.y.row_step), k, column0, columns, length, scratch);
      const void* x_block = pack_.element(x, k * p_.x.column_step);
      const bool by_block = blocking_.pack_x && !blocking_.share_x && stored_ == Stored::ByColumns;
      if (by_block) packing_.pack_x(x_block, rows, length, scratch + x_at_);
      for_even_parts(rows, most_height_, [&](int64_t row, int64_t height) {
        const void* x_panel = pack_.element(x_block, row * p_.x.row_step);
        int64_t a_step = stored_ == Stored::ByRows ? p_.x.row_step : p_.x.column_step;
        if (blocking_.pack_x) {
          if (!blocking_.share_x && !by_block) packing_.pack_x(x_panel, height, length, scratch + x_at_);
          x_panel = blocking_.share_x ? shared_x(args, k, row0 + row) : scratch + x_at_ + (by_block ? row * packing_.x_step() : 0);
          a_step = stored_ == Stored::ByRows ? packing_.x_step() : height;
        }
        float* c_panel = epilogue_ && by_panel() ? c : c + row * c_step;
        const bool last = epilogue_ && result_ != Result::Transposed && k + length == p_.k;
        const int64_t first_row = batch * p_.m + row0 + row;
        Prefetch prefetch;
        if (last && result_ == Result::Plain) epilogue_.add_to(args, first_row, height, column0, columns, prefetch);
        add_next_x(x, row, height, rows, k, length, prefetch);
        tile_row(static_cast<const float*>(x_panel), a_step, height, y_block, columns, pack_.units(length), c_panel, c_step, k > begin,
                 prefetch);
        if (last) finish(args, c_panel, first_row, height, column0, columns);
      });
    }
    if (result_ == Result::Transposed) transpose_block(args, c, row0, rows, column0, columns, scratch + transposed_at_);
  }

  // The panel of x behind the one at `row` and `k`, if it will be packed from where it lies.
  void add_next_x(const void* x, int64_t row, int64_t height, int64_t rows, int64_t k, int64_t length, Prefetch& prefetch) const {
    if (pack_ || !blocking_.pack_x || blocking_.share_x || stored_ != Stored::ByRows || p_.m * p_.k < kFetchFloats) return;
    row += height;
    if (row == rows) {
      row = 0;
      k += length;
    }
    if (k >= p_.k || prefetch.full()) return;
    prefetch.add({.row = static_cast<const char*>(pack_.element(x, row * p_.x.row_step + k)),
                  .row_step = p_.x.row_step * kBytes,
                  .row_bytes = std::min(blocking_.inner, p_.k - k) * kBytes,
                  .rows = std::min(height, rows - row)});
  }

  // A block whose rows are columns of the result.
  void transpose_block(const device::LaunchArgs& args, const float* c, int64_t row, int64_t rows, int64_t column, int64_t columns,
                       float* to) const {
    set_.transpose(c, block_step_, rows, columns, to, transposed_step());
    if (epilogue_) return epilogue_.run(args, to, column, column + columns, row, row + rows);
    float* result = static_cast<float*>(args.pointers[inputs_]) + column * p_.m + row;
    for (int64_t i = 0; i < columns; ++i)
      std::memcpy(result + i * p_.m, to + i * transposed_step(), static_cast<size_t>(rows) * sizeof(float));
  }

  // Where the tiles find a part of y.
  struct YBlock {
    const float* at;
    bool packed;
  };
  YBlock y_of(const device::LaunchArgs& args, const void* from, int64_t k, int64_t column, int64_t columns, int64_t length,
              float* scratch) const {
    if (blocking_.share_y) return {.at = shared_y(args, k, column), .packed = true};
    if (!blocking_.pack_y) return {.at = static_cast<const float*>(from), .packed = false};
    packing_.pack_y(from, columns, length, scratch);
    return {.at = scratch, .packed = true};
  }

  // One panel of x against all columns of the block. Meanwhile it prefetches, as far as the sums are long enough.
  void tile_row(const float* x, int64_t a_step, int64_t height, const YBlock& y, int64_t columns, int64_t length, float* c, int64_t c_step,
                bool accumulate, Prefetch& prefetch) const {
    Tile t{.a = x, .a_step = a_step, .length = length, .c_step = c_step, .accumulate = accumulate};
    t.prefetch = &prefetch;
    t.prefetch_steps = parts(prefetch.steps(), parts(columns, blocking_.vectors * set_.lanes));
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
  Stored stored_;
  TileTable tiles_;
  const TileSet& set_;
  Blocking blocking_;
  int64_t most_units_;  // along the sum, of a block
  size_t inputs_;
  Result result_;
  int64_t most_height_;
  GemmPacking packing_;
  std::optional<PartialSums> sums_;  // runs the epilogue instead of `epilogue_`
  CompiledEpilogue epilogue_;
  int64_t block_step_ = 0, shared_x_at_ = 0, x_at_ = 0, block_at_ = 0, transposed_at_ = 0;  // floats
  size_t shared_bytes_ = 0;                                                                 // of scratch memory, before the threads' pieces
  WorkerScratch scratch_;
};

}  // namespace

std::shared_ptr<const CpuProgram> make_gemm_tiles(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  std::optional<Product> found = product_for_tiles(kernel, refusal);
  if (!found) return nullptr;
  Product& p = *found;
  const bool transposed = kernel.in[0].dtype == DType::F32 && transposes_result(p, tiles(tools.target.wide).lanes);
  const Result result = p.n == 1 ? Result::OneColumn : transposed ? Result::Transposed : Result::Plain;
  if (result != Result::Plain) swap_sides(p);
  return std::make_shared<TileGemm>(kernel, std::move(p), result, tools);
}

}  // namespace tandem::cpu
