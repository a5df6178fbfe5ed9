// Joining and splitting: concatenate, stack, split, unstack.
#include <algorithm>

#include "ops/helpers.hpp"
#include "ops/movement.hpp"

namespace tandem::ops {
using namespace ir;
namespace {

using Types = std::vector<TensorType>;

// --- concatenate ---
// More operands than one kernel reads are joined in groups, so a thousand cost four passes and not a chain of a thousand.

void require_operands(const OpCall& call) {
  if (call.in.empty()) call.fail("at least one operand is needed");
}

void require_same_rank(const OpCall& call) {
  require_operands(call);
  for (size_t k = 1; k < call.in.size(); ++k)
    if (call.in[k].rank() != call.in[0].rank())
      call.fail("operand ", k, " ", str(call.in[k].dims), " has ", call.in[k].rank(), " axes, operand 0 ", str(call.in[0].dims), " has ",
                call.in[0].rank());
}

// `skip` is the axis along which sizes may differ, or -1.
void require_same_sizes(const OpCall& call, int64_t skip) {
  for (size_t k = 1; k < call.in.size(); ++k)
    for (size_t a = 0; a < call.in[k].dims.size(); ++a) {
      const Dim &here = call.in[k].dims[a], &first = call.in[0].dims[a];
      if (static_cast<int64_t>(a) != skip && !(here == first))
        call.fail("operand ", k, " ", str(call.in[k].dims), " and operand 0 ", str(call.in[0].dims), " differ on axis ", a, " (", here,
                  " != ", first, ")");
    }
}

Types infer_concatenate(const OpCall& call) {
  require_same_rank(call);
  int64_t axis = call.axis("axis", call.in[0].rank());
  require_same_sizes(call, axis);
  Dims dims = call.in[0].dims;
  Dim& total = dims[static_cast<size_t>(axis)];
  for (size_t k = 1; k < call.in.size(); ++k) total = total + call.in[k].dims[static_cast<size_t>(axis)];
  return {{call.in[0].dtype, dims}};
}

std::vector<Expr> decompose_concatenate(Builder& b, const OpCall& call, std::span<const Expr> in) {
  std::vector<Expr> parts(in.begin(), in.end());
  int64_t axis = call.axis("axis", in[0].rank());
  while (parts.size() > 1) {
    std::vector<Expr> joined;
    for (size_t k = 0; k < parts.size(); k += kMostJoined) {
      std::span<const Expr> group = std::span(parts).subspan(k, std::min(kMostJoined, parts.size() - k));
      joined.push_back(group.size() == 1 ? group[0] : ir::call(b, "concatenate_few", group, {{"axis", axis}})[0]);
    }
    parts = std::move(joined);
  }
  return parts;
}

Types infer_few(const OpCall& call) {
  Types types = infer_concatenate(call);
  if (call.in.size() > kMostJoined) call.fail("at most ", kMostJoined, " operands, got ", call.in.size());
  return types;
}

// Each operand answers for its part of the axis, and hands on to the next outside of it.
Loops few_loops(const OpCall& call, std::span<const TensorType> out) {
  auto along = static_cast<size_t>(call.axis("axis", out[0].rank()));
  DType t = out[0].dtype;
  std::vector<Dim> begins{0};
  for (const TensorType& x : call.in) begins.push_back(begins.back() + x.dims[along]);
  std::vector<Scalar> index = output_axes(out[0].rank());
  Scalar here = index[along], result = constant(t, 0);
  for (size_t k = call.in.size(); k-- > 0;) {
    Scalar begin = extent(begins[k]), valid = here < extent(begins[k + 1]);
    if (k > 0) valid = (here >= begin) & valid;
    index[along] = here - begin;
    result = load_if(static_cast<int>(k), t, index, valid, result);
  }
  return map_loops(out[0].dims, result);
}

// x from `begin` on, `size` long, along one axis.
Expr part_of(const Expr& x, int axis, const Dim& begin, const Dim& size) {
  Dims start(x.dims().size(), 0), limit = x.dims();
  start[static_cast<size_t>(axis)] = begin;
  limit[static_cast<size_t>(axis)] = begin + size;
  return x.op("slice", {{"start", start}, {"limit", limit}, {"step", Ints(start.size(), 1)}});
}

std::vector<Expr> parts_of(const Expr& x, int axis, std::span<const Dim> sizes, const std::vector<bool>* needed = nullptr) {
  std::vector<Expr> parts;
  Dim begin = 0;
  for (size_t k = 0; k < sizes.size(); ++k) {
    parts.push_back(!needed || (*needed)[k] ? part_of(x, axis, begin, sizes[k]) : Expr());
    begin = begin + sizes[k];
  }
  return parts;
}

std::vector<Expr> vjp_concatenate(const GradCall& g) {
  int axis = grad_axis(g);
  Dims sizes;
  for (const Expr& x : g.in) sizes.push_back(x.dims()[static_cast<size_t>(axis)]);
  return parts_of(g.grad(), axis, sizes, &g.needed);
}

// --- stack ---
Types infer_stack(const OpCall& call) {
  require_same_rank(call);
  require_same_sizes(call, -1);
  Dims dims = call.in[0].dims;
  int64_t axis = call.axis("axis", call.in[0].rank() + 1);
  dims.insert(dims.begin() + axis, static_cast<int64_t>(call.in.size()));
  return {{call.in[0].dtype, dims}};
}
std::vector<Expr> decompose_stack(Builder& b, const OpCall& call, std::span<const Expr> in) {
  int64_t axis = call.axis("axis", in[0].rank() + 1);
  std::vector<Expr> parts;
  for (const Expr& x : in) parts.push_back(x.op("expand_dims", {{"axis", Ints{axis}}}));
  return ir::call(b, "concatenate", parts, {{"axis", axis}});
}
std::vector<Expr> vjp_stack(const GradCall& g) {
  int axis = normalize_axis(g.node.attrs.get<int64_t>("axis"), g.in[0].rank() + 1, g.node.op->name);
  std::vector<Expr> grads;
  for (Expr& part : parts_of(g.grad(), axis, Dims(g.in.size(), 1), &g.needed)) grads.push_back(part ? part.reshape(g.in[0].dims()) : part);
  return grads;
}

// --- split ---
// The sizes with -1 filled in.
Dims split_sizes(const OpCall& call) {
  const Dims& dims = call.in[0].dims;
  Dims sizes = call.attrs.get<Dims>("sizes");
  const Dim& whole = dims[static_cast<size_t>(call.axis("axis", call.in[0].rank()))];
  Dim known = 0;
  Dim* open = nullptr;
  for (Dim& s : sizes) {
    if (!s.is_const() || s.value() >= 0)
      known = known + s;
    else if (!s.is(-1) || open)
      call.fail("sizes ", str(sizes), " must not be negative, but for one -1");
    else
      open = &s;
  }
  if (open) {
    *open = whole - known;
    if (open->is_const() && open->value() < 0) call.fail("the sizes make ", known, ", the axis of ", str(dims), " has only ", whole);
  } else if (!(known == whole)) {
    call.fail("the sizes ", str(sizes), " make ", known, ", the axis of ", str(dims), " has ", whole, " (", known, " != ", whole, ")");
  }
  return sizes;
}
Types infer_split(const OpCall& call) {
  Types types;
  auto axis = static_cast<size_t>(call.axis("axis", call.in[0].rank()));
  for (const Dim& size : split_sizes(call)) {
    types.push_back(call.in[0]);
    types.back().dims[axis] = size;
  }
  return types;
}
std::vector<Expr> decompose_split(Builder&, const OpCall& call, std::span<const Expr> in) {
  return parts_of(in[0], static_cast<int>(call.axis("axis", in[0].rank())), split_sizes(call));
}
std::vector<Expr> all_grads(const GradCall& g) {
  std::vector<Expr> grads;
  for (size_t k = 0; k < g.out.size(); ++k) grads.push_back(g.grad(k));
  return grads;
}
std::vector<Expr> vjp_split(const GradCall& g) { return ir::call(g.builder, "concatenate", all_grads(g), {{"axis", grad_axis(g)}}); }

// --- unstack ---
Types infer_unstack(const OpCall& call) {
  auto axis = static_cast<int>(call.axis("axis", call.in[0].rank()));
  TensorType one{call.in[0].dtype, reduced_dims(call.in[0].dims, {axis}, false)};
  return Types(static_cast<size_t>(axis_extent(call, call.in[0].dims, axis)), one);
}
std::vector<Expr> decompose_unstack(Builder&, const OpCall& call, std::span<const Expr> in) {
  int axis = static_cast<int>(call.axis("axis", in[0].rank()));
  auto count = static_cast<size_t>(axis_extent(call, in[0].dims(), axis));
  std::vector<Expr> parts = parts_of(in[0], axis, Dims(count, 1));
  for (Expr& part : parts) part = part.op("squeeze", {{"axis", Ints{axis}}});
  return parts;
}
std::vector<Expr> vjp_unstack(const GradCall& g) { return ir::call(g.builder, "stack", all_grads(g), {{"axis", grad_axis(g)}}); }

}  // namespace

Rows joining_rows() {
  return {
      {.name = "concatenate",
       .sig = "(xs: any...; axis: int = 0) -> same",
       .doc = "Tensors one behind the other along an axis; all other sizes are equal.",
       .infer = infer_concatenate,
       .decompose = decompose_concatenate,
       .vjp = vjp_concatenate,
       .samples = {"([2,3], [1,3])", "([2,3], [2,1], [2,4]; axis=-1)", "([0,3], [2,3])", "([5])", "([70]:float32, [3]:float32)",
                   "([2,1,2,1,2]:float32, [2,3,2,1,2]:float32; axis=1)",
                   "([1], [2], [0], [3], [1], [2], [2], [1], [4], [1], [1], [2], [2], [1], [1], [1], [1], [1])"}},
      {.name = "concatenate_few",
       .sig = "(xs: any...; axis: int = 0) -> same",
       .doc = "concatenate of up to eight tensors in one kernel; concatenate is made of it.",
       .infer = infer_few,
       .loops = few_loops,
       .vjp = vjp_concatenate,
       .samples = {"([2,3], [1,3])", "([2,3]:float32, [2,0]:float32, [2,4]:float32; axis=-1)"}},
      {.name = "stack",
       .sig = "(xs: any...; axis: int = 0) -> same",
       .doc = "Tensors of one shape one behind the other along a new axis.",
       .infer = infer_stack,
       .decompose = decompose_stack,
       .vjp = vjp_stack,
       .samples = {"([2,3], [2,3])", "([2,3], [2,3], [2,3]; axis=-1)", "([], [])", "([0,3], [0,3]; axis=1)",
                   "([70]:float32, [70]:float32; axis=1)"}},
      {.name = "split",
       .sig = "(x: own; sizes: shape, axis: int = 0) -> custom",
       .doc = "The parts of a tensor along an axis, of the given sizes; one size may be -1 and is then whatever is left.",
       .infer = infer_split,
       .decompose = decompose_split,
       .vjp = vjp_split,
       .samples = {"([5]; sizes=[2,3])", "([2,6]; sizes=[1,-1,2], axis=-1)", "([0,3]; sizes=[0,0])", "([100]:float32; sizes=[70,30])"}},
      {.name = "unstack",
       .sig = "(x: own; axis: int = 0) -> custom",
       .doc = "The slices of a tensor along an axis, without it.",
       .infer = infer_unstack,
       .decompose = decompose_unstack,
       .vjp = vjp_unstack,
       .samples = {"([2,3])", "([2,3]; axis=-1)", "([3])", "([2,0])", "([2,70]:float32)"}},
  };
}

}  // namespace tandem::ops
