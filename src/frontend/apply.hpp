// Calling an op: operands are promoted, then the op is computed at once or becomes a node of the function that is being traced, and
// the tapes that record hear of it. Everything public that computes comes through here.
#pragma once
#include <initializer_list>
#include <span>
#include <vector>

#include <tandem/operand.hpp>
#include <tandem/tensor.hpp>

#include "frontend/thread_state.hpp"
#include "ir/attr.hpp"
#include "ir/op.hpp"

namespace tandem::frontend {

const ir::OpDef& row(std::string_view name);  // looked up once by each caller
const ir::Attrs& no_attrs();

// Which element type the operands of a call get that share one (ops/promote.hpp).
//   Native  NumPy's way: the least type that holds all of them
//   Keras   the same, but types that differ never meet in 64 bits
//   Strict  TensorFlow's way: tensors are of one type already, and bare numbers take it
enum class Promotion : uint8_t { Native, Keras, Strict };

// The first result; the lean way for ops with one.
Tensor call(const ir::OpDef& op, std::span<const Operand* const> operands, const ir::Attrs& attrs = no_attrs(), Location where = {},
            Promotion promotion = Promotion::Native);
inline Tensor call(const ir::OpDef& op, std::initializer_list<const Operand*> operands, const ir::Attrs& attrs = no_attrs(),
                   Location where = {}) {
  return call(op, std::span<const Operand* const>(operands.begin(), operands.size()), attrs, where);
}
std::vector<Tensor> call_all(const ir::OpDef& op, std::span<const Operand* const> operands, const ir::Attrs& attrs = no_attrs(),
                             Location where = {}, Promotion promotion = Promotion::Native);

// The same on tensors whose types are already final.
std::vector<Tensor> call_final(const ir::OpDef& op, std::span<const Tensor> operands, const ir::Attrs& attrs, Location where);
Tensor cast_to(const Tensor& t, DType to, Location where);
// A bare number as a tensor without axes. UserError, which names `what`, when it does not fit into an integer type.
Tensor number(const Operand& n, DType dtype, std::string_view what);
// An operand as a tensor of its own: variables are read, numbers become float32, int32 or bool, or `dtype`.
Tensor tensor_of(const Operand& o, std::optional<DType> dtype = {});

Location location_of(std::span<const Operand* const> operands);
// The public border: throws the current exception again, as one of our three kinds (base/border.hpp), with "\n  at file:line" in front of
// its hint when it names no place yet: that of the user's line that called the library, when it is at work, else `where`.
[[noreturn]] void rethrow_at(const Location& where);

// Runs a piece of the library that is written with ops, for a call at `where`: errors and nodes name that line and none of ours.
template <class F> decltype(auto) for_caller(const std::source_location& where, F&& f) {
  const LibraryScope scope(where);
  try {
    return std::forward<F>(f)();
  } catch (...) {
    rethrow_at(Location::of(where));
  }
}

}  // namespace tandem::frontend
