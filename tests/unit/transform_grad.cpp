// Gradients against finite differences in float64, and the rules around them: what is unconnected, cut, or has none.
#include "transform/grad.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "evaluate.hpp"
#include "ops/control.hpp"
#include "ops/table.hpp"

namespace tandem {
namespace {
using namespace ir;
using test::Array;

using ExprFn = std::function<Expr(Builder&, std::vector<Expr>)>;

Graph make(const std::vector<TensorType>& types, const ExprFn& f) {
  Builder b(ops::table());
  std::vector<Expr> in;
  for (const TensorType& t : types) in.emplace_back(b, b.input(t));
  const Value out = f(b, in).value();
  return b.finish({out});
}

using ListFn = std::function<std::vector<Expr>(Builder&, std::vector<Expr>)>;
GraphRef part(const std::vector<TensorType>& types, const ListFn& f) {
  Builder b(ops::table());
  std::vector<Expr> in;
  for (const TensorType& t : types) in.emplace_back(b, b.input(t));
  const std::vector<Value> out = values(f(b, in));
  return std::make_shared<const Graph>(b.finish(out));
}

TensorType f64(Dims dims) { return {DType::F64, std::move(dims)}; }
TensorType i32(Dims dims = {}) { return {DType::I32, std::move(dims)}; }

// A smooth, uneven sequence that depends on the seed.
Array wave(const TensorType& t, int seed) {
  Array a(t.dtype, tandem::bind(t.dims, {}));
  for (int64_t i = 0; i < a.count(); ++i) a.set(i, 0.7 * std::sin(1.3 * static_cast<double>(i) + seed) + 0.2);
  return a;
}

double value_of(const Graph& g, const std::vector<Array>& in) { return test::evaluate(ops::table(), g, in)[0].at(0); }

// Every element of the gradient by every floating input against central differences.
void expect_gradient(const Graph& g, std::vector<Array> in, double tolerance = 1e-6) {
  std::vector<int> wrt;
  for (size_t k = 0; k < in.size(); ++k)
    if (is_float(in[k].dtype)) wrt.push_back(static_cast<int>(k));
  const Graph grad = transform::grad_graph(ops::table(), g, wrt);
  const std::vector<Array> found = test::evaluate(ops::table(), grad, in);
  EXPECT_EQ(found[0].at(0), value_of(g, in));
  for (size_t w = 0; w < wrt.size(); ++w) {
    const auto k = static_cast<size_t>(wrt[w]);
    for (int64_t i = 0; i < in[k].count(); ++i) {
      const double x = in[k].at(i), h = 1e-5;
      in[k].set(i, x + h);
      const double up = value_of(g, in);
      in[k].set(i, x - h);
      const double down = value_of(g, in);
      in[k].set(i, x);
      EXPECT_NEAR(found[w + g.outputs.size()].at(i), (up - down) / (2 * h), tolerance) << "input " << k << " element " << i;
    }
  }
}

void expect_gradient(const std::vector<TensorType>& types, const ExprFn& f) {
  std::vector<Array> in;
  for (const TensorType& t : types) in.push_back(wave(t, static_cast<int>(in.size())));
  expect_gradient(make(types, f), in);
}

Expr total(const Expr& x) { return x.op("sum"); }

template <class F> std::string error_of(F f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

// --- values ----------------------------------------------------------------------------------------------------------------

TEST(Grad, ElementwiseWithBroadcasting) {
  expect_gradient({f64({2, 3}), f64({3}), f64({})}, [](Builder&, auto in) { return total(exp(in[0]) * in[1] + in[1] / (in[2] + 2)); });
}

TEST(Grad, BodiesAreDerived) {
  for (const char* op : {"exp", "sin", "cos", "tanh", "sigmoid", "sqrt", "log", "arctan", "erf", "square", "log1p", "expm1", "softplus"})
    expect_gradient({f64({5})}, [op](Builder&, auto in) { return total((in[0] * in[0] + 0.3).op(op)); });
}

TEST(Grad, SelectedSideOfABodyOnly) {
  // elu is exp(x) - 1 below 0; above, that side overflows and must not be heard of.
  const Graph g = make({f64({2})}, [](Builder&, auto in) { return total(in[0].op("elu")); });
  const int wrt = 0;
  const auto found =
      test::evaluate(ops::table(), transform::grad_graph(ops::table(), g, {&wrt, 1}), {Array::of(DType::F64, {2}, {1000, -1})});
  EXPECT_EQ(found[1].at(0), 1);
  EXPECT_NEAR(found[1].at(1), std::exp(-1.0), 1e-12);
}

TEST(Grad, SharedValuesAddUp) {
  expect_gradient({f64({4})}, [](Builder&, auto in) {
    const Expr y = in[0] * in[0];
    return total(y * y + y.op("sin"));
  });
}

TEST(Grad, Matmul) {
  expect_gradient({f64({2, 3}), f64({3, 4})}, [](Builder&, auto in) { return total(in[0].op("matmul", {in[1]}).op("tanh")); });
}

TEST(Grad, Decomposed) {
  expect_gradient({f64({2, 5})}, [](Builder&, auto in) {
    return total(in[0].op("softmax") * in[0].op("logsumexp", {{"axis", Ints{-1}}, {"keepdims", true}}));
  });
}

TEST(Grad, OfGradients) {
  Builder b(ops::table());
  const Expr x(b, b.input(f64({3})));
  Value y = total(x * x * x.op("sin")).value();
  const Value source = x.value();
  for (int order = 0; order < 2; ++order) {
    const Value g = transform::gradients(b, {&y, 1}, {}, {&source, 1})[0];
    y = total(Expr(b, g) * x).value();
  }
  expect_gradient(b.finish({y}), {wave(f64({3}), 1)}, 1e-5);
}

TEST(Grad, SymbolicExtents) {
  Builder b(ops::table());
  const Expr x(b, b.input(f64({Dim::symbol("b"), 3}))), w(b, b.input(f64({3})));
  const Graph g = b.finish({total((x * w).op("tanh")).value()});
  expect_gradient(g, {wave(f64({4, 3}), 0), wave(f64({3}), 1)});
}

TEST(Grad, CotangentsOfTargets) {
  Builder b(ops::table());
  const Expr x(b, b.input(f64({2}))), c(b, b.input(f64({2})));
  const Value targets[] = {(x * x).value(), x.op("sin").value()}, grads[] = {c.value(), {}}, source = x.value();
  const Value g = transform::gradients(b, targets, grads, {&source, 1})[0];
  const auto found =
      test::evaluate(ops::table(), b.finish({g}), {Array::of(DType::F64, {2}, {1, 2}), Array::of(DType::F64, {2}, {10, 100})});
  EXPECT_NEAR(found[0].at(0), 10 * 2 + std::cos(1.0), 1e-12);
  EXPECT_NEAR(found[0].at(1), 100 * 4 + std::cos(2.0), 1e-12);
}

TEST(Grad, IntermediateSources) {
  Builder b(ops::table());
  const Expr x(b, b.input(f64({}))), y = x * x, z = y.op("sin");
  const Value target = z.value(), sources[] = {y.value(), x.value()};
  const auto g = transform::gradients(b, {&target, 1}, {}, sources);
  const auto found = test::evaluate(ops::table(), b.finish(g), {Array::of(DType::F64, {}, {1.5})});
  EXPECT_NEAR(found[0].at(0), std::cos(2.25), 1e-12);
  EXPECT_NEAR(found[1].at(0), 3 * std::cos(2.25), 1e-12);
}

// --- rules -----------------------------------------------------------------------------------------------------------------

TEST(Grad, UnconnectedAndCut) {
  Builder b(ops::table());
  const Expr x(b, b.input(f64({2}))), y(b, b.input(f64({2})));
  const Value sources[] = {x.value(), y.value()};
  const Value direct = total(x).value(), cut = total(x.stop_gradient() * y).value(), steps = total(x.op("floor") + y).value();
  EXPECT_FALSE(transform::gradients(b, {&direct, 1}, {}, sources)[1]);
  EXPECT_FALSE(transform::gradients(b, {&cut, 1}, {}, sources)[0]);
  EXPECT_TRUE(transform::gradients(b, {&cut, 1}, {}, sources)[1]);
  EXPECT_FALSE(transform::gradients(b, {&steps, 1}, {}, sources)[0]);
}

TEST(Grad, IntegersCarryNone) {
  Builder b(ops::table());
  const Expr x(b, b.input(f64({4})));
  const Value target = x.op("argmax").cast(DType::F64).value(), source = x.value();
  EXPECT_FALSE(transform::gradients(b, {&target, 1}, {}, {&source, 1})[0]);
}

TEST(Grad, Errors) {
  Builder b(ops::table());
  const Expr x(b, b.input(f64({4})));
  const Value source = x.value();
  const Value whole = x.cast(DType::I32).value();
  EXPECT_EQ(error_of([&] { transform::gradients(b, {&whole, 1}, {}, {&source, 1}); }),
            "gradients: target 0 must be floating, it is int32[4]\n  hint: integers have no gradient; cast first");
  b.location = {"model.cpp", 42};
  const Expr key(b, b.input({DType::U32, {2}}));
  const Value drawn = key.op("gamma", {x}, {{"shape", Dims{4}}}).value();
  EXPECT_EQ(error_of([&] { transform::gradients(b, {&drawn, 1}, {}, {&source, 1}); }),
            "gamma: has no gradient\n  at model.cpp:42\n  hint: put stop_gradient in front of it when none is meant to flow");
  const Graph wide = make({f64({2})}, [](Builder&, auto in) { return in[0] * 2; });
  EXPECT_EQ(error_of([&] { transform::grad_graph(ops::table(), wide, {}); }),
            "grad_graph: output 0 must be a floating scalar, it is float64[2]");
}

TEST(Grad, NodesKeepTheirLocation) {
  Builder b(ops::table());
  const Expr x(b, b.input(f64({2})));
  b.location = {"model.cpp", 7};
  const Expr y = x.op("exp");
  b.location = {"model.cpp", 8};
  const Value target = total(y).value(), source = x.value();
  const Value g = transform::gradients(b, {&target, 1}, {}, {&source, 1})[0];
  EXPECT_EQ(b.graph().node(g).location.line, 7u);
  EXPECT_EQ(b.location.line, 8u);
}

TEST(Grad, OnlyWalksWhatIsOnTheWay) {
  Builder b(ops::table());
  const Expr x(b, b.input(f64({2}))), y(b, b.input(f64({2})));
  const Expr key(b, b.input({DType::U32, {2}}));
  const Expr drawn = key.op("gamma", {y}, {{"shape", Dims{2}}});  // has no gradient, but x does not come through it
  const Value target = total(x * drawn).value(), source = x.value();
  EXPECT_TRUE(transform::gradients(b, {&target, 1}, {}, {&source, 1})[0]);
}

// --- control flow ----------------------------------------------------------------------------------------------------------

TEST(GradControl, Branch) {
  const std::vector<TensorType> types{f64({3}), f64({3})};
  const Graphs branches{part(types, [](Builder&, auto in) { return std::vector{in[0] * in[1], in[0].op("sin")}; }),
                        part(types, [](Builder&, auto in) { return std::vector{in[0].op("exp"), in[0]}; })};
  const Graph g = make({i32(), f64({3}), f64({3})}, [&](Builder& b, auto in) {
    const auto out = call(b, "branch", in, {{"branches", branches}});
    return total(out[0] * out[1] * in[2]);
  });
  for (int index : {0, 1}) expect_gradient(g, {Array::of(DType::I32, {}, {double(index)}), wave(f64({3}), 1), wave(f64({3}), 2)});
}

// h' = tanh(h @ w + x), y = h' * c, with w as a constant; the length is 6.
Expr rnn(Builder& b, const std::vector<Expr>& in, bool reverse, bool use_outputs) {
  const std::vector<TensorType> types{f64({2, 3}), i32(), f64({2, 3}), f64({3, 3}), f64({3})};
  const GraphRef body = part(types, [](Builder&, auto s) {
    const Expr h = (s[0].op("matmul", {s[3]}) + s[2]).op("tanh");
    return std::vector{h, s[1] + 1, h * s[4]};
  });
  const Expr count(b, b.scalar(DType::I32, 0));
  const auto out =
      call(b, "scan", {in[0], count, in[1], in[2], in[3]},
           {{"functions", Graphs{body}}, {"carries", int64_t{2}}, {"sequences", int64_t{1}}, {"length", Dims{6}}, {"reverse", reverse}});
  return use_outputs ? total(out[0].op("sin")) + total(out[2] * out[2]) : total(out[0]);
}

TEST(GradControl, Scan) {
  const std::vector<TensorType> types{f64({2, 3}), f64({6, 2, 3}), f64({3, 3}), f64({3})};
  for (bool reverse : {false, true})
    for (bool use_outputs : {false, true}) expect_gradient(types, [&](Builder& b, auto in) { return rnn(b, in, reverse, use_outputs); });
}

std::vector<const Node*> nodes_of(const Graph& g, std::string_view op) {
  std::vector<const Node*> found;
  for (const Node& n : g.nodes)
    if (n.op->name == op) found.push_back(&n);
  return found;
}

TEST(GradControl, ScanKeepsContractionsNotElementwiseResults) {
  const Graph g = make({f64({2, 3}), f64({6, 2, 3}), f64({3, 3}), f64({3})}, [](Builder& b, auto in) { return rnn(b, in, false, true); });
  const int wrt[] = {0, 1, 2, 3};
  const Graph grad = transform::grad_graph(ops::table(), g, wrt);
  const auto scans = nodes_of(grad, "scan");
  ASSERT_EQ(scans.size(), 3u);
  // As given: 2 carries and 1 output; again, with the carry and h @ w of each step.
  EXPECT_EQ(scans[0]->types.size(), 3u);
  EXPECT_EQ(scans[1]->types.size(), 5u);
  // Back: cotangents of h, the sum for c, the gradient of x; and what the one product for w is made of.
  EXPECT_EQ(scans[2]->attrs.get<int64_t>("carries"), 2);
  EXPECT_EQ(scans[2]->types.size(), 4u);
  EXPECT_EQ(nodes_of(grad, "matmul").size(), 1u);
  EXPECT_TRUE(ops::covers(*scans[1], *scans[0]));
  EXPECT_FALSE(ops::covers(*scans[0], *scans[1]));
  EXPECT_FALSE(ops::covers(*scans[2], *scans[0]));
}

// Both weights are products over all steps, one of a sequence and one of a carry; a third constant is used twice and so summed. The
// number of steps is a symbol.
TEST(GradControl, ScanOfUnknownLength) {
  const Dim steps = Dim::symbol("t");
  const std::vector<TensorType> step{f64({2, 3}), f64({2, 4}), f64({4, 3}), f64({3, 3}), f64({3, 3})};
  const GraphRef body = part(step, [](Builder&, auto s) {
    const Expr h = (s[1].op("matmul", {s[2]}) + s[0].op("matmul", {s[3]})).op("tanh");
    return std::vector{h.op("matmul", {s[4]}).op("matmul", {s[4]}), h};
  });
  const std::vector<TensorType> types{f64({2, 3}), f64({steps, 2, 4}), f64({4, 3}), f64({3, 3}), f64({3, 3})};
  const Graph g = make(types, [&](Builder& b, auto in) {
    const auto out =
        call(b, "scan", in, {{"functions", Graphs{body}}, {"carries", int64_t{1}}, {"sequences", int64_t{1}}, {"length", Dims{steps}}});
    return total(out[0]) + total(out[1] * out[1]);
  });
  for (int64_t length : {0, 1, 5})
    expect_gradient(g, {wave(types[0], 0), wave(f64({length, 2, 4}), 1), wave(types[2], 2), wave(types[3], 3), wave(types[4], 4)});
  const int wrt[] = {2, 3, 4};
  const Graph grad = transform::grad_graph(ops::table(), g, wrt);
  EXPECT_EQ(nodes_of(grad, "matmul").size(), 2u);
  EXPECT_EQ(nodes_of(grad, "scan")[2]->attrs.get<int64_t>("carries"), 2);
}

TEST(GradControl, ScanTwice) {
  Builder b(ops::table());
  std::vector<Expr> in;
  for (const TensorType& t : {f64({2, 3}), f64({6, 2, 3}), f64({3, 3}), f64({3})}) in.emplace_back(b, b.input(t));
  const Value y = rnn(b, in, false, true).value(), sources[] = {in[0].value(), in[2].value()};
  const auto g = transform::gradients(b, {&y, 1}, {}, sources);
  const Expr z = total(Expr(b, g[0]).op("sin")) + total(Expr(b, g[1]) * in[2]);
  expect_gradient(b.finish({z.value()}), {wave(f64({2, 3}), 0), wave(f64({6, 2, 3}), 1), wave(f64({3, 3}), 2), wave(f64({3}), 3)}, 1e-5);
}

// x' = x + 0.02 * sin(x * w + 0.1 * i) as long as i < n; w and n pass through. Every trip leaves its mark on the gradient.
Expr loop(Builder& b, const Expr& x, const Expr& w, const Expr& n, const Attr& max_trips) {
  const std::vector<TensorType> types{x.type(), i32(), w.type(), i32()};
  const GraphRef condition = part(types, [](Builder&, auto s) { return std::vector{s[1] < s[3]}; });
  const GraphRef body = part(types, [](Builder&, auto s) {
    const Expr phase = s[0] * s[2] + s[1].cast(DType::F64) * 0.1;
    return std::vector{s[0] + phase.op("sin") * 0.02, s[1] + 1, s[2], s[3]};
  });
  const Expr zero(b, b.scalar(DType::I32, 0));
  const auto out = call(b, "while", {x, zero, w, n}, {{"functions", Graphs{condition, body}}, {"max_trips", max_trips}});
  return total(out[0] * out[2]);
}

void expect_loop_gradient(int trips, const Attr& max_trips) {
  const Graph g = make({f64({2}), f64({2}), i32()}, [&](Builder& b, auto in) { return loop(b, in[0], in[1], in[2], max_trips); });
  expect_gradient(g, {wave(f64({2}), 0), Array::of(DType::F64, {2}, {1.7, -1.2}), Array::of(DType::I32, {}, {double(trips)})}, 1e-5);
}

TEST(GradControl, WhileWithTripsThatFit) {
  for (int trips : {0, 1, 5, 9}) expect_loop_gradient(trips, int64_t{7});
}

TEST(GradControl, WhileWithAnyNumberOfTrips) {
  for (int trips : {0, 1, 63, 64, 65, 130, 300}) expect_loop_gradient(trips, {});
}

TEST(GradControl, WhileBeyondBothBuffers) { expect_loop_gradient(1100, {}); }

TEST(GradControl, WhileRunAgainCoversTheFirstRun) {
  for (const Attr& max_trips : {Attr(int64_t{7}), Attr()}) {
    const Graph g = make({f64({2}), f64({2}), i32()}, [&](Builder& b, auto in) { return loop(b, in[0], in[1], in[2], max_trips); });
    const int wrt[] = {0, 1};
    const Graph grad = transform::grad_graph(ops::table(), g, wrt);
    const auto loops = nodes_of(grad, "while");
    ASSERT_EQ(loops.size(), 3u);
    EXPECT_TRUE(ops::covers(*loops[1], *loops[0]));
    EXPECT_FALSE(ops::covers(*loops[2], *loops[0]));
  }
}

TEST(GradControl, WhileTwice) {
  Builder b(ops::table());
  const Expr x(b, b.input(f64({2}))), w(b, b.input(f64({2}))), n(b, b.input(i32()));
  const Value y = loop(b, x, w, n, int64_t{6}).value(), sources[] = {x.value(), w.value()};
  const auto g = transform::gradients(b, {&y, 1}, {}, sources);
  const Expr z = total(Expr(b, g[0]) * x) + total(Expr(b, g[1]).op("sin"));
  expect_gradient(b.finish({z.value()}), {wave(f64({2}), 0), wave(f64({2}), 1), Array::of(DType::I32, {}, {4})}, 1e-5);
}

TEST(GradControl, WhileInScanInBranch) {
  const std::vector<TensorType> step{f64({2}), f64({2}), f64({2})};
  const GraphRef body = part(step, [](Builder& b, auto s) {
    const Expr n(b, b.scalar(DType::I32, 3));
    const Expr y = s[0] + s[1] * loop(b, s[0], s[2], n, {});
    return std::vector{y.op("tanh"), y};
  });
  const std::vector<TensorType> types{f64({2}), f64({4, 2}), f64({2})};
  const Graphs branches{part(types,
                             [&](Builder& b, auto in) {
                               const auto out = call(
                                   b, "scan", in,
                                   {{"functions", Graphs{body}}, {"carries", int64_t{1}}, {"sequences", int64_t{1}}, {"length", Dims{4}}});
                               return std::vector{total(out[1]) + total(out[0])};
                             }),
                        part(types, [](Builder&, auto in) { return std::vector{total(in[0])}; })};
  const Graph g =
      make({i32(), types[0], types[1], types[2]}, [&](Builder& b, auto in) { return call(b, "branch", in, {{"branches", branches}})[0]; });
  expect_gradient(g, {Array::of(DType::I32, {}, {0}), wave(types[0], 0), wave(types[1], 1), wave(types[2], 2)}, 1e-5);
}

TEST(GradControl, LoopsThatDoNotDependOnTheSource) {
  Builder b(ops::table());
  const Expr x(b, b.input(f64({2}))), w(b, b.input(f64({2}))), n(b, b.input(i32()));
  const Value y = loop(b, x, w, n, {}).value(), other = b.input(f64({2}));
  EXPECT_FALSE(transform::gradients(b, {&y, 1}, {}, {&other, 1})[0]);
}

TEST(Control, InferenceErrors) {
  Builder b(ops::table());
  const Expr x(b, b.input(f64({2}))), index(b, b.input(i32()));
  const GraphRef same = part({f64({2})}, [](Builder&, auto in) { return in; });
  const GraphRef wider = part({f64({2})}, [](Builder&, auto in) { return std::vector{in[0].broadcast_to({3, 2})}; });
  const GraphRef other = part({i32()}, [](Builder&, auto in) { return in; });
  const GraphRef always = part({f64({2})}, [](Builder& c, auto) { return std::vector{Expr(c, c.scalar(DType::Bool, 1))}; });
  EXPECT_EQ(error_of([&] { call(b, "branch", {index, x}, {{"branches", Graphs{same, wider}}}); }),
            "branch: output 0 of branch 1 is float64[3,2], that of branch 0 is float64[2]");
  EXPECT_EQ(error_of([&] { call(b, "branch", {index, x}, {{"branches", Graphs{same, other}}}); }),
            "branch: input 0 of branch 1 is int32[], the operand is float64[2]");
  EXPECT_EQ(error_of([&] { call(b, "while", {x}, {{"functions", Graphs{always, wider}}}); }),
            "while: carry 0 is float64[2], the body turns it into float64[3,2]\n"
            "  hint: a carry keeps its element type and its shape from trip to trip");
  EXPECT_EQ(error_of([&] { call(b, "while", {x}, {{"functions", Graphs{same, same}}}); }),
            "while: the condition must give one bool[], it gives (float64[2])");
  const auto scan = [&](const Dims& length) {
    call(b, "scan", {x}, {{"functions", Graphs{same}}, {"carries", int64_t{0}}, {"sequences", int64_t{1}}, {"length", length}});
  };
  EXPECT_EQ(error_of([&] { scan({3}); }), "scan: sequence 0 is float64[2], its leading axis must be the length 3");
  EXPECT_EQ(error_of([&] { scan({2}); }), "scan: input 0 of the body is float64[2], the operand is float64[]");
}

}  // namespace
}  // namespace tandem
