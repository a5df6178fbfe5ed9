// Indexing: basic indices become one `slice` and one `reshape`; tensors of indices become `take`, or `gather_nd` when there are several.
#include <tandem/index.hpp>

#include <algorithm>
#include <vector>

#include "frontend/apply.hpp"
#include "frontend/tensor_impl.hpp"

namespace tandem {
namespace {

using frontend::call;
using frontend::row;

// What one axis of the indexed tensor becomes.
struct Axis {
  Dim start, limit;
  int64_t step = 1;
  Dim extent;  // what the slice leaves
  bool is_whole = true;
};

// How the result's axes are made from the sliced tensor's.
struct Part {
  enum class Kind : uint8_t { Keep, Drop, New, Gather };
  Kind kind;
  size_t axis = 0;  // of the indexed tensor; not for New
  const Tensor* indices = nullptr;
};

// A bound counted from the end, then clipped to [low, high]; symbols stay in the expression.
Dim normalised(const Dim& bound, const Dim& extent, const Dim& low, const Dim& high) {
  const Dim counted = bound.is_const() && bound.value() < 0 ? extent + bound : bound;
  return min(max(counted, low), high);
}

// The same for a step forward, from 0 to the extent. One from the end is written with the same min() as one from the start, so that x[1:]
// and x[:-1] are seen to have one extent.
Dim forward_bound(const Dim& bound, const Dim& extent) {
  if (bound.is_const() && bound.value() < 0) return extent - min(extent, Dim(-bound.value()));
  return normalised(bound, extent, 0, extent);
}

Axis sliced(const Slice& s, const Dim& extent) {
  if (s.step == 0) user_error("index: a slice's step must not be 0");
  Axis a;
  a.step = s.step;
  if (s.step > 0) {
    a.start = s.start ? forward_bound(*s.start, extent) : Dim(0);
    a.limit = s.stop ? forward_bound(*s.stop, extent) : extent;
    // An empty range has its limit at its start.
    if (!(a.start.is(0) || a.limit == extent)) a.limit = max(a.limit, a.start);
    a.extent = ceil_div(a.limit - a.start, s.step);
  } else {
    a.start = s.start ? normalised(*s.start, extent, -1, extent - 1) : extent - 1;
    a.limit = s.stop ? normalised(*s.stop, extent, -1, extent - 1) : Dim(-1);
    if (!(a.limit.is(-1) || a.start == extent - 1)) a.limit = min(a.limit, a.start);
    a.extent = ceil_div(a.start - a.limit, -s.step);
  }
  a.is_whole = s.step == 1 && a.start.is(0) && a.limit == extent;
  return a;
}

Axis picked(int64_t at, const Dim& extent, size_t axis) {
  if (extent.is_const() && (at < -extent.value() || at >= extent.value()))
    user_error(ErrorCode::OutOfRange, "index: index ", at, " is out of range for axis ", axis, " with size ", extent);
  Axis a;
  a.start = at < 0 ? extent + at : Dim(at);
  a.limit = a.start + 1;
  a.extent = 1;
  a.is_whole = false;
  return a;
}

Axis whole(const Dim& extent) { return {.start = 0, .limit = extent, .extent = extent}; }

class Indexer {
 public:
  Indexer(const Tensor& x, std::span<const Index* const> indices) : x_(x), dims_(x.dims()), where_(Location::of(indices[0]->where())) {
    size_t named = 0, rests = 0;
    for (const Index* i : indices) {
      named += i->kind() == Index::Kind::Number || i->kind() == Index::Kind::Range || i->kind() == Index::Kind::Gather;
      rests += i->kind() == Index::Kind::Rest;
    }
    if (rests > 1) user_error("index: only one ellipsis is possible, there are ", rests);
    if (named > dims_.size()) user_error("index: ", named, " indices for a tensor ", x.type_str(), " with ", dims_.size(), " axes");
    const size_t unnamed = dims_.size() - named;
    for (const Index* i : indices) add(*i, unnamed);
    while (axes_.size() < dims_.size()) keep();
  }

  Tensor result() const {
    const Tensor basic = reshaped(sliced_x());
    size_t gathers = 0;
    for (const Part& p : parts_) gathers += p.kind == Part::Kind::Gather;
    return gathers == 0 ? basic : gathers == 1 ? taken(basic) : gathered(basic);
  }

 private:
  void keep() {
    parts_.push_back({Part::Kind::Keep, axes_.size()});
    axes_.push_back(whole(dims_[axes_.size()]));
  }

  void add(const Index& i, size_t unnamed) {
    const size_t axis = axes_.size();
    switch (i.kind()) {
      case Index::Kind::Number:
        parts_.push_back({Part::Kind::Drop, axis});
        axes_.push_back(picked(i.at(), dims_[axis], axis));
        break;
      case Index::Kind::Range:
        parts_.push_back({Part::Kind::Keep, axis});
        axes_.push_back(sliced(i.range(), dims_[axis]));
        break;
      case Index::Kind::Rest:
        for (size_t k = 0; k < unnamed; ++k) keep();
        break;
      case Index::Kind::New: parts_.push_back({Part::Kind::New}); break;
      case Index::Kind::Gather:
        if (!is_int(i.indices().dtype()))
          user_error("index: a tensor of indices must be of an integer type, it is ", i.indices().type_str(),
                     i.indices().dtype() == DType::Bool ? "\n  hint: where() chooses by a mask and keeps the shape" : "");
        parts_.push_back({Part::Kind::Gather, axis, &i.indices()});
        axes_.push_back(whole(dims_[axis]));
        break;
      case Index::Kind::None: break;
    }
  }

