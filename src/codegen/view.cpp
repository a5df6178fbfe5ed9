#include "codegen/view.hpp"

#include <algorithm>

namespace tandem::codegen {
namespace {

using ir::Prim;
using ir::Scalar;

// The value of an affine index where one axis (or none) is 1 and all others are 0; nothing when it is not affine.
std::optional<int64_t> value_at(const Scalar& s, int axis, const Bindings& bindings) {
  switch (s->prim) {
    case Prim::Const: return static_cast<int64_t>(s->bits);
    case Prim::Extent: return s->dim.eval(bindings);
    case Prim::Axis: return s->index == axis ? 1 : 0;
    case Prim::Neg:
      if (const auto a = value_at(s->in[0], axis, bindings)) return -*a;
      return {};
    case Prim::Add:
    case Prim::Sub: {
      const auto a = value_at(s->in[0], axis, bindings), b = value_at(s->in[1], axis, bindings);
      if (!a || !b) return {};
      return s->prim == Prim::Add ? *a + *b : *a - *b;
    }
    case Prim::Mul: {
      const auto has_axis = [](const Scalar& x) {
        const std::vector<Scalar> nodes = ir::post_order(std::span(&x, 1));
        return std::any_of(nodes.begin(), nodes.end(), [](const Scalar& n) { return n->prim == Prim::Axis; });
      };
      if (has_axis(s->in[0]) && has_axis(s->in[1])) return {};
      const auto a = value_at(s->in[0], axis, bindings), b = value_at(s->in[1], axis, bindings);
      if (!a || !b) return {};
      return *a * *b;
    }
    default: return {};
  }
}

}  // namespace

std::optional<View> as_view(const ir::Loops& loops, const Bindings& bindings, const Layout& in) {
  if (loops.reduction || loops.scan_axis >= 0 || !loops.row_reductions.empty() || loops.results.size() != 1) return {};
  const Scalar& s = loops.results[0];
  if (s->prim != Prim::Load || s->guarded || s->index != 0 || s->in.size() != in.shape.size()) return {};
  View v;
  v.operand.dtype = in.dtype;
  v.operand.shape = bind(loops.extents, bindings);
  for (size_t j = 0; j < loops.extents.size(); ++j) v.operand.strides.push_back(0);
  for (size_t d = 0; d < s->in.size(); ++d) {
    const auto start = value_at(s->in[d], -1, bindings);
    if (!start) return {};
    v.offset += *start * in.strides[d];
    for (size_t j = 0; j < loops.extents.size(); ++j)
      v.operand.strides[j] += (*value_at(s->in[d], static_cast<int>(j), bindings) - *start) * in.strides[d];
  }
  return v;
}

}  // namespace tandem::codegen
