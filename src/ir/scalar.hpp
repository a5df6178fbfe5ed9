// Scalar: an expression for one element, over a small closed set of primitives. Op bodies are written in it, and every device
// renders it: what is not here is composed from what is. Immutable and shared; typed: both sides of an operator have one type.
//
// Semantics that every renderer keeps:
//   integers wrap; Div and Rem truncate, x/0 is 0 and x%0 is 0; Shl/Shr by the width or more give 0 (Shr of a negative: -1);
//   Min and Max give NaN when either side is NaN; Round is to nearest even; Cast float->int truncates and saturates, NaN gives 0;
//   Cast to Bool is `!= 0`; float16/bfloat16 compute in float32 and round after each primitive;
//   no contraction: a*b+c rounds twice unless written fma(a,b,c).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tandem/dim.hpp>
#include <tandem/dtype.hpp>

namespace tandem::ir {

enum class Prim : uint8_t {
  // leaves
  Const,   // a number
  Arg,     // argument k of an elementwise body; becomes a Load when the op becomes loops
  Load,    // input k at one i64 index a dimension; guarded loads carry two more operands: valid (bool), otherwise
  Axis,    // the i64 index along loop axis k: output axes first, then reduce axes
  Extent,  // the i64 value of a Dim
  Acc,     // component k of the (left) accumulator
  Right,   // component k of the right accumulator, inside `combine`
  // two operands
  Add,
  Sub,
  Mul,
  Div,
  Rem,
  Min,
  Max,
  Pow,
  Atan2,
  And,
  Or,
  Xor,
  Shl,
  Shr,
  MulHi,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  // three operands
  Select,
  Fma,
  // one operand
  Neg,
  Abs,
  Not,
  Floor,
  Ceil,
  Trunc,
  Round,
  Sqrt,
  Cbrt,
  Exp,
  Exp2,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Asinh,
  Acosh,
  Atanh,
  Erf,
  Erfc,
  LGamma,
  Cast,
  Bitcast,
};
std::string_view name(Prim p);  // "add"
int operand_count(Prim p);      // -1 for Load
bool is_exact(Prim p);          // every device computes it to the last bit, so that it does not matter who does

class Scalar;
struct ScalarNode;

class Scalar {
 public:
  Scalar() = default;
  explicit Scalar(std::shared_ptr<const ScalarNode> n) : node_(std::move(n)) {}
  explicit operator bool() const { return node_ != nullptr; }
  const ScalarNode& operator*() const { return *node_; }
  const ScalarNode* operator->() const { return node_.get(); }
  const ScalarNode* get() const { return node_.get(); }  // identity: shared sub-expressions are one node
  DType dtype() const;

