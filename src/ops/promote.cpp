#include "ops/promote.hpp"

#include <algorithm>
#include <string>

namespace tandem::ops {
namespace {

using ir::OperandClass;
using Parameter = ir::Signature::Parameter;

bool is_shared(OperandClass c) { return c <= OperandClass::Boolean; }

// The operand that value i of a call is given to; the repeated one takes all the rest.
const Parameter& operand_at(const ir::OpDef& op, size_t i) {
  const auto& operands = op.signature.operands;
  return operands[std::min(i, operands.size() - 1)];
}

std::string name_at(const ir::OpDef& op, size_t i) {
  const Parameter& o = operand_at(op, i);
  return o.variadic ? cat(o.name, '[', i + 1 - op.signature.operands.size(), ']') : o.name;
}

std::string names_of(const std::vector<Parameter>& operands) {
  std::string text;
  for (const Parameter& o : operands) text += cat(text.empty() ? "" : ", ", o.name, o.variadic ? "..." : o.optional ? "?" : "");
  return text;
}

void check_count(const ir::OpDef& op, size_t given) {
  const auto& operands = op.signature.operands;
  const auto least = static_cast<size_t>(std::ranges::count_if(operands, [](const Parameter& o) { return !o.optional && !o.variadic; }));
  const bool is_open = !operands.empty() && operands.back().variadic;
  if (given >= least && (is_open || given <= operands.size())) return;
  const size_t wanted = given < least ? least : operands.size();
  const bool is_exact = !is_open && least == operands.size();
  user_error(op.name, ": takes ",
             is_exact        ? ""
             : given < least ? "at least "
                             : "at most ",
             wanted, wanted == 1 ? " operand" : " operands", operands.empty() ? "" : cat(" (", names_of(operands), ")"), ", got ", given);
}

[[noreturn]] void refuse(const ir::OpDef& op, size_t i, PromotionType got, std::string_view accepted, std::string_view hint = "") {
  user_error(op.name, ": operand '", name_at(op, i), "' must be ", accepted, ", got ", got.dtype, hint.empty() ? "" : "\n  hint: ", hint);
}

DType alone(PromotionType t) { return result_type(std::span(&t, 1)); }

// The least type that T can become for an operand of this class.
DType fitted(OperandClass c, DType t) {
  if (c == OperandClass::Float) return floating_type(t);
  const bool is_numeric = c == OperandClass::Number || c == OperandClass::Int;
  return is_numeric && t == DType::Bool ? DType::I32 : t;
}

void refuse_floats(const ir::OpDef& op, std::span<const PromotionType> given) {
  for (size_t i = 0; i < given.size(); ++i) {
    const OperandClass c = operand_at(op, i).type;
    const bool is_whole = c == OperandClass::Int || c == OperandClass::Boolean;
    if (!is_whole || !is_float(given[i].dtype)) continue;
    const bool is_int = c == OperandClass::Int;
    refuse(op, i, given[i], is_int ? "an integer type" : "bool or an integer type",
           "cast it first: floats are never made integers silently");
  }
}

// uint64 meets a signed type in a float, which no operand of class int or boolean may be.
void refuse_unsigned_meeting(const ir::OpDef& op, std::span<const PromotionType> given, DType t) {
  for (size_t i = 0; i < given.size(); ++i) {
    const OperandClass c = operand_at(op, i).type;
    if (is_shared(c) && !ir::accepts(c, t))
      refuse(op, i, given[i], "of a type that has a common integer type with the other operands", "cast uint64 or the signed operand");
  }
}

DType shared_type(const ir::OpDef& op, std::span<const PromotionType> given) {
  std::vector<PromotionType> shared;
  for (size_t i = 0; i < given.size(); ++i)
    if (is_shared(operand_at(op, i).type)) shared.push_back(given[i]);
  if (shared.empty()) return DType::F32;  // nobody asks
  DType t = result_type(shared);
  for (size_t i = 0; i < given.size(); ++i)
    if (const OperandClass c = operand_at(op, i).type; is_shared(c)) t = fitted(c, t);
  return t;
}

DType index_type(const ir::OpDef& op, size_t i, PromotionType given) {
  if (!is_int(given.dtype)) refuse(op, i, given, "an integer type (int32 or int64)");
  const DType t = alone(given);
  if (t == DType::I32 || t == DType::I64) return t;
  return t == DType::U32 || t == DType::U64 ? DType::I64 : DType::I32;
}

DType key_type(const ir::OpDef& op, size_t i, PromotionType given) {
  if (given.dtype != DType::U32) refuse(op, i, given, "a key (uint32)");
  return DType::U32;
}

}  // namespace

std::vector<DType> promote_operands(const ir::OpDef& op, std::span<const PromotionType> given) {
  check_count(op, given.size());
  refuse_floats(op, given);
  const DType shared = shared_type(op, given);
  refuse_unsigned_meeting(op, given, shared);
  std::vector<DType> types;
  for (size_t i = 0; i < given.size(); ++i) {
    switch (operand_at(op, i).type) {
      case OperandClass::Own: types.push_back(alone(given[i])); break;
      case OperandClass::Bool: types.push_back(DType::Bool); break;
      case OperandClass::Index: types.push_back(index_type(op, i, given[i])); break;
      case OperandClass::Key: types.push_back(key_type(op, i, given[i])); break;
      default: types.push_back(shared); break;
    }
  }
  return types;
}

}  // namespace tandem::ops
