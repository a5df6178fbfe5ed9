// Making scalar expressions: leaves, type checks, and folding of integer arithmetic; walking, rewriting and printing them.
#include "ir/scalar.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/half.hpp"
#include "base/text.hpp"

namespace tandem::ir {
namespace {

// Which operand types a primitive takes; all its operands have one type (Select: after the condition).
enum class Takes : uint8_t { Leaf, Any, Number, Float, Int, Bits };

struct PrimInfo {
  std::string_view name;
  int operands;
  Takes takes;
};
constexpr auto kPrims = std::to_array<PrimInfo>({
    {"const", 0, Takes::Leaf},   {"arg", 0, Takes::Leaf},     {"load", -1, Takes::Leaf},  {"axis", 0, Takes::Leaf},
    {"extent", 0, Takes::Leaf},  {"acc", 0, Takes::Leaf},     {"right", 0, Takes::Leaf},  {"add", 2, Takes::Number},
    {"sub", 2, Takes::Number},   {"mul", 2, Takes::Number},   {"div", 2, Takes::Number},  {"rem", 2, Takes::Number},
    {"min", 2, Takes::Any},      {"max", 2, Takes::Any},      {"pow", 2, Takes::Float},   {"atan2", 2, Takes::Float},
    {"and", 2, Takes::Bits},     {"or", 2, Takes::Bits},      {"xor", 2, Takes::Bits},    {"shl", 2, Takes::Int},
    {"shr", 2, Takes::Int},      {"mulhi", 2, Takes::Int},    {"eq", 2, Takes::Any},      {"ne", 2, Takes::Any},
    {"lt", 2, Takes::Any},       {"le", 2, Takes::Any},       {"gt", 2, Takes::Any},      {"ge", 2, Takes::Any},
    {"select", 3, Takes::Any},   {"fma", 3, Takes::Number},   {"neg", 1, Takes::Number},  {"abs", 1, Takes::Number},
    {"not", 1, Takes::Bits},     {"floor", 1, Takes::Number}, {"ceil", 1, Takes::Number}, {"trunc", 1, Takes::Number},
    {"round", 1, Takes::Number}, {"sqrt", 1, Takes::Float},   {"cbrt", 1, Takes::Float},  {"exp", 1, Takes::Float},
    {"exp2", 1, Takes::Float},   {"expm1", 1, Takes::Float},  {"log", 1, Takes::Float},   {"log2", 1, Takes::Float},
    {"log10", 1, Takes::Float},  {"log1p", 1, Takes::Float},  {"sin", 1, Takes::Float},   {"cos", 1, Takes::Float},
    {"tan", 1, Takes::Float},    {"asin", 1, Takes::Float},   {"acos", 1, Takes::Float},  {"atan", 1, Takes::Float},
    {"sinh", 1, Takes::Float},   {"cosh", 1, Takes::Float},   {"tanh", 1, Takes::Float},  {"asinh", 1, Takes::Float},
    {"acosh", 1, Takes::Float},  {"atanh", 1, Takes::Float},  {"erf", 1, Takes::Float},   {"erfc", 1, Takes::Float},
    {"lgamma", 1, Takes::Float}, {"cast", 1, Takes::Any},     {"bitcast", 1, Takes::Any},
});
static_assert(kPrims.size() == static_cast<size_t>(Prim::Bitcast) + 1);
static_assert(kPrims[static_cast<size_t>(Prim::Select)].name == "select" && kPrims[static_cast<size_t>(Prim::Log1p)].name == "log1p");

const PrimInfo& info_of(Prim p) { return kPrims[static_cast<size_t>(p)]; }

bool takes(Takes what, DType t) {
  switch (what) {
    case Takes::Leaf: return false;
    case Takes::Any: return true;
    case Takes::Number: return t != DType::Bool;
    case Takes::Float: return is_float(t);
    case Takes::Int: return is_int(t);
    case Takes::Bits: return !is_float(t);
  }
  return false;
}

bool is_comparison(Prim p) { return p >= Prim::Eq && p <= Prim::Ge; }

// The operands are moved by hand: a type with a destructor has no move of its own.
Scalar node(ScalarNode n) {
  std::vector<Scalar> in = std::move(n.in);
  n.in.clear();
  auto made = std::make_shared<ScalarNode>(n);
  made->in = std::move(in);
  return Scalar(std::move(made));
}
Scalar leaf(Prim p, DType t, int k) { return node({.prim = p, .dtype = t, .index = k}); }
Scalar boolean(bool v) { return constant_bits(DType::Bool, v ? 1 : 0); }

std::string types_of(std::span<const Scalar> in) {
  std::string out = "(";
  for (const Scalar& s : in) {
    if (out.size() > 1) out += ", ";
    out += s ? name(s.dtype()) : "nothing";
  }
  return out + ')';
}

void check(Prim p, std::span<const Scalar> in) {
  const PrimInfo& row = info_of(p);
  if (row.takes == Takes::Leaf || p == Prim::Cast || p == Prim::Bitcast) internal_error("scalar ", row.name, " is not made by make()");
  bool good = static_cast<int>(in.size()) == row.operands;
  for (const Scalar& s : in) good = good && s;
  if (good && p == Prim::Select) good = in[0].dtype() == DType::Bool;
  const size_t first = p == Prim::Select ? 1 : 0;
  for (size_t i = first; good && i < in.size(); ++i) good = in[i].dtype() == in[first].dtype() && takes(row.takes, in[i].dtype());
  if (!good) internal_error("scalar ", row.name, " does not take operands ", types_of(in));
}

// --- integers and bools ----------------------------------------------------------------------------------------------------

bool is_const(const Scalar& s) { return s->prim == Prim::Const; }
bool is_whole(const Scalar& s) { return is_const(s) && !is_float(s.dtype()); }
bool is_number(const Scalar& s, int64_t v) { return is_whole(s) && constant_int_value(*s) == v; }
bool all_ones(const Scalar& s) {
  return is_whole(s) && (s.dtype() == DType::Bool ? s->bits == 1 : s->bits == constant_int(s.dtype(), -1)->bits);
}

// The same value for sure: one node, or equal leaves.
bool same(const Scalar& a, const Scalar& b) {
  if (a.get() == b.get()) return true;
  const Prim p = a->prim;
  const bool plain = p == Prim::Const || p == Prim::Arg || p == Prim::Axis || p == Prim::Extent || p == Prim::Acc || p == Prim::Right;
  return plain && p == b->prim && a.dtype() == b.dtype() && a->index == b->index && a->bits == b->bits && a->dim == b->dim;
}

uint64_t high_product(uint64_t a, uint64_t b) {
  const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  const uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  return a1 * b1 + (middle >> 32) + ((a0 * b1 + (middle & 0xffffffffu)) >> 32);
}

// The upper half of the double-width product of two numbers of `bits` bits.
uint64_t mulhi_bits(int64_t a, int64_t b, bool is_signed, unsigned bits) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  if (bits < 64) return is_signed ? static_cast<uint64_t>((a * b) >> bits) : ua * ub >> bits;
  const uint64_t high = high_product(ua, ub);
  return is_signed ? high - (a < 0 ? ub : 0) - (b < 0 ? ua : 0) : high;
}

uint64_t divided(Prim p, int64_t a, int64_t b, bool is_signed) {
  if (b == 0) return 0;
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  if (!is_signed) return p == Prim::Div ? ua / ub : ua % ub;
  if (b == -1) return p == Prim::Div ? 0 - ua : 0;  // the one quotient that would trap
  return static_cast<uint64_t>(p == Prim::Div ? a / b : a % b);
}

uint64_t shifted(Prim p, int64_t a, uint64_t count, bool is_signed, unsigned bits) {
  if (p == Prim::Shl) return count >= bits ? 0 : static_cast<uint64_t>(a) << count;
  if (is_signed) return static_cast<uint64_t>(a >> std::min<uint64_t>(count, 63));
  return count >= bits ? 0 : static_cast<uint64_t>(a) >> count;
}

// One primitive on sign- or zero-extended values; the caller cuts the result to the type's width.
std::optional<uint64_t> compute(Prim p, DType t, int64_t a, int64_t b) {
  const bool sign = is_signed(t);
  const auto bits = static_cast<unsigned>(size_of(t)) * 8;
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool less = sign ? a < b : ua < ub;
  switch (p) {
    case Prim::Add: return ua + ub;
    case Prim::Sub: return ua - ub;
    case Prim::Mul: return ua * ub;
    case Prim::Div:
    case Prim::Rem: return divided(p, a, b, sign);
    case Prim::Min: return less ? ua : ub;
    case Prim::Max: return less ? ub : ua;
    case Prim::And: return ua & ub;
    case Prim::Or: return ua | ub;
    case Prim::Xor: return ua ^ ub;
    case Prim::Shl:
    case Prim::Shr: return shifted(p, a, ub, sign, bits);
    case Prim::MulHi: return mulhi_bits(a, b, sign, bits);
    case Prim::Eq: return a == b;
    case Prim::Ne: return a != b;
    case Prim::Lt: return less;
    case Prim::Le: return less || a == b;
    case Prim::Gt: return !less && a != b;
    case Prim::Ge: return !less;
    case Prim::Neg: return 0 - ua;
    case Prim::Abs: return sign && a < 0 ? 0 - ua : ua;
    case Prim::Not: return t == DType::Bool ? !ua : ~ua;
    default: return std::nullopt;
  }
}

// Wrapping arithmetic is associative, so constants of a chain can be joined: (x + 1) + 2.
std::optional<Scalar> join_chain(Prim p, const Scalar& a, const Scalar& b) {
  if (!is_whole(b) || a->prim != p || !is_whole(a->in[1])) return std::nullopt;
  if (p != Prim::Add && p != Prim::Mul && p != Prim::And && p != Prim::Or && p != Prim::Xor) return std::nullopt;
  return make(p, {a->in[0], make(p, {a->in[1], b})});
}

// x op c with a constant on the right, and x op x.
std::optional<Scalar> simplify(Prim p, const Scalar& a, const Scalar& b) {
  const Scalar zero = constant_int(a.dtype(), 0);
  const bool b0 = is_number(b, 0), b1 = is_number(b, 1) && b.dtype() != DType::Bool;
  switch (p) {
    case Prim::Add:
    case Prim::Shl:
    case Prim::Shr:
      if (b0) return a;
      break;
    case Prim::Sub:
      if (b0) return a;
      if (same(a, b)) return zero;
      if (is_whole(b)) return make(Prim::Add, {a, make(Prim::Neg, {b})});
      break;
    case Prim::Mul:
      if (b0) return zero;
      if (b1) return a;
      break;
    case Prim::Div:
      if (b1) return a;
      if (b0 || is_number(a, 0)) return zero;
      break;
    case Prim::Rem:
      if (b1 || b0 || is_number(a, 0)) return zero;
      break;
    case Prim::Min:
    case Prim::Max:
      if (same(a, b)) return a;
      break;
    case Prim::And:
      if (b0) return zero;
      if (all_ones(b) || same(a, b)) return a;
      break;
    case Prim::Or:
      if (b0 || same(a, b)) return a;
      if (all_ones(b)) return b;
      break;
    case Prim::Xor:
      if (b0) return a;
      if (same(a, b)) return zero;
      break;
    case Prim::Eq:
    case Prim::Le:
    case Prim::Ge:
      if (same(a, b)) return boolean(true);
      break;
    case Prim::Ne:
    case Prim::Lt:
    case Prim::Gt:
      if (same(a, b)) return boolean(false);
      break;
    default: break;
  }
  return join_chain(p, a, b);
}

bool is_commutative(Prim p) {
  return p == Prim::Add || p == Prim::Mul || p == Prim::Min || p == Prim::Max || p == Prim::And || p == Prim::Or || p == Prim::Xor ||
         p == Prim::MulHi || p == Prim::Eq || p == Prim::Ne;
}

// Renderers need not order bools.
std::optional<Scalar> as_logic(Prim p, const Scalar& a, const Scalar& b) {
  switch (p) {
    case Prim::Min: return a & b;
    case Prim::Max: return a | b;
    case Prim::Lt: return ~a & b;
    case Prim::Le: return ~a | b;
    case Prim::Gt: return a & ~b;
    case Prim::Ge: return a | ~b;
    default: return std::nullopt;
  }
}

std::optional<Scalar> fold_select(const std::vector<Scalar>& in) {
  if (is_const(in[0])) return in[0]->bits ? in[1] : in[2];
  if (same(in[1], in[2])) return in[1];
  if (in[1].dtype() == DType::Bool && is_const(in[1]) && is_const(in[2])) return in[1]->bits ? in[0] : !in[0];  // they differ
  return std::nullopt;
}

std::optional<Scalar> fold_unary(Prim p, const Scalar& a) {
  if (p >= Prim::Floor && p <= Prim::Round) return a;
  if (p == Prim::Abs && !is_signed(a.dtype())) return a;
  if ((p == Prim::Not || p == Prim::Neg) && a->prim == p) return a->in[0];
  return std::nullopt;
}

std::optional<Scalar> fold(Prim p, std::vector<Scalar>& in) {
  if (p == Prim::Select) return fold_select(in);
  const DType t = in[0].dtype();
  if (is_float(t)) return std::nullopt;
  if (p == Prim::Fma) return in[0] * in[1] + in[2];
  if (is_whole(in[0]) && is_whole(in.back()))
    if (const auto bits = compute(p, t, constant_int_value(*in[0]), constant_int_value(*in.back())))
      return constant_bits(is_comparison(p) ? DType::Bool : t, *bits);
  if (in.size() == 1) return fold_unary(p, in[0]);
  if (t == DType::Bool)
    if (auto logic = as_logic(p, in[0], in[1])) return logic;
  if (is_whole(in[0]) && is_commutative(p)) std::swap(in[0], in[1]);
  return simplify(p, in[0], in[1]);
}

// --- constants of every type -----------------------------------------------------------------------------------------------

// double -> float such that a second rounding to fewer bits is right: what is cut off leaves a one in the last bit.
float round_to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  if (std::isnan(x) || static_cast<double>(nearest) == x) return nearest;
  auto bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(x)) --bits;  // towards zero
  return std::bit_cast<float>(bits | 1u);
}

