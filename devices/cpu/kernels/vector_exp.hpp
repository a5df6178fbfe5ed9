// exp of a vector, for kernels that are compiled for one instruction set. The same bits with all of them.
#pragma once

namespace tandem::cpu {
namespace {

// At most 1 unit in the last place off; subnormal results, 0, infinity and NaN as exp has them. e^x = 2^n e^r with |r| <= ln(2) / 2: n
// ln(2) is taken off in two parts, of which the first has few enough digits that its product with n is exact (Cody and Waite), and e^r is a
// polynomial through the Chebyshev nodes.
template <class I> typename I::Vector exp(typename I::Vector given) {
  using Vector = typename I::Vector;
  // Beyond these bounds the results are 0 and infinity. A NaN is the right operand, and stays.
  const Vector x = I::min(I::set(89.0f), I::max(I::set(-104.0f), given));
  const Vector n = I::round(I::multiply(x, I::set(1.44269504f)));
  const Vector r = I::negative_multiply_add(n, I::set(-2.12194440e-4f), I::negative_multiply_add(n, I::set(0.693359375f), x));
  Vector p = I::set(0.000198910304f);
  p = I::multiply_add(p, r, I::set(0.00139336858f));
  p = I::multiply_add(p, r, I::set(0.00833331048f));
  p = I::multiply_add(p, r, I::set(0.041666463f));
  p = I::multiply_add(p, r, I::set(0.166666672f));
  p = I::multiply_add(p, r, I::set(0.5f));
  p = I::multiply_add(p, I::multiply(r, r), r);
  return I::scale(I::add(p, I::set(1.0f)), n);
}

}  // namespace
}  // namespace tandem::cpu
