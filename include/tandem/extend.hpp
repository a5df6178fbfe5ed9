// The door for ops of other libraries: a row registered here has gradient, compiled kernels and checks like every other.
// It is the one public header that opens inner ones: those that a row is written with, ir/op.hpp (OpDef, Scalar) and ir/builder.hpp
// (Expr), and the one that calls it. Link tandem::extend, which knows where they are.
#pragma once
#include <initializer_list>
#include <utility>
#include <vector>

#include <tandem/tensor.hpp>

#include "frontend/apply.hpp"
#include "ir/builder.hpp"
#include "ir/op.hpp"
#include "ops/table.hpp"

namespace tandem::extend {

// Adds the row to the table, once, before it is used; the reference stays valid. UserError when the name is taken.
inline const ir::OpDef& register_op(ir::OpDef row) { return ops::table().add(std::move(row)); }

// Calls an op: promotes, then computes, traces and records as the generated functions do.
inline std::vector<Tensor> call_all(const ir::OpDef& op, const OperandList& operands, const ir::Attrs& attrs = {}) {
  std::vector<const Operand*> pointers;
  for (const Operand& o : operands.operands()) pointers.push_back(&o);
  // The operands' own line is that of the caller of a function like softsign2(x).
  return frontend::call_all(op, pointers, attrs, pointers.empty() ? Location::of(operands.where()) : Location{});
}
inline Tensor call(const ir::OpDef& op, const OperandList& operands, const ir::Attrs& attrs = {}) {
  return call_all(op, operands, attrs).front();
}

}  // namespace tandem::extend