template <class T> uint64_t saturated(double x) {
  using L = std::numeric_limits<T>;
  if (std::isnan(x)) return 0;
  if (x <= static_cast<double>(L::min())) return static_cast<uint64_t>(L::min());
  if (x >= static_cast<double>(L::max())) return static_cast<uint64_t>(L::max());  // the double may be one above the largest
  return static_cast<uint64_t>(static_cast<T>(x));
}

uint64_t bits_from(DType t, double x) {
  return dispatch(t, [&](auto zero) -> uint64_t {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, bool>)
      return x != 0;
    else if constexpr (std::is_same_v<T, double>)
      return std::bit_cast<uint64_t>(x);
    else if constexpr (std::is_same_v<T, float>)
      return std::bit_cast<uint32_t>(static_cast<float>(x));
    else if constexpr (std::is_same_v<T, Half>)
      return float_to_half_bits(round_to_odd(x));
    else if constexpr (std::is_same_v<T, BFloat16>)
      return float_to_bfloat16_bits(round_to_odd(x));
    else
      return saturated<T>(x);
  });
}

// Cast of a constant. Empty where a device may round twice (wide number to 16 bits), unless the number is kept exactly.
std::optional<Scalar> fold_cast(const ScalarNode& n, DType t) {
  if (is_float(n.dtype)) {
    const double x = constant_value(n);
    const Scalar out = constant(t, x);
    if ((t == DType::F16 || t == DType::BF16) && constant_value(*out) != x) return std::nullopt;
    return out;
  }
  const int64_t x = constant_int_value(n);
  if (n.dtype != DType::U64 || x >= 0) {
    const Scalar out = constant_int(t, x);
    if ((t == DType::F16 || t == DType::BF16) && constant_value(*out) != static_cast<double>(x)) return std::nullopt;
    return out;
  }
  const auto u = static_cast<uint64_t>(x);
  if (t == DType::F32) return constant_bits(t, std::bit_cast<uint32_t>(static_cast<float>(u)));
  if (t == DType::F64) return constant_bits(t, std::bit_cast<uint64_t>(static_cast<double>(u)));
  if (is_float(t)) return std::nullopt;
  return constant_int(t, x);
}

}  // namespace

