// Products, convolutions, pooling, softmax, normalisation and attention: shapes with symbols, texts of mistakes, numbers from outside
// (JAX, Keras), and identities that hold whatever the geometry: symbols change nothing, a gradient is the adjoint.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "evaluate.hpp"
#include "ir/sample.hpp"
#include "ops/table.hpp"

namespace tandem {
namespace {
using namespace ir;
using test::Array;
using Doubles = std::vector<double>;

const Dim b = Dim::symbol("b");
const Dim n = Dim::symbol("n");

// --- calls ----------------------------------------------------------------------------------------------------------------------

TensorType f32(Dims dims) { return {DType::F32, std::move(dims)}; }
TensorType i32(Dims dims) { return {DType::I32, std::move(dims)}; }

std::string types_of(std::string_view op, const std::vector<TensorType>& in, const Attrs& attrs = {}) {
  const OpDef& row = ops::table().at(op);
  std::string text;
  for (const TensorType& t : infer(row, in, complete_attrs(row, attrs))) text += cat(text.empty() ? "" : " ", t);
  return text;
}

std::string error_of(std::string_view op, const std::vector<TensorType>& in, const Attrs& attrs = {}) {
  try {
    return cat("no error, but ", types_of(op, in, attrs));
  } catch (const UserError& e) {
    return e.what();
  }
}

TensorType type_of(const Array& a) { return {a.dtype, to_dims(a.shape)}; }
std::vector<TensorType> types_of_arrays(const std::vector<Array>& in) {
  std::vector<TensorType> types;
  for (const Array& a : in) types.push_back(type_of(a));
  return types;
}

std::vector<Value> inputs_of(Builder& builder, const std::vector<TensorType>& types) {
  std::vector<Value> inputs;
  for (const TensorType& t : types) inputs.push_back(builder.input(t));
  return inputs;
}

Array run(std::string_view op, const std::vector<Array>& in, const Attrs& attrs = {}) {
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
Gradient gradient_of(const OpDef& op, const std::vector<TensorType>& types, const Attrs& attrs) {
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
std::vector<Array> gradients(std::string_view op, const std::vector<Array>& in, const Array& cotangent, const Attrs& attrs = {}) {
  const OpDef& row = ops::table().at(op);
  std::vector<Array> all = in;
  all.push_back(cotangent);
  return test::evaluate(ops::table(), gradient_of(row, types_of_arrays(in), complete_attrs(row, attrs)).graph, all);
}

Array counted(Shape s, DType t = DType::F64, int64_t step = 7) {
  Array a(t, s);
  for (int64_t i = 0; i < a.count(); ++i) a.set(i, static_cast<double>((i * step) % 13) - (is_signed(t) ? 5 : 0));
  return a;
}
Array of(Shape s, const Doubles& v, DType t = DType::F32) { return Array::of(t, s, v); }
Array series(const Doubles& v) { return of({1, static_cast<int64_t>(v.size()), 1}, v); }  // one example, one channel

double dot(const Array& x, const Array& y) {
  double sum = 0;
  for (int64_t i = 0; i < x.count(); ++i) sum += x.at(i) * y.at(i);
  return sum;
}

void expect_near(const Doubles& got, const Doubles& want, double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const bool same = got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]));
    const bool near = std::fabs(got[i] - want[i]) <= tolerance * (1 + std::fabs(want[i])) && std::isfinite(want[i]);
    EXPECT_TRUE(same || near) << "element " << i << " is " << got[i] << ", not " << want[i];
  }
}

// The graph of a decomposition, and how often an op occurs in it.
Graph expanded(std::string_view op, const std::vector<TensorType>& types, const Attrs& given = {}) {
  const OpDef& row = ops::table().at(op);
  const Attrs attrs = complete_attrs(row, given);
  Builder builder(ops::table());
  const std::vector<Expr> in = exprs(builder, inputs_of(builder, types));
  return prune(ops::table(), builder.finish(values(row.decompose(builder, OpCall{row, types, attrs}, in))));
}
int count_of(const Graph& g, std::string_view op) {
  return static_cast<int>(std::ranges::count_if(g.nodes, [&](const Node& node) { return node.op->name == op; }));
}

// --- identities over all samples ------------------------------------------------------------------------------------------------

std::vector<const OpDef*> rows() {
  std::vector<const OpDef*> all;
  for (auto family : {ops::matmul_rows, ops::einsum_rows, ops::convolution_rows, ops::pooling_rows, ops::softmax_rows,
                      ops::normalization_rows, ops::attention_rows})
    for (const OpDef& row : family()) all.push_back(&ops::table().at(row.name));
  return all;
}

// The samples with this type (or the one that they name) and not too many elements.
struct Case {
  Attrs attrs;
  std::vector<Array> in;
  bool gradient;
};
std::vector<Case> cases_of(const OpDef& op, DType floating = DType::F64) {
  std::vector<Case> cases;
  for (std::string_view text : op.samples) {
    const Sample s = parse_sample(op, text);
    for (const std::vector<DType>& types : sample_types(op, s)) {
      const auto fits = [&](DType t) { return is_float(t) ? t == floating : !is_int(t) || t == DType::I32; };
      if (!std::ranges::all_of(types, fits)) continue;
      Case c{s.attrs, {}, s.gradient};
      int64_t count = 0;
      for (const Literal& l : sample_values(op, s, types)) {
        c.in.push_back(Array::of(l));
        count += c.in.back().count();
      }
      if (count < 400) cases.push_back(std::move(c));
    }
  }
  return cases;
}

