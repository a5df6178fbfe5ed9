// What op functions take. Each remembers the line of the user's program at which it was made, so that errors can name it even when
// the call was an operator.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <tandem/dim.hpp>
#include <tandem/dtype.hpp>
#include <tandem/shape.hpp>

namespace tandem {

class Tensor;
class Variable;

template <class T>
concept Number = std::is_arithmetic_v<T>;

// A tensor, a variable's value, or a bare number. A bare number takes the other operands' type where it can: float32 + 1.5 is float32.
// Only for parameters: it refers to what it was made from.
class Operand {
 public:
  using Where = std::source_location;
  enum class Kind : uint8_t { None, Tensor, Variable, Bool, Int, Float };

  Operand() = default;  // an optional operand that is left out
  Operand(const Tensor& t, Where where = Where::current()) : kind_(Kind::Tensor), tensor_(&t), where_(where) {}        // NOLINT
  Operand(const Variable& v, Where where = Where::current()) : kind_(Kind::Variable), variable_(&v), where_(where) {}  // NOLINT
  template <Number T> Operand(T v, Where where = Where::current()) : where_(where) {                                   // NOLINT
    if constexpr (std::is_same_v<T, bool>) {
      kind_ = Kind::Bool;
      int_ = v;
    } else if constexpr (std::is_integral_v<T>) {
      kind_ = Kind::Int;
      int_ = std::in_range<int64_t>(v) ? static_cast<int64_t>(v) : std::numeric_limits<int64_t>::max();
    } else {
      kind_ = Kind::Float;
      float_ = static_cast<double>(v);
    }
  }

  Kind kind() const { return kind_; }
  bool is_number() const { return kind_ >= Kind::Bool; }
  const Tensor& tensor() const { return *tensor_; }
  const Variable& variable() const { return *variable_; }
  int64_t as_int() const { return int_; }
  double as_float() const { return kind_ == Kind::Float ? float_ : static_cast<double>(int_); }
  const Where& where() const { return where_; }

 private:
  Kind kind_ = Kind::None;
  union {
    const Tensor* tensor_ = nullptr;
    const Variable* variable_;
    int64_t int_;
    double float_;
  };
  Where where_;
};

// Any number of operands: concatenate({a, b, c}, 1), stack(tensors).
class OperandList {
 public:
  using Where = std::source_location;
  OperandList(std::initializer_list<Operand> operands, Where where = Where::current()) : operands_(operands), where_(where) {}  // NOLINT
  OperandList(const std::vector<Tensor>& tensors, Where where = Where::current());                                              // NOLINT
  OperandList(std::span<const Tensor> tensors, Where where = Where::current());                                                 // NOLINT
  std::span<const Operand> operands() const { return operands_; }
  const Where& where() const { return where_; }

 private:
  std::vector<Operand> operands_;
  Where where_;
};

// Attributes. Default-constructed they are "not given", which for a list that must be given is the empty list.
// A list of integers: axes, strides, sizes. From one number, {0, 1}, or a vector.
class IntList {
 public:
  IntList() = default;
  IntList(std::nullopt_t) {}                                                                           // NOLINT
  template <std::integral T> IntList(T value) : given_(true), values_{static_cast<int64_t>(value)} {}  // NOLINT
  IntList(std::initializer_list<int64_t> values) : given_(true), values_(values) {}
  IntList(std::vector<int64_t> values) : given_(true), values_(std::move(values)) {}       // NOLINT
  IntList(const Extents& values) : given_(true), values_(values.begin(), values.end()) {}  // NOLINT
  bool given() const { return given_; }
  const std::vector<int64_t>& values() const { return values_; }

 private:
  bool given_ = false;
  std::vector<int64_t> values_;
};

class FloatList {
 public:
  FloatList() = default;
  FloatList(std::nullopt_t) {}                                                                   // NOLINT
  template <Number T> FloatList(T value) : given_(true), values_{static_cast<double>(value)} {}  // NOLINT
  FloatList(std::initializer_list<double> values) : given_(true), values_(values) {}
  FloatList(std::vector<double> values) : given_(true), values_(std::move(values)) {}  // NOLINT
  bool given() const { return given_; }
  const std::vector<double>& values() const { return values_; }

 private:
  bool given_ = false;
  std::vector<double> values_;
};

// A list of extents, which may be symbols: reshape(x, {Dim::symbol("b"), -1}).
class DimList {
 public:
  // An entry: any kind of integer, or a Dim.
  struct Entry {
    template <std::integral T> Entry(T value) : dim(static_cast<int64_t>(value)) {}  // NOLINT
    Entry(Dim d) : dim(std::move(d)) {}                                              // NOLINT
    Dim dim;
  };
  DimList() = default;
  DimList(std::nullopt_t) {}  // NOLINT
  DimList(std::initializer_list<Entry> dims) : given_(true) {
    for (const Entry& e : dims) dims_.push_back(e.dim);
  }
  DimList(Dims dims) : given_(true), dims_(std::move(dims)) {}                                            // NOLINT
  DimList(const Shape& shape) : given_(true), dims_(to_dims(shape)) {}                                    // NOLINT
  template <std::integral T> DimList(T value) : given_(true), dims_{Dim(static_cast<int64_t>(value))} {}  // NOLINT
  DimList(const Dim& dim) : given_(true), dims_{dim} {}                                                   // NOLINT
  bool given() const { return given_; }
  const Dims& dims() const { return dims_; }

 private:
  bool given_ = false;
  Dims dims_;
};

}  // namespace tandem