std::string_view name(Prim p) { return info_of(p).name; }
int operand_count(Prim p) { return info_of(p).operands; }

bool is_exact(Prim p) {
  switch (p) {
    case Prim::Pow:
    case Prim::Atan2:
    case Prim::Cbrt:
    case Prim::Exp:
    case Prim::Exp2:
    case Prim::Expm1:
    case Prim::Log:
    case Prim::Log2:
    case Prim::Log10:
    case Prim::Log1p:
    case Prim::Sin:
    case Prim::Cos:
    case Prim::Tan:
    case Prim::Asin:
    case Prim::Acos:
    case Prim::Atan:
    case Prim::Sinh:
    case Prim::Cosh:
    case Prim::Tanh:
    case Prim::Asinh:
    case Prim::Acosh:
    case Prim::Atanh:
    case Prim::Erf:
    case Prim::Erfc:
    case Prim::LGamma: return false;
    default: return true;
  }
}

DType Scalar::dtype() const { return node_->dtype; }

// The operands of dying nodes queue up here while the first of them is being taken apart.
ScalarNode::~ScalarNode() {
  if (in.empty()) return;
  static thread_local std::vector<Scalar>* queue = nullptr;
  if (queue) {
    for (Scalar& s : in) queue->push_back(std::move(s));
    return;
  }
  std::vector<Scalar> dying = std::move(in);
  queue = &dying;
  while (!dying.empty()) {
    const Scalar last = std::move(dying.back());
    dying.pop_back();
  }
  queue = nullptr;
}

