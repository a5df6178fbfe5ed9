// Scatters: elements written to, added to … places that are data. Host routines; updates meet a place in their own order, so the
// result is the same for any number of threads.
#include "ops/scatter.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "ops/helpers.hpp"
#include "ops/host.hpp"

namespace tandem::ops {
using namespace ir;
namespace {

using Types = std::vector<TensorType>;

// --- modes ---
enum class Mode : uint8_t { Set, Add, Max, Min, Mul };
constexpr std::array<std::string_view, 5> kModes = {"set", "add", "max", "min", "mul"};

Mode mode_of(const Attrs& attrs, std::string_view op) {
  const std::string& name = attrs.get<std::string>("mode");
  for (size_t k = 0; k < kModes.size(); ++k)
    if (name == kModes[k]) return static_cast<Mode>(k);
  user_error(op, ": unknown mode '", name, "'\n  hint: set, add, max, min or mul");
}

template <class T> T added(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));  // wraps
  else
    return a + b;
}
template <class T> T multiplied(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}
// NaN stays, whichever side it is on.
template <class T> T larger(T a, T b) { return b > a || b != b ? b : a; }
template <class T> T smaller(T a, T b) { return b < a || b != b ? b : a; }

// f(combine) with combine(old, update) for the mode; Max and Min keep a NaN that is already there.
template <class T, class F> void with_combine(Mode mode, F f) {
  switch (mode) {
    case Mode::Set: return f([](T, T b) { return b; });
    case Mode::Add: return f([](T a, T b) { return added(a, b); });
    case Mode::Max: return f([](T a, T b) { return a != a ? a : larger(a, b); });
    case Mode::Min: return f([](T a, T b) { return a != a ? a : smaller(a, b); });
    case Mode::Mul: return f([](T a, T b) { return multiplied(a, b); });
  }
}

// f(out, updates, combine) in the element type itself; 16-bit floats in float32, so that long sums round once.
template <class T, class F> void in_wide_type(const HostCall& c, Mode mode, F f) {
  const T *x = c.in[0].as<T>(), *updates = c.in[2].as<T>();
  T* out = c.out[0].as<T>();
  int64_t count = element_count(c.out[0].shape);
  if constexpr (kIsHalf<T>) {
    std::vector<float> wide(static_cast<size_t>(count));
    std::transform(x, x + count, wide.begin(), [](T v) { return static_cast<float>(v); });
    auto read = [updates](int64_t i) { return static_cast<float>(updates[i]); };
    with_combine<float>(mode, [&](auto combine) { f(wide.data(), read, combine); });
    std::transform(wide.begin(), wide.end(), out, [](float v) { return T(v); });
  } else {
    if (out != x) std::copy(x, x + count, out);
    auto read = [updates](int64_t i) { return updates[i]; };
    with_combine<T>(mode, [&](auto combine) { f(out, read, combine); });
  }
}

// --- scatter ---
Types infer_scatter(const OpCall& call) {
  const TensorType &x = call.in[0], &indices = call.in[1], &updates = call.in[2];
  mode_of(call.attrs, call.op.name);
  int64_t depth = index_depth(call, indices, x);
  Dims dims(indices.dims.begin(), indices.dims.end() - 1);
  dims.insert(dims.end(), x.dims.begin() + depth, x.dims.end());
  if (!(updates.dims == dims))
    call.fail("for x ", str(x.dims), " and indices ", str(indices.dims), " the updates must be ", str(dims), ", got ", str(updates.dims));
  return {x};
}

// For each tuple of indices the number of the slice of x that it means.
template <class I> std::vector<int64_t> target_rows(const HostCall& c) {
  const Shape &x = c.in[0].shape, &shape = c.in[1].shape;
  int64_t depth = shape.back();
  Shape tuples;
  for (size_t k = 0; k + 1 < shape.size(); ++k) tuples.push_back(shape[k]);
  std::vector<int64_t> rows(static_cast<size_t>(element_count(tuples)));
  const I* index = c.in[1].as<I>();
  for (size_t n = 0; n < rows.size(); ++n)
    for (int64_t k = 0; k < depth; ++k, ++index) {
      int64_t size = x[static_cast<size_t>(k)], i = normal_index(*index, size);
      if (i < 0) index_out_of_range(c.op.name, *index, k, size, tuples, static_cast<int64_t>(n));
      rows[n] = rows[n] * size + i;
    }
  return rows;
}