  Tensor op(const ir::OpDef& op, const Tensor& x, const ir::Attrs& attrs) const {
    const Operand operand(x, std::source_location());
    return call(op, {&operand}, attrs, where_);
  }

  Tensor sliced_x() const {
    if (std::ranges::all_of(axes_, [](const Axis& a) { return a.is_whole; })) return x_;
    static const ir::OpDef& slice = row("slice");
    Dims start, limit;
    ir::Ints step;
    for (const Axis& a : axes_) {
      start.push_back(a.start);
      limit.push_back(a.limit);
      step.push_back(a.step);
    }
    return op(slice, x_, {{"start", start}, {"limit", limit}, {"step", step}});
  }

  // Axes that a number named go away, new ones come in.
  Tensor reshaped(const Tensor& t) const {
    if (std::ranges::all_of(parts_, [](const Part& p) { return p.kind == Part::Kind::Keep || p.kind == Part::Kind::Gather; })) return t;
    static const ir::OpDef& reshape = row("reshape");
    Dims to;
    for (const Part& p : parts_) {
      if (p.kind == Part::Kind::New) to.emplace_back(1);
      if (p.kind == Part::Kind::Keep || p.kind == Part::Kind::Gather) to.push_back(axes_[p.axis].extent);
    }
    return op(reshape, t, {{"shape", to}});
  }

  // Positions of the Gather parts among the result's axes before gathering.
  std::vector<int64_t> gather_axes() const {
    std::vector<int64_t> positions;
    int64_t position = 0;
    for (const Part& p : parts_) {
      if (p.kind == Part::Kind::Gather) positions.push_back(position);
      position += p.kind != Part::Kind::Drop;
    }
    return positions;
  }

  std::vector<const Tensor*> index_tensors() const {
    std::vector<const Tensor*> tensors;
    for (const Part& p : parts_)
      if (p.kind == Part::Kind::Gather) tensors.push_back(p.indices);
    return tensors;
  }

  Tensor taken(const Tensor& x) const {
    static const ir::OpDef& take = row("take");
    const Operand data(x, std::source_location()), indices(*index_tensors()[0], std::source_location());
    return call(take, {&data, &indices}, {{"axis", gather_axes()[0]}}, where_);
  }

  // NumPy: index tensors broadcast together; their axes stand where they stood if they were neighbours, else in front.
  Tensor gathered(const Tensor& x) const {
    static const ir::OpDef &transpose = row("transpose"), &gather = row("gather_nd"), &stack = row("stack"),
                           &broadcast_to = row("broadcast_to");
    const std::vector<int64_t> axes = gather_axes();
    ir::Ints order(axes.begin(), axes.end());
    for (int64_t i = 0; i < x.rank(); ++i)
      if (std::ranges::find(axes, i) == axes.end()) order.push_back(i);

    Dims common;
    for (const Tensor* t : index_tensors()) common = broadcast(common, t->dims());
    std::vector<Tensor> spread;
    for (const Tensor* t : index_tensors()) spread.push_back(op(broadcast_to, *t, {{"shape", common}}));
    std::vector<Operand> operands;
    for (const Tensor& t : spread) operands.emplace_back(t, std::source_location());
    std::vector<const Operand*> pointers;
    for (const Operand& o : operands) pointers.push_back(&o);
    const Tensor index = call(stack, pointers, {{"axis", static_cast<int64_t>(common.size())}}, where_);

    const Tensor front = op(transpose, x, {{"perm", order}});
    const Operand data(front, std::source_location()), at(index, std::source_location());
    Tensor result = call(gather, {&data, &at}, ir::Attrs{}, where_);
    if (axes.back() - axes.front() + 1 != static_cast<int64_t>(axes.size()) || axes.front() == 0) return result;

    const auto first = axes.front(), count = static_cast<int64_t>(common.size());
    ir::Ints back;
    for (int64_t i = 0; i < first; ++i) back.push_back(count + i);
    for (int64_t i = 0; i < count; ++i) back.push_back(i);
    for (int64_t i = count + first; i < result.rank(); ++i) back.push_back(i);
    return op(transpose, result, {{"perm", back}});
  }

  const Tensor& x_;
  const Dims dims_;
  const Location where_;
  std::vector<Axis> axes_;  // one for each axis of x
  std::vector<Part> parts_;
};

}  // namespace

Tensor Tensor::operator()(const Index& a, const Index& b, const Index& c, const Index& d, const Index& e, const Index& f, const Index& g,
                          const Index& h) const {
  const Index* const all[] = {&a, &b, &c, &d, &e, &f, &g, &h};
  size_t count = 0;
  while (count < std::size(all) && all[count]->kind() != Index::Kind::None) ++count;
  if (count == 0) return *this;
  try {
    return Indexer(*this, {all, count}).result();
  } catch (...) {
    frontend::rethrow_at(Location::of(a.where()));
  }
}

}  // namespace tandem
