// Writes canonical kernels as C-style text for GPUs. What differs between OpenCL C and its relatives is a table, the dialect.
#pragma once
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "codegen/gpu_schedule.hpp"
#include "codegen/kernel.hpp"

namespace tandem::codegen {

struct CFunction {
  ir::Prim prim;
  std::string_view single, wide;  // of float and of double
};

struct CDialect {
  std::string_view name;
  std::string_view preamble;                      // before all else: no contraction
  std::string_view double_preamble;               // … where double is used
  std::string_view kernel;                        // before the entry's name
  std::string_view function;                      // before a function of our own
  std::string_view global, local;                 // before the type of what lies there
  std::string_view group, item, item_of_all;      // numbers: of the group, of the item in it, of the item in all of them
  std::string_view barrier;                       // of a group, for local memory
  std::string_view bits_of_float, float_of_bits;  // with unsigned integers of the same width
  std::string_view bits_of_double, double_of_bits;
  std::string_view high_of_signed, high_of_unsigned;  // upper half of a product of 64 bits
  std::string_view divide, square_root;               // functions of float that round correctly; empty: / and sqrt do
  std::array<std::string_view, kDTypeCount> types;    // of values: bool is a byte, 16-bit floats are floats
  std::span<const CFunction> functions;
};
// `exact_division`: whether / and sqrt of float are correctly rounded by themselves; else they are computed in double.
const CDialect& opencl_dialect(bool exact_division);

struct CSource {
  std::string text;  // complete; equal texts are equal programs
  bool params_in_memory = false;
};
inline constexpr std::string_view kCEntry = "tandem_kernel";
inline constexpr size_t kParamsByValue = 24;  // more come from memory: devices limit how large all arguments may be

// Arguments of the kernel: for each input, then each output, its memory and the offset of its first byte (64 bits); the number of units (64
// bits); then the parameters that the loops have, each with 64 bits, or the memory that they are in.
// Addresses are counted in 32 bits where the extents let them fit.
CSource render_c(const LoopKernel& kernel, const GpuSchedule& schedule, const CDialect& dialect);

bool uses_double(const LoopKernel& kernel);

}  // namespace tandem::codegen