// Each chunk does some columns of all slices, so every place is met by one chunk only and in the order of the updates.
template <class T, class Read, class Combine>
void scatter_rows_of(const HostCall& c, T* out, Read read, Combine combine, const std::vector<int64_t>& rows, int64_t inner) {
  constexpr int64_t kColumns = 64, kWorthThreads = 1 << 15;
  bool serial = static_cast<int64_t>(rows.size()) * inner < kWorthThreads;
  int64_t columns = serial ? std::max<int64_t>(inner, 1) : kColumns;
  c.parallel((inner + columns - 1) / columns, [&](int64_t chunk) {
    int64_t first = chunk * columns, last = std::min(inner, first + columns);
    for (size_t n = 0; n < rows.size(); ++n) {
      T* to = out + rows[n] * inner;
      int64_t from = static_cast<int64_t>(n) * inner;
      for (int64_t i = first; i < last; ++i) to[i] = combine(to[i], read(from + i));
    }
  });
}

void evaluate_scatter(const HostCall& c) {
  Mode mode = mode_of(c.attrs, c.op.name);
  const Shape& x = c.in[0].shape;
  int64_t inner = 1;
  for (int64_t k = c.in[1].shape.back(); k < x.rank(); ++k) inner *= x[static_cast<size_t>(k)];
  std::vector<int64_t> rows = c.in[1].dtype == DType::I32 ? target_rows<int32_t>(c) : target_rows<int64_t>(c);
  dispatch(c.in[0].dtype, [&](auto zero) {
    in_wide_type<decltype(zero)>(c, mode, [&](auto* out, auto read, auto combine) { scatter_rows_of(c, out, read, combine, rows, inner); });
  });
}

// --- put_along_axis ---
Types infer_put_along_axis(const OpCall& call) {
  const TensorType &x = call.in[0], &indices = call.in[1], &updates = call.in[2];
  mode_of(call.attrs, call.op.name);
  auto axis = static_cast<size_t>(call.axis("axis", x.rank()));
  if (!(indices.dims == updates.dims))
    call.fail("indices and updates must have one shape, got ", str(indices.dims), " and ", str(updates.dims));
  if (indices.rank() != x.rank())
    call.fail("the indices ", str(indices.dims), " must have as many axes as ", str(x.dims), " (", indices.rank(), " != ", x.rank(), ")");
  for (size_t k = 0; k < x.dims.size(); ++k)
    if (k != axis && !(x.dims[k] == indices.dims[k]))
      call.fail(str(x.dims), " and indices ", str(indices.dims), " differ on axis ", k, " (", x.dims[k], " != ", indices.dims[k], ")");
  return {x};
}

template <class I, class T, class Read, class Combine>
void put_lines(const HostCall& c, T* out, Read read, Combine combine, const Lines& to, const Lines& from) {
  const I* index = c.in[1].as<I>();
  int axis = host_axis(c, c.in[0].shape);
  for_lines(c, from.count(), from.length, [&](int64_t first, int64_t last) {
    for (int64_t line = first; line < last; ++line) {
      T* target = out + to.begin(line);
      int64_t at = from.begin(line);
      for (int64_t j = 0; j < from.length; ++j, at += from.inner) {
        int64_t i = normal_index(index[at], to.length);
        if (i < 0) index_out_of_range(c.op.name, index[at], axis, to.length, c.in[1].shape, at);
        T& place = target[i * to.inner];
        place = combine(place, read(at));
      }
    }
  });
}