 private:
  std::shared_ptr<const ScalarNode> node_;
};

struct ScalarNode {
  Prim prim;
  DType dtype;
  bool guarded = false;  // Load only
  int32_t index = 0;     // Arg, Load, Axis, Acc, Right: which; Const: 1 if it is a program's number and not a formula's
  uint64_t bits = 0;     // Const: the value's own bits, zero-extended
  Dim dim;               // Extent
  std::vector<Scalar> in;
  ~ScalarNode();  // does not recurse: a fused chain may be deeper than the stack
};

// Leaves.
Scalar constant(DType t, double value);       // saturates like Cast; use constant_int for 64-bit integers beyond 2^53
Scalar constant_int(DType t, int64_t value);  // wraps like Cast: constant_int(U32, -1) has all bits set
Scalar constant_bits(DType t, uint64_t bits);
// A number that a program chose, of which there may be any number: code takes it as a parameter where that costs nothing.
Scalar program_constant(DType t, uint64_t bits);
// The value of a Const node: as a double (64-bit integers are rounded), and of an integer or bool exactly (u64 as its bits).
double constant_value(const ScalarNode& n);
int64_t constant_int_value(const ScalarNode& n);
Scalar arg(int k, DType t);
Scalar load(int input, DType t, std::vector<Scalar> index);
Scalar load_if(int input, DType t, std::vector<Scalar> index, Scalar valid, Scalar otherwise);
Scalar axis(int k);
Scalar extent(const Dim& d);  // a constant when d is one
Scalar acc(int k, DType t);
Scalar right(int k, DType t);

// Any primitive by name; checks operand types and folds integer and bool arithmetic (never floats: NaN, -0). InternalError on a type
// mismatch. On bools, Min and Max become And and Or, and < <= > >= become logic; rounding an integer gives it back.
Scalar make(Prim p, std::vector<Scalar> in);

#define TANDEM_BINARY(fn, P)                                                                         \
  inline Scalar fn(const Scalar& a, const Scalar& b) { return make(Prim::P, {a, b}); }               \
  inline Scalar fn(const Scalar& a, double b) { return make(Prim::P, {a, constant(a.dtype(), b)}); } \
  inline Scalar fn(double a, const Scalar& b) { return make(Prim::P, {constant(b.dtype(), a), b}); }
TANDEM_BINARY(operator+, Add)
TANDEM_BINARY(operator-, Sub)
TANDEM_BINARY(operator*, Mul)
TANDEM_BINARY(operator/, Div)
TANDEM_BINARY(operator%, Rem)
TANDEM_BINARY(operator&, And)
TANDEM_BINARY(operator|, Or)
TANDEM_BINARY(operator^, Xor)
TANDEM_BINARY(operator<<, Shl)
TANDEM_BINARY(operator>>, Shr)
TANDEM_BINARY(operator==, Eq)
TANDEM_BINARY(operator!=, Ne)
TANDEM_BINARY(operator<, Lt)
TANDEM_BINARY(operator<=, Le)
TANDEM_BINARY(operator>, Gt)
TANDEM_BINARY(operator>=, Ge)
TANDEM_BINARY(min, Min)
TANDEM_BINARY(max, Max)
TANDEM_BINARY(pow, Pow)
TANDEM_BINARY(atan2, Atan2)
TANDEM_BINARY(mulhi, MulHi)
#undef TANDEM_BINARY
#define TANDEM_UNARY(fn, P) \
  inline Scalar fn(const Scalar& a) { return make(Prim::P, {a}); }
TANDEM_UNARY(operator-, Neg)
TANDEM_UNARY(abs, Abs)
TANDEM_UNARY(operator~, Not)
TANDEM_UNARY(floor, Floor)
TANDEM_UNARY(ceil, Ceil)
TANDEM_UNARY(trunc, Trunc)
TANDEM_UNARY(round, Round)
TANDEM_UNARY(sqrt, Sqrt)
TANDEM_UNARY(cbrt, Cbrt)
TANDEM_UNARY(exp, Exp)
TANDEM_UNARY(exp2, Exp2)
TANDEM_UNARY(expm1, Expm1)
TANDEM_UNARY(log, Log)
TANDEM_UNARY(log2, Log2)
TANDEM_UNARY(log10, Log10)
TANDEM_UNARY(log1p, Log1p)
TANDEM_UNARY(sin, Sin)
TANDEM_UNARY(cos, Cos)
TANDEM_UNARY(tan, Tan)
TANDEM_UNARY(asin, Asin)
TANDEM_UNARY(acos, Acos)
TANDEM_UNARY(atan, Atan)
TANDEM_UNARY(sinh, Sinh)
TANDEM_UNARY(cosh, Cosh)
TANDEM_UNARY(tanh, Tanh)
TANDEM_UNARY(asinh, Asinh)
TANDEM_UNARY(acosh, Acosh)
TANDEM_UNARY(atanh, Atanh)
TANDEM_UNARY(erf, Erf)
TANDEM_UNARY(erfc, Erfc)
TANDEM_UNARY(lgamma, LGamma)
#undef TANDEM_UNARY
// `!s` is logical not where an expression is wanted, and asks for an empty handle where a condition is wanted: `if (!s)` must not
// quietly build a node that is always there. A lambda that returns it writes `~s`, or says `-> Scalar`.
struct Negation {
  Scalar operand;
  operator Scalar() const { return make(Prim::Not, {operand}); }  // NOLINT: it is the expression
  explicit operator bool() const { return !static_cast<bool>(operand); }
};
inline Negation operator!(const Scalar& a) { return {a}; }
Scalar select(const Scalar& c, const Scalar& a, const Scalar& b);
Scalar select(const Scalar& c, const Scalar& a, double b);
Scalar select(const Scalar& c, double a, const Scalar& b);
Scalar fma(const Scalar& a, const Scalar& b, const Scalar& c);
Scalar cast(const Scalar& a, DType t);     // a itself when it has that type
Scalar bitcast(const Scalar& a, DType t);  // same width
Scalar is_nan(const Scalar& a);            // a != a; false for integers

Scalar digamma(const Scalar& a);  // composed of the above: the derivative of lgamma. NaN at -1, -2, …

// Every node once, operands before their users.
std::vector<Scalar> post_order(std::span<const Scalar> roots);
// The same expressions with one node for each distinct sub-expression.
std::vector<Scalar> share(std::span<const Scalar> roots);

// Rebuilds an expression bottom-up; f sees each node with its operands already rebuilt and may return something else (or an empty
// Scalar for "as it is"). Shared nodes are visited once.
using RewriteFn = std::function<Scalar(const Scalar& rebuilt)>;
Scalar rewrite(const Scalar& root, const RewriteFn& f);
std::vector<Scalar> rewrite(std::span<const Scalar> roots, const RewriteFn& f);

// d(body)/d(arg k) in the type of body, by the rules in derive.cpp; an empty Scalar when it is identically zero (always so for integers).
// float16/bfloat16 bodies are differentiated in float32 and rounded once. Ties of Min and Max share the gradient half and half.
Scalar derivative(const Scalar& body, int arg_index);

// "add(arg0:f32, 1:f32)"; numbers without a type are i64. Sub-expressions that are used again (or are very long) are
// numbered: "%0=exp(arg0:f32); mul(%0, %0)". Equal text means equal expression, whichever nodes it shares.
std::string str(const Scalar& s);

}  // namespace tandem::ir
