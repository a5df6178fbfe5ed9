// What the families of elementwise rows share: computing in float32 for the 16-bit types, series, chain rules, sample lists.
#pragma once
#include <concepts>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "ir/builder.hpp"
#include "ir/op.hpp"
#include "ops/helpers.hpp"

namespace tandem::ops {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kPi = 3.14159265358979323846;
inline constexpr double kLn2 = 0.693147180559945309417;
inline constexpr double kLn10 = 2.30258509299404568402;
inline constexpr double kSqrtHalf = 0.707106781186547524401;
inline constexpr double kSqrtPi = 1.77245385090551602730;

// --- bodies ---
inline ir::Scalar widen(const ir::Scalar& x) { return ir::cast(x, accumulator_type(x.dtype())); }

// f of the arguments in float32 when they are float16 or bfloat16: one rounding at the end instead of one a primitive.
template <class F, class... S> ir::Scalar wide(F f, const ir::Scalar& x, const S&... more) {
  return ir::cast(f(widen(x), widen(more)...), x.dtype());
}

ir::Scalar bool_constant(bool v);
ir::Scalar is_infinite(const ir::Scalar& x);
ir::Scalar sign_bit(const ir::Scalar& x);  // bool; also that of -0 and NaN
DType bits_type(DType t);                  // the signed integer of the same width

// c[0] + c[1] x + …, by Horner's rule.
ir::Scalar polynomial(const ir::Scalar& x, std::span<const double> c);
// c[0] T0(t) + c[1] T1(t) + …, by Clenshaw's recurrence; terms that the type of t cannot see are left out.
ir::Scalar chebyshev(const ir::Scalar& t, std::span<const double> c);
ir::Scalar sigmoid_of(const ir::Scalar& x);

// --- gradients ---
// Of a row with one operand: grad * slope.
inline std::vector<ir::Expr> chain(const ir::GradCall& c, const ir::Expr& slope) { return {c.grad() * slope}; }

// Of a row that broadcasts: f() is the gradient for each operand in turn, before the sum over the axes along which the operand was
// stretched. What nobody wants is not built. nullptr instead of f: no gradient.
template <class... F> std::vector<ir::Expr> partials(const ir::GradCall& c, F... f) {
  std::vector<ir::Expr> grads;
  auto add = [&](auto part) {
    const size_t i = grads.size();
    if constexpr (std::same_as<decltype(part), std::nullptr_t>)
      grads.emplace_back();
    else
      grads.push_back(c.needed[i] ? part().sum_to(c.in[i].dims()) : ir::Expr());
  };
  (add(f), ...);
  return grads;
}

// --- samples ---
// Text literals, so that a row's string_views live for ever: "(<operand> in <range>)" over the usual shapes.
#define TANDEM_SAMPLES_IN(range)                                                 \
  {"([2,3] in " range ")", "([] in " range ")",          "([0,3] in " range ")", \
   "([67] in " range ")",  "([2,1,3,2,2] in " range ")", "([24] special) !grad"}
std::vector<std::string_view> unary_samples();
std::vector<std::string_view> binary_samples();

}  // namespace tandem::ops
