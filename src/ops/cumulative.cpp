// Running totals along one axis.
#include "ops/helpers.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
using namespace ir;
namespace {

using Types = std::vector<TensorType>;

// --- accumulate: the one scan that all the others are made of ---
struct Kind {
  std::string_view name;
  Fold fold, of_bool;
};
constexpr Kind kKinds[] = {
    {"sum", Fold::Sum, Fold::Or}, {"prod", Fold::Product, Fold::And}, {"max", Fold::Max, Fold::Or}, {"min", Fold::Min, Fold::And}};

const Kind* find_kind(const Attrs& attrs) {
  for (const Kind& k : kKinds)
    if (k.name == attrs.get<std::string>("fold")) return &k;
  return nullptr;
}

Types infer_accumulate(const OpCall& call) {
  if (!find_kind(call.attrs)) call.fail("unknown fold '", call.attrs.get<std::string>("fold"), "'\n  hint: sum, prod, max or min");
  call.axis("axis", call.in[0].rank());
  return {call.in[0]};
}

// An exclusive scan reads the element before, and nothing (the identity) in front of the first.
Loops accumulate_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType& x = call.in[0];
  const Kind& kind = *find_kind(call.attrs);
  Fold how = x.dtype == DType::Bool ? kind.of_bool : kind.fold;
  bool arithmetic = how == Fold::Sum || how == Fold::Product;
  DType wide = arithmetic ? accumulator_type(x.dtype) : x.dtype;
  auto along = static_cast<size_t>(call.axis("axis", x.rank()));
  std::vector<Scalar> index = output_axes(x.rank());
  Scalar element;
  if (call.attrs.get<bool>("exclusive")) {
    Scalar here = index[along];
    index[along] = here - 1;
    element = load_if(0, x.dtype, index, here > 0, identity_of(how, x.dtype));
  } else {
    element = load(0, x.dtype, index);
  }
  return {.extents = out[0].dims,
          .reduction = fold(how, {}, cast(element, wide)),
          .scan_axis = static_cast<int>(along),
          .results = {cast(acc(0, wide), x.dtype)}};
}

Expr scan(const Expr& x, std::string_view fold, int axis, bool exclusive = false) {
  return x.op("accumulate", {{"fold", std::string(fold)}, {"axis", axis}, {"exclusive", exclusive}});
}
Expr flipped(const Expr& x, int axis) { return x.op("flip", {{"axis", Ints{axis}}}); }
Expr scan_back(const Expr& x, std::string_view fold, int axis) { return flipped(scan(flipped(x, axis), fold, axis), axis); }

// x moved by one along the axis: towards the end (by > 0) or the beginning, `fill` in the free place.
Expr shifted(const Expr& x, int axis, int by, double fill) {
  Ints low(static_cast<size_t>(x.rank())), high(low);
  low[static_cast<size_t>(axis)] = by;
  high[static_cast<size_t>(axis)] = -by;
  return x.op("pad", {x.number(fill)}, {{"low", low}, {"high", high}});
}

// d/dx_j of the running products is P_{j-1} * S_j with S_j = g_j + x_{j+1} S_{j+1}: no division, so zeros are no special case.
Expr cumprod_gradient(const Expr& x, const Expr& g, int axis) {
  Expr next = flipped(shifted(x, axis, -1, 0), axis);
  Expr tail = flipped(next.op("linear_recurrence", {flipped(g, axis)}, {{"axis", axis}}), axis);
  return scan(x, "prod", axis, true) * tail;
}

// The running extreme at i is the element at the last place up to i that equals it.
Expr cummax_gradient(const Expr& x, const Expr& y, const Expr& g, int axis) {
  Expr here = iota(x.builder(), x.dims(), axis, DType::I32);
  Expr chosen = scan(where(equal(x, y), here, 0), "max", axis);
  return x.like(0).op("put_along_axis", {chosen, g}, {{"axis", axis}, {"mode", "add"}});
}

