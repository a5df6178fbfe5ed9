// Comparisons, logic, bits, tests for special numbers, and the choice between two values.
#include "ops/elementwise.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
namespace {

using namespace ir;

Rows comparison_rows() {
  return {
      {.name = "equal",
       .sig = "(x: any, y: any) -> bool",
       .doc = "x == y. NaN equals nothing.",
       .traits = kZeroGradient | kCommutative,
       .body = [](Scalar x, Scalar y) { return x == y; },
       .samples = binary_samples()},
      {.name = "not_equal",
       .sig = "(x: any, y: any) -> bool",
       .doc = "x != y. NaN differs from everything.",
       .traits = kZeroGradient | kCommutative,
       .body = [](Scalar x, Scalar y) { return x != y; },
       .samples = binary_samples()},
      {.name = "less",
       .sig = "(x: any, y: any) -> bool",
       .doc = "x < y.",
       .traits = kZeroGradient,
       .body = [](Scalar x, Scalar y) { return x < y; },
       .samples = binary_samples()},
      {.name = "less_equal",
       .sig = "(x: any, y: any) -> bool",
       .doc = "x <= y.",
       .traits = kZeroGradient,
       .body = [](Scalar x, Scalar y) { return x <= y; },
       .samples = binary_samples()},
      {.name = "greater",
       .sig = "(x: any, y: any) -> bool",
       .doc = "x > y.",
       .traits = kZeroGradient,
       .body = [](Scalar x, Scalar y) { return x > y; },
       .samples = binary_samples()},
      {.name = "greater_equal",
       .sig = "(x: any, y: any) -> bool",
       .doc = "x >= y.",
       .traits = kZeroGradient,
       .body = [](Scalar x, Scalar y) { return x >= y; },
       .samples = binary_samples()},
  };
}

// --- logic and bits --------------------------------------------------------------------------------------------------------

std::vector<std::string_view> logic_samples() {
  return {"({true,true,false,false}, {true,false,true,false})",
          "([2,3], [3])",
          "([], [])",
          "([0,3], [3])",
          "([67], [67])",
          "([2,1,3,2,2], [3,1,1])"};
}

// A shift by a negative number is one by more than the width, as in NumPy.
Scalar shift_guarded(const Scalar& shifted, const Scalar& x, const Scalar& y) {
  if (!is_signed(y.dtype())) return shifted;
  return select(y < 0, x, shifted);
}

std::vector<std::string_view> shift_samples() {
  return {"([2,3], [3] in 0..7)",          "([], [])", "([0,3], [3])", "([67] special, [67] in 0..7)", "({1,-1,5,-8}, {100,100,-1,-3})",
          "([2,1,3,2,2], [3,1,1] in 0..3)"};
}

Rows logic_rows() {
  return {
      {.name = "logical_and",
       .sig = "(x: bool, y: bool) -> bool",
       .doc = "True where both are.",
       .traits = kZeroGradient | kCommutative,
       .body = [](Scalar x, Scalar y) { return x & y; },
       .samples = logic_samples()},
      {.name = "logical_or",
       .sig = "(x: bool, y: bool) -> bool",
       .doc = "True where at least one is.",
       .traits = kZeroGradient | kCommutative,
       .body = [](Scalar x, Scalar y) { return x | y; },
       .samples = logic_samples()},
      {.name = "logical_xor",
       .sig = "(x: bool, y: bool) -> bool",
       .doc = "True where exactly one is.",
       .traits = kZeroGradient | kCommutative,
       .body = [](Scalar x, Scalar y) { return x ^ y; },
       .samples = logic_samples()},
      {.name = "logical_not",
       .sig = "(x: bool) -> bool",
       .doc = "True where x is not.",
       .traits = kZeroGradient,
       .body = [](Scalar x) { return ~x; },
       .samples = {"({true,false})", "([2,3])", "([])", "([0,3])", "([67])"}},
      {.name = "bitwise_and",
       .sig = "(x: boolean, y: boolean) -> same",
       .doc = "The bits that are set in both.",
       .traits = kZeroGradient | kCommutative,
       .body = [](Scalar x, Scalar y) { return x & y; },
       .samples = binary_samples()},
      {.name = "bitwise_or",
       .sig = "(x: boolean, y: boolean) -> same",
       .doc = "The bits that are set in at least one.",
       .traits = kZeroGradient | kCommutative,
       .body = [](Scalar x, Scalar y) { return x | y; },
       .samples = binary_samples()},
      {.name = "bitwise_xor",
       .sig = "(x: boolean, y: boolean) -> same",
       .doc = "The bits that are set in exactly one.",
       .traits = kZeroGradient | kCommutative,
       .body = [](Scalar x, Scalar y) { return x ^ y; },
       .samples = binary_samples()},
      {.name = "bitwise_not",
       .sig = "(x: boolean) -> same",
       .doc = "All bits turned over; of a bool, `not`.",
       .traits = kZeroGradient,
       .body = [](Scalar x) { return ~x; },
       .samples = unary_samples()},
      {.name = "left_shift",
       .sig = "(x: int, y: int) -> same",
       .doc = "x with its bits moved up by y; 0 for a shift by the width or more, or by a negative number.",
       .traits = kZeroGradient,
       .body = [](Scalar x, Scalar y) { return shift_guarded(x << y, constant_int(x.dtype(), 0), y); },
       .samples = shift_samples()},
      {.name = "right_shift",
       .sig = "(x: int, y: int) -> same",
       .doc = "x with its bits moved down by y, keeping the sign; 0 or -1 for a shift by the width or more, or by a negative number.",
       .traits = kZeroGradient,
       .body = [](Scalar x, Scalar y) { return shift_guarded(x >> y, select(x < 0, -1, constant_int(x.dtype(), 0)), y); },
       .samples = shift_samples()},
  };
}

// --- tests and choice ------------------------------------------------------------------------------------------------------

// |x - y| <= atol + rtol |y|; infinities are close to themselves only.
Scalar is_close_body(const OpCall& c, Scalar x, Scalar y) {
  const Scalar a = widen(x), b = widen(y);
  const Scalar bound = c.attrs.get<double>("atol") + c.attrs.get<double>("rtol") * abs(b);
  const Scalar is_near = (abs(a - b) <= bound) & (abs(b) < kInf);
  const Scalar close = (a == b) | is_near;
  return c.attrs.get<bool>("equal_nan") ? close | (is_nan(a) & is_nan(b)) : close;
}

template <class F> Scalar if_float(const Scalar& x, bool otherwise, F f) { return is_float(x.dtype()) ? f() : bool_constant(otherwise); }

Rows test_rows() {
  return {
      {.name = "is_nan",
       .sig = "(x: any) -> bool",
       .doc = "True where x is NaN.",
       .traits = kZeroGradient,
       .body = [](Scalar x) { return is_nan(x); },
       .samples = unary_samples()},
      {.name = "is_inf",
       .sig = "(x: any) -> bool",
       .doc = "True where x is infinite.",
       .traits = kZeroGradient,
       .body = [](Scalar x) { return if_float(x, false, [&] { return is_infinite(x); }); },
       .samples = unary_samples()},
      {.name = "is_finite",
       .sig = "(x: any) -> bool",
       .doc = "True where x is neither NaN nor infinite.",
       .traits = kZeroGradient,
       .body = [](Scalar x) { return if_float(x, true, [&] { return abs(x) < kInf; }); },
       .samples = unary_samples()},
      {.name = "is_posinf",
       .sig = "(x: any) -> bool",
       .doc = "True where x is +infinity.",
       .traits = kZeroGradient,
       .body = [](Scalar x) { return if_float(x, false, [&] { return x == kInf; }); },
       .samples = unary_samples()},
      {.name = "is_neginf",
       .sig = "(x: any) -> bool",
       .doc = "True where x is -infinity.",
       .traits = kZeroGradient,
       .body = [](Scalar x) { return if_float(x, false, [&] { return x == -kInf; }); },
       .samples = unary_samples()},
      {.name = "signbit",
       .sig = "(x: number) -> bool",
       .doc = "True where the sign of x is set; so it is for -0.",
       .traits = kZeroGradient,
       .body = [](Scalar x) { return sign_bit(x); },
       .samples = unary_samples()},
      {.name = "is_close",
       .sig = "(x: float, y: float; rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = false) -> bool",
       .doc = "True where |x - y| <= atol + rtol * |y|. Infinities are close to themselves; NaN only to NaN, with `equal_nan`.",
       .traits = kZeroGradient,
       .body = is_close_body,
       .samples = {"({1,1,2,0}, {1,1.0001,2.5,0}; rtol=0.001)", "([2,3], [3])", "([], []; atol=1)", "([0,3], [3])",
                   "([67], [67]; atol=0.5)", "([24] special, [24] special)", "([24] special, [] special; equal_nan=true)",
                   "([2,1,3,2,2], [3,1,1]; rtol=0.5)"}},
      {.name = "where",
       .sig = "(condition: bool, x: any, y: any) -> same",
       .doc = "x where the condition is true, else y.",
       .body = [](Scalar condition, Scalar x, Scalar y) { return select(condition, x, y); },
       .vjp =
           [](const GradCall& c) {
             return partials(c, nullptr, [&] { return where(c.in[0], c.grad(), 0.0); }, [&] { return where(c.in[0], 0.0, c.grad()); });
           },
       .samples = {"([2,3], [2,3], [2,3])", "([3], [2,1], [])", "([], [], [])", "([0,3], [3], [])", "([67], [67], [67])",
                   "([3,1,1], [2,1,3,2,2], [2])", "([24], [24] special, [24] special) !grad"}},
  };
}

}  // namespace

Rows compare_rows() {
  Rows rows;
  for (Rows (*family)() : {comparison_rows, logic_rows, test_rows})
    for (OpDef& row : family()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace tandem::ops
