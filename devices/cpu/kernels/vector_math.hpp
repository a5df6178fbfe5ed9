// exp, sigmoid and tanh of vectors, for kernels that are compiled for one instruction set. The same bits with all of them.
#pragma once

namespace tandem::cpu {
namespace {

// e^x = 2^n e^r with |r| <= ln(2) / 2: n ln(2) is taken off in two parts, of which the first has few enough digits that its product with n
// is exact (Cody and Waite), and e^r is a polynomial through the Chebyshev nodes. Its terms are added in pairs (Estrin), so that none
// waits for all others.
template <class I> struct ReducedExp {
  typename I::Vector n, less_one;  // less_one = e^r - 1
};
template <class I> ReducedExp<I> reduced_exp(typename I::Vector x) {
  using Vector = typename I::Vector;
  const Vector n = I::round(I::multiply(x, I::set(1.44269504f)));
  const Vector r = I::negative_multiply_add(n, I::set(-2.12194440e-4f), I::negative_multiply_add(n, I::set(0.693359375f), x));
  const Vector square = I::multiply(r, r);
  const Vector high = I::multiply_add(r, I::set(0.000198910304f), I::set(0.00139336858f));
  const Vector middle = I::multiply_add(r, I::set(0.00833331048f), I::set(0.041666463f));
  const Vector low = I::multiply_add(r, I::set(0.166666672f), I::set(0.5f));
  const Vector p = I::multiply_add(I::multiply_add(high, square, middle), square, low);
  return {n, I::multiply_add(p, square, r)};
}

// At most 1 unit in the last place off; subnormal results, 0, infinity and NaN as exp has them.
template <class I> typename I::Vector exp(typename I::Vector x) {
  // Beyond these bounds the results are 0 and infinity. A NaN is the right operand, and stays.
  const auto e = reduced_exp<I>(I::min(I::set(89.0f), I::max(I::set(-104.0f), x)));
  return I::scale(I::add(e.less_one, I::set(1.0f)), e.n);
}

// At most 3 units in the last place off, like tanh.
template <class I> typename I::Vector sigmoid(typename I::Vector x) {
  return I::divide(I::set(1.0f), I::add(I::set(1.0f), exp<I>(I::subtract(I::zero(), x))));
}

// From e^2x - 1, which keeps all digits of small x. Beyond 9.1 the result is 1.
template <class I> typename I::Vector tanh(typename I::Vector x) {
  const auto limited = I::min(I::set(9.1f), I::max(I::set(-9.1f), x));
  const auto e = reduced_exp<I>(I::add(limited, limited));
  const auto scale = I::scale(I::set(1.0f), e.n);
  const auto less_one = I::multiply_add(scale, e.less_one, I::subtract(scale, I::set(1.0f)));
  return I::divide(less_one, I::add(less_one, I::set(2.0f)));
}

}  // namespace
}  // namespace tandem::cpu
