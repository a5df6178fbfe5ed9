// Operators and members: ops under the names that C++ gives them.
#include "frontend/apply.hpp"
#include "frontend/operator_list.hpp"
#include "frontend/tensor_impl.hpp"

namespace tandem {

using frontend::call;
using frontend::row;

namespace {

// An op on one tensor, from a member function.
Tensor member(const ir::OpDef& op, const Tensor& x, const ir::Attrs& attrs, const std::source_location& where) {
  const Operand operand(x, where);
  return call(op, {&operand}, attrs);
}

ir::Attr optional_ints(const IntList& list) { return list.given() ? ir::Attr(list.values()) : ir::Attr(); }

Tensor reduced(const ir::OpDef& op, const Tensor& x, const IntList& axis, bool keepdims, const std::source_location& where) {
  return member(op, x, {{"axis", optional_ints(axis)}, {"keepdims", keepdims}}, where);
}

}  // namespace

#define TANDEM_BINARY(symbol, name)                            \
  Tensor operator symbol(const Operand& x, const Operand& y) { \
    static const ir::OpDef& op = row(name);                    \
    return call(op, {&x, &y});                                 \
  }
TANDEM_BINARY_OPERATORS(TANDEM_BINARY)
TANDEM_BINARY(==, "equal")
TANDEM_BINARY(!=, "not_equal")
#undef TANDEM_BINARY

#define TANDEM_UNARY(symbol, name)           \
  Tensor operator symbol(const Operand& x) { \
    static const ir::OpDef& op = row(name);  \
    return call(op, {&x});                   \
  }
TANDEM_UNARY_OPERATORS(TANDEM_UNARY)
#undef TANDEM_UNARY

Tensor& Tensor::operator+=(const Operand& y) { return *this = Operand(*this, y.where()) + y; }
Tensor& Tensor::operator-=(const Operand& y) { return *this = Operand(*this, y.where()) - y; }
Tensor& Tensor::operator*=(const Operand& y) { return *this = Operand(*this, y.where()) * y; }
Tensor& Tensor::operator/=(const Operand& y) { return *this = Operand(*this, y.where()) / y; }

Tensor Tensor::cast(DType to, Where where) const {
  if (defined() && dtype() == to) return *this;
  static const ir::OpDef& op = row("cast");
  return member(op, *this, {{"dtype", to}}, where);
}

Tensor Tensor::reshape(const DimList& to, Where where) const {
  static const ir::OpDef& op = row("reshape");
  return member(op, *this, {{"shape", to.dims()}}, where);
}

Tensor Tensor::flatten(Where where) const { return reshape({-1}, where); }

Tensor Tensor::transpose(const IntList& perm, Where where) const {
  static const ir::OpDef& op = row("transpose");
  return member(op, *this, {{"perm", optional_ints(perm)}}, where);
}

Tensor Tensor::squeeze(const IntList& axis, Where where) const {
  static const ir::OpDef& op = row("squeeze");
  return member(op, *this, {{"axis", optional_ints(axis)}}, where);
}

Tensor Tensor::expand_dims(const IntList& axis, Where where) const {
  static const ir::OpDef& op = row("expand_dims");
  return member(op, *this, {{"axis", axis.values()}}, where);
}

Tensor Tensor::sum(const IntList& axis, bool keepdims, Where where) const {
  static const ir::OpDef& op = row("sum");
  return reduced(op, *this, axis, keepdims, where);
}

Tensor Tensor::mean(const IntList& axis, bool keepdims, Where where) const {
  static const ir::OpDef& op = row("mean");
  return reduced(op, *this, axis, keepdims, where);
}

Tensor Tensor::max(const IntList& axis, bool keepdims, Where where) const {
  static const ir::OpDef& op = row("max");
  return reduced(op, *this, axis, keepdims, where);
}

Tensor Tensor::min(const IntList& axis, bool keepdims, Where where) const {
  static const ir::OpDef& op = row("min");
  return reduced(op, *this, axis, keepdims, where);
}

Tensor Tensor::argmax(std::optional<int64_t> axis, Where where) const {
  static const ir::OpDef& op = row("argmax");
  return member(op, *this, {{"axis", axis ? ir::Attr(*axis) : ir::Attr()}}, where);
}

}  // namespace tandem