std::vector<Expr> vjp_accumulate(const GradCall& g) {
  const std::string& kind = g.node.attrs.get<std::string>("fold");
  int axis = grad_axis(g);
  bool exclusive = g.node.attrs.get<bool>("exclusive");
  // An exclusive scan is the inclusive one moved by one, so its gradient moves back.
  Expr grad = exclusive ? shifted(g.grad(), axis, -1, 0) : g.grad();
  if (kind == "sum") return {scan_back(grad, "sum", axis)};
  if (kind == "prod") return {cumprod_gradient(g.in[0], grad, axis)};
  Expr y = exclusive ? scan(g.in[0], kind, axis) : g.out[0];
  return {cummax_gradient(g.in[0], y, grad, axis)};
}

// --- what users call ---
Types infer_cumulative(const OpCall& call) {
  call.axis("axis", call.in[0].rank());
  return {call.in[0]};
}
Types infer_cumsum(const OpCall& call) {
  Types types = infer_cumulative(call);
  if (types[0].dtype == DType::Bool) types[0].dtype = DType::I32;
  return types;
}

std::vector<Expr> decompose_cumulative(const OpCall& call, Expr x, std::string_view fold) {
  int axis = static_cast<int>(call.axis("axis", x.rank()));
  bool exclusive = call.attrs.get<bool>("exclusive");
  if (!call.attrs.get<bool>("reverse")) return {scan(x, fold, axis, exclusive)};
  return {flipped(scan(flipped(x, axis), fold, axis, exclusive), axis)};
}
Expr bool_to_int(const Expr& x) { return x.dtype() == DType::Bool ? x.cast(DType::I32) : x; }
std::vector<Expr> decompose_cumsum(Builder&, const OpCall& call, std::span<const Expr> in) {
  return decompose_cumulative(call, bool_to_int(in[0]), "sum");
}
std::vector<Expr> decompose_cumprod(Builder&, const OpCall& call, std::span<const Expr> in) {
  return decompose_cumulative(call, bool_to_int(in[0]), "prod");
}
std::vector<Expr> decompose_cummax(Builder&, const OpCall& call, std::span<const Expr> in) {
  return decompose_cumulative(call, in[0], "max");
}
std::vector<Expr> decompose_cummin(Builder&, const OpCall& call, std::span<const Expr> in) {
  return decompose_cumulative(call, in[0], "min");
}

// --- linear recurrence ---
Types infer_recurrence(const OpCall& call) {
  if (!(call.in[0].dims == call.in[1].dims))
    call.fail("factors and terms must have one shape, got ", str(call.in[0].dims), " and ", str(call.in[1].dims));
  call.axis("axis", call.in[0].rank());
  return {call.in[0]};
}

// h = a h' + b is the affine map (a, b); maps combine by composition, the later one on the right. Composition is associative but
// does not commute: scans combine in order.
Loops recurrence_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType& x = call.in[0];
  DType wide = accumulator_type(x.dtype);
  std::vector<Scalar> index = output_axes(x.rank());
  Scalar a = cast(load(0, x.dtype, index), wide), b = cast(load(1, x.dtype, index), wide);
  Reduction maps{.extents = {},
                 .element = {a, b},
                 .identity = {constant(wide, 1), constant(wide, 0)},
                 .combine = {acc(0, wide) * right(0, wide), right(0, wide) * acc(1, wide) + right(1, wide)}};
  return {.extents = out[0].dims,
          .reduction = std::move(maps),
          .scan_axis = static_cast<int>(call.axis("axis", x.rank())),
          .results = {cast(acc(1, wide), x.dtype)}};
}

std::vector<Expr> vjp_recurrence(const GradCall& g) {
  int axis = grad_axis(g);
  // The same recurrence, run backwards: l_i = g_i + a_{i+1} l_{i+1}.
  Expr next = flipped(shifted(g.in[0], axis, -1, 0), axis);
  Expr terms = flipped(next.op("linear_recurrence", {flipped(g.grad(), axis)}, {{"axis", axis}}), axis);
  return {terms * shifted(g.out[0], axis, 1, 0), terms};
}

}  // namespace

