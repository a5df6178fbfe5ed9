// Derivatives of scalar expressions: one rule a primitive, applied forwards along the shared graph, each node once.
#include <cmath>
#include <numbers>
#include <unordered_map>

#include "base/text.hpp"
#include "ir/scalar.hpp"

namespace tandem::ir {
namespace {

// An empty Scalar stands for a tangent that is identically zero, so that no rule multiplies by zero (which would turn infinities
// into NaN). Multiplying by the constant 1 is exact and left out.
bool is_one(const Scalar& s) { return s->prim == Prim::Const && constant_value(*s) == 1; }

Scalar plus(const Scalar& a, const Scalar& b) { return !a ? b : !b ? a : a + b; }
Scalar minus(const Scalar& a, const Scalar& b) { return !b ? a : !a ? -b : a - b; }
Scalar times(const Scalar& tangent, const Scalar& factor) {
  if (!tangent || is_one(factor)) return tangent;
  return is_one(tangent) ? factor : tangent * factor;
}
Scalar over(const Scalar& tangent, const Scalar& divisor) { return tangent ? tangent / divisor : tangent; }
Scalar choose(const Scalar& condition, const Scalar& a, const Scalar& b) {
  if (!a && !b) return {};
  return select(condition, a ? a : constant(b.dtype(), 0), b ? b : constant(a.dtype(), 0));
}
Scalar square(const Scalar& a) { return a * a; }

// 1 - x*x without the cancellation near 1.
Scalar one_minus_square(const Scalar& x) { return (1 - x) * (1 + x); }

// dy/dx of y = p(x).
Scalar slope(Prim p, const Scalar& x, const Scalar& y) {
  using std::numbers::ln10, std::numbers::ln2, std::numbers::inv_sqrtpi;
  switch (p) {
    case Prim::Sqrt: return 0.5 / y;
    case Prim::Cbrt: return 1 / (3 * square(y));
    case Prim::Exp: return y;
    case Prim::Exp2: return y * ln2;
    case Prim::Expm1: return y + 1;
    case Prim::Log: return 1 / x;
    case Prim::Log2: return (1 / ln2) / x;
    case Prim::Log10: return (1 / ln10) / x;
    case Prim::Log1p: return 1 / (1 + x);
    case Prim::Sin: return cos(x);
    case Prim::Cos: return -sin(x);
    case Prim::Tan: return 1 + square(y);
    case Prim::Asin: return 1 / sqrt(one_minus_square(x));
    case Prim::Acos: return -1 / sqrt(one_minus_square(x));
    case Prim::Atan: return 1 / (1 + square(x));
    case Prim::Sinh: return cosh(x);
    case Prim::Cosh: return sinh(x);
    case Prim::Tanh: return one_minus_square(y);
    case Prim::Asinh: return 1 / sqrt(square(x) + 1);
    case Prim::Acosh: return 1 / (sqrt(x - 1) * sqrt(x + 1));
    case Prim::Atanh: return 1 / one_minus_square(x);
    case Prim::Erf: return (2 * inv_sqrtpi) * exp(-square(x));
    case Prim::Erfc: return (-2 * inv_sqrtpi) * exp(-square(x));
    case Prim::LGamma: return digamma(x);
    default: internal_error("scalar ", p, " has no derivative rule");
  }
}

// The tangent goes where the value came from; equal sides get half each.
Scalar of_extreme(Prim p, const Scalar& a, const Scalar& b, const Scalar& da, const Scalar& db) {
  const Scalar both = plus(da, db);
  if (!both) return {};
  return select(a == b, times(both, constant(both.dtype(), 0.5)), choose(p == Prim::Max ? a > b : a < b, da, db));
}

// x^y: the slope in x is 0 for y = 0 even at x = 0; in y it is taken as 0 where x <= 0, for there x^y is no function of a real y.
Scalar of_pow(const Scalar& x, const Scalar& y, const Scalar& value, const Scalar& dx, const Scalar& dy) {
  Scalar out;
  if (dx && y->prim == Prim::Const) {
    const double n = constant_value(*y);
    if (n == 1)
      out = dx;
    else if (n == 2)
      out = times(dx, 2 * x);
    else if (n != 0)
      out = times(dx, y * pow(x, n - 1));
  } else if (dx) {
    out = times(dx, select(y == 0, 0, y * pow(x, y - 1)));
  }
  if (dy) out = plus(out, times(dy, select(x <= 0, 0, log(x) * value)));
  return out;
}

Scalar of_atan2(const Scalar& y, const Scalar& x, const Scalar& dy, const Scalar& dx) {
  return over(minus(times(dy, x), times(dx, y)), square(x) + square(y));
}

Scalar of_abs(const Scalar& x, const Scalar& dx) { return select(x < 0, -dx, select(x == 0, constant(dx.dtype(), 0), dx)); }

Scalar of_div(const Scalar& b, const Scalar& quotient, const Scalar& da, const Scalar& db) {
  return over(minus(da, times(db, quotient)), b);
}

// The tangent of a floating-point node from those of its operands, of which at least one is not zero.
Scalar tangent(const Scalar& s, std::span<const Scalar> d) {
  const std::vector<Scalar>& in = s->in;
  switch (s->prim) {
    case Prim::Add: return plus(d[0], d[1]);
    case Prim::Sub: return minus(d[0], d[1]);
    case Prim::Mul: return plus(times(d[0], in[1]), times(d[1], in[0]));
    case Prim::Div: return of_div(in[1], s, d[0], d[1]);
    case Prim::Rem: return d[1] ? minus(d[0], times(d[1], trunc(in[0] / in[1]))) : d[0];
    case Prim::Min:
    case Prim::Max: return of_extreme(s->prim, in[0], in[1], d[0], d[1]);
    case Prim::Pow: return of_pow(in[0], in[1], s, d[0], d[1]);
    case Prim::Atan2: return of_atan2(in[0], in[1], d[0], d[1]);
    case Prim::Select: return choose(in[0], d[1], d[2]);
    case Prim::Fma: return plus(plus(times(d[0], in[1]), times(d[1], in[0])), d[2]);
    case Prim::Neg: return -d[0];
    case Prim::Abs: return of_abs(in[0], d[0]);
    case Prim::Cast: return cast(d[0], s.dtype());
    case Prim::Floor:
    case Prim::Ceil:
    case Prim::Trunc:
    case Prim::Round:
    case Prim::Load:  // what it reads is no argument
    case Prim::Bitcast: return {};
    default: return times(d[0], slope(s->prim, in[0], s));
  }
}

bool is_short_float(DType t) { return t == DType::F16 || t == DType::BF16; }

// The same function computed in float32 throughout. What is left of 16 bits are leaves and what goes through their bits.
Scalar widened(const Scalar& body) {
  std::unordered_map<const ScalarNode*, Scalar> done;
  for (const Scalar& s : post_order(std::span(&body, 1))) {
    std::vector<Scalar> in;
    for (const Scalar& operand : s->in) in.push_back(done.at(operand.get()));
    const bool is_short = is_short_float(s.dtype());
    Scalar wide;
    if (s->prim == Prim::Const)
      wide = is_short ? constant(DType::F32, constant_value(*s)) : s;
    else if (s->in.empty() || s->prim == Prim::Load)
      wide = is_short ? cast(s, DType::F32) : s;
    else if (s->prim == Prim::Cast)
      wide = cast(in[0], is_short ? DType::F32 : s.dtype());
    else if (s->prim == Prim::Bitcast)
      wide = bitcast(cast(in[0], s->in[0].dtype()), s.dtype());
    else
      wide = make(s->prim, std::move(in));
    done.emplace(s.get(), is_short ? cast(wide, DType::F32) : wide);
  }
  return done.at(body.get());
}

bool has_short_floats(const Scalar& body) {
  for (const Scalar& s : post_order(std::span(&body, 1)))
    if (is_short_float(s.dtype()) && !s->in.empty() && s->prim != Prim::Cast) return true;
  return false;
}

Scalar forward_tangent(const Scalar& body, int arg_index) {
  std::unordered_map<const ScalarNode*, Scalar> tangents;  // of the nodes that depend on the argument
  for (const Scalar& s : post_order(std::span(&body, 1))) {
    if (!is_float(s.dtype())) continue;
    if (s->prim == Prim::Arg && s->index == arg_index) tangents.emplace(s.get(), constant(s.dtype(), 1));
    std::vector<Scalar> d;
    bool depends = false;
    for (const Scalar& operand : s->in) {
      const auto it = tangents.find(operand.get());
      d.push_back(it == tangents.end() ? Scalar() : it->second);
      depends = depends || d.back();
    }
    if (!depends) continue;
    if (Scalar t = tangent(s, d)) tangents.emplace(s.get(), std::move(t));
  }
  const auto it = tangents.find(body.get());
  return it == tangents.end() ? Scalar() : it->second;
}

}  // namespace

Scalar derivative(const Scalar& body, int arg_index) {
  const Scalar wide = has_short_floats(body) ? widened(body) : body;
  const Scalar d = forward_tangent(wide, arg_index);
  if (!d) return {};
  const Scalar out = cast(d, body.dtype());
  return share(std::span(&out, 1)).front();
}

// psi(z) = psi(z+n) - sum of 1/(z+k) for k < n, and the asymptotic series at z+n (Abramowitz & Stegun 6.3.5, 6.3.18); for negative
// x by reflection, psi(x) = psi(1-x) - pi/tan(pi*x). The series' n and length keep the error below the type's own.
Scalar digamma(const Scalar& a) {
  if (is_short_float(a.dtype())) return cast(digamma(cast(a, DType::F32)), a.dtype());
  const bool is_double = a.dtype() == DType::F64;
  const int steps = is_double ? 10 : 6;
  static constexpr double kSeries[] = {1. / 12, -1. / 120, 1. / 252, -1. / 240, 1. / 132, -691. / 32760, 1. / 12};
  const int length = is_double ? 7 : 3;

  const Scalar negative = a < 0;
  const Scalar z = select(negative, 1 - a, a);
  Scalar correction = 1 / z;
  for (int k = 1; k < steps; ++k) correction = correction + 1 / (z + k);
  const Scalar y = z + steps;
  const Scalar inverse = 1 / y;
  const Scalar w = inverse * inverse;
  Scalar series = constant(a.dtype(), kSeries[length - 1]);
  for (int k = length - 2; k >= 0; --k) series = series * w + kSeries[k];
  const Scalar positive = log(y) - 0.5 * inverse - series * w - correction;

  const Scalar fraction = a - round(a);  // tan(pi*x) has period 1, and this difference is exact
  const Scalar reflected = positive - std::numbers::pi / tan(std::numbers::pi * fraction);
  return select(negative, select(fraction == 0, std::nan(""), reflected), positive);
}

}  // namespace tandem::ir
