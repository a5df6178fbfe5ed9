// Turns loops with bound extents into the canonical form that code is generated from and cached by.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "codegen/kernel.hpp"

namespace tandem::codegen {
namespace {

using ir::Prim;
using ir::Scalar;

// An index as numbers: what the bound loops allow us to compute before any code exists.
struct NumericAffine {
  std::vector<int64_t> coefficients;
  int64_t offset = 0;
};

class Canonicalizer {
 public:
  Canonicalizer(const ir::Loops& loops, const Bindings& bindings, std::span<const Layout> in, int kept_axis)
      : loops_(loops), bindings_(bindings), in_(in), outputs_(loops.extents.size()), kept_axis_(kept_axis) {
    if (!loops.row_reductions.empty()) kept_axis_ = static_cast<int>(outputs_) - 1;
    for (const Dim& d : loops.extents) extents_.push_back(d.eval(bindings));
    if (loops.reduction)
      for (const Dim& d : loops.reduction->extents) extents_.push_back(d.eval(bindings));
    // What has no elements has none along any axis: no loop walks around an empty one. A row without columns still has results.
    const auto reduce_begin = extents_.begin() + static_cast<std::ptrdiff_t>(outputs_);
    if (loops.row_reductions.empty()) empty_all(extents_.begin(), reduce_begin);
    empty_all(reduce_begin, extents_.end());
    pinned_.assign(extents_.size(), false);
    for (const int axis : {loops.scan_axis, kept_axis_})
      if (axis >= 0) pinned_[static_cast<size_t>(axis)] = true;
  }

  LoopKernel run(std::span<const DType> out) {
    for_each_root([&](const Scalar& s) { survey(s); });
    choose_axes();
    LoopKernel k;
    k.outputs.assign(out.begin(), out.end());
    for (const Layout& o : in_) k.inputs.push_back(o.dtype);
    result_ = &k;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const bool is_output = groups_[g].axes.front() < outputs_;
      (is_output ? k.extents : k.reduce_extents).push_back(groups_[g].extent);
      const Scalar p = parameter(groups_[g].extent);
      if (is_output)
        k.loops.extents.push_back(p->dim);
      else
        reduce_dims_.push_back(p->dim);
    }
    if (loops_.scan_axis >= 0) k.loops.scan_axis = new_axis_[static_cast<size_t>(loops_.scan_axis)];
    if (loops_.reduction) {
      ir::Reduction r;
      r.extents = reduce_dims_;
      // Nothing is loaded where there is nothing: code may load what does not vary before it enters a loop that has no turns.
      const bool empty = std::find(extents_.begin() + static_cast<std::ptrdiff_t>(outputs_), extents_.end(), 0) != extents_.end();
      for (const Scalar& s : empty ? loops_.reduction->identity : loops_.reduction->element) r.element.push_back(value(s));
      r.identity = loops_.reduction->identity;
      r.combine = loops_.reduction->combine;
      r.later = loops_.reduction->later;
      if (loops_.reduction->limit) r.limit = index(loops_.reduction->limit);
      k.loops.reduction = std::move(r);
    }
    for (const ir::Reduction& row : loops_.row_reductions) {
      ir::Reduction r = row;
      for (Scalar& s : r.element = empty_rows() ? row.identity : row.element) s = value(s);
      k.loops.row_reductions.push_back(std::move(r));
    }
    k.loops.row_results = loops_.row_results;
    for (size_t o = 0; o < loops_.results.size(); ++o) {
      const bool whole = o + static_cast<size_t>(loops_.row_results) < loops_.results.size();
      const Scalar& s = loops_.results[o];
      k.loops.results.push_back(whole && empty_rows() ? ir::constant(s.dtype(), 0) : value(s));
    }
    k.key = ir::str(k.loops);
    k.key += cat(" in ", k.inputs.size());  // outputs come behind the inputs, also behind one that is not read
    for (DType t : k.outputs) k.key += cat(" ->", name(t));
    return k;
  }

