// The primitives as the interpreter computes them, a run of lanes at a time. Private to the interpreter.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/half.hpp"
#include "ir/scalar.hpp"

namespace tandem::codegen::interpreter {

// What holds a value of a type: bool is a byte; float16 and bfloat16 are floats that they can hold exactly.
template <class T> struct RegisterOf {
  using type = T;
};
template <> struct RegisterOf<bool> {
  using type = uint8_t;
};
template <> struct RegisterOf<Half> {
  using type = float;
};
template <> struct RegisterOf<BFloat16> {
  using type = float;
};
template <class T> using Register = typename RegisterOf<T>::type;

template <class T> Register<T> from_memory(T x) {
  if constexpr (std::is_same_v<T, bool>)
    return x ? 1 : 0;
  else
    return static_cast<Register<T>>(x);
}
template <class T> T to_memory(Register<T> x) {
  if constexpr (std::is_same_v<T, bool>)
    return x != 0;
  else
    return T(x);
}
inline bool is_small_float(DType t) { return t == DType::F16 || t == DType::BF16; }

// Lanes of up to three operands and a result. A step of 0 repeats one value; a result with step 0 that is also an operand makes the run
// a fold, in order.
struct Lanes {
  const void* in[3];
  void* out;
  int64_t count;
  int step[3] = {1, 1, 1};
  int out_step = 1;
};

template <class T, class R, class F> void each1(const Lanes& l, F f) {
  const T* a = static_cast<const T*>(l.in[0]);
  R* r = static_cast<R*>(l.out);
  for (int64_t i = 0; i < l.count; ++i) r[i] = f(a[i]);
}
template <class T, class R, class F> void each2(const Lanes& l, F f) {
  const T *a = static_cast<const T*>(l.in[0]), *b = static_cast<const T*>(l.in[1]);
  R* r = static_cast<R*>(l.out);
  if (l.step[0] == 1 && l.step[1] == 1 && l.out_step == 1)
    for (int64_t i = 0; i < l.count; ++i) r[i] = f(a[i], b[i]);
  else
    for (int64_t i = 0; i < l.count; ++i) r[i * l.out_step] = f(a[i * l.step[0]], b[i * l.step[1]]);
}
template <class T, class F> void each3(const Lanes& l, F f) {
  const T *a = static_cast<const T*>(l.in[0]), *b = static_cast<const T*>(l.in[1]), *c = static_cast<const T*>(l.in[2]);
  T* r = static_cast<T*>(l.out);
  for (int64_t i = 0; i < l.count; ++i) r[i] = f(a[i], b[i], c[i]);
}

inline float log_gamma(float x) {
  int sign;
  return lgammaf_r(x, &sign);
}
inline double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

// NaN wins; of two zeros, Min gives the negative one and Max the positive one (IEEE 754-2019 minimum and maximum).
template <class T> T float_min(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T> T float_max(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

template <class T> bool compare(ir::Prim p, const Lanes& l) {
  using ir::Prim;
  switch (p) {
    case Prim::Eq: each2<T, uint8_t>(l, [](T a, T b) { return a == b; }); return true;
    case Prim::Ne: each2<T, uint8_t>(l, [](T a, T b) { return a != b; }); return true;
    case Prim::Lt: each2<T, uint8_t>(l, [](T a, T b) { return a < b; }); return true;
    case Prim::Le: each2<T, uint8_t>(l, [](T a, T b) { return a <= b; }); return true;
    case Prim::Gt: each2<T, uint8_t>(l, [](T a, T b) { return a > b; }); return true;
    case Prim::Ge: each2<T, uint8_t>(l, [](T a, T b) { return a >= b; }); return true;
    default: return false;
  }
}

template <class T> bool float_primitive(ir::Prim p, const Lanes& l) {
  using ir::Prim;
#define TANDEM_UNARY(P, expression) \
  case Prim::P: each1<T, T>(l, [](T a) -> T { return expression; }); return true;
#define TANDEM_BINARY(P, expression) \
  case Prim::P: each2<T, T>(l, [](T a, T b) -> T { return expression; }); return true;
  switch (p) {
    TANDEM_BINARY(Add, a + b)
    TANDEM_BINARY(Sub, a - b)
    TANDEM_BINARY(Mul, a * b)
    TANDEM_BINARY(Div, a / b)
    TANDEM_BINARY(Rem, std::fmod(a, b))
    TANDEM_BINARY(Min, float_min(a, b))
    TANDEM_BINARY(Max, float_max(a, b))
    TANDEM_BINARY(Pow, std::pow(a, b))
    TANDEM_BINARY(Atan2, std::atan2(a, b))
    TANDEM_UNARY(Neg, -a)
    TANDEM_UNARY(Abs, std::fabs(a))
    TANDEM_UNARY(Floor, std::floor(a))
    TANDEM_UNARY(Ceil, std::ceil(a))
    TANDEM_UNARY(Trunc, std::trunc(a))
    TANDEM_UNARY(Round, std::nearbyint(a))
    TANDEM_UNARY(Sqrt, std::sqrt(a))
    TANDEM_UNARY(Cbrt, std::cbrt(a))
    TANDEM_UNARY(Exp, std::exp(a))
    TANDEM_UNARY(Exp2, std::exp2(a))
    TANDEM_UNARY(Expm1, std::expm1(a))
    TANDEM_UNARY(Log, std::log(a))
    TANDEM_UNARY(Log2, std::log2(a))
    TANDEM_UNARY(Log10, std::log10(a))
    TANDEM_UNARY(Log1p, std::log1p(a))
    TANDEM_UNARY(Sin, std::sin(a))
    TANDEM_UNARY(Cos, std::cos(a))
    TANDEM_UNARY(Tan, std::tan(a))
    TANDEM_UNARY(Asin, std::asin(a))
    TANDEM_UNARY(Acos, std::acos(a))
    TANDEM_UNARY(Atan, std::atan(a))
    TANDEM_UNARY(Sinh, std::sinh(a))
    TANDEM_UNARY(Cosh, std::cosh(a))
    TANDEM_UNARY(Tanh, std::tanh(a))
    TANDEM_UNARY(Asinh, std::asinh(a))
    TANDEM_UNARY(Acosh, std::acosh(a))
    TANDEM_UNARY(Atanh, std::atanh(a))
    TANDEM_UNARY(Erf, std::erf(a))
    TANDEM_UNARY(Erfc, std::erfc(a))
    TANDEM_UNARY(LGamma, log_gamma(a))
    case Prim::Fma: each3<T>(l, [](T a, T b, T c) { return std::fma(a, b, c); }); return true;
    default: return compare<T>(p, l);
  }
#undef TANDEM_UNARY
#undef TANDEM_BINARY
}

// Integers wrap, so all arithmetic is done on unsigned 64-bit numbers and cut.
template <class T> uint64_t wide(T x) { return static_cast<uint64_t>(x); }

template <class T> T divided(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(0 - wide(a));  // the lowest number has no positive twin
  return static_cast<T>(a / b);
}
template <class T> T remainder_of(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}
template <class T> T shift_left(T a, T b) {
  return static_cast<std::make_unsigned_t<T>>(b) >= sizeof(T) * 8 ? T(0) : static_cast<T>(wide(a) << b);
}
template <class T> T shift_right(T a, T b) {
  if (static_cast<std::make_unsigned_t<T>>(b) >= sizeof(T) * 8) return a < T(0) ? static_cast<T>(-1) : T(0);
  return static_cast<T>(a >> b);
}
template <class T> T multiply_high(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    __extension__ using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> 64);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (sizeof(T) * 8));
  }
}

