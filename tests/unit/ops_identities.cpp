// Identities over all samples of products, convolutions, pools, losses, normalisation and attention: symbols change nothing, a gradient is
// the adjoint, and 16 bits are as good as their digits.
#include "ir/sample.hpp"
#include "ops_calls.hpp"

namespace tandem {
namespace {
using namespace ir;
using namespace test::calls;
using test::Array;

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

TEST(OpsIdentities, SymbolsChangeNothing) {
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
TEST(OpsIdentities, GradientsAreAdjoint) {
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
TEST(OpsIdentities, HalfTypesAreAsGoodAsTheirDigits) {
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

}  // namespace
}  // namespace tandem