 private:
  template <class It> static void empty_all(It begin, It end) {
    if (std::find(begin, end, 0) != end) std::fill(begin, end, 0);
  }
  bool empty_rows() const { return !loops_.row_reductions.empty() && extents_[outputs_ - 1] == 0; }

  struct Group {
    std::vector<size_t> axes;  // old axes, outermost first, that became one
    int64_t extent;
  };

  template <class F> void for_each_root(F f) {
    if (loops_.reduction) {
      for (const Scalar& s : loops_.reduction->element) f(s);
      if (loops_.reduction->limit) pin(loops_.reduction->limit);
    }
    for (const ir::Reduction& r : loops_.row_reductions)
      for (const Scalar& s : r.element) f(s);
    for (const Scalar& s : loops_.results) f(s);
  }

  // Finds every load and whether its address is affine; axes that are seen anywhere else keep their identity.
  void survey(const Scalar& s) {
    if (!surveyed_.emplace(s.get(), true).second) return;
    if (s->prim == Prim::Axis) pinned_[static_cast<size_t>(s->index)] = true;
    if (s->prim != Prim::Load) {
      for (const Scalar& x : s->in) survey(x);
      return;
    }
    const Layout& o = in_[static_cast<size_t>(s->index)];
    const size_t rank = o.shape.size();
    TANDEM_CHECK(s->in.size() == rank + (s->guarded ? 2 : 0), "load", s->index, " has ", s->in.size(), " operands for rank ", rank);
    std::optional<NumericAffine> sum = NumericAffine{std::vector<int64_t>(extents_.size(), 0), 0};
    for (size_t d = 0; d < rank && sum; ++d) {
      auto a = numeric(s->in[d]);
      if (!a) {
        sum.reset();
        break;
      }
      for (size_t j = 0; j < extents_.size(); ++j) sum->coefficients[j] += a->coefficients[j] * o.strides[d];
      sum->offset += a->offset * o.strides[d];
    }
    if (!sum)
      for (size_t d = 0; d < rank; ++d) pin(s->in[d]);
    if (s->guarded) {
      pin(s->in[rank]);
      survey(s->in[rank + 1]);
    }
    if (sum) loads_.emplace(s.get(), std::move(*sum));
  }

  void pin(const Scalar& s) { survey(s); }  // an Axis reached outside an affine address is pinned by survey

  std::optional<NumericAffine> numeric(const Scalar& s) {
    NumericAffine r{std::vector<int64_t>(extents_.size(), 0), 0};
    switch (s->prim) {
      case Prim::Const: r.offset = static_cast<int64_t>(s->bits); return r;
      case Prim::Extent: r.offset = s->dim.eval(bindings_); return r;
      case Prim::Axis: r.coefficients[static_cast<size_t>(s->index)] = 1; return r;
      case Prim::Add:
      case Prim::Sub: {
        auto a = numeric(s->in[0]), b = numeric(s->in[1]);
        if (!a || !b) return {};
        const int64_t sign = s->prim == Prim::Add ? 1 : -1;
        for (size_t j = 0; j < extents_.size(); ++j) r.coefficients[j] = a->coefficients[j] + sign * b->coefficients[j];
        r.offset = a->offset + sign * b->offset;
        return r;
      }
      case Prim::Neg: {
        auto a = numeric(s->in[0]);
        if (!a) return {};
        for (size_t j = 0; j < extents_.size(); ++j) r.coefficients[j] = -a->coefficients[j];
        r.offset = -a->offset;
        return r;
      }
      case Prim::Mul: {
        auto a = numeric(s->in[0]), b = numeric(s->in[1]);
        if (!a || !b) return {};
        auto constant = [](const NumericAffine& x) {
          return std::all_of(x.coefficients.begin(), x.coefficients.end(), [](int64_t c) { return c == 0; });
        };
        if (!constant(*a) && !constant(*b)) return {};
        const NumericAffine& v = constant(*a) ? *b : *a;
        const int64_t c = constant(*a) ? a->offset : b->offset;
        for (size_t j = 0; j < extents_.size(); ++j) r.coefficients[j] = v.coefficients[j] * c;
        r.offset = v.offset * c;
        return r;
      }
      default: return {};
    }
  }