Rows cumulative_rows() {
  return {
      {.name = "accumulate",
       .sig = "(x: any; fold: string, axis: int = -1, exclusive: bool = false) -> same",
       .doc = "The combination (sum, prod, max or min) of the elements up to each place along an axis; exclusive leaves out the element "
              "itself.",
       .infer = infer_accumulate,
       .loops = accumulate_loops,
       .vjp = vjp_accumulate,
       .samples = {"([2,3]; fold='sum')", "([3,2]; fold='prod', axis=0, exclusive=true)", "([2,5] distinct; fold='max', axis=1)",
                   "([2,5] distinct; fold='min', axis=-1)", "([0,3]; fold='sum', axis=0)", "([2,0]; fold='max')",
                   "([2,5]:float32 distinct; fold='max', exclusive=true) !grad", "([2,100]:float32; fold='sum')",
                   "([2,3,2,3,2]:float32; fold='sum', axis=1)", "({2,0,3,0,5}:float32; fold='prod')",
                   "([9]:float32 special; fold='max') !grad"}},
      {.name = "cumsum",
       .sig = "(x: any; axis: int = -1, reverse: bool = false, exclusive: bool = false) -> custom",
       .doc = "Running sums along an axis, from the end when reverse; exclusive leaves out the element itself.",
       .infer = infer_cumsum,
       .decompose = decompose_cumsum,
       .samples = {"([2,3])", "([3,2]; axis=0, reverse=true)", "([2,4]:float32; exclusive=true)", "([2,4]; reverse=true, exclusive=true)",
                   "([0,3]; axis=0)", "([150]:float32)", "([2,3,2,3,2]:float32; axis=-3)", "([9] special) !grad"}},
      {.name = "cumprod",
       .sig = "(x: any; axis: int = -1, reverse: bool = false, exclusive: bool = false) -> custom",
       .doc = "Running products along an axis, from the end when reverse; exclusive leaves out the element itself.",
       .infer = infer_cumsum,
       .decompose = decompose_cumprod,
       .samples = {"([2,3])", "([3,2]; axis=0, reverse=true)", "([2,4]:float32; exclusive=true)", "([2,4]; reverse=true, exclusive=true)",
                   "([0,3]; axis=0)", "([150]:float32 in 0.9..1.1)", "({2,0,3,0,5}:float32)", "([9]:int32)",
                   "({2,nan,inf,0}:float32) !grad"}},
      {.name = "cummax",
       .sig = "(x: any; axis: int = -1, reverse: bool = false, exclusive: bool = false) -> same",
       .doc = "Running maxima along an axis; a NaN stays from its place on.",
       .infer = infer_cumulative,
       .decompose = decompose_cummax,
       .samples = {"([2,5] distinct)", "([5,2] distinct; axis=0, reverse=true)", "([2,5] distinct; exclusive=true) !grad",
                   "([0,3]; axis=0)", "([150]:float32 distinct)", "([11] special) !grad", "([11] special; reverse=true) !grad"}},
      {.name = "cummin",
       .sig = "(x: any; axis: int = -1, reverse: bool = false, exclusive: bool = false) -> same",
       .doc = "Running minima along an axis; a NaN stays from its place on.",
       .infer = infer_cumulative,
       .decompose = decompose_cummin,
       .samples = {"([2,5] distinct)", "([5,2] distinct; axis=0, reverse=true)", "([2,5] distinct; exclusive=true) !grad",
                   "([0,3]; axis=0)", "([150]:float32 distinct)", "([11] special) !grad", "([11] special; reverse=true) !grad"}},
      {.name = "linear_recurrence",
       .sig = "(a: float, b: float; axis: int = -1) -> same",
       .doc = "h_i = a_i * h_(i-1) + b_i along an axis, beginning with h = 0.",
       .infer = infer_recurrence,
       .loops = recurrence_loops,
       .vjp = vjp_recurrence,
       .samples = {"([2,3], [2,3])", "([5,2] in -1..1, [5,2]; axis=0)", "([0,3], [0,3]; axis=0)",
                   "([100]:float32 in -0.9..0.9, [100]:float32)"}},
  };
}

}  // namespace tandem::ops