template <class T> bool int_primitive(ir::Prim p, const Lanes& l) {
  using ir::Prim;
#define TANDEM_BINARY(P, expression) \
  case Prim::P: each2<T, T>(l, [](T a, T b) { return static_cast<T>(expression); }); return true;
  switch (p) {
    TANDEM_BINARY(Add, wide(a) + wide(b))
    TANDEM_BINARY(Sub, wide(a) - wide(b))
    TANDEM_BINARY(Mul, wide(a) * wide(b))
    TANDEM_BINARY(Div, divided(a, b))
    TANDEM_BINARY(Rem, remainder_of(a, b))
    TANDEM_BINARY(Min, a < b ? a : b)
    TANDEM_BINARY(Max, a < b ? b : a)
    TANDEM_BINARY(And, a & b)
    TANDEM_BINARY(Or, a | b)
    TANDEM_BINARY(Xor, a ^ b)
    TANDEM_BINARY(Shl, shift_left(a, b))
    TANDEM_BINARY(Shr, shift_right(a, b))
    TANDEM_BINARY(MulHi, multiply_high(a, b))
    case Prim::Fma: each3<T>(l, [](T a, T b, T c) { return static_cast<T>(wide(a) * wide(b) + wide(c)); }); return true;
    case Prim::Neg: each1<T, T>(l, [](T a) { return static_cast<T>(0 - wide(a)); }); return true;
    case Prim::Abs: each1<T, T>(l, [](T a) { return a < T(0) ? static_cast<T>(0 - wide(a)) : a; }); return true;
    case Prim::Not: each1<T, T>(l, [](T a) { return static_cast<T>(~wide(a)); }); return true;
    case Prim::Floor:
    case Prim::Ceil:
    case Prim::Trunc:
    case Prim::Round: each1<T, T>(l, [](T a) { return a; }); return true;
    default: return compare<T>(p, l);
  }
#undef TANDEM_BINARY
}

