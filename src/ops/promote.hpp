// Promotion: which element type each operand of a call must have before the node is made. Nodes themselves are strict; the
// front-ends ask here and put the casts in.
#pragma once
#include <span>
#include <vector>

#include <tandem/dtype.hpp>

#include "ir/op.hpp"

namespace tandem::ops {

// One type for each operand given, in order.
//   any number float int boolean   share one type T: result_type of those operands (numbers without a width included), then
//                                  number, int: bool becomes int32;  float: bool and integers become float32
//   own                            its own type
//   bool                           bool, by `!= 0`
//   index                          int32 or int64; shorter integers become int32, uint32 and uint64 become int64
//   key                            uint32
// A type that a class has no place for (a float as an index, a float for `int` or `boolean`), or a wrong number of operands, is a
// UserError that names the op, the operand, its type and what is accepted.
std::vector<DType> promote_operands(const ir::OpDef& op, std::span<const PromotionType> given);

}  // namespace tandem::ops
