// Activation functions as Keras 3 defines them, each one expression.
#include <cmath>

#include "ops/elementwise.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
namespace {

using namespace ir;

double attr(const OpCall& c, std::string_view name) { return c.attrs.get<double>(name); }
double attr(const GradCall& c, std::string_view name) { return c.node.attrs.get<double>(name); }

// NaN is on no side of a comparison: it takes the last choice, so the last one is what keeps it.
Scalar between(const Scalar& x, double low, double high) { return select(x <= low, low, select(x >= high, high, x)); }

// --- the rectifiers --------------------------------------------------------------------------------------------------------

constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;

Rows rectifier_rows() {
  return {
      {.name = "relu",
       .sig = "(x: number) -> same",
       .doc = "max(x, 0).",
       .body = [](Scalar x) { return max(x, 0); },
       // By the result, which the next op keeps anyway, so that x need not be.
       .vjp = [](const GradCall& c) { return std::vector{where(c.out[0] > 0.0, c.grad(), 0.0)}; },
       .samples = unary_samples()},
      {.name = "relu6",
       .sig = "(x: number) -> same",
       .doc = "min(max(x, 0), 6).",
       .body = [](Scalar x) { return min(max(x, 0), 6); },
       .vjp =
           [](const GradCall& c) {
             const Expr y = c.out[0];
             return std::vector{where((y > 0.0).op("logical_and", {y < 6.0}), c.grad(), 0.0)};
           },
       .samples = TANDEM_SAMPLES_IN("-2..8")},
      {.name = "leaky_relu",
       .sig = "(x: float; negative_slope: float = 0.2) -> same",
       .doc = "x where it is not negative, else negative_slope * x.",
       .body = [](const OpCall& c, Scalar x) { return select(x >= 0, x, x * attr(c, "negative_slope")); },
       .samples = {"([2,3])", "([67]; negative_slope=0.01)", "([])", "([0,3])", "([2,1,3,2,2]; negative_slope=0)", "([24] special) !grad"}},
      {.name = "prelu",
       .sig = "(x: float, alpha: float) -> same",
       .doc = "x where it is not negative, else alpha * x; alpha is learned.",
       .body = [](Scalar x, Scalar alpha) { return select(x >= 0, x, x * alpha); },
       .samples = binary_samples()},
      {.name = "elu",
       .sig = "(x: float; alpha: float = 1) -> same",
       .doc = "x where it is positive, else alpha * (exp(x) - 1).",
       .body = [](const OpCall& c, Scalar x) { return select(x > 0, x, expm1(x) * attr(c, "alpha")); },
       .vjp =
           [](const GradCall& c) {
             const Expr x = c.in[0];
             return chain(c, where(x > 0.0, 1.0, exp(minimum(x, 0.0)) * attr(c, "alpha")));
           },
       .samples = {"([2,3])", "([67]; alpha=0.5)", "([])", "([0,3])", "([2,1,3,2,2])", "([24] special) !grad"}},
      {.name = "celu",
       .sig = "(x: float; alpha: float = 1) -> same",
       .doc = "x where it is positive, else alpha * (exp(x / alpha) - 1).",
       .body =
           [](const OpCall& c, Scalar x) {
             const double alpha = attr(c, "alpha");
             return wide([&](Scalar a) { return select(a > 0, a, expm1(a / alpha) * alpha); }, x);
           },
       .vjp =
           [](const GradCall& c) {
             const Expr x = c.in[0];
             return chain(c, where(x > 0.0, 1.0, exp(minimum(x, 0.0) / attr(c, "alpha"))));
           },
       .samples = {"([2,3])", "([67]; alpha=0.5)", "([])", "([0,3])", "([2,1,3,2,2])", "([24] special) !grad"}},
      {.name = "selu",
       .sig = "(x: float) -> same",
       .doc = "1.0507 * elu(x, alpha=1.6733): keeps mean and variance of its input (Klambauer et al., 2017).",
       .body =
           [](Scalar x) { return wide([](Scalar a) { return select(a > 0, a * kSeluScale, expm1(a) * (kSeluScale * kSeluAlpha)); }, x); },
       .vjp =
           [](const GradCall& c) {
             const Expr x = c.in[0];
             return chain(c, where(x > 0.0, kSeluScale, exp(minimum(x, 0.0)) * (kSeluScale * kSeluAlpha)));
           },
       .samples = unary_samples()},
      {.name = "threshold",
       .sig = "(x: float; threshold: float, default_value: float) -> same",
       .doc = "x where it is above the threshold, else default_value.",
       .body = [](const OpCall& c, Scalar x) { return select(x > attr(c, "threshold"), x, attr(c, "default_value")); },
       .samples = {"([2,3]; threshold=0.5, default_value=-1)", "([67]; threshold=-0.5, default_value=0)",
                   "([]; threshold=0, default_value=1)", "([0,3]; threshold=0, default_value=1)",
                   "([2,1,3,2,2]; threshold=1, default_value=0)", "([24] special; threshold=0, default_value=7) !grad"}},
  };
}

// --- the piecewise polynomials ---------------------------------------------------------------------------------------------

Scalar hard_sigmoid_of(const Scalar& x) { return between(x + 3, 0, 6) * (1. / 6); }

Scalar sparse_plus_of(const Scalar& x) {
  const Scalar up = x + 1;
  return select(x <= -1, 0, select(x >= 1, x, up * up * 0.25));
}

Rows piecewise_rows() {
  return {
      {.name = "hard_sigmoid",
       .sig = "(x: float) -> same",
       .doc = "relu6(x + 3) / 6.",
       .body = [](Scalar x) { return wide(hard_sigmoid_of, x); },
       .samples = TANDEM_SAMPLES_IN("-4..4")},
      {.name = "hard_silu",
       .sig = "(x: float) -> same",
       .doc = "x * hard_sigmoid(x), also called hard swish.",
       .body = [](Scalar x) { return wide([](Scalar a) { return a * hard_sigmoid_of(a); }, x); },
       .samples = TANDEM_SAMPLES_IN("-4..4")},
      {.name = "hard_tanh",
       .sig = "(x: float) -> same",
       .doc = "x limited to -1..1.",
       .body = [](Scalar x) { return between(x, -1, 1); },
       .samples = unary_samples()},
      {.name = "hard_shrink",
       .sig = "(x: float; threshold: float = 0.5) -> same",
       .doc = "x where |x| is above the threshold, else 0.",
       .body = [](const OpCall& c, Scalar x) { return select(abs(x) > attr(c, "threshold"), x, 0); },
       .samples = {"([2,3])", "([67]; threshold=1)", "([])", "([0,3])", "([2,1,3,2,2])", "([24] special) !grad"}},
      {.name = "soft_shrink",
       .sig = "(x: float; threshold: float = 0.5) -> same",
       .doc = "x moved towards 0 by the threshold, and 0 where |x| is not above it.",
       .body =
           [](const OpCall& c, Scalar x) {
             const double t = attr(c, "threshold");
             return select(x > t, x - t, select(x < -t, x + t, 0));
           },
       .samples = {"([2,3])", "([67]; threshold=1)", "([])", "([0,3])", "([2,1,3,2,2])", "([24] special) !grad"}},
      {.name = "sparse_plus",
       .sig = "(x: float) -> same",
       .doc = "0 up to -1, x from 1 on, (x + 1)^2 / 4 in between.",
       .body = [](Scalar x) { return wide(sparse_plus_of, x); },
       .samples = unary_samples()},
      {.name = "sparse_sigmoid",
       .sig = "(x: float) -> same",
       .doc = "(x + 1) / 2 limited to 0..1.",
       .body = [](Scalar x) { return wide([](Scalar a) { return between((a + 1) * 0.5, 0, 1); }, x); },
       .samples = unary_samples()},
  };
}

// --- the smooth ones -------------------------------------------------------------------------------------------------------

// log(1 + exp(x)) without overflow.
Scalar softplus_of(const Scalar& x) { return max(x, 0) + log1p(exp(-abs(x))); }

Expr sigmoid(const Expr& x) { return x.op("sigmoid"); }
Expr sigmoid_slope(const Expr& s) { return s * (1.0 - s); }

// d(x sigmoid(u))/dx for u with slope `du`.
Expr gated_slope(const Expr& x, const Expr& u, const Expr& du) {
  const Expr s = sigmoid(u);
  return s + x * sigmoid_slope(s) * du;
}

// gelu's approximation x/2 (1 + tanh(u/2)) is x sigmoid(u), which costs less and keeps the small values at the left.
constexpr double kGelu = 1.59576912160573071176;  // 2 sqrt(2/pi)
constexpr double kGeluCubic = 0.044715;

Scalar gelu_body(const OpCall& c, Scalar x) {
  if (c.attrs.get<bool>("approximate")) return wide([](Scalar a) { return a * sigmoid_of(a * (kGelu + kGelu * kGeluCubic * (a * a))); }, x);
  return wide([](Scalar a) { return 0.5 * a * erfc(-kSqrtHalf * a); }, x);
}

std::vector<Expr> gelu_vjp(const GradCall& c) {
  const Expr x = c.in[0];
  if (c.node.attrs.get<bool>("approximate")) {
    const Expr square = x * x;
    return chain(c, gated_slope(x, x * (kGelu + kGelu * kGeluCubic * square), kGelu + 3 * kGelu * kGeluCubic * square));
  }
  const double density = 1 / std::sqrt(2 * kPi);
  const Expr z = -kSqrtHalf * x;  // erfc has e^(-z^2) in it
  return chain(c, 0.5 * z.op("erfc") + density * x * exp(-(z * z)));
}

// (x + sqrt(x^2 + b)) / 2; for negative x by its reciprocal, where the sum would cancel.
Scalar squareplus_of(const Scalar& x, double b) {
  const Scalar root = sqrt(x * x + b);
  return select(x < 0, 0.5 * b / (root - x), 0.5 * (x + root));
}

Rows smooth_rows() {
  return {
      {.name = "sigmoid",
       .sig = "(x: float) -> same",
       .doc = "1 / (1 + exp(-x)).",
       .body = [](Scalar x) { return wide(sigmoid_of, x); },
       .vjp = [](const GradCall& c) { return chain(c, sigmoid_slope(c.out[0])); },
       .samples = unary_samples()},
      {.name = "log_sigmoid",
       .sig = "(x: float) -> same",
       .doc = "log(sigmoid(x)) without overflow.",
       .traits = kSensitive,
       .body = [](Scalar x) { return wide([](Scalar a) { return -softplus_of(-a); }, x); },
       .vjp = [](const GradCall& c) { return chain(c, sigmoid(-c.in[0])); },
       .samples = unary_samples()},
      {.name = "softplus",
       .sig = "(x: float) -> same",
       .doc = "log(1 + exp(x)) without overflow.",
       .traits = kSensitive,
       .body = [](Scalar x) { return wide(softplus_of, x); },
       .vjp = [](const GradCall& c) { return chain(c, sigmoid(c.in[0])); },
       .samples = unary_samples()},
      {.name = "silu",
       .sig = "(x: float) -> same",
       .doc = "x * sigmoid(x), also called swish.",
       .body = [](Scalar x) { return wide([](Scalar a) { return a * sigmoid_of(a); }, x); },
       .vjp =
           [](const GradCall& c) {
             const Expr x = c.in[0], s = sigmoid(x);
             return chain(c, s * (1.0 + x * (1.0 - s)));
           },
       .samples = unary_samples()},
      {.name = "gelu",
       .sig = "(x: float; approximate: bool = true) -> same",
       .doc = "x * Phi(x), with Phi the normal distribution function, or its usual approximation by tanh (Hendrycks, Gimpel, 2016).",
       .body = gelu_body,
       .vjp = gelu_vjp,
       .samples = {"([2,3])", "([2,3]; approximate=false)", "([67] in -6..6)", "([67] in -6..6; approximate=false)", "([])", "([0,3])",
                   "([2,1,3,2,2])", "([24] special) !grad", "([24] special; approximate=false) !grad"}},
      {.name = "mish",
       .sig = "(x: float) -> same",
       .doc = "x * tanh(softplus(x)) (Misra, 2019).",
       .body = [](Scalar x) { return wide([](Scalar a) { return a * tanh(softplus_of(a)); }, x); },
       .vjp =
           [](const GradCall& c) {
             const Expr x = c.in[0], t = x.op("softplus").op("tanh");
             return chain(c, t + x * sigmoid(x) * ((1.0 - t) * (1.0 + t)));
           },
       .samples = unary_samples()},
      {.name = "softsign",
       .sig = "(x: float) -> same",
       .doc = "x / (1 + |x|).",
       .body = [](Scalar x) { return wide([](Scalar a) { return a / (1 + abs(a)); }, x); },
       .vjp =
           [](const GradCall& c) {
             const Expr scale = (1.0 + c.in[0].op("absolute")).op("reciprocal");
             return chain(c, scale * scale);
           },
       .samples = unary_samples()},
      {.name = "squareplus",
       .sig = "(x: float; b: float = 4) -> same",
       .doc = "(x + sqrt(x^2 + b)) / 2.",
       .body =
           [](const OpCall& c, Scalar x) {
             const double b = attr(c, "b");
             return wide([&](Scalar a) { return squareplus_of(a, b); }, x);
           },
       .vjp =
           [](const GradCall& c) {
             const Expr x = c.in[0];
             return chain(c, c.out[0].op("divide_no_nan", {sqrt(x * x + attr(c, "b"))}));
           },
       .samples = {"([2,3])", "([67] in -50..50; b=1)", "([])", "([0,3])", "([2,1,3,2,2]; b=2)", "([24] special) !grad"}},
      {.name = "tanh_shrink",
       .sig = "(x: float) -> same",
       .doc = "x - tanh(x).",
       .body = [](Scalar x) { return wide([](Scalar a) { return a - tanh(a); }, x); },
       .vjp =
           [](const GradCall& c) {
             const Expr t = c.in[0].op("tanh");
             return chain(c, t * t);
           },
       .samples = unary_samples()},
  };
}

}  // namespace

Rows activation_rows() {
  Rows rows;
  for (Rows (*family)() : {rectifier_rows, piecewise_rows, smooth_rows})
    for (OpDef& row : family()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace tandem::ops