inline bool bool_primitive(ir::Prim p, const Lanes& l) {
  using ir::Prim;
  using B = uint8_t;
  switch (p) {
    case Prim::And:
    case Prim::Min: each2<B, B>(l, [](B a, B b) { return static_cast<B>(a & b); }); return true;
    case Prim::Or:
    case Prim::Max: each2<B, B>(l, [](B a, B b) { return static_cast<B>(a | b); }); return true;
    case Prim::Xor: each2<B, B>(l, [](B a, B b) { return static_cast<B>(a ^ b); }); return true;
    case Prim::Not: each1<B, B>(l, [](B a) { return static_cast<B>(!a); }); return true;
    default: return compare<B>(p, l);
  }
}

template <class To, class From> To converted(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Truncates and saturates. The limits are compared as doubles; the upper one may round up to a power of two, which is right.
    const double v = static_cast<double>(x);
    if (std::isnan(v)) return 0;
    if (v <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (v >= static_cast<double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(v);
  } else {
    return static_cast<To>(x);
  }
}

inline void cast(DType from, DType to, const Lanes& l) {
  dispatch(from, [&](auto from_zero) {
    using From = Register<decltype(from_zero)>;
    if (to == DType::Bool) return each1<From, uint8_t>(l, [](From x) { return x != From(0); });
    dispatch(to, [&](auto to_zero) {
      using To = Register<decltype(to_zero)>;
      each1<From, To>(l, [](From x) { return converted<To>(x); });
    });
  });
}

inline void bitcast(DType from, DType to, const Lanes& l) {
  dispatch(from, [&](auto from_zero) {
    using From = decltype(from_zero);
    dispatch(to, [&](auto to_zero) {
      using To = decltype(to_zero);
      if constexpr (sizeof(From) == sizeof(To))
        each1<Register<From>, Register<To>>(l, [](Register<From> x) { return from_memory(std::bit_cast<To>(to_memory<From>(x))); });
    });
  });
}

// To the nearest number that the type can hold; only float16 and bfloat16 have something to round.
inline void round_lanes(DType t, const Lanes& l) {
  if (t == DType::F16)
    each1<float, float>(l, [](float x) { return half_bits_to_float(float_to_half_bits(x)); });
  else if (t == DType::BF16)
    each1<float, float>(l, [](float x) { return bfloat16_bits_to_float(float_to_bfloat16_bits(x)); });
}

// `t` is the type of the operands.
inline bool primitive(ir::Prim p, DType t, const Lanes& l) {
  if (t == DType::Bool) return bool_primitive(p, l);
  return dispatch(t, [&](auto zero) -> bool {
    using T = Register<decltype(zero)>;
    if constexpr (std::is_floating_point_v<T>)
      return float_primitive<T>(p, l);
    else
      return int_primitive<T>(p, l);
  });
}

}  // namespace tandem::codegen::interpreter
