// What the kernels of recurrent layers share. One launch is a whole sequence: the recurrent kernel is packed once, then each thread takes
// some rows of the batch through all steps, so that no step waits for another thread. An element is the same chain of operations in
// whatever chunk it lies (I9).
#pragma once
#include <array>

#include "cpu_program.hpp"
#include "recurrent_gates.hpp"
#include "scratch.hpp"
#include "tile_table.hpp"

namespace tandem::cpu {

inline constexpr size_t kMostRecurrentOperands = 7;

class Recurrent : public CpuProgram {
 public:
  size_t scratch_bytes() const override { return worker_at_ + scratch_.bytes(); }
  void run(const device::LaunchArgs& args, ThreadPool& pool) const override;

 protected:
  enum class Direction : uint8_t { Forward, Backward };
  struct Sizes {
    int64_t time, batch, units, gates;  // so many units wide is a row of the recurrent kernel
  };
  // `kernel_operand`: which one the recurrent kernel is.
  Recurrent(const codegen::Kernel& kernel, const Toolbox& tools, const Sizes& sizes, size_t kernel_operand, Direction direction);

  // A launch, as one chunk of it sees it: its rows are [row, row + rows) of the batch.
  struct Chunk {
    const device::LaunchArgs& args;
    std::array<const float*, kMostRecurrentOperands> in;
    const float* packed;
    float* product;  // of one block of units: [rows][gates][lanes]
    int64_t row = 0, rows = 0;
  };
  virtual void sequence(const Chunk& chunk) const = 0;

  // Operands and results at the chunk's first row: of one step, or [batch, …] without steps.
  ConstRows input(const Chunk& chunk, size_t operand, int64_t step) const;
  ConstRows input(const Chunk& chunk, size_t operand) const { return input(chunk, operand, 0); }
  FloatRows output(const Chunk& chunk, size_t result, int64_t step) const;
  FloatRows output(const Chunk& chunk, size_t result) const { return output(chunk, result, 0); }
  bool is_dense(size_t operand) const { return given_[operand].is_dense(); }
  bool has_steps(size_t operand) const { return in_[operand].shape.size() == 3; }

  // Backward: what LSTM and GRU have in common of one step. Operand 0 has the gates, 4 the gradient of the outputs if there is one of each
  // step.
  GateGradient gate_gradient(const Chunk& chunk, int64_t step, FloatRows h_gradient) const;

  // Forward: h times what the recurrent kernel has for one block of units, into chunk.product.
  void multiply_block(const Chunk& chunk, ConstRows h, int64_t block) const;
  // Backward: the gradient of that product times the transposed recurrent kernel; added to `to`, or in its place.
  void multiply_transposed(const Chunk& chunk, ConstRows gradient, FloatRows to, bool accumulate) const;

  int64_t lanes() const { return set_.lanes; }
  int64_t blocks() const { return parts(sizes_.units, lanes()); }
  int columns(int64_t block) const { return static_cast<int>(std::min(lanes(), sizes_.units - block * lanes())); }

  const Sizes sizes_;
  const GateSet& functions_;

 private:
  int64_t inner() const { return direction_ == Direction::Forward ? sizes_.units : sizes_.gates * sizes_.units; }
  void pack(const float* recurrent_kernel, int64_t block, float* packed) const;
  void multiply(ConstRows x, int64_t rows, const float* packed, int64_t vectors, int last, FloatRows to, bool accumulate) const;

  const TileTable tiles_;
  const TileSet& set_;
  const Direction direction_;
  const size_t kernel_operand_;
  const std::vector<codegen::Layout> given_, in_, out_;  // in_: as they lie after the copies
  int64_t chunk_rows_, chunk_count_;
  std::array<size_t, kMostRecurrentOperands> copy_at_{};  // where an operand is copied to in scratch memory; kNotCopied
  size_t packed_at_ = 0, worker_at_ = 0;                  // bytes
  WorkerScratch scratch_;
};

inline ConstRows const_rows(const FloatRows& r) { return {r.at, r.step}; }
inline ConstRows beside(const ConstRows& r, int64_t column) { return {r.at + column, r.step}; }
inline FloatRows beside(const FloatRows& r, int64_t column) { return {r.at + column, r.step}; }
// Whether lstm, gru and their gradients take a call; if not, why. Masks and a reset gate before the product are left to a scan.
bool takes_recurrent(const codegen::Kernel& kernel, std::string& refusal);
void copy_rows(const ConstRows& from, const FloatRows& to, int64_t rows, int64_t columns);

}  // namespace tandem::cpu