void evaluate_put_along_axis(const HostCall& c) {
  Mode mode = mode_of(c.attrs, c.op.name);
  int axis = host_axis(c, c.in[0].shape);
  Lines to(c.in[0].shape, axis), from(c.in[1].shape, axis);
  dispatch(c.in[0].dtype, [&](auto zero) {
    in_wide_type<decltype(zero)>(c, mode, [&](auto* out, auto read, auto combine) {
      if (c.in[1].dtype == DType::I32)
        put_lines<int32_t>(c, out, read, combine, to, from);
      else
        put_lines<int64_t>(c, out, read, combine, to, from);
    });
  });
}

// --- gradients of both, which differ only in how they address ---
struct Scatter {
  const GradCall& g;
  bool is_nd;

  Attrs attrs(std::string_view mode) const {
    Attrs a;
    if (!is_nd) a.set("axis", g.node.attrs.get<int64_t>("axis"));
    if (!mode.empty()) a.set("mode", std::string(mode));
    return a;
  }
  Expr put(const Expr& x, const Expr& updates, std::string_view mode) const {
    return x.op(g.node.op->name, {g.in[1], updates}, attrs(mode));
  }
  Expr get(const Expr& x) const { return x.op(is_nd ? "gather_nd" : "take_along_axis", {g.in[1]}, attrs("")); }

  // Which updates are the last ones at their place: each leaves its number there, and looks whether it is still there.
  Expr is_last() const {
    const Dims index = g.in[1].dims(), x = g.in[0].dims();
    if (!is_nd) {
      int axis = normalize_axis(g.node.attrs.get<int64_t>("axis"), g.in[0].rank(), g.node.op->name);
      Expr number = iota(g.builder, index, axis, DType::I64);
      return equal(get(put(filled(g.builder, {DType::I64, x}, -1), number, "set")), number);
    }
    Dims tuples(index.begin(), index.end() - 1), places(x.begin(), x.begin() + index.back().value());
    Expr number = iota(g.builder, {product(tuples)}, 0, DType::I64).reshape(tuples);
    Expr mine = equal(get(put(filled(g.builder, {DType::I64, places}, -1), number, "set")), number);
    Dims column = tuples;  // one for each slice
    column.resize(tuples.size() + x.size() - places.size(), 1);
    return mine.reshape(column).broadcast_to(g.in[2].dims());
  }
};

std::vector<Expr> vjp_set(const Scatter& s) {
  Expr grad = s.g.grad(), x_grad, update_grad;
  if (s.g.needed[0]) x_grad = s.put(grad, s.g.in[2].like(0), "set");
  if (s.g.needed[2]) update_grad = where(s.is_last(), s.get(grad), 0);
  return {x_grad, Expr(), update_grad};
}

// Those that equal the result share the gradient.
std::vector<Expr> vjp_extreme(const Scatter& s) {
  const Expr &x = s.g.in[0], &updates = s.g.in[2], &out = s.g.out[0];
  DType t = x.dtype();
  Expr x_hits = equal(x, out), update_hits = equal(updates, s.get(out));
  Expr share = s.g.grad() / s.put(x_hits.cast(t), update_hits.cast(t), "add");
  return {where(x_hits, share, 0), Expr(), where(update_hits, s.get(share), 0)};
}

std::vector<Expr> vjp_scatter_any(const GradCall& g, bool is_nd) {
  Scatter s{g, is_nd};
  switch (mode_of(g.node.attrs, g.node.op->name)) {
    case Mode::Set: return vjp_set(s);
    case Mode::Add: return {g.grad(), Expr(), g.needed[2] ? s.get(g.grad()) : Expr()};
    case Mode::Max:
    case Mode::Min: return vjp_extreme(s);
    case Mode::Mul: break;
  }
  if (g.needed[2])
    user_error(g.node.op->name,
               ": mode 'mul' has no gradient\n  hint: put stop_gradient in front of the updates when none is meant to flow");
  return {g.grad() * s.put(g.in[0].like(1), g.in[2], "mul"), Expr(), Expr()};
}
std::vector<Expr> vjp_scatter(const GradCall& g) { return vjp_scatter_any(g, true); }
std::vector<Expr> vjp_put_along_axis(const GradCall& g) { return vjp_scatter_any(g, false); }

