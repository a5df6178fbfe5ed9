// Calls of single rows, for tests of ops: their types, their errors, their values, and what their own gradient rule gives.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "evaluate.hpp"
#include "ops/table.hpp"

namespace tandem::test::calls {
using namespace ir;
using Doubles = std::vector<double>;

inline const Dim b = Dim::symbol("b");
inline const Dim n = Dim::symbol("n");

inline TensorType f32(Dims dims) { return {DType::F32, std::move(dims)}; }
inline TensorType i32(Dims dims) { return {DType::I32, std::move(dims)}; }

inline std::string types_of(std::string_view op, const std::vector<TensorType>& in, const Attrs& attrs = {}) {
  const OpDef& row = ops::table().at(op);
  std::string text;
  for (const TensorType& t : infer(row, in, complete_attrs(row, attrs))) text += cat(text.empty() ? "" : " ", t);
  return text;
}

inline std::string error_of(std::string_view op, const std::vector<TensorType>& in, const Attrs& attrs = {}) {
  try {
    return cat("no error, but ", types_of(op, in, attrs));
  } catch (const UserError& e) {
    return e.what();
  }
}

inline TensorType type_of(const Array& a) { return {a.dtype, to_dims(a.shape)}; }
inline std::vector<TensorType> types_of_arrays(const std::vector<Array>& in) {
  std::vector<TensorType> types;
  for (const Array& a : in) types.push_back(type_of(a));
  return types;
}

inline std::vector<Value> inputs_of(Builder& builder, const std::vector<TensorType>& types) {
  std::vector<Value> inputs;
  for (const TensorType& t : types) inputs.push_back(builder.input(t));
  return inputs;
}

inline Array run(std::string_view op, const std::vector<Array>& in, const Attrs& attrs = {}) {
  Builder builder(ops::table());
  const std::vector<Value> operands = inputs_of(builder, types_of_arrays(in));
  const std::vector<Value> out = builder.nodes(op, operands, attrs);
  return test::evaluate(ops::table(), builder.finish(out), in)[0];
}

// Operands, then the cotangent -> the gradients that the row's own rule gives (only those that there are).
struct Gradient {
  Graph graph;
  std::vector<size_t> operands;
};
inline Gradient gradient_of(const OpDef& op, const std::vector<TensorType>& types, const Attrs& attrs) {
  Builder builder(ops::table());
  const std::vector<Value> in = inputs_of(builder, types), out = builder.node(op, in, attrs);
  const Value cotangent = builder.input(builder.type(out[0]));
  std::vector<bool> needed;
  for (const TensorType& t : types) needed.push_back(is_float(t.dtype));
  const Node node = builder.graph().node(out[0]);
  const std::vector<Expr> grads =
      op.vjp(GradCall{builder, node, exprs(builder, in), exprs(builder, out), {Expr(builder, cotangent)}, needed});
  Gradient g;
  std::vector<Value> outputs;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i]) continue;
    g.operands.push_back(i);
    outputs.push_back(grads[i].value());
  }
  g.graph = builder.finish(outputs);
  return g;
}
inline std::vector<Array> gradients(std::string_view op, const std::vector<Array>& in, const Array& cotangent, const Attrs& attrs = {}) {
  const OpDef& row = ops::table().at(op);
  std::vector<Array> all = in;
  all.push_back(cotangent);
  return test::evaluate(ops::table(), gradient_of(row, types_of_arrays(in), complete_attrs(row, attrs)).graph, all);
}

inline Array counted(Shape s, DType t = DType::F64, int64_t step = 7) {
  Array a(t, s);
  for (int64_t i = 0; i < a.count(); ++i) a.set(i, static_cast<double>((i * step) % 13) - (is_signed(t) ? 5 : 0));
  return a;
}
inline Array of(Shape s, const Doubles& v, DType t = DType::F32) { return Array::of(t, s, v); }
inline Array series(const Doubles& v) { return of({1, static_cast<int64_t>(v.size()), 1}, v); }  // one example, one channel

inline double dot(const Array& x, const Array& y) {
  double sum = 0;
  for (int64_t i = 0; i < x.count(); ++i) sum += x.at(i) * y.at(i);
  return sum;
}

inline void expect_near(const Doubles& got, const Doubles& want, double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const bool same = got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]));
    const bool near = std::fabs(got[i] - want[i]) <= tolerance * (1 + std::fabs(want[i])) && std::isfinite(want[i]);
    EXPECT_TRUE(same || near) << "element " << i << " is " << got[i] << ", not " << want[i];
  }
}

// The graph of a decomposition, and how often an op occurs in it.
inline Graph expanded(std::string_view op, const std::vector<TensorType>& types, const Attrs& given = {}) {
  const OpDef& row = ops::table().at(op);
  const Attrs attrs = complete_attrs(row, given);
  Builder builder(ops::table());
  const std::vector<Expr> in = exprs(builder, inputs_of(builder, types));
  return prune(ops::table(), builder.finish(values(row.decompose(builder, OpCall{row, types, attrs}, in))));
}
inline int count_of(const Graph& g, std::string_view op) {
  return static_cast<int>(std::ranges::count_if(g.nodes, [&](const Node& node) { return node.op->name == op; }));
}

}  // namespace tandem::test::calls
