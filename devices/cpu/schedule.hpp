// How a canonical kernel's loops are walked on a CPU: which axis is spread over vector lanes and what a launch may be cut into.
#pragma once
#include "codegen/kernel.hpp"

namespace tandem::cpu {

enum class Mode : uint8_t {
  Map,        // no reduction; lanes lie along the last output axis
  Across,     // reduction; lanes lie along the last output axis, so each lane owns one output
  Along,      // reduction; lanes lie along the last reduce axis and are combined at the end
  Scan,       // scan along an outer axis; lanes lie along the last output axis
  ScanAlong,  // scan along the last axis, one element after the other
  Row,        // reductions along the last output axis, then results; lanes lie along it
};

// Rows are all output axes but the last (and but the scanned one), flattened; columns are the last output axis.
struct Schedule {
  Mode mode = Mode::Map;
  int64_t rows = 1, columns = 1;
  int unroll = 1;              // vectors that are worked on together, by a reduction or where elements share by four; a power of two
  bool window = false;         // the reduce axes are so short that their loops are written out; their extents are part of the code
  bool keeps = false;          // a row is short enough to keep functions of its elements on the stack
  bool columns_divide = true;  // a launch may cut the columns (at multiples of column_unit)
  int64_t column_unit = 1;
  int64_t column_tile = 0;     // > 0: a launch should walk down strips of this many columns, because loads step over memory sideways
  double work_per_column = 1;  // a rough count of element operations
  double work() const { return static_cast<double>(rows) * static_cast<double>(columns) * work_per_column; }
};

inline constexpr int kUnroll = 4;      // usually
inline constexpr int kMostUnroll = 8;  // where each vector is one register
inline constexpr int64_t kMostKeptColumns = 8192;

// Whether a primitive is a call of a function, which costs far more than keeping its result.
constexpr bool is_function(ir::Prim p) {
  return (p >= ir::Prim::Cbrt && p <= ir::Prim::LGamma) || p == ir::Prim::Pow || p == ir::Prim::Atan2;
}

Schedule schedule(const codegen::LoopKernel& kernel, int lanes);

// The machine code's contract: rows [row0,row1) x columns [column0,column1); pointers are inputs, then outputs.
using KernelFunction = void (*)(void* const* pointers, const int64_t* params, int64_t row0, int64_t row1, int64_t column0, int64_t column1);
inline constexpr const char* kKernelSymbol = "tandem_kernel";

}  // namespace tandem::cpu