// --- leaves ----------------------------------------------------------------------------------------------------------------

Scalar constant(DType t, double value) { return constant_bits(t, bits_from(t, value)); }

Scalar constant_int(DType t, int64_t value) {
  if (t == DType::Bool) return boolean(value != 0);
  if (t == DType::F32) return constant_bits(t, std::bit_cast<uint32_t>(static_cast<float>(value)));
  if (!is_float(t)) return constant_bits(t, static_cast<uint64_t>(value));
  // Bits too low for a double are gathered in one that it keeps, so that bfloat16 is rounded once.
  constexpr int64_t kExact = int64_t{1} << 53;
  if (t == DType::BF16 && (value > kExact || value < -kExact)) value = (value & ~int64_t{0x7ff}) | ((value & 0x7ff) ? 0x400 : 0);
  return constant(t, static_cast<double>(value));
}

Scalar constant_bits(DType t, uint64_t bits) {
  const size_t width = size_of(t) * 8;
  return node({.prim = Prim::Const, .dtype = t, .bits = width < 64 ? bits & ((uint64_t{1} << width) - 1) : bits});
}

Scalar program_constant(DType t, uint64_t bits) {
  const Scalar plain = constant_bits(t, bits);
  return node({.prim = Prim::Const, .dtype = t, .index = 1, .bits = plain->bits});
}