// The case with every axis of this size made a symbol, in operands and in shapes among the attributes.
Dims with_symbol(Dims dims, int64_t size) {
  for (Dim& d : dims)
    if (d.is(size)) d = n;
  return dims;
}
std::vector<TensorType> with_symbol(const std::vector<Array>& in, int64_t size) {
  std::vector<TensorType> types;
  for (const Array& a : in) types.push_back({a.dtype, with_symbol(to_dims(a.shape), size)});
  return types;
}
Attrs with_symbol(const Attrs& attrs, int64_t size) {
  Attrs out = attrs;
  if (const auto* extents = attrs.find("extents")) out.set("extents", with_symbol(std::get<Dims>(*extents), size));
  return out;
}

std::vector<Array> evaluated_with(const OpDef& op, const Case& c, const std::vector<TensorType>& types, const Attrs& attrs,
                                  const Bindings& bindings) {
  const std::vector<TensorType> out = infer(op, types, attrs);
  if (!op.decompose) return test::run_loops(loops_of(op, types, attrs, out), c.in, bindings);
  Builder builder(ops::table());
  const std::vector<Expr> in = exprs(builder, inputs_of(builder, types));
  const Graph g = builder.finish(values(op.decompose(builder, OpCall{op, types, attrs}, in)));
  EXPECT_EQ(g.output_types(), out) << op.name << " expands to other types than it infers";
  return test::evaluate(ops::table(), g, c.in, bindings);
}

TEST(OpsContract, SymbolsChangeNothing) {
  for (const OpDef* op : rows()) {
    int tried = 0;
    for (const Case& c : cases_of(*op)) {
      const std::vector<Array> want = evaluated_with(*op, c, types_of_arrays(c.in), c.attrs, {});
      for (int64_t size = 2; size < 8; ++size) {
        const std::vector<TensorType> types = with_symbol(c.in, size);
        if (types == types_of_arrays(c.in)) continue;
        const Attrs attrs = with_symbol(c.attrs, size);
        try {
          infer(*op, types, attrs);
        } catch (const UserError&) {
          continue;  // a size that this op must know
        }
        ++tried;
        const Bindings bindings{{"n", size}};
        SCOPED_TRACE(cat(op->name, " with ", types[0], " and n = ", size));
        const std::vector<Array> got = evaluated_with(*op, c, types, attrs, bindings);
        for (size_t i = 0; i < want.size(); ++i) {
          EXPECT_EQ(got[i].shape, want[i].shape);
          expect_near(got[i].values(), want[i].values(), 1e-12);  // einsum may choose another order
        }
        if (!op->vjp || !is_float(want[0].dtype) || !c.gradient) continue;
        const Gradient symbolic = gradient_of(*op, types, attrs), concrete = gradient_of(*op, types_of_arrays(c.in), c.attrs);
        std::vector<Array> in = c.in;
        in.push_back(counted(want[0].shape));
        const std::vector<Array> g = test::evaluate(ops::table(), symbolic.graph, in), h = test::evaluate(ops::table(), concrete.graph, in);
        for (size_t i = 0; i < g.size(); ++i) {
          EXPECT_EQ(symbolic.graph.type(symbolic.graph.outputs[i]), types[symbolic.operands[i]]);
          EXPECT_EQ(g[i].bytes, h[i].bytes);
        }
      }
    }
    EXPECT_GT(tried, 0) << op->name << " was never tried with a symbol";
  }
}

// For what is linear in an operand x, <g, f(x)> = <gradient, x>.
TEST(OpsContract, GradientsAreAdjoint) {
  for (std::string_view name :
       {"matmul", "general_conv", "conv_kernel_gradient", "average_pool", "average_pool_grad", "max_pool_grad", "max_pool_pick"}) {
    const OpDef& op = ops::table().at(name);
    for (const Case& c : cases_of(op)) {
      if (!is_float(c.in[0].dtype) || !c.gradient) continue;
      SCOPED_TRACE(cat(name, " of ", c.in[0].shape, " and ", c.in.back().shape));
      const Array out = run(name, c.in, c.attrs), g = counted(out.shape, DType::F64, 5);
      const std::vector<Array> grads = gradients(name, c.in, g, c.attrs);
      for (size_t i = 0; i < grads.size(); ++i) {
        ASSERT_EQ(grads[i].shape, c.in[i].shape);
        EXPECT_NEAR(dot(grads[i], c.in[i]), dot(g, out), 1e-9 * (1 + std::fabs(dot(g, out))));
      }
    }
  }
}

// What is computed in 16 bits is computed in 32 and rounded: it is the result of the same numbers in 32 bits, but for a few roundings.
TEST(OpsContract, HalfTypesAreAsGoodAsTheirDigits) {
  for (const OpDef* op : rows()) {
    for (DType half : {DType::F16, DType::BF16}) {
      for (const Case& c : cases_of(*op, half)) {
        if (std::ranges::none_of(c.in, [&](const Array& a) { return a.dtype == half; })) continue;
        SCOPED_TRACE(cat(op->name, " of ", c.in[0].shape, " in ", half));
        std::vector<Array> in = c.in;
        for (Array& a : in)
          if (is_float(a.dtype)) a = Array::of(DType::F32, a.shape, a.values());
        Attrs attrs = c.attrs;
        if (attrs.has("dtype")) attrs.set("dtype", DType::F32);
        const Array got = run(op->name, c.in, c.attrs), want = run(op->name, in, attrs);
        expect_near(got.values(), Array::of(got.dtype, want.shape, want.values()).values(), half == DType::F16 ? 4e-3 : 3e-2);
      }
    }
  }
}