// --- segments ---
Types infer_segment(const OpCall& call) {
  const TensorType &x = call.in[0], &ids = call.in[1];
  int64_t segments = call.attrs.get<int64_t>("segments");
  if (segments < 0) call.fail("segments is ", segments, ", it must not be negative");
  if (ids.rank() > x.rank() || !std::equal(ids.dims.begin(), ids.dims.end(), x.dims.begin()))
    call.fail("the ids ", str(ids.dims), " must have the first sizes of ", str(x.dims));
  Dims dims{segments};
  dims.insert(dims.end(), x.dims.begin() + ids.rank(), x.dims.end());
  return {{x.dtype, dims}};
}

// Ids that are no segment go into one segment more, which is cut off.
Expr segment_scatter(const Expr& x, const Expr& ids, int64_t segments, double nothing, std::string_view mode) {
  Dims index = ids.dims();
  index.push_back(1);
  Expr is_segment = (ids >= 0).op("logical_and", {ids < static_cast<double>(segments)});
  Expr slot = where(is_segment, ids, static_cast<double>(segments)).reshape(index);
  Dims dims{segments + 1};
  dims.insert(dims.end(), x.dims().begin() + ids.rank(), x.dims().end());
  Expr all = filled(x.builder(), {x.dtype(), dims}, nothing).op("scatter", {slot, x}, {{"mode", std::string(mode)}});
  Dims start(dims.size(), 0), limit = dims;
  limit[0] = segments;
  return all.op("slice", {{"start", start}, {"limit", limit}, {"step", Ints(dims.size(), 1)}});
}
template <Mode kMode> std::vector<Expr> decompose_segment(Builder&, const OpCall& call, std::span<const Expr> in) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double nothing = kMode == Mode::Max ? -kInfinity : kMode == Mode::Min ? kInfinity : kMode == Mode::Mul ? 1 : 0;
  return {segment_scatter(in[0], in[1], call.attrs.get<int64_t>("segments"), nothing, kModes[static_cast<size_t>(kMode)])};
}
std::vector<Expr> decompose_segment_mean(Builder& b, const OpCall& call, std::span<const Expr> in) {
  int64_t segments = call.attrs.get<int64_t>("segments");
  DType t = in[0].dtype(), wide = accumulator_type(t);
  Expr sum = segment_scatter(in[0].cast(wide), in[1], segments, 0, "add");
  Expr count = segment_scatter(filled(b, {wide, in[1].dims()}, 1), in[1], segments, 0, "add");
  Dims column(sum.dims().size(), 1);
  column[0] = segments;
  return {(sum / maximum(count, 1).reshape(column)).cast(t)};
}

}  // namespace

