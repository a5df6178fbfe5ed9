// What ops on symbols take: a symbol, a bare number, or a tensor that stays as it is. Each remembers the user's line, as Operand does.
#pragma once
#include <concepts>
#include <initializer_list>
#include <source_location>
#include <utility>
#include <vector>

#include <tandem/nn/layer.hpp>
#include <tandem/operand.hpp>
#include <tandem/tensor.hpp>

namespace tandem::nn {

class SymbolOperand {
 public:
  using Where = std::source_location;
  enum class Kind : uint8_t { None, Symbol, Tensor, Bool, Int, Float };

  SymbolOperand() = default;  // an optional operand that is left out
  SymbolOperand(Symbol s, Where where = Where::current()) : kind_(Kind::Symbol), symbol_(std::move(s)), where_(where) {}  // NOLINT
  SymbolOperand(Tensor t, Where where = Where::current()) : kind_(Kind::Tensor), tensor_(std::move(t)), where_(where) {}  // NOLINT
  template <Number T> SymbolOperand(T v, Where where = Where::current()) : where_(where) {                                // NOLINT
    const Operand number(v, where);
    kind_ = std::is_same_v<T, bool> ? Kind::Bool : std::is_integral_v<T> ? Kind::Int : Kind::Float;
    if (kind_ == Kind::Float)
      float_ = number.as_float();
    else
      int_ = number.as_int();
  }

  Kind kind() const { return kind_; }
  const Symbol& symbol() const { return *symbol_; }
  const Tensor& tensor() const { return tensor_; }
  int64_t as_int() const { return int_; }
  double as_float() const { return float_; }
  const Where& where() const { return where_; }

 private:
  Kind kind_ = Kind::None;
  std::optional<Symbol> symbol_;
  Tensor tensor_;
  int64_t int_ = 0;
  double float_ = 0;
  Where where_;
};

// Any number of operands: ops::concatenate({a, b}, 1).
class SymbolOperandList {
 public:
  using Where = std::source_location;
  SymbolOperandList(std::initializer_list<SymbolOperand> operands, Where where = Where::current())  // NOLINT
      : operands_(operands), where_(where) {}
  SymbolOperandList(const std::vector<Symbol>& symbols, Where where = Where::current()) : where_(where) {  // NOLINT
    for (const Symbol& s : symbols) operands_.emplace_back(s, where);
  }
  const std::vector<SymbolOperand>& operands() const { return operands_; }
  const Where& where() const { return where_; }

 private:
  std::vector<SymbolOperand> operands_;
  Where where_;
};

// The same meaning as on tensors. == and != of symbols ask whether they are the same place of a graph; ops::equal compares numbers.
namespace ops {
Symbol operator+(const SymbolOperand& x, const SymbolOperand& y);
Symbol operator-(const SymbolOperand& x, const SymbolOperand& y);
Symbol operator*(const SymbolOperand& x, const SymbolOperand& y);
Symbol operator/(const SymbolOperand& x, const SymbolOperand& y);
Symbol operator%(const SymbolOperand& x, const SymbolOperand& y);
Symbol operator<(const SymbolOperand& x, const SymbolOperand& y);
Symbol operator<=(const SymbolOperand& x, const SymbolOperand& y);
Symbol operator>(const SymbolOperand& x, const SymbolOperand& y);
Symbol operator>=(const SymbolOperand& x, const SymbolOperand& y);
Symbol operator&(const SymbolOperand& x, const SymbolOperand& y);
Symbol operator|(const SymbolOperand& x, const SymbolOperand& y);
Symbol operator^(const SymbolOperand& x, const SymbolOperand& y);
Symbol operator-(const SymbolOperand& x);
Symbol operator!(const SymbolOperand& x);
Symbol operator~(const SymbolOperand& x);
}  // namespace ops

}  // namespace tandem::nn