// --- matmul and friends ---------------------------------------------------------------------------------------------------------

TEST(OpsContract, MatmulShapes) {
  EXPECT_EQ(types_of("matmul", {f32({b, 128}), f32({128, 10})}), "float32[b,10]");
  EXPECT_EQ(types_of("matmul", {f32({128, b}), f32({10, 128})}, {{"transpose_x", true}, {"transpose_y", true}}), "float32[b,10]");
  EXPECT_EQ(types_of("matmul", {f32({b, 1, 3, 4}), f32({5, 4, 2})}), "float32[b,5,3,2]");
  EXPECT_EQ(types_of("matmul", {f32({4}), f32({b, 4, 2})}), "float32[b,2]");
  EXPECT_EQ(types_of("matmul", {f32({b}), f32({b})}), "float32[]");
  EXPECT_EQ(types_of("matmul", {{DType::I8, {2, 3}}, {DType::I8, {3, 2}}}, {{"dtype", DType::I32}}), "int32[2,2]");
  EXPECT_EQ(types_of("dot", {f32({b, 3, 4}), f32({5, 4, 2})}), "float32[b,3,5,2]");
  EXPECT_EQ(types_of("tensordot", {f32({b, 3, 4}), f32({4, 3, 2})}, {{"x_axes", Ints{1, 2}}, {"y_axes", Ints{1, 0}}}), "float32[b,2]");
  EXPECT_EQ(types_of("kron", {f32({b, 3}), f32({2})}), "float32[b,6]");
}

TEST(OpsContract, MatmulMistakes) {
  EXPECT_EQ(error_of("matmul", {f32({32, 128}), f32({64, 10})}), "matmul: inner dimensions differ, lhs [32,128] x rhs [64,10] (128 != 64)");
  EXPECT_EQ(error_of("matmul", {f32({32, b}), f32({64, 10})}), "matmul: inner dimensions differ, lhs [32,b] x rhs [64,10] (b != 64)");
  EXPECT_EQ(error_of("matmul", {f32({2, 3, 4}), f32({5, 4, 2})}),
            "matmul: batch axes do not broadcast, lhs [2,3,4] x rhs [5,4,2] ([2] and [5])");
  EXPECT_EQ(error_of("matmul", {f32({}), f32({3})}),
            "matmul: needs operands with at least one axis, lhs [] x rhs [3]\n  hint: use multiply for a single number");
  EXPECT_EQ(error_of("matmul", {f32({2, 2}), f32({2, 2})}, {{"dtype", DType::I32}}), "matmul: the product of float32 cannot be int32");
  EXPECT_EQ(error_of("vdot", {f32({2, 3}), f32({5})}), "vdot: sizes differ, lhs [2,3] x rhs [5] (6 != 5)");
  EXPECT_EQ(error_of("tensordot", {f32({2, 3}), f32({4, 5})}, {{"axes", 1}}),
            "tensordot: axis 1 of [2,3] and axis 0 of [4,5] differ (3 != 4)");
  EXPECT_EQ(error_of("tensordot", {f32({2, 3}), f32({4, 5})}, {{"axes", 3}}), "tensordot: cannot contract 3 axes of [2,3] and [4,5]");
  EXPECT_EQ(error_of("tensordot", {f32({2, 2}), f32({2, 2})}, {{"x_axes", Ints{0, -2}}, {"y_axes", Ints{0, 1}}}),
            "tensordot: x_axes names axis 0 twice");
}

TEST(OpsContract, MatmulSumsInWiderTypes) {
  // In float16 alone the sum would stop at 2048.
  const Array ones = of({1, 4096}, Doubles(4096, 1), DType::F16);
  EXPECT_EQ(run("matmul", {ones, ones}, {{"transpose_y", true}}).at(0), 4096);
  const Array bytes = of({1, 4}, {100, 100, 100, 100}, DType::I8);
  EXPECT_EQ(run("matmul", {bytes, bytes}, {{"transpose_y", true}, {"dtype", DType::I32}}).at(0), 40000);
  EXPECT_EQ(run("matmul", {bytes, bytes}, {{"transpose_y", true}}).at(0), static_cast<int8_t>(40000)) << "integers wrap";
}

TEST(OpsContract, MatmulGradientOfDenseLayerIsOneProduct) {
  const OpDef& op = ops::table().at("matmul");
  const Gradient g = gradient_of(op, {f32({b, 7, 4}), f32({4, 5})}, complete_attrs(op, {}));
  EXPECT_EQ(count_of(g.graph, "sum"), 0);
  EXPECT_EQ(count_of(g.graph, "transpose"), 0);
  EXPECT_EQ(g.graph.type(g.graph.outputs[0]), f32({b, 7, 4}));
  EXPECT_EQ(g.graph.type(g.graph.outputs[1]), f32({4, 5}));
}

// --- einsum ---------------------------------------------------------------------------------------------------------------------

Attrs equation(std::string text) { return {{"equation", std::move(text)}}; }

TEST(OpsContract, EinsumShapes) {
  EXPECT_EQ(types_of("einsum", {f32({b, 7, 8, 4}), f32({b, 9, 8, 4})}, equation("bqhd, bkhd -> bhqk")), "float32[b,8,7,9]");
  EXPECT_EQ(types_of("einsum", {f32({3, 4}), f32({4, 5})}, equation("zb,ba")), "float32[5,3]") << "alphabetical order";
  EXPECT_EQ(types_of("einsum", {f32({b, 2, 3}), f32({3})}, equation("...i,i")), "float32[b,2]");
  EXPECT_EQ(types_of("einsum", {f32({b, b})}, equation("ii->i")), "float32[b]");
  EXPECT_EQ(types_of("einsum", {f32({2, 1, 3}), f32({5, 3})}, equation("...i,...i->...")), "float32[2,5]");
}