double constant_value(const ScalarNode& n) {
  TANDEM_CHECK(n.prim == Prim::Const, "the value of ", n.prim);
  switch (n.dtype) {
    case DType::F64: return std::bit_cast<double>(n.bits);
    case DType::F32: return std::bit_cast<float>(static_cast<uint32_t>(n.bits));
    case DType::F16: return half_bits_to_float(static_cast<uint16_t>(n.bits));
    case DType::BF16: return bfloat16_bits_to_float(static_cast<uint16_t>(n.bits));
    case DType::U64: return static_cast<double>(n.bits);
    default: return static_cast<double>(constant_int_value(n));
  }
}

int64_t constant_int_value(const ScalarNode& n) {
  TANDEM_CHECK(n.prim == Prim::Const && !is_float(n.dtype), "the whole value of ", n.prim, " of ", n.dtype);
  switch (n.dtype) {
    case DType::I8: return static_cast<int8_t>(n.bits);
    case DType::I16: return static_cast<int16_t>(n.bits);
    case DType::I32: return static_cast<int32_t>(n.bits);
    default: return static_cast<int64_t>(n.bits);
  }
}

Scalar arg(int k, DType t) { return leaf(Prim::Arg, t, k); }
Scalar axis(int k) { return leaf(Prim::Axis, DType::I64, k); }
Scalar acc(int k, DType t) { return leaf(Prim::Acc, t, k); }
Scalar right(int k, DType t) { return leaf(Prim::Right, t, k); }
Scalar extent(const Dim& d) {
  if (d.is_const()) return constant_int(DType::I64, d.value());
  return node({.prim = Prim::Extent, .dtype = DType::I64, .dim = d});
}

