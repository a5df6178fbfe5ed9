#include "random_loops.hpp"

#include <algorithm>

namespace tandem::testing {
namespace {

using ir::Prim;
using ir::Scalar;

constexpr Prim kExactFloat2[] = {Prim::Add, Prim::Sub, Prim::Mul, Prim::Div, Prim::Rem, Prim::Min, Prim::Max};
constexpr Prim kExactFloat1[] = {Prim::Neg, Prim::Abs, Prim::Floor, Prim::Ceil, Prim::Trunc, Prim::Round, Prim::Sqrt};
constexpr Prim kInt2[] = {Prim::Add, Prim::Sub, Prim::Mul, Prim::Div, Prim::Rem, Prim::Min,  Prim::Max,
                          Prim::And, Prim::Or,  Prim::Xor, Prim::Shl, Prim::Shr, Prim::MulHi};
constexpr Prim kInt1[] = {Prim::Neg, Prim::Abs, Prim::Not};
constexpr Prim kCompare[] = {Prim::Eq, Prim::Ne, Prim::Lt, Prim::Le, Prim::Gt, Prim::Ge};

// Everything up to the last step is exact (correctly rounded), so that a device has no freedom; a mathematical function with its few
// units of error may stand at the root only.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  RandomKernel run() {
    choose_axes();
    const int kind = static_cast<int>(pick(4));  // two in four: no reduction
    if (kind == 2) add_reduction();
    if (kind == 3 && !extents_.empty()) add_scan();
    const size_t results = 1 + pick(2);
    for (size_t i = 0; i < results; ++i) add_result();
    k_.loops.extents = to_dims(Shape(extents_));
    return std::move(k_);
  }

 private:
  uint64_t pick(uint64_t n) { return random_() % n; }
  bool one_in(uint64_t n) { return pick(n) == 0; }
  template <class T, size_t N> T of(const T (&list)[N]) { return list[pick(N)]; }

  void choose_axes() {
    const size_t rank = pick(5);
    static constexpr int64_t kSizes[] = {1, 2, 3, 5, 8, 16, 17, 31, 33, 70, 150};
    int64_t total = 1;
    for (size_t i = 0; i < rank; ++i) {
      int64_t e = one_in(40) ? 0 : of(kSizes);
      if (total * e > 20000) e = 2;
      total *= std::max<int64_t>(e, 1);
      extents_.push_back(e);
    }
    visible_ = static_cast<int>(extents_.size());
  }
  int64_t size_of_axis(int a) const {
    return a < static_cast<int>(extents_.size()) ? extents_[static_cast<size_t>(a)]
                                                 : reduce_extents_[static_cast<size_t>(a) - extents_.size()];
  }

  // Every load has an input of its own, whose shape follows from how it is indexed.
  Scalar load(DType t, int depth) {
    Shape shape;
    std::vector<Scalar> index;
    Scalar valid;
    for (int a = 0; a < visible_; ++a) {
      if (one_in(3)) continue;  // broadcast along it
      const int64_t n = size_of_axis(a);
      Scalar i = ir::axis(a);
      int64_t extent = n;
      switch (pick(8)) {
        case 0:  // a slice with a step
          extent = 2 * n + 3;
          i = i * ir::constant_int(DType::I64, 2) + ir::constant_int(DType::I64, 1);
          break;
        case 1:  // backwards
          i = ir::constant_int(DType::I64, n - 1) - i;
          break;
        case 2: {  // padded: outside there is nothing
          i = i - ir::constant_int(DType::I64, 1);
          extent = std::max<int64_t>(n - 2, 0);
          const Scalar inside = (i >= ir::constant_int(DType::I64, 0)) & (i < ir::constant_int(DType::I64, extent));
          valid = valid ? valid & inside : inside;
          break;
        }
        case 3:  // not affine
          extent = n / 2 + 1;
          i = i / ir::constant_int(DType::I64, 2);
          break;
        case 4:
          if (depth > 0 && n > 0) {  // gather
            const Scalar raw = ir::cast(expression(DType::I32, depth - 1), DType::I64);
            extent = 7;
            i = ir::min(ir::max(raw, ir::constant_int(DType::I64, 0)), ir::constant_int(DType::I64, extent - 1));
          }
          break;
        default: break;
      }
      shape.push_back(extent);
      index.push_back(i);
    }
    const auto input = static_cast<int>(k_.in.size());
    const Values values = one_in(3) ? Values::Special : Values::Small;
    k_.in.push_back(one_in(2) ? dense(t, shape, random_, values) : scattered(t, shape, random_, values));
    if (!valid) return ir::load(input, t, index);
    return ir::load_if(input, t, index, valid, one_in(2) || depth == 0 ? ir::constant(t, 1) : expression(t, depth - 1));
  }

