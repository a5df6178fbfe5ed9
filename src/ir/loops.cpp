// Usual reductions, and the text of loops.
#include "ir/loops.hpp"

#include <limits>

#include "base/text.hpp"

namespace tandem::ir {
namespace {

// The least or greatest number of a type.
Scalar farthest(DType t, bool greatest) {
  const double infinity = std::numeric_limits<double>::infinity();
  return constant(t, greatest ? infinity : -infinity);  // saturates for integers
}

Scalar combined(Fold how, const Scalar& a, const Scalar& b) {
  switch (how) {
    case Fold::Sum: return a + b;
    case Fold::Product: return a * b;
    case Fold::Min: return min(a, b);
    case Fold::Max: return max(a, b);
    case Fold::And: return a & b;
    case Fold::Or: break;
  }
  return a | b;
}

std::string str(const std::vector<Scalar>& list) {
  std::string out = "{";
  for (const Scalar& s : list) {
    if (out.size() > 1) out += " | ";
    out += ir::str(s);
  }
  return out + '}';
}

}  // namespace

Scalar identity_of(Fold how, DType t) {
  switch (how) {
    case Fold::Sum: return constant_int(t, 0);
    case Fold::Product: return constant_int(t, 1);
    case Fold::Min: return t == DType::Bool ? constant_int(t, 1) : farthest(t, true);
    case Fold::Max: return t == DType::Bool ? constant_int(t, 0) : farthest(t, false);
    case Fold::And: return t == DType::Bool ? constant_int(t, 1) : constant_int(t, -1);
    case Fold::Or: break;
  }
  return constant_int(t, 0);
}

Reduction fold(Fold how, Dims extents, Scalar element) {
  const DType t = element.dtype();
  if ((how == Fold::Sum || how == Fold::Product) && (t == DType::F16 || t == DType::BF16))
    internal_error("a sum or product of ", t, " must be cast to float32 before");
  return {std::move(extents), {std::move(element)}, {identity_of(how, t)}, {combined(how, acc(0, t), right(0, t))}};
}

Reduction fold_position(Fold how, Dims extents, Scalar element, Scalar position) {
  const DType t = element.dtype();
  const Scalar nowhere = constant_int(DType::I32, kNowhere);
  const Scalar a = acc(0, t), b = right(0, t), a_at = acc(1, DType::I32), b_at = right(1, DType::I32);
  Scalar better = how == Fold::Max ? b > a : b < a, tie = a == b, better_later = better;
  if (is_float(t)) {
    const Scalar a_nan = is_nan(a), b_nan = is_nan(b);
    better = better | (b_nan & !a_nan);
    tie = tie | (a_nan & b_nan);
    better_later = (!(how == Fold::Max ? b <= a : b >= a)) & !a_nan;  // the same in two comparisons
  }
  const Scalar take = better | (tie & (b_at < a_at)), take_later = better_later | (a_at == nowhere);
  return {.extents = std::move(extents),
          .element = {std::move(element), std::move(position)},
          .identity = {identity_of(how, t), nowhere},
          .combine = {select(take, b, a), select(take, b_at, a_at)},
          .later = {select(take_later, b, a), select(take_later, b_at, a_at)}};
}

std::string str(const Loops& l) {
  std::string out = "loops " + tandem::str(l.extents);
  if (l.scan_axis >= 0) out += " scan " + std::to_string(l.scan_axis);
  if (l.reduction) {
    const Reduction& r = *l.reduction;
    out +=
        " reduce " + tandem::str(r.extents) + " element " + str(r.element) + " identity " + str(r.identity) + " combine " + str(r.combine);
    if (!r.later.empty()) out += " later " + str(r.later);
    if (r.limit) out += " limit " + str(r.limit);
  }
  for (const Reduction& r : l.row_reductions) {
    out += " row element " + str(r.element) + " identity " + str(r.identity) + " combine " + str(r.combine);
    if (!r.later.empty()) out += " later " + str(r.later);
  }
  if (l.row_results) out += " row results " + std::to_string(l.row_results);
  return out + " results " + str(l.results);
}

}  // namespace tandem::ir