  // Axes of extent 1 vanish; neighbours merge when every load steps over the outer one as a multiple of the inner one.
  void choose_axes() {
    new_axis_.assign(extents_.size(), -1);
    for (size_t j = 0; j < extents_.size(); ++j) {
      const bool kept = static_cast<int>(j) == loops_.scan_axis || static_cast<int>(j) == kept_axis_;
      const bool limited = j == outputs_ && loops_.reduction && loops_.reduction->limit;  // the limit counts in this axis
      if (extents_[j] == 1 && !kept && !limited) continue;
      const bool same_side = !groups_.empty() && (groups_.back().axes.front() < outputs_) == (j < outputs_);
      const size_t last = groups_.empty() ? 0 : groups_.back().axes.back();
      const bool last_limited = same_side && last == outputs_ && loops_.reduction && loops_.reduction->limit;
      bool merge = same_side && !pinned_[j] && !pinned_[last] && !last_limited;
      for (auto it = loads_.begin(); merge && it != loads_.end(); ++it)
        merge = it->second.coefficients[last] == it->second.coefficients[j] * extents_[j];
      if (merge) {
        groups_.back().axes.push_back(j);
        groups_.back().extent *= extents_[j];
      } else {
        groups_.push_back({{j}, extents_[j]});
      }
      new_axis_[j] = static_cast<int>(groups_.size()) - 1;
    }
  }

  Scalar parameter(int64_t v) {
    auto n = std::make_shared<ir::ScalarNode>();
    n->prim = Prim::Extent;
    n->dtype = DType::I64;
    n->index = static_cast<int32_t>(result_->params.size());
    n->dim = Dim::symbol(cat("p", result_->params.size()));
    result_->params.push_back(v);
    return Scalar(std::move(n));
  }
  Scalar number(int64_t v) { return v >= -1 && v <= 1 ? ir::constant_int(DType::I64, v) : parameter(v); }

  // Code that differs only in a number that the program chose is compiled once. Those that instructions know of stay what they are.
  Scalar constant(const Scalar& s) {
    const bool is_single = s->dtype == DType::F32;
    if (s->index != 1 || (!is_single && s->dtype != DType::F64)) return s;
    if (const double v = std::abs(ir::constant_value(*s)); v == 0 || v == 1) return s;
    return ir::bitcast(ir::cast(parameter(static_cast<int64_t>(s->bits)), is_single ? DType::U32 : DType::U64), s->dtype);
  }

  Scalar moved_axis(const Scalar& s) {
    const int a = new_axis_[static_cast<size_t>(s->index)];
    return a < 0 ? ir::constant_int(DType::I64, 0) : ir::axis(a);
  }

  // Inside addresses and guards every number may vary from launch to launch.
  Scalar index(const Scalar& s) { return transform(s, true); }
  Scalar value(const Scalar& s) { return transform(s, false); }

  Scalar transform(const Scalar& s, bool in_index) {
    auto& memo = in_index ? index_memo_ : value_memo_;
    if (auto it = memo.find(s.get()); it != memo.end()) return it->second;
    Scalar r;
    if (s->prim == Prim::Axis) {
      r = moved_axis(s);
    } else if (s->prim == Prim::Extent) {
      r = in_index ? number(s->dim.eval(bindings_)) : parameter(s->dim.eval(bindings_));
    } else if (s->prim == Prim::Const) {
      r = in_index && s->dtype == DType::I64 ? number(static_cast<int64_t>(s->bits)) : in_index ? s : constant(s);
    } else if (s->prim == Prim::Load) {
      r = transform_load(s);
    } else if (s->in.empty()) {
      r = s;
    } else {
      std::vector<Scalar> in;
      // Division by a number that is known is several times faster, and there are few such numbers: strides of windows, factors of shapes.
      const bool divides = s->prim == Prim::Div || s->prim == Prim::Rem;
      for (const Scalar& x : s->in) in.push_back(divides && x->prim == Prim::Const ? x : transform(x, in_index));
      r = s->prim == Prim::Cast      ? ir::cast(in[0], s->dtype)
          : s->prim == Prim::Bitcast ? ir::bitcast(in[0], s->dtype)
                                     : ir::make(s->prim, std::move(in));
    }
    memo.emplace(s.get(), r);
    return r;
  }