  Scalar leaf(DType t, int depth) {
    if (!loads_.empty() && one_in(2))
      for (const Scalar& s : loads_)
        if (s.dtype() == t) return s;
    if (one_in(5)) return ir::constant(t, static_cast<double>(pick(9)) - 3);
    if (visible_ > 0 && t == DType::I64 && one_in(2)) return ir::axis(static_cast<int>(pick(static_cast<uint64_t>(visible_))));
    if (k_.in.size() > 6) return ir::cast(visible_ > 0 ? ir::axis(0) : ir::constant_int(DType::I64, 3), t);
    loads_.push_back(load(t, depth));
    return loads_.back();
  }

  Scalar expression(DType t, int depth) {
    if (depth <= 0 || one_in(6)) return leaf(t, depth);
    const DType other = static_cast<DType>(pick(kDTypeCount));
    switch (pick(8)) {
      case 0: return ir::cast(expression(other, depth - 1), t);
      case 1: return ir::select(expression(DType::Bool, depth - 1), expression(t, depth - 1), expression(t, depth - 1));
      case 2: return bits_of(t, other, depth);
      default: break;
    }
    if (t == DType::Bool) {
      if (one_in(2)) return ir::make(of(kCompare), pair(other, depth));
      const Prim logic[] = {Prim::And, Prim::Or, Prim::Xor, Prim::Eq, Prim::Ne};
      return one_in(4) ? !expression(t, depth - 1) : ir::make(of(logic), pair(t, depth));
    }
    if (is_float(t)) {
      if (one_in(5)) return ir::make(of(kExactFloat1), {expression(t, depth - 1)});
      if (one_in(6)) return ir::fma(expression(t, depth - 1), expression(t, depth - 1), expression(t, depth - 1));
      return ir::make(of(kExactFloat2), pair(t, depth));
    }
    return one_in(5) ? ir::make(of(kInt1), {expression(t, depth - 1)}) : ir::make(of(kInt2), pair(t, depth));
  }
  std::vector<Scalar> pair(DType t, int depth) { return {expression(t, depth - 1), expression(t, depth - 1)}; }

  // Reinterpreted bits. Which NaN an operation gives is not defined, so a float's bits are taken of what memory holds only.
  Scalar bits_of(DType t, DType other, int depth) {
    if (size_of(other) != size_of(t) || other == DType::Bool || t == DType::Bool || other == t) return leaf(t, depth);
    if (!is_float(other)) return ir::bitcast(expression(other, depth - 1), t);
    const Scalar x = leaf(other, depth);
    return x->prim == Prim::Load && !x->guarded ? ir::bitcast(x, t) : leaf(t, depth);
  }

  void add_reduction() {
    const size_t rank = pick(3);
    static constexpr int64_t kSizes[] = {1, 2, 3, 7, 16, 17, 40, 150};
    for (size_t i = 0; i < rank; ++i) reduce_extents_.push_back(one_in(30) ? 0 : of(kSizes));
    if (rank > 0 && one_in(10) && extents_.size() < 2) reduce_extents_[0] = 40000;  // long enough to be split into blocks
    visible_ = static_cast<int>(extents_.size() + reduce_extents_.size());
    set_combination();
    k_.loops.reduction->extents = to_dims(Shape(reduce_extents_));
    end_reduction();
  }
  void add_scan() {
    k_.loops.scan_axis = static_cast<int>(pick(extents_.size()));
    set_combination();
    terms_ = extents_[static_cast<size_t>(k_.loops.scan_axis)];
    end_reduction();
  }
  void end_reduction() {
    visible_ = static_cast<int>(extents_.size());
    loads_.clear();  // they may run over reduce axes
  }

