// What kernels of our own are put together from: texts with blanks, operands made dense, scratch memory.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "codegen/c_values.hpp"
#include "generated.hpp"

namespace tandem::opencl {

// The text with every `from` replaced.
std::string filled(std::string text, std::string_view from, std::string_view to);
// An unsigned type of so many bytes, for elements that are only moved.
std::string_view bits_type(DType t);

// Hands out scratch memory of one program, piece by piece.
class ScratchLayout {
 public:
  size_t take(size_t bytes) {
    const size_t offset = bytes_;
    bytes_ += codegen::align_up(bytes);
    return offset;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};
inline void* piece(const device::LaunchArgs& args, size_t offset) { return static_cast<char*>(args.scratch) + offset; }

// Copies an operand, as it lies, into dense memory, as elements of another type if need be.
class Conversion {
 public:
  Conversion(const codegen::Layout& from, DType to, const Core& core, std::string_view what);
  void enqueue(const Core& core, cl_command_queue queue, const void* from, void* to) const;

 private:
  bool is_plain_ = false;  // bytes as they are
  size_t bytes_ = 0;
  std::optional<GeneratedStage> stage_;
};

// An operand that a kernel reads densely: itself when it lies so, else a copy in scratch memory.
class DenseOperand {
 public:
  DenseOperand(const codegen::Layout& o, const Core& core, ScratchLayout& scratch, std::string_view what);
  const void* enqueue(const Core& core, cl_command_queue queue, const device::LaunchArgs& args, size_t input) const;

 private:
  std::optional<Conversion> copy_;
  size_t offset_ = 0;
};

}  // namespace tandem::opencl