static void check_index(int input, std::span<const Scalar> index) {
  for (const Scalar& s : index)
    if (!s || s.dtype() != DType::I64) internal_error("scalar load", input, " does not take indices ", types_of(index));
}

Scalar load(int input, DType t, std::vector<Scalar> index) {
  check_index(input, index);
  return node({.prim = Prim::Load, .dtype = t, .index = input, .in = std::move(index)});
}

Scalar load_if(int input, DType t, std::vector<Scalar> index, Scalar valid, Scalar otherwise) {
  check_index(input, index);
  if (!valid || !otherwise || valid.dtype() != DType::Bool || otherwise.dtype() != t)
    internal_error("scalar load", input, " of ", t, " does not take (valid, otherwise) of types ", types_of(std::array{valid, otherwise}));
  if (is_const(valid)) return valid->bits ? load(input, t, std::move(index)) : otherwise;
  index.push_back(std::move(valid));
  index.push_back(std::move(otherwise));
  return node({.prim = Prim::Load, .dtype = t, .guarded = true, .index = input, .in = std::move(index)});
}

// --- primitives ------------------------------------------------------------------------------------------------------------

Scalar make(Prim p, std::vector<Scalar> in) {
  check(p, in);
  if (auto folded = fold(p, in)) return *folded;
  const DType t = is_comparison(p) ? DType::Bool : in.back().dtype();
  return node({.prim = p, .dtype = t, .in = std::move(in)});
}

Scalar select(const Scalar& c, const Scalar& a, const Scalar& b) { return make(Prim::Select, {c, a, b}); }
Scalar select(const Scalar& c, const Scalar& a, double b) { return make(Prim::Select, {c, a, constant(a.dtype(), b)}); }
Scalar select(const Scalar& c, double a, const Scalar& b) { return make(Prim::Select, {c, constant(b.dtype(), a), b}); }
Scalar fma(const Scalar& a, const Scalar& b, const Scalar& c) { return make(Prim::Fma, {a, b, c}); }

Scalar cast(const Scalar& a, DType t) {
  if (a.dtype() == t) return a;
  if (is_const(a))
    if (auto folded = fold_cast(*a, t)) return *folded;
  return node({.prim = Prim::Cast, .dtype = t, .in = {a}});
}

Scalar bitcast(const Scalar& a, DType t) {
  if (a.dtype() == t) return a;
  if (size_of(a.dtype()) != size_of(t) || a.dtype() == DType::Bool || t == DType::Bool)
    internal_error("scalar bitcast from ", a.dtype(), " to ", t, ": not the same width, or bool");
  if (is_const(a)) return constant_bits(t, a->bits);
  return node({.prim = Prim::Bitcast, .dtype = t, .in = {a}});
}

Scalar is_nan(const Scalar& a) { return is_float(a.dtype()) ? a != a : boolean(false); }

// --- walking ---------------------------------------------------------------------------------------------------------------