TEST(OpsContract, EinsumMistakes) {
  EXPECT_EQ(error_of("einsum", {f32({3, 4}), f32({5, 6})}, equation("ij,jk")), "einsum: label 'j' is 4 and 5 in operand 1 [5,6]");
  EXPECT_EQ(error_of("einsum", {f32({3, 4})}, equation("ii")), "einsum: label 'i' is 3 and 4 in operand 0 [3,4]");
  EXPECT_EQ(error_of("einsum", {f32({3, 4})}, equation("ijk->i")), "einsum: 'ijk' names 3 axes, the operand has 2");
  EXPECT_EQ(error_of("einsum", {f32({3, 4})}, equation("ij,jk->ik")), "einsum: 'ij,jk->ik' has 2 terms for 1 operands");
  EXPECT_EQ(error_of("einsum", {f32({3, 4})}, equation("ij->ik")), "einsum: label 'k' of the result is in no operand");
  EXPECT_EQ(error_of("einsum", {f32({3, 4})}, equation("ij->ii")), "einsum: label 'i' is twice in the result");
  EXPECT_EQ(error_of("einsum", {f32({3, 4})}, equation("i.j")),
            "einsum: '.' in 'i.j' is no label\n  hint: a term is letters and at most one ...");
  EXPECT_EQ(error_of("einsum", {f32({3, 4})}, equation("i...->i")),
            "einsum: the operands have 1 axes under ..., the result has no ...\n  hint: name those axes to sum over them");
  EXPECT_EQ(error_of("einsum", {}, equation("")), "einsum: needs at least one operand");
}