  void set_combination() {
    for (int64_t e : reduce_extents_) terms_ *= std::max<int64_t>(e, 1);
    DType t = static_cast<DType>(pick(kDTypeCount));
    if (one_in(4)) return set_argmax(t == DType::Bool ? DType::I32 : t);
    ir::Fold how = static_cast<ir::Fold>(pick(6));
    if (t == DType::Bool) how = one_in(2) ? ir::Fold::And : ir::Fold::Or;
    if (is_float(t) && (how == ir::Fold::And || how == ir::Fold::Or)) how = ir::Fold::Sum;
    if (is_float(t) && how == ir::Fold::Product) how = ir::Fold::Max;
    const bool sums = is_float(t) && how == ir::Fold::Sum;
    Scalar e = sums ? bounded(t) : expression(t, 2);
    if (sums && (t == DType::F16 || t == DType::BF16)) e = ir::cast(e, DType::F32);
    k_.loops.reduction = ir::fold(how, {}, e);
    inexact_ = sums;
  }
  // Sums of random numbers of any size cancel anyhow; these stay in -2..2.
  Scalar bounded(DType t) {
    return ir::min(ir::max(ir::cast(expression(DType::I8, 2), t), ir::constant(t, -2)), ir::constant(t, 2)) * ir::constant(t, 0.3);
  }

  // The largest element and where it is; of equal ones the first.
  void set_argmax(DType t) {
    const Scalar position = [&] {
      Scalar p = ir::constant_int(DType::I64, 0);
      if (k_.loops.scan_axis >= 0) return ir::axis(k_.loops.scan_axis);
      for (size_t i = 0; i < reduce_extents_.size(); ++i)
        p = p * ir::constant_int(DType::I64, reduce_extents_[i]) + ir::axis(static_cast<int>(extents_.size() + i));
      return p;
    }();
    Scalar e = expression(t, 2);
    if (is_float(t)) e = ir::select(ir::is_nan(e), ir::constant(t, 0), e);
    const Scalar l = ir::acc(0, t), r = ir::right(0, t), li = ir::acc(1, DType::I64), ri = ir::right(1, DType::I64);
    const Scalar take = (r > l) | ((r == l) & (ri < li));
    k_.loops.reduction = ir::Reduction{{},
                                       {e, position},
                                       {ir::identity_of(ir::Fold::Max, t), ir::constant(DType::I64, 9e18)},
                                       {ir::select(take, r, l), ir::select(take, ri, li)},
                                       {}};
  }

  void add_result() {
    DType t = static_cast<DType>(pick(kDTypeCount));
    Scalar r;
    Allowed allowed;
    if (k_.loops.reduction) {
      const auto c = pick(k_.loops.reduction->element.size());
      const Scalar a = ir::acc(static_cast<int>(c), k_.loops.reduction->element[c].dtype());
      t = a.dtype();
      if (inexact_) allowed = sum_tolerance(t, terms_);
      r = inexact_ || one_in(2) ? a : ir::make(Prim::Eq, {a, expression(t, 2)});
    } else {
      r = expression(t, 4);
      if (is_float(t) && one_in(4)) {
        r = ir::make(static_cast<Prim>(static_cast<int>(Prim::Cbrt) + static_cast<int>(pick(21))), {r});
        allowed = t == DType::F16    ? Allowed{1e-3, 1e-7}
                  : t == DType::BF16 ? Allowed{8e-3, 1e-38}
                  : t == DType::F32  ? Allowed{1e-6, 1e-38}
                                     : Allowed{2e-15, 1e-300};
      }
    }
    k_.loops.results.push_back(r);
    k_.allowed.push_back(allowed);
  }

  std::mt19937_64 random_;
  RandomKernel k_;
  std::vector<int64_t> extents_, reduce_extents_;
  int visible_ = 0;  // axes that an expression may name now
  std::vector<Scalar> loads_;
  bool inexact_ = false;
  int64_t terms_ = 1;
};

}  // namespace

RandomKernel random_kernel(uint64_t seed) { return Generator(seed).run(); }

}  // namespace tandem::testing
