// Attention's elementwise parts as templates over an instruction set. Included only by the files that are compiled for one. Every column is
// computed by itself and in order, so its bits depend neither on its place in a vector nor on the instruction set.
#pragma once
#include "attention_vectors.hpp"
#include "vector_math.hpp"

namespace tandem::cpu {
namespace {

template <class I> class Panel {
 public:
  using Vector = typename I::Vector;
  explicit Panel(const ScorePanel& p)
      : p_(p), scale_(I::set(p.scale)), shift_(I::set(p.shift)), ahead_(I::add(I::lanes(), I::set(static_cast<float>(p.ahead)))) {}

  int64_t at(int64_t source, int v) const { return source * p_.step + v * I::kLanes; }
  int64_t beside(int64_t source, int v) const { return source * p_.beside_step + v * I::kLanes; }
  Vector seen(int64_t source, int v, Vector yes, Vector no) const {
    Vector x = yes;
    if (p_.seen) x = I::select(I::equal(I::load(p_.seen + beside(source, v)), I::zero()), no, x);
    if (p_.ahead != kSeesAll) {
      const Vector reach = I::add(ahead_, I::set(static_cast<float>(v * I::kLanes)));
      x = I::select(I::greater_equal(reach, I::set(static_cast<float>(source))), x, no);
    }
    return x;
  }
  Vector logit(int64_t source, int v) const {
    Vector x = I::multiply_add(I::load(p_.scores + at(source, v)), scale_, shift_);
    if (p_.bias) x = I::add(x, I::load(p_.bias + beside(source, v)));
    return seen(source, v, x, I::set(kHiddenLogit));
  }

 private:
  const ScorePanel& p_;
  Vector scale_, shift_, ahead_;
};

template <class I> void run_softmax(const ScorePanel& p, float* peak, float* total, float* factor) {
  using Vector = typename I::Vector;
  const Panel<I> panel(p);
  const Vector nothing = I::set(-__builtin_inff());
  for (int v = 0; v < p.vectors; ++v) {
    const int64_t column = v * I::kLanes;
    const Vector before = I::load(peak + column);
    Vector most = before;
    for (int64_t i = 0; i < p.sources; ++i) {
      const Vector x = panel.logit(i, v);
      I::store(p.scores + panel.at(i, v), x);
      most = I::max(x, most);
    }
    // As long as everything is -infinity there is nothing to subtract.
    const Vector shift = I::select(I::equal(most, nothing), I::zero(), most);
    const Vector f = exp<I>(I::subtract(before, shift));
    Vector sum = I::multiply(I::load(total + column), f);
    for (int64_t i = 0; i < p.sources; ++i) {
      const Vector e = exp<I>(I::subtract(I::load(p.scores + panel.at(i, v)), shift));
      I::store(p.scores + panel.at(i, v), e);
      sum = I::add(sum, e);
    }
    I::store(peak + column, most);
    I::store(total + column, sum);
    I::store(factor + column, f);
  }
}

template <class I>
void run_weights(const ScorePanel& p, const float* peak, const float* factor, const float* mean, float* by_weights, float* by_logits) {
  using Vector = typename I::Vector;
  const Panel<I> panel(p);
  const Vector scale = I::set(p.scale);
  for (int v = 0; v < p.vectors; ++v) {
    const int64_t column = v * I::kLanes;
    const Vector top = I::load(peak + column), f = I::load(factor + column), middle = I::load(mean + column);
    for (int64_t i = 0; i < p.sources; ++i) {
      const int64_t at = panel.at(i, v);
      const Vector w = I::multiply(exp<I>(I::subtract(panel.logit(i, v), top)), f);
      I::store(p.scores + at, w);
      const Vector g = panel.seen(i, v, I::multiply(w, I::subtract(I::load(by_weights + at), middle)), I::zero());
      if (by_logits) I::store(by_logits + panel.beside(i, v), g);
      I::store(by_weights + at, I::multiply(g, scale));
    }
  }
}

// f(position, mask) for vectors of `count` floats.
template <class I, class F> void for_vectors(int64_t count, const F& f) {
  for (int64_t j = 0; j < count; j += I::kLanes) f(j, I::mask(count - j < I::kLanes ? static_cast<int>(count - j) : I::kLanes));
}

template <class I>
void run_scale_rows(const float* from, int64_t from_step, int64_t rows, int64_t columns, const float* factor, float* to, int64_t to_step) {
  for (int64_t i = 0; i < rows; ++i, from += from_step, to += to_step) {
    const auto f = I::set(factor[i]);
    for_vectors<I>(columns, [&](int64_t j, auto mask) { I::store(to + j, I::multiply(I::load(from + j, mask), f), mask); });
  }
}

template <class I> void run_add(const float* from, int64_t count, float* to) {
  for_vectors<I>(count, [&](int64_t j, auto mask) { I::store(to + j, I::add(I::load(to + j, mask), I::load(from + j, mask)), mask); });
}

template <class I> void run_exp(const float* from, int64_t count, float* to) {
  for_vectors<I>(count, [&](int64_t j, auto mask) { I::store(to + j, exp<I>(I::load(from + j, mask)), mask); });
}

}  // namespace
}  // namespace tandem::cpu