std::vector<Scalar> post_order(std::span<const Scalar> roots) {
  struct Visit {
    const Scalar* node;
    size_t next;
  };
  std::vector<Scalar> out;
  std::unordered_set<const ScalarNode*> seen;
  std::vector<Visit> stack;
  for (const Scalar& root : roots) {
    if (root && seen.insert(root.get()).second) stack.push_back({&root, 0});
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.next == (*top.node)->in.size()) {
        out.push_back(*top.node);
        stack.pop_back();
        continue;
      }
      const Scalar& operand = (*top.node)->in[top.next++];
      if (seen.insert(operand.get()).second) stack.push_back({&operand, 0});
    }
  }
  return out;
}

static Scalar with_operands(const Scalar& s, std::vector<Scalar> in) {
  switch (s->prim) {
    case Prim::Cast: return cast(in[0], s.dtype());
    case Prim::Bitcast: return bitcast(in[0], s.dtype());
    case Prim::Load: {
      if (!s->guarded) return load(s->index, s.dtype(), std::move(in));
      const Scalar otherwise = in.back(), valid = in[in.size() - 2];
      in.resize(in.size() - 2);
      return load_if(s->index, s.dtype(), std::move(in), valid, otherwise);
    }
    default: return make(s->prim, std::move(in));
  }
}

std::vector<Scalar> rewrite(std::span<const Scalar> roots, const RewriteFn& f) {
  std::unordered_map<const ScalarNode*, Scalar> done;
  for (const Scalar& s : post_order(roots)) {
    std::vector<Scalar> in;
    in.reserve(s->in.size());
    bool changed = false;
    for (const Scalar& operand : s->in) {
      in.push_back(done.at(operand.get()));
      changed = changed || in.back().get() != operand.get();
    }
    const Scalar rebuilt = changed ? with_operands(s, std::move(in)) : s;
    // Folding may give an operand back, which f has seen already: a load must not be replaced twice.
    const Scalar replaced = rebuilt->prim == s->prim ? f(rebuilt) : Scalar();
    done.emplace(s.get(), replaced ? replaced : rebuilt);
  }
  std::vector<Scalar> out;
  for (const Scalar& root : roots) out.push_back(root ? done.at(root.get()) : Scalar());
  return out;
}

Scalar rewrite(const Scalar& root, const RewriteFn& f) { return rewrite(std::span(&root, 1), f).front(); }

// --- structure -------------------------------------------------------------------------------------------------------------

namespace {

// Numbers the distinct sub-expressions of some roots in post-order. Equal structure gives equal numbers, however nodes are shared.
class Numbering {
 public:
  explicit Numbering(std::span<const Scalar> roots) {
    for (const Scalar& s : post_order(roots)) {
      std::string key = key_of(s);
      const auto [it, fresh] = by_key_.emplace(std::move(key), nodes.size());
      if (fresh) nodes.push_back(s);
      by_node_.emplace(s.get(), it->second);
    }
  }
  size_t of(const Scalar& s) const { return by_node_.at(s.get()); }
  std::vector<Scalar> nodes;  // one for each number, operands first

 private:
  std::string key_of(const Scalar& s) const {
    std::string key = {static_cast<char>(s->prim), static_cast<char>(s->dtype), static_cast<char>(s->guarded)};
    auto put = [&key](const auto& x) { key.append(reinterpret_cast<const char*>(&x), sizeof x); };
    put(s->index);
    put(s->bits);
    for (const Scalar& operand : s->in) put(of(operand));
    if (s->prim == Prim::Extent) key += s->dim.str();
    return key;
  }
  std::unordered_map<std::string, size_t> by_key_;
  std::unordered_map<const ScalarNode*, size_t> by_node_;
};

constexpr std::array<std::string_view, kDTypeCount> kShortNames = {"bool", "u8",  "u16", "u32",  "u64", "i8", "i16",
                                                                   "i32",  "i64", "f16", "bf16", "f32", "f64"};
std::string type_suffix(DType t) { return ':' + std::string(kShortNames[static_cast<size_t>(t)]); }

template <class T> std::string shortest(T x) {
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x).ptr;
  return {buffer.data(), end};
}

