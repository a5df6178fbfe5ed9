// A handful of rows, so that the tests of ir/ stand without src/ops.
#pragma once
#include <algorithm>
#include <string>

#include "error_of.hpp"
#include "ir/builder.hpp"

namespace tandem::ir::test {

inline std::vector<TensorType> infer_input(const OpCall& c) { return {{c.attrs.get<DType>("dtype"), c.attrs.get<Dims>("shape")}}; }
inline std::vector<TensorType> infer_constant(const OpCall& c) { return {c.attrs.get<Literal>("value").type()}; }
inline std::vector<TensorType> infer_shape(const OpCall& c) { return {{c.in[0].dtype, c.attrs.get<Dims>("shape")}}; }
inline std::vector<TensorType> infer_cast(const OpCall& c) { return {{c.attrs.get<DType>("dtype"), c.in[0].dims}}; }
inline std::vector<TensorType> infer_same(const OpCall& c) { return {c.in[0]}; }

inline std::vector<TensorType> infer_reshape(const OpCall& c) {
  const Dims& to = c.attrs.get<Dims>("shape");
  if (!(product(to) == product(c.in[0].dims))) c.fail("cannot make ", tandem::str(to), " of ", c.in[0]);
  return {{c.in[0].dtype, to}};
}

inline std::vector<TensorType> infer_sum(const OpCall& c) {
  const Ints axes = c.axes("axis", c.in[0].rank());
  const bool keepdims = c.attrs.get<bool>("keepdims");
  TensorType out{c.in[0].dtype, {}};
  for (int i = 0; i < c.in[0].rank(); ++i) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!is_reduced)
      out.dims.push_back(c.in[0].dims[static_cast<size_t>(i)]);
    else if (keepdims)
      out.dims.push_back(1);
  }
  return {out};
}

inline std::vector<TensorType> infer_min_max(const OpCall& c) {
  const TensorType scalar{c.in[0].dtype, {}};
  return {scalar, scalar, {DType::I32, {}}};
}

inline std::vector<TensorType> infer_call(const OpCall& c) { return c.attrs.get<Graphs>("functions").at(0)->output_types(); }

inline std::vector<TensorType> infer_stack(const OpCall& c) {
  if (c.in.empty()) c.fail("needs an operand");
  Dims dims = c.in[0].dims;
  dims.insert(dims.begin(), Dim(static_cast<int64_t>(c.in.size())));
  return {{c.in[0].dtype, dims}};
}

inline Loops no_loops(const OpCall&, std::span<const TensorType> out) { return {.extents = out[0].dims}; }
inline void no_evaluate(const HostCall&) {}

