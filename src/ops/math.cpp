// Functions of one real number and their inverses: exponential, trigonometric, hyperbolic; rounding.
#include <cmath>

#include "ops/elementwise.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
namespace {

using namespace ir;

// --- exponential -----------------------------------------------------------------------------------------------------------

// max + log(1 + exp(-|x-y|)), with the infinities that are equal taken apart: their difference is no number.
Scalar logaddexp_body(Scalar x, Scalar y) {
  return wide([](Scalar a, Scalar b) { return select(a == b, a + kLn2, max(a, b) + log1p(exp(-abs(a - b)))); }, x, y);
}

Scalar logaddexp2_body(Scalar x, Scalar y) {
  return wide([](Scalar a, Scalar b) { return select(a == b, a + 1, max(a, b) + log1p(exp2(-abs(a - b))) * (1 / kLn2)); }, x, y);
}

// The share of each operand in the sum of the exponentials: a sigmoid of the difference.
std::vector<Expr> logaddexp_vjp(const GradCall& c, double log_base) {
  const Expr x = c.in[0], y = c.in[1];
  const Expr is_tied = equal(x, y).op("logical_and", {x.op("is_inf")});
  const Expr difference = where(is_tied, 0.0, x - y) * log_base;
  return partials(c, [&] { return c.grad() * difference.op("sigmoid"); }, [&] { return c.grad() * (-difference).op("sigmoid"); });
}

// x log(y) and x log1p(y) are 0 for x = 0 whatever the logarithm is, unless it is of NaN.
template <Scalar (*log_of)(const Scalar&)> Scalar xlog_body(Scalar x, Scalar y) {
  return wide([](Scalar a, Scalar b) { return select((a == 0) & !is_nan(b), 0, a * log_of(b)); }, x, y);
}

// `pole`: where the logarithm is -infinity. There the slope in x is taken as 0 if x is 0 too.
std::vector<Expr> xlog_vjp(const GradCall& c, std::string_view log_name, double pole) {
  const Expr x = c.in[0], y = c.in[1];
  const Expr is_zero = equal(x, 0.0);
  return partials(
      c,
      [&] {
        const Expr at_pole = is_zero.op("logical_and", {equal(y, pole)});
        return c.grad() * where(at_pole, 0.0, where(at_pole, 1.0, y).op(log_name));
      },
      [&] { return where(is_zero, 0.0, c.grad() * x / (y - pole)); });
}

Rows exponential_rows() {
  return {
      {.name = "exp",
       .sig = "(x: float) -> same",
       .doc = "e to the power x.",
       .traits = kSensitive,
       .body = [](Scalar x) { return exp(x); },
       .vjp = [](const GradCall& c) { return chain(c, c.out[0]); },
       .samples = unary_samples()},
      {.name = "exp2",
       .sig = "(x: float) -> same",
       .doc = "2 to the power x.",
       .traits = kSensitive,
       .body = [](Scalar x) { return exp2(x); },
       .vjp = [](const GradCall& c) { return chain(c, c.out[0] * kLn2); },
       .samples = unary_samples()},
      {.name = "expm1",
       .sig = "(x: float) -> same",
       .doc = "exp(x) - 1, accurate for small x.",
       .traits = kSensitive,
       .body = [](Scalar x) { return expm1(x); },
       .vjp = [](const GradCall& c) { return chain(c, exp(c.in[0])); },
       .samples = unary_samples()},
      {.name = "log",
       .sig = "(x: float) -> same",
       .doc = "The natural logarithm: -infinity at 0, NaN below.",
       .traits = kSensitive,
       .body = [](Scalar x) { return log(x); },
       .vjp = [](const GradCall& c) { return std::vector{c.grad() / c.in[0]}; },
       .samples = TANDEM_SAMPLES_IN("0.1..4")},
      {.name = "log2",
       .sig = "(x: float) -> same",
       .doc = "The logarithm to base 2.",
       .traits = kSensitive,
       .body = [](Scalar x) { return log2(x); },
       .vjp = [](const GradCall& c) { return std::vector{c.grad() / c.in[0] * (1 / kLn2)}; },
       .samples = TANDEM_SAMPLES_IN("0.1..4")},
      {.name = "log10",
       .sig = "(x: float) -> same",
       .doc = "The logarithm to base 10.",
       .traits = kSensitive,
       .body = [](Scalar x) { return log10(x); },
       .vjp = [](const GradCall& c) { return std::vector{c.grad() / c.in[0] * (1 / kLn10)}; },
       .samples = TANDEM_SAMPLES_IN("0.1..4")},
      {.name = "log1p",
       .sig = "(x: float) -> same",
       .doc = "log(1 + x), accurate for small x.",
       .traits = kSensitive,
       .body = [](Scalar x) { return log1p(x); },
       .vjp = [](const GradCall& c) { return std::vector{c.grad() / (1.0 + c.in[0])}; },
       .samples = TANDEM_SAMPLES_IN("-0.8..4")},
      {.name = "sqrt",
       .sig = "(x: float) -> same",
       .doc = "The square root; NaN below 0.",
       .body = [](Scalar x) { return sqrt(x); },
       .vjp = [](const GradCall& c) { return std::vector{c.grad() * 0.5 / c.out[0]}; },
       .samples = TANDEM_SAMPLES_IN("0.1..4")},
      {.name = "rsqrt",
       .sig = "(x: float) -> same",
       .doc = "1 / sqrt(x).",
       .body = [](Scalar x) { return wide([](Scalar a) { return 1 / sqrt(a); }, x); },
       .vjp = [](const GradCall& c) { return chain(c, -0.5 * c.out[0] / c.in[0]); },
       .samples = TANDEM_SAMPLES_IN("0.1..4")},
      {.name = "cbrt",
       .sig = "(x: float) -> same",
       .doc = "The cube root, also of negative numbers.",
       .body = [](Scalar x) { return cbrt(x); },
       .vjp = [](const GradCall& c) { return std::vector{c.grad() / (3.0 * c.out[0] * c.out[0])}; },
       .samples = TANDEM_SAMPLES_IN("0.1..4")},
      {.name = "logaddexp",
       .sig = "(x: float, y: float) -> same",
       .doc = "log(exp(x) + exp(y)) without overflow.",
       .traits = kSensitive | kCommutative,
       .body = logaddexp_body,
       .vjp = [](const GradCall& c) { return logaddexp_vjp(c, 1); },
       .samples = binary_samples()},
      {.name = "logaddexp2",
       .sig = "(x: float, y: float) -> same",
       .doc = "log2(2^x + 2^y) without overflow.",
       .traits = kSensitive | kCommutative,
       .body = logaddexp2_body,
       .vjp = [](const GradCall& c) { return logaddexp_vjp(c, kLn2); },
       .samples = binary_samples()},
      {.name = "xlogy",
       .sig = "(x: float, y: float) -> same",
       .doc = "x * log(y), and 0 where x is 0.",
       .traits = kSensitive,
       .body = xlog_body<ir::log>,
       .vjp = [](const GradCall& c) { return xlog_vjp(c, "log", 0); },
       .samples = {"([2,3], [3] in 0.2..3)", "({0,0,1,0}, {0,-1,2,3}) !grad", "([], [] in 1..2)", "([0,3], [3])", "([67], [67] in 0.2..3)",
                   "([2,1,3,2,2], [3,1,1] in 0.2..3)", "([24] special, [24] special) !grad"}},
      {.name = "xlog1py",
       .sig = "(x: float, y: float) -> same",
       .doc = "x * log1p(y), and 0 where x is 0.",
       .traits = kSensitive,
       .body = xlog_body<ir::log1p>,
       .vjp = [](const GradCall& c) { return xlog_vjp(c, "log1p", -1); },
       .samples = {"([2,3], [3] in -0.8..3)", "({0,0,1,0}, {-1,-2,2,3}) !grad", "([], [] in 1..2)", "([0,3], [3])",
                   "([67], [67] in -0.8..3)", "([2,1,3,2,2], [3,1,1] in 0.2..3)", "([24] special, [24] special) !grad"}},
  };
}

// --- trigonometric ---------------------------------------------------------------------------------------------------------

// (1 - x) (1 + x): 1 - x^2 without the cancellation near 1.
Expr one_minus_square(const Expr& x) { return (1.0 - x) * (1.0 + x); }

// sin(t)/t with t = pi x. Below 1 by its power series, whose derivative is accurate too; that of the quotient is not.
Scalar sinc_of(const Scalar& x) {
  static constexpr double kSeries[] = {1,
                                       -1. / 6,
                                       1. / 120,
                                       -1. / 5040,
                                       1. / 362880,
                                       -1. / 39916800,
                                       1. / 6227020800,
                                       -1. / 1307674368000,
                                       1. / 355687428096000,
                                       -1. / 121645100408832000};
  const Scalar t = x * kPi;
  const Scalar is_small = abs(t) < 1;
  return select(is_small, polynomial(t * t, kSeries), sin(t) / select(is_small, 1, t));
}

std::vector<Expr> arctan2_vjp(const GradCall& c) {
  const Expr y = c.in[0], x = c.in[1];
  const Expr radius = y.op("hypot", {x});
  auto over_square = [&](const Expr& a) {  // the square itself may overflow
    return c.grad() * a.op("divide_no_nan", {radius}).op("divide_no_nan", {radius});
  };
  return partials(c, [&] { return over_square(x); }, [&] { return over_square(-y); });
}

Rows trigonometric_rows() {
  return {
      {.name = "sin",
       .sig = "(x: float) -> same",
       .doc = "The sine of x in radians.",
       .body = [](Scalar x) { return sin(x); },
       .vjp = [](const GradCall& c) { return chain(c, c.in[0].op("cos")); },
       .samples = unary_samples()},
      {.name = "cos",
       .sig = "(x: float) -> same",
       .doc = "The cosine of x in radians.",
       .body = [](Scalar x) { return cos(x); },
       .vjp = [](const GradCall& c) { return chain(c, -c.in[0].op("sin")); },
       .samples = unary_samples()},
      {.name = "tan",
       .sig = "(x: float) -> same",
       .doc = "The tangent of x in radians.",
       .body = [](Scalar x) { return tan(x); },
       .vjp = [](const GradCall& c) { return chain(c, 1.0 + c.out[0] * c.out[0]); },
       .samples = TANDEM_SAMPLES_IN("-1.2..1.2")},
      {.name = "arcsin",
       .sig = "(x: float) -> same",
       .doc = "The angle in -pi/2..pi/2 whose sine is x; NaN outside -1..1.",
       .body = [](Scalar x) { return asin(x); },
       .vjp = [](const GradCall& c) { return std::vector{c.grad() / sqrt(one_minus_square(c.in[0]))}; },
       .samples = TANDEM_SAMPLES_IN("-0.9..0.9")},
      {.name = "arccos",
       .sig = "(x: float) -> same",
       .doc = "The angle in 0..pi whose cosine is x; NaN outside -1..1.",
       .body = [](Scalar x) { return acos(x); },
       .vjp = [](const GradCall& c) { return std::vector{-c.grad() / sqrt(one_minus_square(c.in[0]))}; },
       .samples = TANDEM_SAMPLES_IN("-0.9..0.9")},
      {.name = "arctan",
       .sig = "(x: float) -> same",
       .doc = "The angle in -pi/2..pi/2 whose tangent is x.",
       .body = [](Scalar x) { return atan(x); },
       .vjp = [](const GradCall& c) { return std::vector{c.grad() / (1.0 + c.in[0] * c.in[0])}; },
       .samples = unary_samples()},
      {.name = "arctan2",
       .sig = "(y: float, x: float) -> same",
       .doc = "The angle in -pi..pi of the point (x, y); y comes first.",
       .body = [](Scalar y, Scalar x) { return atan2(y, x); },
       .vjp = arctan2_vjp,
       .samples = binary_samples()},
      {.name = "sinc",
       .sig = "(x: float) -> same",
       .doc = "sin(pi x) / (pi x), and 1 at 0.",
       .body = [](Scalar x) { return wide(sinc_of, x); },
       .samples = unary_samples()},
  };
}

// --- hyperbolic ------------------------------------------------------------------------------------------------------------

Rows hyperbolic_rows() {
  return {
      {.name = "sinh",
       .sig = "(x: float) -> same",
       .doc = "The hyperbolic sine.",
       .traits = kSensitive,
       .body = [](Scalar x) { return sinh(x); },
       .vjp = [](const GradCall& c) { return chain(c, c.in[0].op("cosh")); },
       .samples = unary_samples()},
      {.name = "cosh",
       .sig = "(x: float) -> same",
       .doc = "The hyperbolic cosine.",
       .traits = kSensitive,
       .body = [](Scalar x) { return cosh(x); },
       .vjp = [](const GradCall& c) { return chain(c, c.in[0].op("sinh")); },
       .samples = unary_samples()},
      {.name = "tanh",
       .sig = "(x: float) -> same",
       .doc = "The hyperbolic tangent.",
       .body = [](Scalar x) { return tanh(x); },
       .vjp = [](const GradCall& c) { return chain(c, one_minus_square(c.out[0])); },
       .samples = unary_samples()},
      {.name = "arcsinh",
       .sig = "(x: float) -> same",
       .doc = "The inverse of sinh.",
       .body = [](Scalar x) { return asinh(x); },
       .vjp = [](const GradCall& c) { return std::vector{c.grad() / c.in[0].op("hypot", {c.in[0].number(1)})}; },
       .samples = unary_samples()},
      {.name = "arccosh",
       .sig = "(x: float) -> same",
       .doc = "The inverse of cosh that is not negative; NaN below 1.",
       .body = [](Scalar x) { return acosh(x); },
       .vjp = [](const GradCall& c) { return std::vector{c.grad() / (sqrt(c.in[0] - 1.0) * sqrt(c.in[0] + 1.0))}; },
       .samples = TANDEM_SAMPLES_IN("1.2..4")},
      {.name = "arctanh",
       .sig = "(x: float) -> same",
       .doc = "The inverse of tanh; infinite at -1 and 1, NaN outside.",
       .body = [](Scalar x) { return atanh(x); },
       .vjp = [](const GradCall& c) { return std::vector{c.grad() / one_minus_square(c.in[0])}; },
       .samples = TANDEM_SAMPLES_IN("-0.9..0.9")},
  };
}

// --- rounding --------------------------------------------------------------------------------------------------------------

// To a multiple of 10^places, ties to the even multiple. 0 when that power is beyond the type.
Scalar round_integer(const Scalar& x, int64_t places) {
  const DType t = x.dtype();
  const double largest = std::exp2(static_cast<double>(8 * size_of(t)) - (is_signed(t) ? 1 : 0));
  if (places > 19 || std::pow(10.0, static_cast<double>(places)) >= largest) return constant_int(t, 0);
  uint64_t unit = 1;
  for (int64_t i = 0; i < places; ++i) unit *= 10;
  const Scalar m = constant_bits(t, unit);
  const Scalar r = x % m;
  const Scalar low = x - select(r < 0, r + m, r);  // the multiple below; the distance up to x stays in 0..m-1
  const Scalar above = x - low;
  const Scalar is_odd = (low / m & constant_int(t, 1)) != 0;
  const Scalar half = constant_bits(t, unit / 2);
  return select((above > half) | ((above == half) & is_odd), low + m, low);
}

Scalar round_float(const Scalar& x, int64_t decimals) {
  if (decimals == 0) return round(x);
  const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  const Scalar scaled = decimals > 0 ? x * scale : x / scale;
  const Scalar rounded = decimals > 0 ? round(scaled) / scale : round(scaled) * scale;
  // A number so large that scaling overflows has no such decimals.
  return select(abs(scaled) < kInf, rounded, x);
}

Scalar round_body(const OpCall& c, Scalar x) {
  const auto decimals = c.attrs.get<int64_t>("decimals");
  if (is_float(x.dtype())) return wide([&](Scalar a) { return round_float(a, decimals); }, x);
  return decimals < 0 ? round_integer(x, -decimals) : x;
}

// What stands for an infinity: the attribute, or the largest number of the type.
Scalar replacement(const OpCall& c, std::string_view attr, DType t, double sign) {
  if (c.attrs.has(attr)) return constant(t, c.attrs.get<double>(attr));
  switch (t) {
    case DType::F16: return constant(t, sign * 65504);
    case DType::BF16: return constant(t, sign * 0x1.FEp127);
    case DType::F32: return constant(t, sign * std::numeric_limits<float>::max());
    default: return constant(t, sign * std::numeric_limits<double>::max());
  }
}

Scalar nan_to_num_body(const OpCall& c, Scalar x) {
  const DType t = x.dtype();
  if (!is_float(t)) return x;
  const Scalar high = replacement(c, "posinf", t, 1), low = replacement(c, "neginf", t, -1);
  const Scalar finite = select(x == kInf, high, select(x == -kInf, low, x));
  return select(is_nan(x), c.attrs.get<double>("nan"), finite);
}

Rows rounding_rows() {
  return {
      {.name = "floor",
       .sig = "(x: number) -> same",
       .doc = "The largest whole number that is not above x. Integers stay as they are.",
       .traits = kZeroGradient,
       .body = [](Scalar x) { return floor(x); },
       .samples = unary_samples()},
      {.name = "ceil",
       .sig = "(x: number) -> same",
       .doc = "The smallest whole number that is not below x. Integers stay as they are.",
       .traits = kZeroGradient,
       .body = [](Scalar x) { return ceil(x); },
       .samples = unary_samples()},
      {.name = "trunc",
       .sig = "(x: number) -> same",
       .doc = "x without its fraction. Integers stay as they are.",
       .traits = kZeroGradient,
       .body = [](Scalar x) { return trunc(x); },
       .samples = unary_samples()},
      {.name = "round",
       .sig = "(x: number; decimals: int = 0) -> same",
       .doc = "x rounded to so many decimals (negative: to tens, hundreds …), ties to even.",
       .traits = kZeroGradient,
       .body = round_body,
       .samples = {"([2,3])", "([67] in -20..20)", "({0.5,1.5,2.5,-0.5,-1.5}) !grad", "([5]; decimals=2)", "([0,3]; decimals=1)", "([])",
                   "({15,25,35,-15,-25,14,16,120,0,5}; decimals=-1) !grad", "([2,1,3,2,2] in 0..100; decimals=-1)",
                   "([24] special; decimals=1)", "([24] special)"}},
      {.name = "nan_to_num",
       .sig = "(x: number; nan: float = 0, posinf: float? = none, neginf: float? = none) -> same",
       .doc = "x with NaN replaced by `nan` and the infinities by `posinf` and `neginf` (none: the largest and the lowest number).",
       .body = nan_to_num_body,
       .samples = {"([2,3])", "([24] special) !grad", "([24] special; nan=1.5, posinf=3, neginf=-3) !grad", "([0,3])", "([67])", "([])"}},
  };
}

}  // namespace

Rows math_rows() {
  Rows rows;
  for (Rows (*family)() : {exponential_rows, trigonometric_rows, hyperbolic_rows, rounding_rows})
    for (OpDef& row : family()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace tandem::ops
