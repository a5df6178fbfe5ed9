// Scatters: the part of the index family that writes at computed places.
#pragma once
#include "ops/table.hpp"

namespace tandem::ops {

Rows scatter_rows();  // scatter put_along_axis segment_sum …

// How many leading axes of x the last axis of the indices addresses; UserError when it cannot.
int64_t index_depth(const ir::OpCall& call, const ir::TensorType& indices, const ir::TensorType& x);

}  // namespace tandem::ops
