// Arithmetic, element by element: sums, products, quotients and remainders, powers, extrema, and what is written with them.
#include <cmath>

#include "ops/elementwise.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
namespace {

using namespace ir;

bool is_bool(const Scalar& x) { return x.dtype() == DType::Bool; }

// --- quotients and remainders ----------------------------------------------------------------------------------------------

// Truncated and floored division differ where the remainder is not zero and has another sign than the divisor.
Scalar rounds_down(const Scalar& remainder, const Scalar& y) { return (remainder != 0) & ((remainder < 0) != (y < 0)); }

Scalar integer_floor_divide(const Scalar& x, const Scalar& y) {
  const Scalar q = x / y;
  return is_signed(x.dtype()) ? select(rounds_down(x % y, y), q - 1, q) : q;
}

Scalar with_sign(const Scalar& magnitude, const Scalar& sign) {
  const DType t = bits_type(sign.dtype());
  const Scalar top = constant_int(t, 1) << constant_int(t, static_cast<int64_t>(8 * size_of(t)) - 1);
  return bitcast((bitcast(magnitude, t) & ~top) | (bitcast(sign, t) & top), sign.dtype());
}

// NumPy's rule: the quotient of the exact remainder's complement, rounded to the whole number that it is meant to be.
Scalar float_floor_divide(const Scalar& x, const Scalar& y) {
  const Scalar r = x % y;
  const Scalar exact = (x - r) / y;
  const Scalar q = select(rounds_down(r, y), exact - 1, exact);
  const Scalar down = floor(q);
  const Scalar whole = select(q - down > 0.5, down + 1, down);
  const Scalar zero = with_sign(constant(x.dtype(), 0), x / y);
  return select(y == 0, x / y, select(q == 0, zero, whole));
}

Scalar floor_divide_body(Scalar x, Scalar y) { return is_float(x.dtype()) ? wide(float_floor_divide, x, y) : integer_floor_divide(x, y); }

Scalar float_remainder(const Scalar& x, const Scalar& y) {
  const Scalar r = x % y;
  return select(r == 0, with_sign(r, y), select(rounds_down(r, y), r + y, r));
}

Scalar remainder_body(Scalar x, Scalar y) {
  if (is_float(x.dtype())) return wide(float_remainder, x, y);
  const Scalar r = x % y;
  return is_signed(x.dtype()) ? select(rounds_down(r, y), r + y, r) : r;
}

Scalar truncate_divide_body(Scalar x, Scalar y) {
  if (!is_float(x.dtype())) return x / y;
  return wide([](Scalar a, Scalar b) { return trunc(a / b); }, x, y);
}

// The number of steps that Euclid's algorithm may take on w-bit numbers (Lamé: consecutive Fibonacci numbers take the most).
int euclid_steps(DType t) { return static_cast<int>(8 * size_of(t)) * 3 / 2; }

Scalar gcd_body(Scalar x, Scalar y) {
  Scalar a = abs(x), b = abs(y);
  for (int i = 0; i < euclid_steps(x.dtype()); ++i) {
    const Scalar is_done = b == 0;
    const Scalar r = a % b;  // 0 when b is
    a = select(is_done, a, b);
    b = r;
  }
  return abs(a);
}

// --- powers ----------------------------------------------------------------------------------------------------------------

// By repeated squaring over all bits of the exponent; wraps like a product does. A negative exponent gives the truncated value.
Scalar integer_power(const Scalar& x, const Scalar& y) {
  const DType t = x.dtype();
  const int bits = static_cast<int>(8 * size_of(t)) - (is_signed(t) ? 1 : 0);
  Scalar result = constant_int(t, 1), base = x;
  for (int i = 0; i < bits; ++i) {
    const Scalar bit = y & (constant_int(t, 1) << constant_int(t, i));
    result = select(bit != 0, result * base, result);
    base = base * base;
  }
  if (!is_signed(t)) return result;
  const Scalar alternating = select((y & constant_int(t, 1)) != 0, x, 1);
  return select(y < 0, select(abs(x) == 1, alternating, 0), result);
}

Scalar power_body(Scalar x, Scalar y) { return is_float(x.dtype()) ? pow(x, y) : integer_power(x, y); }

// d/dx = y x^(y-1), also right where x and y are both 0; d/dy = x^y log x where x is positive, else 0.
std::vector<Expr> power_vjp(const GradCall& c) {
  const Expr x = c.in[0], y = c.in[1], g = c.grad();
  return partials(
      c,
      [&] {
        const Expr both_zero = equal(x, 0.0).op("logical_and", {equal(y, 0.0)});
        return g * y * power(x, where(both_zero, 1.0, y - 1.0));
      },
      [&] { return g * c.out[0] * log(where(x > 0.0, x, 1.0)); });
}

// 2^n as a float, for n in the range of normal numbers: the exponent's bits, shifted into place.
struct FloatFormat {
  int mantissa_bits, bias;
};
FloatFormat format_of(DType t) { return t == DType::F64 ? FloatFormat{52, 1023} : FloatFormat{23, 127}; }

Scalar power_of_two(const Scalar& n, DType t) {
  const FloatFormat f = format_of(t);
  const DType bits = bits_type(t);
  return bitcast(cast(n + f.bias, bits) << constant_int(bits, f.mantissa_bits), t);
}

// x 2^n in steps that round only once: large n by two steps up, small n by two that stop above the subnormal numbers.
Scalar ldexp_steps(const Scalar& x, const Scalar& exponent) {
  const FloatFormat f = format_of(x.dtype());
  const int up = f.bias, low = 1 - f.bias, down = low + f.mantissa_bits + 1;
  Scalar y = x, n = exponent;
  for (int i = 0; i < 2; ++i) {
    const Scalar is_high = n > up, is_low = n < low;
    y = select(is_high, y * std::ldexp(1.0, up), select(is_low, y * std::ldexp(1.0, down), y));
    n = select(is_high, n - up, select(is_low, n - down, n));
  }
  return y * power_of_two(min(max(n, low), up), x.dtype());
}

// --- neighbours ------------------------------------------------------------------------------------------------------------

// Floats of one sign are ordered like the integers with the same bits.
Scalar nextafter_body(Scalar x, Scalar y) {
  const DType t = x.dtype(), i = bits_type(t);
  const Scalar one = constant_int(i, 1), bits = bitcast(x, i);
  const Scalar away_from_zero = (y > x) == (x > 0);
  const Scalar step = bitcast(select(away_from_zero, bits + one, bits - one), t);
  const Scalar top = one << constant_int(i, static_cast<int64_t>(8 * size_of(i)) - 1);
  const Scalar smallest = bitcast(select(y > 0, one, top | one), t);
  const Scalar moved = select(x == 0, smallest, step);
  return select(is_nan(x) | is_nan(y), x + y, select(x == y, y, moved));
}

// --- extrema ---------------------------------------------------------------------------------------------------------------

// The operand that `first` chooses gets the gradient; a tie goes to the first, as in TensorFlow.
std::vector<Expr> choice_vjp(const GradCall& c, const Expr& first) {
  return partials(c, [&] { return where(first, c.grad(), 0.0); }, [&] { return where(first, 0.0, c.grad()); });
}

std::vector<Expr> clip_vjp(const GradCall& c) {
  const Expr x = c.in[0], low = c.in[1], high = c.in[2], g = c.grad();
  const Expr over = maximum(x, low) > high, under = x < low;
  return partials(
      c, [&] { return where(over.op("logical_or", {under}), 0.0, g); }, [&] { return where(over, 0.0, where(under, g, 0.0)); },
      [&] { return where(over, g, 0.0); });
}

Rows basic_rows() {
  return {
      {.name = "add",
       .sig = "(x: any, y: any) -> same",
       .doc = "x + y. Integers wrap; of two bools it is `or`, as in NumPy.",
       .traits = kCommutative,
       .body = [](Scalar x, Scalar y) { return is_bool(x) ? x | y : x + y; },
       .vjp = [](const GradCall& c) { return partials(c, [&] { return c.grad(); }, [&] { return c.grad(); }); },
       .samples = binary_samples()},
      {.name = "subtract",
       .sig = "(x: number, y: number) -> same",
       .doc = "x - y. Integers wrap.",
       .body = [](Scalar x, Scalar y) { return x - y; },
       .vjp = [](const GradCall& c) { return partials(c, [&] { return c.grad(); }, [&] { return -c.grad(); }); },
       .samples = binary_samples()},
      {.name = "multiply",
       .sig = "(x: any, y: any) -> same",
       .doc = "x * y. Integers wrap; of two bools it is `and`, as in NumPy.",
       .traits = kCommutative,
       .body = [](Scalar x, Scalar y) { return is_bool(x) ? x & y : x * y; },
       .vjp = [](const GradCall& c) { return partials(c, [&] { return c.grad() * c.in[1]; }, [&] { return c.grad() * c.in[0]; }); },
       .samples = binary_samples()},
      {.name = "divide",
       .sig = "(x: float, y: float) -> same",
       .doc = "x / y. Integers are divided as float32.",
       .body = [](Scalar x, Scalar y) { return x / y; },
       .vjp =
           [](const GradCall& c) {
             const Expr slope = c.grad() / c.in[1];
             return partials(c, [&] { return slope; }, [&] { return -(slope * c.out[0]); });
           },
       .samples = {"([2,3], [2,3] in 0.5..2)", "([2,3], [3] in 0.5..2)", "([2,1,3], [4,1] in -2..-0.5)", "([], [5] in 0.5..2)",
                   "([0,3], [3])", "([67], [67] in 0.5..2)", "([2,1,3,2,2], [3,1,1] in 0.5..2)", "([24] special, [24] special) !grad"}},
      {.name = "negative",
       .sig = "(x: number) -> same",
       .doc = "-x. Unsigned integers wrap.",
       .body = [](Scalar x) { return -x; },
       .vjp = [](const GradCall& c) { return std::vector<Expr>{-c.grad()}; },
       .samples = unary_samples()},
      {.name = "absolute",
       .sig = "(x: any) -> same",
       .doc = "|x|. The most negative integer stays as it is, and so do bools.",
       .body = [](Scalar x) { return is_bool(x) ? x : abs(x); },
       .vjp = [](const GradCall& c) { return chain(c, c.in[0].op("sign")); },
       .samples = unary_samples()},
      {.name = "sign",
       .sig = "(x: number) -> same",
       .doc = "-1, 0 or 1 by the sign of x; NaN stays NaN.",
       .traits = kZeroGradient,
       .body =
           [](Scalar x) {
             const Scalar other = is_float(x.dtype()) ? select(x == 0, 0, x) : constant_int(x.dtype(), 0);
             const Scalar up = constant_int(x.dtype(), 1);
             return select(x > 0, up, is_signed(x.dtype()) ? select(x < 0, -1, other) : other);
           },
       .samples = unary_samples()},
      {.name = "square",
       .sig = "(x: number) -> same",
       .doc = "x * x.",
       .body = [](Scalar x) { return x * x; },
       .vjp = [](const GradCall& c) { return chain(c, c.in[0] * 2.0); },
       .samples = unary_samples()},
      {.name = "reciprocal",
       .sig = "(x: float) -> same",
       .doc = "1 / x.",
       .body = [](Scalar x) { return 1 / x; },
       .vjp = [](const GradCall& c) { return chain(c, -(c.out[0] * c.out[0])); },
       .samples = TANDEM_SAMPLES_IN("0.2..3")},
      {.name = "maximum",
       .sig = "(x: any, y: any) -> same",
       .doc = "The larger one; NaN when either is NaN. On a tie the gradient goes to x.",
       .traits = kCommutative,
       .body = [](Scalar x, Scalar y) { return max(x, y); },
       .vjp = [](const GradCall& c) { return choice_vjp(c, c.in[0] >= c.in[1]); },
       .samples = binary_samples()},
      {.name = "minimum",
       .sig = "(x: any, y: any) -> same",
       .doc = "The smaller one; NaN when either is NaN. On a tie the gradient goes to x.",
       .traits = kCommutative,
       .body = [](Scalar x, Scalar y) { return min(x, y); },
       .vjp = [](const GradCall& c) { return choice_vjp(c, c.in[0] <= c.in[1]); },
       .samples = binary_samples()},
      {.name = "fmax",
       .sig = "(x: any, y: any) -> same",
       .doc = "The larger one; a NaN is ignored when the other is a number.",
       .body = [](Scalar x, Scalar y) { return select(is_nan(x), y, select(is_nan(y), x, max(x, y))); },
       .vjp = [](const GradCall& c) { return choice_vjp(c, (c.in[0] >= c.in[1]).op("logical_or", {c.in[1].op("is_nan")})); },
       .samples = binary_samples()},
      {.name = "fmin",
       .sig = "(x: any, y: any) -> same",
       .doc = "The smaller one; a NaN is ignored when the other is a number.",
       .body = [](Scalar x, Scalar y) { return select(is_nan(x), y, select(is_nan(y), x, min(x, y))); },
       .vjp = [](const GradCall& c) { return choice_vjp(c, (c.in[0] <= c.in[1]).op("logical_or", {c.in[1].op("is_nan")})); },
       .samples = binary_samples()},
      {.name = "clip",
       .sig = "(x: number, low: number, high: number) -> same",
       .doc = "min(max(x, low), high): x limited to low..high. NaN stays NaN; high wins when it lies below low.",
       .body = [](Scalar x, Scalar low, Scalar high) { return min(max(x, low), high); },
       .vjp = clip_vjp,
       .samples = {"([2,3] in 0..4, [] in 1..1, [] in 3..3)", "([67], [] in 0..0, [67] in 0..2)", "([0,3], [], [])", "([], [], [])",
                   "([2,1,3,2,2] in 0..9, [3,1,1] in 1..2, [] in 5..6)", "([24] special, [] in 0..1, [] in 1..2) !grad"}},
  };
}

Rows quotient_rows() {
  return {
      {.name = "floor_divide",
       .sig = "(x: number, y: number) -> same",
       .doc = "The largest whole number that is not above x / y. Integers: x / 0 is 0; floats follow NumPy to the sign of zero.",
       .traits = kZeroGradient,
       .body = floor_divide_body,
       .samples = {"({7,-7,7,-7,0,5,-6,6}, {2,2,-2,-2,3,0,3,-3}) !grad", "([2,3], [3] in 1..3)", "([], [])", "([0,3], [3])",
                   "([67] in 0..100, [67] in 1..9)", "([2,1,3,2,2], [3,1,1] in 1..3)", "([24] special, [24] special)"}},
      {.name = "remainder",
       .sig = "(x: number, y: number) -> same",
       .doc = "x - y * floor_divide(x, y): has the sign of y, like NumPy's mod. Integers: x mod 0 is 0.",
       .body = remainder_body,
       .vjp =
           [](const GradCall& c) {
             return partials(c, [&] { return c.grad(); }, [&] { return -(c.grad() * c.in[0].op("floor_divide", {c.in[1]})); });
           },
       .samples = {"({7,-7,7,-7,0,5,-6,6}, {2,2,-2,-2,3,0,3,-3}) !grad", "([2,3], [3] in 1..3)", "([], [] in 1..3)", "([0,3], [3])",
                   "([67] in 0..100, [67] in 1..9) !grad", "([2,1,3,2,2], [3,1,1] in 1..3)", "([24] special, [24] special) !grad"}},
      {.name = "fmod",
       .sig = "(x: number, y: number) -> same",
       .doc = "The remainder of x / y truncated towards zero: has the sign of x, like C's fmod and %. Integers: x mod 0 is 0.",
       .body = [](Scalar x, Scalar y) { return x % y; },
       .vjp =
           [](const GradCall& c) {
             return partials(c, [&] { return c.grad(); }, [&] { return -(c.grad() * c.in[0].op("truncate_divide", {c.in[1]})); });
           },
       .samples = {"({7,-7,7,-7,0,5,-6,6}, {2,2,-2,-2,3,0,3,-3}) !grad", "([2,3], [3] in 1..3)", "([], [] in 1..3)", "([0,3], [3])",
                   "([67] in 0..100, [67] in 1..9) !grad", "([2,1,3,2,2], [3,1,1] in 1..3)", "([24] special, [24] special) !grad"}},
      {.name = "truncate_divide",
       .sig = "(x: number, y: number) -> same",
       .doc = "x / y rounded towards zero, like C's division of integers. Integers: x / 0 is 0.",
       .traits = kZeroGradient,
       .body = truncate_divide_body,
       .samples = {"({7,-7,7,-7,0,5,-6,6}, {2,2,-2,-2,3,0,3,-3}) !grad", "([2,3], [3] in 1..3)", "([], [])", "([0,3], [3])",
                   "([67] in 0..100, [67] in 1..9)", "([2,1,3,2,2], [3,1,1] in 1..3)", "([24] special, [24] special) !grad"}},
      {.name = "divide_no_nan",
       .sig = "(x: float, y: float) -> same",
       .doc = "x / y, and 0 where y is 0, whatever x is.",
       .body = [](Scalar x, Scalar y) { return select(y == 0, 0, x / y); },
       .vjp =
           [](const GradCall& c) {
             const Expr slope = c.grad().op("divide_no_nan", {c.in[1]});
             return partials(c, [&] { return slope; }, [&] { return -(slope * c.out[0]); });
           },
       .samples = {"([2,3], [3] in 0.5..2)", "({1,0,-2,3}, {0,0,4,-0.5}) !grad", "([], [] in 1..2)", "([0,3], [3])",
                   "([67], [67] in 0.5..2)", "([2,1,3,2,2], [3,1,1] in 0.5..2)", "([24] special, [24] special) !grad"}},
      {.name = "gcd",
       .sig = "(x: int, y: int) -> same",
       .doc = "The greatest common divisor, never negative; gcd(0, 0) is 0.",
       .traits = kCommutative | kZeroGradient,
       .body = gcd_body,
       .samples = {"({12,-18,0,7,0,100}, {18,12,5,0,0,75})", "([2,3], [3])", "([], [])", "([0,3], [3])", "([67] in 0..100, [67] in 0..100)",
                   "([24] special, [24] special)"}},
      {.name = "lcm",
       .sig = "(x: int, y: int) -> same",
       .doc = "The least common multiple, not negative; 0 when either is 0. Wraps when it does not fit.",
       .traits = kCommutative | kZeroGradient,
       .body = [](Scalar x, Scalar y) { return abs(x) / gcd_body(x, y) * abs(y); },
       .samples = {"({12,-8,0,7,0,10}, {8,12,5,0,0,6})", "([2,3], [3])", "([], [])", "([0,3], [3])", "([67] in 0..10, [67] in 0..10)",
                   "([24] special, [24] in 0..3)"}},
  };
}

Rows power_rows() {
  return {
      {.name = "power",
       .sig = "(x: number, y: number) -> same",
       .doc = "x to the power y. Integers wrap; a negative integer exponent gives the truncated value (0 unless x is 1 or -1).",
       .traits = kSensitive,
       .body = power_body,
       .vjp = power_vjp,
       .samples = {"([2,3] in 0.5..3, [3] in 0..3)", "([], [] in 1..3)", "([0,3], [3])", "([67] in 1..3, [67] in 0..3)",
                   "([2,1,3,2,2] in 1..2, [3,1,1] in 0..4)", "({2,-1,-1,1,0,-2}, {-1,-3,-2,-5,3,3}) !grad",
                   "([24] special, [24] special) !grad"}},
      {.name = "ldexp",
       .sig = "(x: float, exponent: index) -> same",
       .doc = "x * 2^exponent, rounded once, for any exponent.",
       .body = [](Scalar x, Scalar n) { return cast(ldexp_steps(widen(x), n), x.dtype()); },
       .vjp = [](const GradCall& c) { return partials(c, [&] { return c.grad().op("ldexp", {c.in[1]}); }, nullptr); },
       .samples = {"([2,3], [3])", "([], [])", "([0,3], [3])", "([67], [67])", "([2,1,3,2,2], [3,1,1])",
                   "([7], {-5000,-1080,-150,0,130,1100,5000}) !grad", "([24] special, [24]) !grad"}},
      {.name = "hypot",
       .sig = "(x: float, y: float) -> same",
       .doc = "sqrt(x^2 + y^2) without overflow on the way; infinite when either is, even beside NaN.",
       .traits = kCommutative,
       .body =
           [](Scalar x, Scalar y) {
             return wide(
                 [](Scalar a, Scalar b) {
                   const Scalar large = max(abs(a), abs(b)), small = min(abs(a), abs(b));
                   const Scalar ratio = small / select(large == 0, 1, large);
                   return select(is_infinite(a) | is_infinite(b), kInf, large * sqrt(fma(ratio, ratio, constant(a.dtype(), 1))));
                 },
                 x, y);
           },
       .vjp =
           [](const GradCall& c) {
             auto slope = [&](size_t i) { return c.grad() * c.in[i].op("divide_no_nan", {c.out[0]}); };
             return partials(c, [&] { return slope(0); }, [&] { return slope(1); });
           },
       .samples = binary_samples()},
  };
}

Rows other_rows() {
  return {
      {.name = "copysign",
       .sig = "(x: float, y: float) -> same",
       .doc = "|x| with the sign of y; that of -0 counts.",
       .body = [](Scalar x, Scalar y) { return wide(with_sign, x, y); },
       .vjp =
           [](const GradCall& c) {
             const Expr same = c.in[0].op("signbit").op("equal", {c.in[1].op("signbit")});
             return partials(c, [&] { return where(same, c.grad(), -c.grad()); }, nullptr);
           },
       .samples = binary_samples()},
      {.name = "heaviside",
       .sig = "(x: float, y: float) -> same",
       .doc = "0 where x < 0, y where x is 0, 1 where x > 0, NaN where x is NaN.",
       .body = [](Scalar x, Scalar y) { return select(x == 0, y, select(x < 0, 0, select(x > 0, 1, x))); },
       .vjp = [](const GradCall& c) { return partials(c, nullptr, [&] { return where(equal(c.in[0], 0.0), c.grad(), 0.0); }); },
       .samples = binary_samples()},
      {.name = "nextafter",
       .sig = "(x: float, y: float) -> same",
       .doc = "The next number after x in the direction of y.",
       .body = nextafter_body,
       .vjp = [](const GradCall& c) { return partials(c, [&] { return c.grad(); }, nullptr); },
       .samples = binary_samples()},
      {.name = "deg2rad",
       .sig = "(x: float) -> same",
       .doc = "Degrees to radians: x * pi / 180.",
       .body = [](Scalar x) { return x * (kPi / 180); },
       .vjp = [](const GradCall& c) { return chain(c, c.grad().number(kPi / 180)); },
       .samples = TANDEM_SAMPLES_IN("-360..360")},
      {.name = "rad2deg",
       .sig = "(x: float) -> same",
       .doc = "Radians to degrees: x * 180 / pi.",
       .body = [](Scalar x) { return x * (180 / kPi); },
       .vjp = [](const GradCall& c) { return chain(c, c.grad().number(180 / kPi)); },
       .samples = unary_samples()},
  };
}

}  // namespace

Rows arithmetic_rows() {
  Rows rows;
  for (Rows (*family)() : {basic_rows, quotient_rows, power_rows, other_rows})
    for (OpDef& row : family()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace tandem::ops
