// The parts of the movement family that have files of their own.
#pragma once
#include "ops/table.hpp"

namespace tandem::ops {

Rows joining_rows();   // concatenate stack split unstack
Rows padding_rows();   // pad pad_mode
Rows diagonal_rows();  // diagonal diag trace

}  // namespace tandem::ops
