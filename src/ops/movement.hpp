// The parts of the movement family that have files of their own.
#pragma once
#include "ops/table.hpp"

namespace tandem::ops {

// One kernel reads as many operands as this (the row `concatenate_few`); what joins more makes groups.
inline constexpr size_t kMostJoined = 8;

Rows joining_rows();   // concatenate stack split unstack
Rows padding_rows();   // pad pad_mode
Rows diagonal_rows();  // diagonal diag trace

}  // namespace tandem::ops