TEST(OpsContract, EinsumValues) {
  const Array m = of({2, 3}, {1, 2, 3, 4, 5, 6}), square = of({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(run("einsum", {square}, equation("ii")).values(), (Doubles{5}));
  EXPECT_EQ(run("einsum", {m}, equation("ij->ji")).values(), (Doubles{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(run("einsum", {m, m}, equation("ij,kj->ik")).values(), (Doubles{14, 32, 32, 77}));
  EXPECT_EQ(run("einsum", {m, square, m}, equation("ij,ik,kl->jl")).values(), (Doubles{85, 116, 147, 113, 154, 195, 141, 192, 243}));
  const Array bytes = of({2}, {100, 100}, DType::I8);
  EXPECT_EQ(run("einsum", {bytes}, equation("i->")).at(0), static_cast<int8_t>(200)) << "einsum keeps the type";
}

TEST(OpsContract, EinsumIsCheap) {
  // Stored orders that a product can take as they are need no transposition.
  for (std::string_view text : {"ij,jk->ik", "ji,jk->ik", "ij,kj->ik", "ij,ki->kj", "bij,bkj->bik"}) {
    const size_t rank = text[2] == ',' ? 2 : 3;
    const Graph g = expanded("einsum", {f32(Dims(rank, Dim(3))), f32(Dims(rank, Dim(3)))}, equation(std::string(text)));
    EXPECT_EQ(count_of(g, "transpose"), 0) << text;
    EXPECT_EQ(count_of(g, "matmul"), 1) << text;
  }
  // (A B) v costs a thousand times what A (B v) does.
  const Graph chain = expanded("einsum", {f32({1000, 1000}), f32({1000, 1000}), f32({1000})}, equation("ij,jk,k->i"));
  for (const Node& node : chain.nodes)
    if (node.op->name == "matmul") {
      EXPECT_TRUE(node.types[0].dims.back().is(1)) << node.types[0].str();
    }
}

// --- convolution ----------------------------------------------------------------------------------------------------------------

Attrs same(Ints strides = {1}) { return {{"padding", "same"}, {"strides", std::move(strides)}}; }

TEST(OpsContract, ConvShapes) {
  EXPECT_EQ(types_of("conv", {f32({b, 28, 28, 1}), f32({3, 3, 1, 32})}), "float32[b,26,26,32]");
  EXPECT_EQ(types_of("conv", {f32({b, n, n, 3}), f32({3, 3, 3, 8})}, same()), "float32[b,n,n,8]");
  // Two branches of a residual block meet, whatever their kernels.
  EXPECT_EQ(types_of("conv", {f32({b, n, n, 3}), f32({3, 3, 3, 8})}, same({2})),
            types_of("conv", {f32({b, n, n, 3}), f32({1, 1, 3, 8})}, same({2})));
  EXPECT_EQ(types_of("conv", {f32({b, n, 3}), f32({5, 3, 8})}, same({2})),
            types_of("max_pool", {f32({b, n, 8})}, {{"pool_size", Ints{2}}, {"padding", "same"}}));
  EXPECT_EQ(types_of("conv", {f32({b, n, 4}), f32({3, 2, 6})}, {{"padding", "causal"}, {"dilation", Ints{2}}}), "float32[b,n,6]");
  EXPECT_EQ(types_of("depthwise_conv", {f32({b, 8, 8, 3}), f32({3, 3, 3, 2})}, same({2})), "float32[b,4,4,6]");
  EXPECT_EQ(types_of("separable_conv", {f32({b, 8, 8, 3}), f32({3, 3, 3, 2}), f32({1, 1, 6, 5})}, same()), "float32[b,8,8,5]");
  EXPECT_EQ(types_of("conv_transpose", {f32({b, n, n, 3}), f32({4, 4, 5, 3})}, same({2})), "float32[b,n*2,n*2,5]");
  EXPECT_EQ(types_of("conv", {f32({2, 4, 4, 4, 2}), f32({2, 2, 2, 2, 3})}), "float32[2,3,3,3,3]");
}

TEST(OpsContract, ConvMistakes) {
  EXPECT_EQ(error_of("conv", {f32({1, 4, 4, 3}), f32({5, 5, 3, 8})}),
            "conv: a window of 5 does not fit into an axis of 4\n  hint: padding='same' pads the input");
  EXPECT_EQ(error_of("conv", {f32({1, 8, 8, 4}), f32({3, 3, 3, 8})}),
            "conv: the kernel's 3 channels do not divide the input's 4, input [1,8,8,4] and kernel [3,3,3,8]");
  EXPECT_EQ(error_of("conv", {f32({1, 8, 8, 4}), f32({3, 3, 4, 8})}, {{"groups", 2}}),
            "conv: channels differ, input [1,8,8,4] with 2 groups and kernel [3,3,4,8] (2 != 4)");
  EXPECT_EQ(error_of("conv", {f32({1, 8, 8, 4}), f32({3, 3, 2, 5})}), "conv: 5 output channels do not divide into 2 groups");
  EXPECT_EQ(error_of("conv", {f32({1, 8, 4}), f32({3, 3, 4, 8})}),
            "conv: the kernel needs as many axes as the input, got input [1,8,4] and kernel [3,3,4,8]");
  EXPECT_EQ(error_of("conv", {f32({8, 4}), f32({4, 8})}), "conv: takes [batch, 1 to 3 spatial axes, channels], got float32[8,4]");
  EXPECT_EQ(error_of("conv", {f32({1, 8, 8, 4}), f32({3, 3, 4, 8})}, {{"strides", Ints{1, 2, 3}}}),
            "conv: strides has 3 entries for 2 spatial axes");
  EXPECT_EQ(error_of("conv", {f32({1, 8, 4}), f32({3, 4, 8})}, {{"strides", Ints{0}}}), "conv: strides must be at least 1, got 0");
  EXPECT_EQ(error_of("conv", {f32({1, 8, 4}), f32({3, 4, 8})}, {{"padding", "full"}}),
            "conv: padding must be 'valid', 'same' or 'causal', got 'full'");
  EXPECT_EQ(error_of("conv_transpose", {f32({1, 8, 4}), f32({3, 4, 8})}),
            "conv_transpose: channels differ, input [1,8,4] and kernel [3,4,8] (4 != 8)\n"
            "  hint: the kernel is [spatial, output channels, input channels]");
}

Array kernel(const Doubles& v) { return of({static_cast<int64_t>(v.size()), 1, 1}, v); }

TEST(OpsContract, ConvValues) {
  const Array x = series({1, 2, 3, 4, 5}), odd = kernel({1, 10, 100}), even = kernel({1, 10});
  EXPECT_EQ(run("conv", {x, odd}).values(), (Doubles{321, 432, 543}));
  EXPECT_EQ(run("conv", {x, odd}, same()).values(), (Doubles{210, 321, 432, 543, 54}));
  EXPECT_EQ(run("conv", {x, odd}, same({2})).values(), (Doubles{210, 432, 54}));
  EXPECT_EQ(run("conv", {x, even}, same({2})).values(), (Doubles{21, 43, 5}));
  EXPECT_EQ(run("conv", {x, kernel({1})}, same({3})).values(), (Doubles{1, 4}));
  EXPECT_EQ(run("conv", {x, odd}, {{"padding", "same"}, {"dilation", Ints{2}}}).values(), (Doubles{310, 420, 531, 42, 53}));
  EXPECT_EQ(run("conv", {x, odd}, {{"padding", "causal"}}).values(), (Doubles{100, 210, 321, 432, 543}));
}

TEST(OpsContract, ConvTransposeValues) {
  const Array x = series({1, 2, 3}), odd = kernel({1, 10, 100}), even = kernel({1, 10, 100, 1000});
  EXPECT_EQ(run("conv_transpose", {x, odd}, {{"strides", Ints{2}}}).values(), (Doubles{1, 10, 102, 20, 203, 30, 300}));
  EXPECT_EQ(run("conv_transpose", {x, odd}, same({2})).values(), (Doubles{1, 10, 102, 20, 203, 30}));
  EXPECT_EQ(run("conv_transpose", {x, kernel({1, 10})}, {{"strides", Ints{3}}}).values(), (Doubles{1, 10, 0, 2, 20, 0, 3, 30, 0}));
  EXPECT_EQ(run("conv_transpose", {x, even}, same({2})).values(), (Doubles{10, 102, 1020, 203, 2030, 300}));
  EXPECT_EQ(run("conv_transpose", {x, kernel({1})}, same({2})).values(), (Doubles{1, 0, 2, 0, 3, 0}));
  Attrs padded = same({2});
  padded.set("output_padding", Ints{0});
  EXPECT_EQ(run("conv_transpose", {x, odd}, padded).values(), (Doubles{10, 102, 20, 203, 30}));
  padded.set("strides", Ints{3});
  padded.set("output_padding", Ints{1});
  EXPECT_EQ(run("conv_transpose", {x, even}, padded).values(), (Doubles{10, 100, 1002, 20, 200, 2003, 30}));
}

bool has_guard(const Scalar& s) {
  return s->guarded || std::ranges::any_of(s->in, [](const Scalar& x) { return has_guard(x); });
}

TEST(OpsContract, ConvGuardsOnlyWhatItPads) {
  const auto guarded = [](const Attrs& attrs) {
    const Graph g = expanded("conv", {f32({b, 8, 8, 3}), f32({3, 3, 3, 4})}, attrs);
    const Node& node = g.node(g.outputs[0]);
    const std::vector<TensorType> in{g.type(node.inputs[0]), g.type(node.inputs[1])};
    return has_guard(loops_of(*node.op, in, node.attrs, node.types).reduction->element[0]);
  };
  EXPECT_FALSE(guarded({}));
  EXPECT_TRUE(guarded(same()));
}

// --- pooling --------------------------------------------------------------------------------------------------------------------

Attrs pool(Ints size, Ints strides, std::string padding) {
  return {{"pool_size", std::move(size)}, {"strides", std::move(strides)}, {"padding", std::move(padding)}};
}

TEST(OpsContract, PoolShapes) {
  EXPECT_EQ(types_of("max_pool", {f32({b, 28, 28, 8})}, {{"pool_size", Ints{2}}}), "float32[b,14,14,8]");
  EXPECT_EQ(types_of("max_pool_index", {f32({b, 28, 28, 8})}, {{"pool_size", Ints{2, 4}}}), "int32[b,14,7,8]");
  EXPECT_EQ(types_of("average_pool", {f32({b, 7, 8})}, pool({3}, {2}, "same")), "float32[b,4,8]");
  EXPECT_EQ(types_of("global_average_pool", {f32({b, n, n, 8})}), "float32[b,8]");
  EXPECT_EQ(types_of("global_max_pool", {f32({b, 7, 8})}, {{"keepdims", true}}), "float32[b,1,8]");
  EXPECT_EQ(error_of("max_pool", {f32({1, 2, 2, 3})}, {{"pool_size", Ints{3}}}),
            "max_pool: a window of 3 does not fit into an axis of 2\n  hint: padding='same' pads the input");
  EXPECT_EQ(error_of("max_pool", {f32({1, 8, 3})}, pool({2}, {2}, "causal")), "max_pool: padding must be 'valid' or 'same', got 'causal'");
  EXPECT_EQ(error_of("max_pool_grad", {f32({1, 3, 2}), i32({1, 3, 2})}, {{"pool_size", Ints{2}}, {"extents", Dims{8}}}),
            "max_pool_grad: pooling [8] gives [1,4,2], the operand is [1,3,2]");
}

TEST(OpsContract, MaxPoolGradientGoesToTheFirstMaximum) {
  const Array x = series({1, 1, 2, 2, 2, 0, 0});
  EXPECT_EQ(gradients("max_pool", {x}, series({1, 10, 100, 1e3, 1e4, 1e5, 1e6}), pool({3}, {1}, "same"))[0].values(),
            (Doubles{1, 0, 1110, 1e4, 1e5, 1e6, 0}));
  EXPECT_EQ(gradients("max_pool", {x}, series({1, 10, 100}), pool({2}, {2}, "valid"))[0].values(), (Doubles{1, 0, 10, 0, 100, 0, 0}));
  EXPECT_EQ(gradients("max_pool", {x}, series({1, 10, 100, 1e3}), pool({3}, {2}, "same"))[0].values(), (Doubles{1, 0, 10, 100, 0, 1e3, 0}));
}

TEST(OpsContract, MaxPoolOfSpecialValues) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Attrs windows = pool({2}, {2}, "same");
  const Array x = series({1, nan, nan, 3, -inf, -inf, -inf});
  expect_near(run("max_pool", {x}, windows).values(), {nan, nan, -inf, -inf});
  EXPECT_EQ(run("max_pool_index", {x}, windows).values(), (Doubles{1, 0, 0, 0})) << "padding never wins, not even against -inf";
  EXPECT_EQ(run("max_pool_index", {of({1, 2, 2, 1}, {-5, -3, -3, -9}, DType::I8)}, {{"pool_size", Ints{2}}}).values(), (Doubles{1}));
}

TEST(OpsContract, MaxPoolPickIgnoresAnIndexThatNamesNothing) {
  const Array index = of({1, 4, 1}, {0, -1, 7, 2147483647}, DType::I32);
  EXPECT_EQ(run("max_pool_pick", {series({1, 2, 3, 4, 5, 6, 7, 8}), index}, {{"pool_size", Ints{2}}}).values(), (Doubles{1, 0, 0, 0}));
}

TEST(OpsContract, AveragePoolLeavesPaddingOut) {
  const Array x = series({2, 4, 6, 8, 10});
  EXPECT_EQ(run("average_pool", {x}, pool({3}, {2}, "same")).values(), (Doubles{3, 6, 9}));
  EXPECT_EQ(run("average_pool", {x}, pool({2}, {2}, "same")).values(), (Doubles{3, 7, 10}));
  EXPECT_EQ(gradients("average_pool", {x}, series({6, 12, 24}), pool({3}, {2}, "same"))[0].values(), (Doubles{3, 7, 4, 16, 12}));
}

// --- softmax and losses ---------------------------------------------------------------------------------------------------------

TEST(OpsContract, SoftmaxAtTheEnds) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  expect_near(run("softmax", {of({3}, {1e4, 1e4, -1e4})}).values(), {0.5, 0.5, 0});
  expect_near(run("softmax", {of({3}, {-inf, 0, 0})}).values(), {0, 0.5, 0.5});
  expect_near(run("softmax", {of({2}, {-inf, -inf})}).values(), {nan, nan});
  expect_near(run("log_softmax", {of({2}, {0, 200})}).values(), {-200, 0});
  expect_near(run("softmax", {of({2, 2}, {0, 0, 0, std::log(3.0)})}, {{"axis", 0}}).values(), {0.5, 0.25, 0.5, 0.75});
  expect_near(run("sparsemax", {of({4}, {0.5, 0.3, -1, 0.4})}).values(), {13 / 30.0, 7 / 30.0, 0, 10 / 30.0});
  EXPECT_EQ(types_of("softmax", {f32({b, 0})}), "float32[b,0]");
  EXPECT_EQ(run("softmax", {Array(DType::F32, {2, 0})}).shape, (Shape{2, 0}));
  EXPECT_NE(error_of("softmax", {f32({b, 3})}, {{"axis", 2}}).find("softmax: "), std::string::npos);
}

TEST(OpsContract, CategoricalCrossentropy) {
  const Array target = of({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  const Array output = of({3, 3}, {.9, .05, .05, .05, .89, .06, .05, .01, .94});
  const Doubles want{0.10536, 0.11653, 0.06188};  // of Keras's documentation
  expect_near(run("categorical_crossentropy", {target, output}).values(), want, 1e-5);
  expect_near(run("categorical_crossentropy", {target, target}).values(), {1e-7, 1e-7, 1e-7}, 1e-6);
  const Array classes = of({3}, {0, 1, 2}, DType::I32), column = of({3, 1}, {0, 1, 2}, DType::I32);
  expect_near(run("sparse_categorical_crossentropy", {classes, output}).values(), want, 1e-5);
  expect_near(run("sparse_categorical_crossentropy", {column, output}).values(), want, 1e-5);
  // Probabilities are made to sum to 1.
  expect_near(run("categorical_crossentropy", {target, of({3, 3}, Doubles(9, 2))}).values(), Doubles(3, std::log(3.0)));
  const Array logits = of({1, 3}, {1000, 0, -1000});
  expect_near(run("sparse_categorical_crossentropy", {of({1}, {2}, DType::I32), logits}, {{"from_logits", true}}).values(), {2000});
  EXPECT_EQ(error_of("categorical_crossentropy", {f32({b, 3}), f32({b, 4})}),
            "categorical_crossentropy: shapes differ, target [b,3] and output [b,4]");
  EXPECT_EQ(error_of("sparse_categorical_crossentropy", {i32({b, 3}), f32({b, 4})}),
            "sparse_categorical_crossentropy: target [b,3] must be output [b,4] without axis 1 ([b])");
}

TEST(OpsContract, UnknownClassesGiveNaNAndNoGradient) {
  const Array classes = of({3}, {-1, 1, 3}, DType::I32), logits = of({3, 3}, Doubles(9, 0));
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  expect_near(run("sparse_softmax_crossentropy", {classes, logits}).values(), {nan, std::log(3.0), nan});
  const double third = 1 / 3.0;
  expect_near(gradients("sparse_softmax_crossentropy", {classes, logits}, of({3}, {1, 1, 1}))[0].values(),
              {0, 0, 0, third, -2 * third, third, 0, 0, 0});
}

TEST(OpsContract, BinaryCrossentropy) {
  const Array target = of({4}, {0, 1, 1, 0}), logits = of({4}, {-1000, 1000, 0, 3});
  expect_near(run("binary_crossentropy", {target, logits}, {{"from_logits", true}}).values(), {0, 0, std::log(2.0), 3.0485873}, 1e-6);
  // The slope at 0 lies in the middle of the kinks of the formula.
  expect_near(gradients("sigmoid_crossentropy", {target, logits}, of({4}, {1, 1, 1, 1}))[1].values(), {0, 0, -0.5, 0.9525741}, 1e-6);
  expect_near(run("binary_crossentropy", {of({2}, {1, 0}), of({2}, {0.25, 0.25})}).values(), {std::log(4.0), -std::log(0.75)});
  expect_near(run("binary_crossentropy", {of({1}, {1}), of({1}, {0})}).values(), {-std::log(1e-7)}, 1e-5);
}

// --- normalisation --------------------------------------------------------------------------------------------------------------

TEST(OpsContract, NormalizationValues) {
  const double root = std::sqrt(1.5);
  const Array x = of({2, 3}, {1, 2, 3, 1e4 + 1, 1e4 + 2, 1e4 + 3});
  expect_near(run("layer_normalization", {x}).values(), {-root, 0, root, -root, 0, root}, 1e-5);
  expect_near(run("layer_normalization", {x, of({3}, {1, 2, 3}), of({3}, {10, 20, 30})}).values(),
              {10 - root, 20, 30 + 3 * root, 10 - root, 20, 30 + 3 * root}, 1e-5);
  expect_near(run("rms_normalization", {of({1, 2}, {3, 4})}, {{"epsilon", 0.0}}).values(), {3 / std::sqrt(12.5), 4 / std::sqrt(12.5)});
  expect_near(run("normalize", {of({2, 2}, {3, 4, 0, 0})}).values(), {0.6, 0.8, 0, 0});
  expect_near(run("normalize", {of({1, 2}, {3, -1})}, {{"order", 1}}).values(), {0.75, -0.25});
  expect_near(run("group_normalization", {of({1, 1, 4}, {1, 3, 10, 30})}, {{"groups", 2}, {"epsilon", 0.0}}).values(), {-1, 1, -1, 1});
  expect_near(
      run("batch_normalization", {x, of({3}, {1, 2, 3}), of({3}, {4, 4, 4}), of({3}, {0, 0, 7}), of({3}, {2, 2, 2})}, {{"epsilon", 0.0}})
          .values(),
      {0, 0, 7, 1e4, 1e4, 1e4 + 7}, 1e-6);
}

// "Only an offset" and "only a mask" are said with a number in the place before; the number costs nothing.
TEST(OpsContract, NumbersInPlaceOfOperandsCostNothing) {
  const auto ops_with = [](double value) {
    const OpDef& row = ops::table().at("layer_normalization");
    Builder builder(ops::table());
    const std::vector<Value> x = inputs_of(builder, {f32({b, 4}), f32({4})});
    const std::vector<Expr> in = exprs(builder, std::vector<Value>{x[0], builder.scalar(DType::F32, value), x[1]});
    const std::vector<TensorType> types{in[0].type(), in[1].type(), in[2].type()};
    const Attrs attrs = complete_attrs(row, {});
    return count_of(builder.finish(values(row.decompose(builder, OpCall{row, types, attrs}, in))), "multiply");
  };
  EXPECT_EQ(ops_with(1) + 1, ops_with(2));
}

TEST(OpsContract, NormalizationMistakes) {
  EXPECT_EQ(error_of("layer_normalization", {f32({b, 4}), f32({3})}),
            "layer_normalization: gamma [3] does not fit, input [b,4] is normalised over [4]");
  EXPECT_EQ(error_of("batch_normalization", {f32({b, 4}), f32({3}), f32({4})}),
            "batch_normalization: mean must be [4], one element a channel of [b,4], got [3]");
  EXPECT_EQ(error_of("group_normalization", {f32({b, 4})}, {{"groups", 3}}), "group_normalization: 4 channels do not divide into 3 groups");
  EXPECT_EQ(error_of("group_normalization", {f32({b, 4})}, {{"groups", 2}, {"axis", 0}}),
            "group_normalization: axis 0 is the batch, the channels must be another one");
  EXPECT_EQ(error_of("normalize", {f32({b, 4})}, {{"order", 0}}), "normalize: order must be at least 1, got 0");
}

// --- attention ------------------------------------------------------------------------------------------------------------------

TEST(OpsContract, AttentionShapes) {
  EXPECT_EQ(types_of("dot_product_attention", {f32({b, n, 8, 64}), f32({b, 9, 2, 64}), f32({b, 9, 2, 32})}), "float32[b,n,8,32]");
  EXPECT_EQ(
      types_of("dot_product_attention", {f32({b, n, 8, 64}), f32({b, n, 8, 64}), f32({b, n, 8, 64}), f32({}), {DType::Bool, {b, n, n}}}),
      "float32[b,n,8,64]");
  EXPECT_EQ(error_of("dot_product_attention", {f32({2, 3, 4, 8}), f32({2, 5, 4, 7}), f32({2, 5, 4, 8})}),
            "dot_product_attention: query and key differ in depth, query [2,3,4,8], key [2,5,4,7] and value [2,5,4,8] (8 != 7)");
  EXPECT_EQ(error_of("dot_product_attention", {f32({2, 3, 4, 8}), f32({2, 5, 3, 8}), f32({2, 5, 3, 8})}),
            "dot_product_attention: 4 query heads do not divide into groups for 3 key heads, query [2,3,4,8], key [2,5,3,8] and value "
            "[2,5,3,8]");
  EXPECT_EQ(error_of("dot_product_attention", {f32({2, 3, 4, 8}), f32({2, 5, 4, 8}), f32({2, 5, 4, 8}), f32({3, 4})}),
            "dot_product_attention: bias [3,4] does not broadcast to [batch, heads, targets, sources] = [2,4,3,5]");
  EXPECT_EQ(error_of("dot_product_attention", {f32({2, 3, 4, n}), f32({2, 5, 4, n}), f32({2, 5, 4, n})}),
            "dot_product_attention: the depth is the symbol n\n  hint: give scale, or trace with a fixed depth");
}

TEST(OpsContract, AttentionSeesWhatItMay) {
  const Array q = counted({1, 3, 2, 4}, DType::F32), k = counted({1, 3, 2, 4}, DType::F32, 5), v = counted({1, 3, 2, 2}, DType::F32, 3);
  const Doubles causal = run("dot_product_attention", {q, k, v}, {{"is_causal", true}}).values();
  // The first target sees the first source only.
  expect_near({causal.begin(), causal.begin() + 4}, {v.at(0), v.at(1), v.at(2), v.at(3)});
  const Array mask = of({3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1}, DType::Bool), none = of({}, {0});
  EXPECT_EQ(run("dot_product_attention", {q, k, v, none, mask}).values(), causal);
  // Nothing to be seen: all sources alike, no NaN.
  const Doubles blind = run("dot_product_attention", {q, k, v, none, of({1, 1, 1, 3}, {0, 0, 0}, DType::Bool)}).values();
  EXPECT_NEAR(blind[0], (v.at(0) + v.at(4) + v.at(8)) / 3, 1e-5);
}

TEST(OpsContract, AttentionGroupsAreRepeatedHeads) {
  const Array q = counted({2, 3, 4, 4}), k = counted({2, 5, 2, 4}, DType::F64, 5), v = counted({2, 5, 2, 3}, DType::F64, 3);
  const Array bias = counted({2, 4, 3, 5}, DType::F64, 11);
  const Attrs twice{{"repeats", 2}, {"axis", 2}};
  expect_near(run("dot_product_attention", {q, k, v, bias}).values(),
              run("dot_product_attention", {q, run("repeat", {k}, twice), run("repeat", {v}, twice), bias}).values(), 1e-12);
}

}  // namespace
}  // namespace tandem
