// What the random families share: keys, derived keys, and the rejection samplers that random_rows() lists.
#pragma once
#include "ops/table.hpp"

namespace tandem::ops {

// UserError unless operand 0 is a key, uint32[2].
void check_key(const ir::OpCall& call);
// The type of a result with the attribute `shape`; UserError when an operand behind the key does not broadcast to it.
ir::TensorType random_result(const ir::OpCall& call, DType t);
// The key of one draw among many made with the same key: fold_in(key, number).
ir::Expr draw_key(const ir::Expr& key, const ir::Expr& number);
ir::Expr draw_key(const ir::Expr& key, int64_t number);
ir::Expr random_unit(const ir::Expr& key, const Dims& shape, DType t);  // in [0, 1)

Rows rejection_rows();  // gamma beta binomial

}  // namespace tandem::ops
