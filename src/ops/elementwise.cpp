#include "ops/elementwise.hpp"

#include <cmath>

namespace tandem::ops {

using namespace ir;

Scalar bool_constant(bool v) { return constant_int(DType::Bool, v ? 1 : 0); }

Scalar is_infinite(const Scalar& x) { return abs(x) == kInf; }

DType bits_type(DType t) {
  switch (size_of(t)) {
    case 1: return DType::I8;
    case 2: return DType::I16;
    case 4: return DType::I32;
    default: return DType::I64;
  }
}

Scalar sign_bit(const Scalar& x) {
  if (!is_float(x.dtype())) return x < 0;
  const Scalar w = widen(x);
  return bitcast(w, bits_type(w.dtype())) < 0;
}

Scalar polynomial(const Scalar& x, std::span<const double> c) {
  Scalar sum = constant(x.dtype(), c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = fma(sum, x, constant(x.dtype(), c[i]));
  return sum;
}

Scalar chebyshev(const Scalar& t, std::span<const double> c) {
  const double small = t.dtype() == DType::F64 ? 1e-17 : 1e-9;
  size_t n = c.size();
  while (n > 2 && std::abs(c[n - 1]) < small) --n;
  const Scalar twice = t + t;
  Scalar b1 = constant(t.dtype(), c[n - 1]), b2 = constant(t.dtype(), 0);
  for (size_t k = n - 2; k > 0; --k) {
    Scalar b0 = fma(twice, b1, c[k] - b2);
    b2 = b1;
    b1 = b0;
  }
  return fma(t, b1, c[0] - b2);
}

// exp(-x) overflows to infinity for very negative x, and 1 / infinity is the 0 that it should be.
Scalar sigmoid_of(const Scalar& x) { return 1 / (1 + exp(-x)); }

std::vector<std::string_view> unary_samples() { return {"([2,3])", "([])", "([0,3])", "([67])", "([2,1,3,2,2])", "([24] special) !grad"}; }

std::vector<std::string_view> binary_samples() {
  return {"([2,3], [2,3])", "([2,3], [3])", "([2,1,3], [4,1])",       "([], [5])",
          "([0,3], [3])",   "([67], [67])", "([2,1,3,2,2], [3,1,1])", "([24] special, [24] special) !grad"};
}

}  // namespace tandem::ops