inline void add_rows(OpTable& t) {
  t.add({.name = "input",
         .sig = "(; index: int, dtype: dtype, shape: shape, name: string = '') -> custom",
         .doc = "d",
         .traits = kStructural,
         .infer = infer_input});
  t.add({.name = "constant", .sig = "(; value: literal) -> custom", .doc = "d", .traits = kStructural, .infer = infer_constant});
  t.add({.name = "add", .sig = "(x: number, y: number) -> same", .doc = "d", .traits = kCommutative, .body = [](Scalar x, Scalar y) {
           return x + y;
         }});
  t.add({.name = "multiply", .sig = "(x: number, y: number) -> same", .doc = "d", .traits = kCommutative, .body = [](Scalar x, Scalar y) {
           return x * y;
         }});
  t.add({.name = "subtract", .sig = "(x: number, y: number) -> same", .doc = "d", .body = [](Scalar x, Scalar y) { return x - y; }});
  t.add({.name = "negative", .sig = "(x: number) -> same", .doc = "d", .body = [](Scalar x) { return -x; }});
  t.add({.name = "exp", .sig = "(x: float) -> same", .doc = "d", .body = [](Scalar x) { return exp(x); }});
  t.add({.name = "less", .sig = "(x: number, y: number) -> bool", .doc = "d", .body = [](Scalar x, Scalar y) { return x < y; }});
  t.add({.name = "where", .sig = "(cond: bool, x: any, y: any) -> same", .doc = "d", .body = [](Scalar c, Scalar x, Scalar y) {
           return select(c, x, y);
         }});
  t.add({.name = "scale", .sig = "(x: float; by: float = 2) -> same", .doc = "d", .body = [](const OpCall& c, Scalar x) {
           return x * c.attrs.get<double>("by");
         }});
  t.add({.name = "cast",
         .sig = "(x: own; dtype: dtype) -> custom",
         .doc = "d",
         .body = [](const OpCall& c, Scalar x) { return cast(x, c.attrs.get<DType>("dtype")); },
         .infer = infer_cast});
  t.add(
      {.name = "reshape", .sig = "(x: own; shape: shape) -> same", .doc = "d", .traits = kView, .infer = infer_reshape, .loops = no_loops});
  t.add({.name = "broadcast_to", .sig = "(x: own; shape: shape) -> same", .doc = "d", .infer = infer_shape, .loops = no_loops});
  t.add({.name = "sum",
         .sig = "(x: number; axis: ints? = none, keepdims: bool = false) -> same",
         .doc = "d",
         .infer = infer_sum,
         .loops = no_loops});
  t.add({.name = "min_max",
         .sig = "(x: number; weights: floats? = none, mode: string = 'a') -> same, same, int32",
         .doc = "d",
         .infer = infer_min_max,
         .evaluate = no_evaluate});
  t.add({.name = "stack", .sig = "(xs: any...; axis: int = 0) -> same", .doc = "d", .infer = infer_stack, .loops = no_loops});
  t.add({.name = "bias", .sig = "(x: float, b: float?) -> same", .doc = "d", .infer = infer_same, .loops = no_loops});
  t.add({.name = "take", .sig = "(x: own, indices: index) -> custom", .doc = "d", .infer = infer_same, .loops = no_loops});
  t.add({.name = "draw", .sig = "(key: key; dtype: dtype = float32) -> custom", .doc = "d", .infer = infer_cast, .loops = no_loops});
  t.add({.name = "mask", .sig = "(x: boolean, y: boolean) -> same", .doc = "d", .body = [](Scalar x, Scalar y) { return x & y; }});
  t.add({.name = "shift", .sig = "(x: int) -> same", .doc = "d", .body = [](Scalar x) { return x << 1; }});
  t.add({.name = "square",
         .sig = "(x: number) -> same",
         .doc = "d",
         .infer = infer_same,
         .decompose = [](Builder&, const OpCall&, std::span<const Expr> in) { return std::vector<Expr>{in[0] * in[0]}; }});
  t.add({.name = "call",
         .sig = "(xs: own...; functions: graphs, trips: int? = none) -> custom",
         .doc = "d",
         .traits = kStructural,
         .infer = infer_call});
}

inline const OpTable& table() {
  static const OpTable& t = *[] {
    auto* made = new OpTable;
    add_rows(*made);
    return made;
  }();
  return t;
}

inline TensorType f32(Dims dims) { return {DType::F32, std::move(dims)}; }
inline Dim sym(std::string_view name) { return Dim::symbol(name); }

// A graph with everything that text must keep: symbols, sub-graphs, constants, several results, locations, odd names.
inline Graph rich_graph() {
  Builder inner(table());
  const Value ix = inner.input(f32({sym("b"), 3}), "x");
  inner.location = {"inner.cpp", 7};
  const Value iy = inner.op("exp", {ix});
  const Graph body = inner.finish({iy, ix}, "body");

  Builder b(table());
  const Value x = b.input(f32({sym("b"), 3}), "x \"quoted\"\n");
  b.location = {"dir/model.cpp", 42};
  const Value two = b.scalar(DType::F32, 2.5);
  const Value y = b.op("multiply", {x, two});
  const Value w = b.input({DType::F16, {4}}, "");
  b.location = {};
  const std::vector<Value> inputs{y};
  const auto results = b.nodes("call", inputs, {{"functions", Graphs{std::make_shared<const Graph>(body)}}});
  const auto stats = b.nodes("min_max", std::vector{results[1]}, {{"weights", Floats{0.1, 1e300}}, {"mode", "it's\t"}});
  std::vector<float> long_values(40);
  for (size_t i = 0; i < long_values.size(); ++i) long_values[i] = 0.1f * static_cast<float>(i);
  const Value c = b.constant(Literal::of(DType::F32, {40}, long_values.data()));
  const Value r = b.op("reshape", {results[0]}, {{"shape", Dims{sym("b") * 3}}});
  return b.finish({r, stats[1], stats[2], c, w}, "rich graph");
}

}  // namespace tandem::ir::test
