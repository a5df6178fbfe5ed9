// exp, sigmoid and tanh on vectors of floats, as templates over an instruction set (avx2.hpp, avx512.hpp): the same bits on each. Errors
// are below 4 units in the last place; NaN stays NaN. Included only by files that are compiled for one instruction set.
#pragma once

namespace tandem::cpu {
namespace {

// e^x = 2^n e^r, where n is whole and |r| <= ln(2) / 2.
template <class I> struct ReducedExp {
  typename I::Vector scale, rest;  // 2^n and e^r - 1
};
template <class I> ReducedExp<I> reduce_exp(typename I::Vector x) {  // of -87 to 88
  const auto set = [](float v) { return I::set(v); };
  const auto n = I::round(I::multiply(x, set(1.44269504f)));
  // ln(2) in two parts: the first has so few digits that n times it is exact.
  auto r = I::multiply_add(n, set(-0.693359375f), x);
  r = I::multiply_add(n, set(2.12194440e-4f), r);
  // The best polynomial of its degree for (e^r - 1 - r) / r^2: e^r is off by 3e-9.
  auto q = I::multiply_add(set(1.39505474e-3f), r, set(8.36892519e-3f));
  q = I::multiply_add(q, r, set(4.16662060e-2f));
  q = I::multiply_add(q, r, set(0.166665182f));
  q = I::multiply_add(q, r, set(0.5f));
  return {I::power_of_two(n), I::multiply_add(I::multiply(r, r), q, r)};
}

// Limited to x from -87 to 88: neither 0 nor infinity comes out.
template <class I> typename I::Vector exp(typename I::Vector x) {
  const auto e = reduce_exp<I>(I::minimum(I::set(88), I::maximum(I::set(-87), x)));
  return I::multiply_add(e.scale, e.rest, e.scale);
}

template <class I> typename I::Vector sigmoid(typename I::Vector x) {
  const auto one = I::set(1);
  return I::divide(one, I::add(one, exp<I>(I::subtract(I::zero(), x))));
}

// From e^2x - 1, which keeps all digits of small x. Beyond 9.1 the result is 1.
template <class I> typename I::Vector tanh(typename I::Vector x) {
  x = I::minimum(I::set(9.1f), I::maximum(I::set(-9.1f), x));
  const auto e = reduce_exp<I>(I::add(x, x));
  const auto less_one = I::multiply_add(e.scale, e.rest, I::subtract(e.scale, I::set(1)));
  return I::divide(less_one, I::add(less_one, I::set(2)));
}

}  // namespace
}  // namespace tandem::cpu