  Scalar transform_load(const Scalar& s) {
    const Layout& o = in_[static_cast<size_t>(s->index)];
    const size_t rank = o.shape.size();
    Scalar offset;
    auto add = [&](Scalar x) { offset = offset ? offset + x : x; };
    if (auto it = loads_.find(s.get()); it != loads_.end()) {
      for (size_t g = 0; g < groups_.size(); ++g)
        if (const int64_t c = it->second.coefficients[groups_[g].axes.back()]; c != 0) {
          const Scalar a = ir::axis(static_cast<int>(g));
          add(c == 1 ? a : a * number(c));
        }
      if (it->second.offset != 0) add(number(it->second.offset));
    } else {
      for (size_t d = 0; d < rank; ++d)
        if (o.strides[d] != 0) {
          const Scalar i = index(s->in[d]);
          add(o.strides[d] == 1 ? i : i * number(o.strides[d]));
        }
    }
    if (!offset) offset = ir::constant_int(DType::I64, 0);
    if (!s->guarded) return ir::load(s->index, s->dtype, {offset});
    return ir::load_if(s->index, s->dtype, {offset}, index(s->in[rank]), value(s->in[rank + 1]));
  }

  const ir::Loops& loops_;
  const Bindings& bindings_;
  std::span<const Layout> in_;
  size_t outputs_;
  int kept_axis_;
  std::vector<int64_t> extents_;  // output axes, then reduce axes
  std::vector<bool> pinned_;
  std::unordered_map<const ir::ScalarNode*, bool> surveyed_;
  std::unordered_map<const ir::ScalarNode*, NumericAffine> loads_;
  std::vector<Group> groups_;
  std::vector<int> new_axis_;
  Dims reduce_dims_;
  LoopKernel* result_ = nullptr;
  std::unordered_map<const ir::ScalarNode*, Scalar> index_memo_, value_memo_;
};

}  // namespace

LoopKernel canonical(const ir::Loops& loops, const Bindings& bindings, std::span<const Layout> in, std::span<const DType> out,
                     int kept_axis) {
  return Canonicalizer(loops, bindings, in, kept_axis).run(out);
}

std::optional<int64_t> step_along(const Scalar& index, int axis) {
  std::unordered_map<const ir::ScalarNode*, std::optional<int64_t>> steps;
  for (const Scalar& s : ir::post_order(std::span(&index, 1))) {
    const auto of = [&](size_t i) { return steps.at(s->in[i].get()); };
    std::optional<int64_t>& step = steps[s.get()];
    if (s->prim == Prim::Axis) {
      step = s->index == axis ? 1 : 0;
    } else if (std::ranges::all_of(s->in, [&](const Scalar& x) { return steps.at(x.get()) == 0; })) {
      step = 0;
    } else if (s->prim == Prim::Add || s->prim == Prim::Sub) {
      if (of(0) && of(1)) step = s->prim == Prim::Add ? *of(0) + *of(1) : *of(0) - *of(1);
    } else if (s->prim == Prim::Neg) {
      if (of(0)) step = -*of(0);
    } else if (s->prim == Prim::Mul) {
      for (size_t i = 0; i < 2; ++i)
        if (of(i) && s->in[1 - i]->prim == Prim::Const) step = *of(i) * static_cast<int64_t>(s->in[1 - i]->bits);
    }
  }
  return steps.at(index.get());
}

Scalar shared_by_four(std::span<const Scalar> elements, int axis) {
  Scalar found;
  for (const Scalar& s : ir::post_order(elements)) {
    if (s->prim != Prim::Shr || s->in[1]->prim != Prim::Const || s->in[1]->bits != 2 || step_along(s->in[0], axis) != 1) continue;
    if (found && found.get() != s->in[0].get()) return {};
    found = s->in[0];
  }
  return found;
}

}  // namespace tandem::codegen