std::string number_text(const ScalarNode& n) {
  if (n.dtype == DType::Bool) return n.bits ? "true" : "false";
  if (n.dtype == DType::U64) return std::to_string(n.bits) + type_suffix(n.dtype);
  if (n.dtype == DType::I64) return std::to_string(constant_int_value(n));
  if (!is_float(n.dtype)) return std::to_string(constant_int_value(n)) + type_suffix(n.dtype);
  const double x = constant_value(n);
  std::string text = n.dtype == DType::F64 ? shortest(x) : shortest(static_cast<float>(x));
  constexpr size_t kReadable = 10;  // longer digits tell less than the bits; a NaN may carry some
  if (text.size() > kReadable || std::isnan(x)) {
    std::array<char, 20> hex;
    text = "0x" + std::string(hex.data(), std::to_chars(hex.data(), hex.data() + hex.size(), n.bits, 16).ptr);
  }
  return text + type_suffix(n.dtype);
}

std::string node_text(const ScalarNode& n, std::span<const std::string> in) {
  std::string text(name(n.prim));
  switch (n.prim) {
    case Prim::Const: return number_text(n);
    case Prim::Extent: return text + '(' + n.dim.str() + ')';
    case Prim::Axis: return text + std::to_string(n.index);
    case Prim::Arg:
    case Prim::Acc:
    case Prim::Right: return text + std::to_string(n.index) + type_suffix(n.dtype);
    case Prim::Load: text += std::to_string(n.index); break;
    default: break;
  }
  text += '(';
  for (size_t i = 0; i < in.size(); ++i) {
    if (n.guarded && i + 2 == in.size())
      text += i ? " if " : "if ";
    else if (n.guarded && i + 1 == in.size())
      text += " else ";
    else if (i)
      text += ", ";
    text += in[i];
  }
  text += ')';
  return n.prim == Prim::Load || n.prim == Prim::Cast || n.prim == Prim::Bitcast ? text + type_suffix(n.dtype) : text;
}

}  // namespace

std::vector<Scalar> share(std::span<const Scalar> roots) {
  const Numbering numbering(roots);
  std::vector<Scalar> shared;
  for (const Scalar& s : numbering.nodes) {
    ScalarNode copy = *s;
    bool changed = false;
    for (Scalar& operand : copy.in) {
      const Scalar& one = shared[numbering.of(operand)];
      changed = changed || one.get() != operand.get();
      operand = one;
    }
    shared.push_back(changed ? node(copy) : s);
  }
  std::vector<Scalar> out;
  for (const Scalar& root : roots) out.push_back(root ? shared[numbering.of(root)] : Scalar());
  return out;
}

// Numbers what is used again, and what is long: a deep chain then costs its length and not the square of it.
std::string str(const Scalar& s) {
  constexpr size_t kLongText = 400;
  if (!s) return "nothing";
  const Numbering numbering(std::span(&s, 1));
  std::vector<int> uses(numbering.nodes.size());
  for (const Scalar& n : numbering.nodes)
    for (const Scalar& operand : n->in) ++uses[numbering.of(operand)];
  std::string lets;
  int named = 0;
  std::vector<std::string> text(numbering.nodes.size()), in;
  for (size_t i = 0; i < text.size(); ++i) {
    const ScalarNode& n = *numbering.nodes[i];
    in.clear();
    for (const Scalar& operand : n.in) {
      std::string& t = text[numbering.of(operand)];
      if (uses[numbering.of(operand)] == 1)
        in.push_back(std::move(t));
      else
        in.push_back(t);
    }
    text[i] = node_text(n, in);
    if (n.in.empty() || i + 1 == text.size() || (uses[i] < 2 && text[i].size() < kLongText)) continue;
    const std::string name_text = '%' + std::to_string(named++);
    lets += name_text + '=' + text[i] + "; ";
    text[i] = name_text;
  }
  return lets + text.back();
}

}  // namespace tandem::ir
