// Nodes made by the builder, graphs copied into graphs, and expressions over them.
#include "ir/builder.hpp"

#include <gtest/gtest.h>

#include "ir/verify.hpp"
#include "ir_rows.hpp"

namespace tandem::ir {
namespace {

using test::f32;
using test::sym;

TEST(Builder, MakesNodes) {
  Builder b(test::table());
  const Value x = b.input(f32({sym("b"), 3}), "x");
  b.location = {"model.cpp", 42};
  const Value y = b.op("add", {x, b.scalar(DType::F32, 2)});
  EXPECT_EQ(b.type(y), f32({sym("b"), 3}));
  const Graph g = b.finish({y}, "f");
  EXPECT_EQ(g.name, "f");
  EXPECT_EQ(g.nodes.size(), 3u);
  EXPECT_EQ(g.node(y).location.str(), "model.cpp:42");
  EXPECT_FALSE(g.node(x).location);
  EXPECT_EQ(g.node(x).attrs.get<std::string>("name"), "x");
  EXPECT_TRUE(b.graph().nodes.empty());
  verify(test::table(), g, Stage::Traced);
}

TEST(Builder, EqualScalarConstantsAreOneNode) {
  Builder b(test::table());
  const Value one = b.scalar(DType::F32, 1);
  EXPECT_EQ(b.scalar(DType::F32, 1), one);
  EXPECT_NE(b.scalar(DType::F64, 1), one);
  EXPECT_NE(b.scalar(DType::F32, -1), one);
  EXPECT_NE(b.scalar(DType::F32, 0.0), b.scalar(DType::F32, -0.0));
  const float values[] = {1, 2};
  EXPECT_NE(b.constant(Literal::of(DType::F32, {2}, values)), b.constant(Literal::of(DType::F32, {2}, values)));
  b.finish({});
  EXPECT_EQ(b.scalar(DType::F32, 1), (Value{0, 0}));  // nothing is remembered of the last graph
}

TEST(Builder, ErrorsGetTheLocationInFrontOfTheHint) {
  Builder b(test::table());
  const Value x = b.input(f32({2}));
  b.location = {"dir/model.cpp", 42};
  EXPECT_EQ(error_of<UserError>([&] { b.op("ad", {x}); }), "no op is called 'ad'\n  at model.cpp:42\n  hint: did you mean 'add'?");
  EXPECT_EQ(error_of<UserError>([&] { b.op("add", {x}); }), "add: takes 2 operands (x, y), got 1 (float32[2])\n  at model.cpp:42");
  b.location = {};
  EXPECT_EQ(error_of<UserError>([&] { b.op("add", {x}); }), "add: takes 2 operands (x, y), got 1 (float32[2])");
  EXPECT_EQ(b.graph().nodes.size(), 1u);  // nothing was left behind
}

TEST(Builder, ValuesMustExist) {
  Builder b(test::table());
  const Value x = b.input(f32({2}));
  EXPECT_THROW(b.op("negative", {Value{}}), InternalError);
  EXPECT_THROW(b.op("negative", {Value{5, 0}}), InternalError);
  EXPECT_THROW(b.op("negative", {Value{x.node, 1}}), InternalError);
  EXPECT_THROW(b.finish({Value{7, 0}}), InternalError);
}

TEST(Builder, TypesStayWhereTheyAre) {
  Builder b(test::table());
  const Value x = b.input(f32({2}));
  const TensorType& type = b.type(x);
  for (int i = 0; i < 1000; ++i) b.op("negative", {x});
  EXPECT_EQ(&type, &b.type(x));
}

TEST(InlineGraph, CopiesBehind) {
  Builder f(test::table());
  const Value fx = f.input(f32({3}));
  const Value fy = f.input(f32({}));
  f.location = {"inner.cpp", 1};
  const Value fz = f.op("multiply", {fx, fy});
  f.location = {};
  const Graph inner = f.finish({f.op("add", {fz, f.scalar(DType::F32, 1)}), fx}, "inner");

  Builder b(test::table());
  const Value one = b.scalar(DType::F32, 1);
  const Value x = b.input(f32({3}));
  b.location = {"outer.cpp", 2};
  const std::vector<Value> inputs{x, one};
  const std::vector<Value> out = inline_graph(b, inner, inputs);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[1], x);
  EXPECT_EQ(b.location.str(), "outer.cpp:2");
  const Graph g = b.finish({out[0]});
  EXPECT_EQ(g.nodes.size(), 4u);  // the constant 1 is there once
  EXPECT_EQ(g.nodes[2].location.str(), "inner.cpp:1");
  EXPECT_EQ(g.nodes[3].location.str(), "outer.cpp:2");
  EXPECT_EQ(g.nodes[3].inputs, (std::vector{Value{2, 0}, one}));
}

TEST(InlineGraph, TypesMustMatch) {
  Builder f(test::table());
  f.input(f32({3}));
  const Graph inner = f.finish({Value{0, 0}}, "inner");
  Builder b(test::table());
  const std::vector<Value> wrong{b.input(f32({4}))};
  EXPECT_EQ(error_of<UserError>([&] { inline_graph(b, inner, wrong); }), "graph 'inner' takes float32[3] as input 0, got float32[4]");
  EXPECT_EQ(error_of<UserError>([&] { inline_graph(b, inner, {}); }), "graph 'inner' takes 1 inputs, got 0");
}

TEST(Prune, KeepsInputsAndWhatIsNeeded) {
  Builder b(test::table());
  const Value x = b.input(f32({3}));
  b.op("negative", {x});
  b.input(f32({4}), "unused");
  const Value y = b.op("exp", {x});
  const Graph g = prune(test::table(), b.finish({y}, "f"));
  ASSERT_EQ(g.nodes.size(), 3u);
  EXPECT_EQ(g.inputs, (std::vector{Value{0, 0}, Value{1, 0}}));
  EXPECT_EQ(g.outputs, (std::vector{Value{2, 0}}));
  EXPECT_EQ(g.name, "f");
  verify(test::table(), g, Stage::Expanded);
}

// --- Expr ------------------------------------------------------------------------------------------------------------------

struct ExprTest : testing::Test {
  Builder b{test::table()};
  Expr input(Dims dims, DType t = DType::F32) { return {b, b.input({t, std::move(dims)})}; }
  const Node& node(const Expr& e) { return b.graph().node(e.value()); }
};

TEST_F(ExprTest, ReadsLikeAFormula) {
  const Expr x = input({2, 3});
  const Expr y = (x + 1) * (2 - x);
  EXPECT_EQ(y.type(), f32({2, 3}));
  EXPECT_EQ(node(y).op->name, "multiply");
  EXPECT_EQ((x < 0).dtype(), DType::Bool);
  EXPECT_EQ(where(x < 0, 0, x).type(), f32({2, 3}));
  EXPECT_EQ(node(-x).op->name, "negative");
  EXPECT_EQ(x.number(3).type(), f32({}));
  EXPECT_EQ(x.like(3).type(), f32({2, 3}));
}

TEST_F(ExprTest, WhatChangesNothingMakesNoNode) {
  const Expr x = input({2, 3});
  const size_t before = b.graph().nodes.size();
  EXPECT_EQ(x.cast(DType::F32).value(), x.value());
  EXPECT_EQ(x.reshape({2, 3}).value(), x.value());
  EXPECT_EQ(x.broadcast_to({2, 3}).value(), x.value());
  EXPECT_EQ(x.transpose({0, 1}).value(), x.value());
  EXPECT_EQ(x.sum({}).value(), x.value());
  EXPECT_EQ(x.sum_to({2, 3}).value(), x.value());
  EXPECT_EQ(b.graph().nodes.size(), before);
  EXPECT_EQ(x.cast(DType::F16).dtype(), DType::F16);
  EXPECT_EQ(x.sum({1}, true).dims(), (Dims{2, 1}));
}

TEST_F(ExprTest, SumToUndoesBroadcasting) {
  const Expr x = input({4, 2, 3});
  EXPECT_EQ(x.sum_to({2, 1}).dims(), (Dims{2, 1}));
  EXPECT_EQ(x.sum_to({}).dims(), Dims{});
  EXPECT_EQ(x.sum_to({3}).dims(), Dims{3});
  EXPECT_EQ(x.sum_to({1, 1, 1}).dims(), (Dims{1, 1, 1}));
  const Expr s = input({sym("b"), 3});
  EXPECT_EQ(s.sum_to({1, 3}).dims(), (Dims{1, 3}));
  EXPECT_EQ(node(s.sum_to({3})).attrs.get<Ints>("axis"), Ints{0});
  EXPECT_THROW(x.sum_to({5}), InternalError);
  EXPECT_THROW(x.sum_to({1, 4, 2, 3}), InternalError);
}

TEST_F(ExprTest, EmptyAndForeignOperandsAreRefused) {
  const Expr x = input({2});
  Builder other(test::table());
  const Expr y(other, other.input(f32({2})));
  EXPECT_THROW(x + Expr(), InternalError);
  EXPECT_THROW(Expr().op("negative"), InternalError);
  EXPECT_THROW(x + y, InternalError);
}

TEST_F(ExprTest, CallGivesAllResults) {
  const Expr x = input({2});
  const auto results = call(b, "min_max", {x});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[2].dtype(), DType::I32);
  EXPECT_EQ(values(exprs(b, values(results))), values(results));
}

TEST_F(ExprTest, GradMaterialisesZeros) {
  const Expr x = input({2, 3});
  const auto out = call(b, "min_max", {x});
  const Node n = b.graph().node(out[0].value());
  const GradCall c{b, n, {x}, out, {x.number(5), Expr(), Expr()}, {true}};
  EXPECT_EQ(node(c.grad()).attrs.get<Literal>("value").values<float>()[0], 5);
  EXPECT_EQ(c.grad(1).type(), f32({}));
  EXPECT_EQ(node(c.grad(1)).attrs.get<Literal>("value").values<float>()[0], 0);
}

}  // namespace
}  // namespace tandem::ir