Rows scatter_rows() {
  return {
      {.name = "scatter",
       .sig = "(x: any, indices: index, updates: any; mode: string = 'set') -> same",
       .doc = "x with slices of it set to the updates, or combined with them by add, max, min or mul. The last axis of the indices "
              "addresses the "
              "first axes of x. Of repeated indices the last one sets.",
       .traits = kOverwrites,
       .infer = infer_scatter,
       .evaluate = evaluate_scatter,
       .vjp = vjp_scatter,
       .samples = {"([4,3], {{0},{2}}, [2,3])", "([4,3], {{0,1},{-1,2},{0,1}}, [3]; mode='add')",
                   "([4] distinct, {{1},{1},{3}}, [3]; mode='max') !grad", "([4], {{1},{1},{3}}, [3]; mode='min') !grad",
                   "([4], {{1},{1},{3}}, [3]; mode='mul') !grad", "([4,3]:float32, {{0},{2},{0}}, [3,3]:float32)", "([4], [0,1], [0])",
                   "([3,2]:float32, [2,0], [2,3,2]:float32; mode='add')",
                   "([20,300]:float32, [150,1] in 0..19, [150,300]:float32; mode='add')", "([0,3], [0,1], [0,3])",
                   "([4,3], {2}, [3]; mode='add')", "([11] special, {{1},{0},{3},{9},{10},{5}}, [6] special; mode='max') !grad",
                   "([11] special, {{1},{0},{3},{9},{10},{5}}, [6] special; mode='min') !grad", "([], [0], []; mode='add')"}},
      {.name = "put_along_axis",
       .sig = "(x: any, indices: index, updates: any; axis: int = -1, mode: string = 'set') -> same",
       .doc = "For each line along an axis the elements at that line's own indices set to the updates, or combined with them by add, max, "
              "min or mul.",
       .infer = infer_put_along_axis,
       .evaluate = evaluate_put_along_axis,
       .vjp = vjp_put_along_axis,
       .samples = {"([2,4], {{0,2},{-1,0}}, [2,2])", "([4,2], [3,2] in -4..3, [3,2]; axis=0, mode='add')",
                   "([2,4], {{1,1},{3,3}}, [2,2]; mode='max') !grad", "([2,4], {{1,1},{3,3}}, [2,2]; mode='min') !grad",
                   "([2,4], {{1,1},{3,3}}, [2,2]; mode='mul') !grad", "([2,4]:float32, {{1,1,2},{3,3,3}}, [2,3]:float32)",
                   "([2,4], [2,0], [2,0])", "([30,100]:float32, [30,700] in 0..99, [30,700]:float32; mode='add')"}},
      {.name = "segment_sum",
       .sig = "(x: number, ids: index; segments: int) -> same",
       .doc = "For each segment the sum of the slices of x with its id; 0 for one without any. Ids that are no segment are left out.",
       .infer = infer_segment,
       .decompose = decompose_segment<Mode::Add>,
       .samples = {"([5,2], {0,2,2,0,1}; segments=4)", "([3], {-1,0,7}; segments=2)", "([2,3,2]:float32, [2,3] in 0..3; segments=4)",
                   "([0,3], [0]; segments=2)", "([200]:float32, [200] in 0..9; segments=10)"}},
      {.name = "segment_prod",
       .sig = "(x: number, ids: index; segments: int) -> same",
       .doc = "For each segment the product of the slices of x with its id; 1 for one without any.",
       .infer = infer_segment,
       .decompose = decompose_segment<Mode::Mul>,
       .samples = {"([5,2], {0,2,2,0,1}; segments=4) !grad", "([3], {-1,0,7}; segments=2) !grad", "([0,3], [0]; segments=2) !grad"}},
      {.name = "segment_max",
       .sig = "(x: number, ids: index; segments: int) -> same",
       .doc = "For each segment the largest of the slices of x with its id; -inf or the smallest integer for one without any.",
       .infer = infer_segment,
       .decompose = decompose_segment<Mode::Max>,
       .samples = {"([5,2] distinct, {0,2,2,0,1}; segments=3)", "([3], {-1,0,7}; segments=2) !grad", "([0,3], [0]; segments=2) !grad",
                   "([11] special, {0,1,2,0,1,2,3,3,4,4,4}; segments=6) !grad"}},
      {.name = "segment_min",
       .sig = "(x: number, ids: index; segments: int) -> same",
       .doc = "For each segment the smallest of the slices of x with its id; inf or the largest integer for one without any.",
       .infer = infer_segment,
       .decompose = decompose_segment<Mode::Min>,
       .samples = {"([5,2] distinct, {0,2,2,0,1}; segments=3)", "([3], {-1,0,7}; segments=2) !grad", "([0,3], [0]; segments=2) !grad",
                   "([11] special, {0,1,2,0,1,2,3,3,4,4,4}; segments=6) !grad"}},
      {.name = "segment_mean",
       .sig = "(x: float, ids: index; segments: int) -> same",
       .doc = "For each segment the mean of the slices of x with its id; 0 for one without any.",
       .infer = infer_segment,
       .decompose = decompose_segment_mean,
       .samples = {"([5,2], {0,2,2,0,1}; segments=4)", "([3], {-1,0,7}; segments=2)", "([0,3], [0]; segments=2)"}},
  };
}

}  // namespace tandem::ops
