#include "recurrent.hpp"

#include <cstring>
#include <utility>

#include "base/text.hpp"
#include "codegen/dense_copy.hpp"

namespace tandem::cpu {
namespace {

constexpr int64_t kChunksPerThread = 2, kFewestRows = 8, kMostRows = 64;  // with few rows a tile waits for the packed kernel
constexpr int kTileVectors = 2;
constexpr size_t kNotCopied = SIZE_MAX;

// Kernels read along the last axis of an operand.
bool is_walkable(const codegen::Layout& o) { return o.shape.empty() || o.shape.back() == 1 || o.strides.back() == 1; }
codegen::Layout as_read(const codegen::Layout& o) { return is_walkable(o) ? o : codegen::Layout::dense(o.dtype, o.shape); }
std::vector<codegen::Layout> as_read(std::vector<codegen::Layout> operands) {
  for (codegen::Layout& o : operands) o = as_read(o);
  return operands;
}

constexpr size_t kMask = 4;  // operand of lstm and gru

// Why a call is not taken: nothing when it is.
std::string refusal_of(const ir::OpDef& op, const ir::Attrs& attrs, size_t operands, DType type) {
  if (type != DType::F32) return cat("takes float32, not ", name(type));
  const bool forward = op.name == "lstm" || op.name == "gru";
  if (forward && operands > kMask) return "takes no mask";
  if (op.name == "gru" && !attrs.get<bool>("reset_after")) return "the reset gate applies before the product";
  return "";
}

}  // namespace

bool takes_recurrent(const codegen::Kernel& kernel, std::string& refusal) {
  refusal = refusal_of(*kernel.op, kernel.attrs, kernel.in.size(), kernel.in[0].dtype);
  return refusal.empty();
}

bool keeps_recurrent(const ir::OpCall& call) {
  for (std::string_view name : {"lstm", "lstm_gradient", "gru", "gru_gradient"})
    if (call.op.name == name) return refusal_of(call.op, call.attrs, call.in.size(), call.in[0].dtype).empty();
  return false;
}

Recurrent::Recurrent(const codegen::Kernel& kernel, const Toolbox& tools, const Sizes& sizes, size_t kernel_operand, Direction direction)
    : sizes_(sizes),
      functions_(gates(tools.target.wide)),
      tiles_(tiles(tools.target.wide), Stored::ByRows),
      set_(tiles_.set()),
      direction_(direction),
      kernel_operand_(kernel_operand),
      given_(kernel.in),
      in_(as_read(kernel.in)),
      out_(kernel.out),
      chunk_rows_(std::clamp(parts(sizes.batch, kChunksPerThread * tools.threads), kFewestRows, kMostRows)),
      chunk_count_(parts(sizes.batch, chunk_rows_)) {
  size_t bytes = 0;
  const auto take = [&](size_t more) { return std::exchange(bytes, bytes + codegen::align_up(more)); };
  copy_at_.fill(kNotCopied);
  for (size_t i = 0; i < given_.size(); ++i)
    if (!is_walkable(given_[i])) copy_at_[i] = take(byte_size(given_[i].shape, given_[i].dtype));
  const int64_t vectors = blocks() * (direction == Direction::Forward ? sizes.gates : 1);
  packed_at_ = take(static_cast<size_t>(vectors * lanes() * inner()) * sizeof(float));
  worker_at_ = bytes;
  const int64_t product = direction == Direction::Forward ? chunk_rows_ * sizes.gates * lanes() : 0;
  scratch_ = WorkerScratch(static_cast<size_t>(product) * sizeof(float), tools.threads);
}

void Recurrent::run(const device::LaunchArgs& args, ThreadPool& pool) const {
  auto* scratch = static_cast<char*>(args.scratch);
  auto* packed = reinterpret_cast<float*>(scratch + packed_at_);
  Chunk launch{.args = args, .in = {}, .packed = packed, .product = nullptr};
  for (size_t i = 0; i < given_.size(); ++i) {
    const void* data = args.pointers[i];
    if (copy_at_[i] != kNotCopied) {
      codegen::dense_copy(given_[i], data, scratch + copy_at_[i]);
      data = scratch + copy_at_[i];
    }
    launch.in[i] = static_cast<const float*>(data);
  }
  if (sizes_.time > 0) pool.run(blocks(), [&](int64_t block) { pack(launch.in[kernel_operand_], block, packed); });
  pool.run(chunk_count_, [&](int64_t i) {
    Chunk chunk = launch;
    chunk.product = static_cast<float*>(scratch_.mine(scratch + worker_at_));
    chunk.row = i * chunk_rows_;
    chunk.rows = std::min(chunk_rows_, sizes_.batch - chunk.row);
    sequence(chunk);
  });
}

ConstRows Recurrent::input(const Chunk& chunk, size_t operand, int64_t step) const {
  const Strides& strides = in_[operand].strides;
  const bool steps = has_steps(operand);
  const int64_t row_step = strides[steps ? 1 : 0];
  return {chunk.in[operand] + (steps ? step * strides[0] : 0) + chunk.row * row_step, row_step};
}

FloatRows Recurrent::output(const Chunk& chunk, size_t result, int64_t step) const {
  const int64_t width = out_[result].shape.back();
  return {static_cast<float*>(chunk.args.pointers[in_.size() + result]) + (step * sizes_.batch + chunk.row) * width, width};
}

// Forward, a block is the same units of every gate: vectors of columns one beside the other, as tiles take them. Backward it is one
// vector of the transposed kernel's columns, and two blocks share a tile.
void Recurrent::pack(const float* recurrent_kernel, int64_t block, float* packed) const {
  const int64_t step = in_[kernel_operand_].strides[0], width = columns(block), length = inner();
  const auto pad = [&](float* to) { std::fill(to + width, to + lanes(), 0.f); };
  if (direction_ == Direction::Forward) {
    for (int64_t gate = 0; gate < sizes_.gates; ++gate) {
      const int64_t first = block * sizes_.gates + gate / kTileVectors * kTileVectors;
      const int64_t in_tile = std::min<int64_t>(kTileVectors, sizes_.gates - gate / kTileVectors * kTileVectors);
      float* to = packed + first * lanes() * length + gate % kTileVectors * lanes();
      const float* from = recurrent_kernel + gate * sizes_.units + block * lanes();
      for (int64_t k = 0; k < length; ++k, to += in_tile * lanes(), from += step) {
        std::memcpy(to, from, static_cast<size_t>(width) * sizeof(float));
        pad(to);
      }
    }
    return;
  }
  const int64_t first = block / kTileVectors * kTileVectors, in_tile = std::min<int64_t>(kTileVectors, blocks() - first);
  float* to = packed + first * lanes() * length + (block - first) * lanes();
  const float* from = recurrent_kernel + block * lanes() * step;
  for (int64_t k = 0; k < length; ++k, to += in_tile * lanes()) {
    for (int64_t j = 0; j < width; ++j) to[j] = from[j * step + k];
    pad(to);
  }
}

GateGradient Recurrent::gate_gradient(const Chunk& chunk, int64_t step, FloatRows h_gradient) const {
  GateGradient g{.rows = chunk.rows,
                 .units = sizes_.units,
                 .gates = input(chunk, 0, step),
                 .ahead = input(chunk, 0, std::max<int64_t>(step - 1, 0)),
                 .outputs_gradient = {},
                 .h_gradient = h_gradient,
                 .sums = output(chunk, 0, step)};
  if (has_steps(4)) g.outputs_gradient = input(chunk, 4, step);
  return g;
}

void Recurrent::multiply_block(const Chunk& chunk, ConstRows h, int64_t block) const {
  const int64_t row = sizes_.gates * lanes();
  multiply(h, chunk.rows, chunk.packed + block * row * inner(), sizes_.gates, set_.lanes, {chunk.product, row}, false);
}

void Recurrent::multiply_transposed(const Chunk& chunk, ConstRows gradient, FloatRows to, bool accumulate) const {
  multiply(gradient, chunk.rows, chunk.packed, blocks(), columns(blocks() - 1), to, accumulate);
}

void Recurrent::multiply(ConstRows x, int64_t rows, const float* packed, int64_t vectors, int last, FloatRows to, bool accumulate) const {
  for (int64_t v = 0; v < vectors; v += kTileVectors) {
    const auto wide = static_cast<int>(std::min<int64_t>(kTileVectors, vectors - v));
    tiles_.down({.a = x.at,
                 .b = packed + v * lanes() * inner(),
                 .a_step = x.step,
                 .b_step = wide * lanes(),
                 .length = inner(),
                 .c = to.at + v * lanes(),
                 .c_step = to.step,
                 .last = v + wide == vectors ? last : set_.lanes,
                 .accumulate = accumulate},
                rows, wide, x.step);
  }
}

void copy_rows(const ConstRows& from, const FloatRows& to, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(to.at + row * to.step, from.at + row * from.step, static_cast<size_t>(columns) * sizeof(float));
}

}  // namespace tandem::cpu
