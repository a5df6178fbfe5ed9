// One graph made out of another: things by node and by value, the walk, and nodes under new numbers.
#include "ir/rewrite.hpp"

#include <gtest/gtest.h>

#include "ir/print.hpp"
#include "ir_rows.hpp"

namespace tandem::ir {
namespace {

using test::f32;

Graph chain() {
  Builder b(test::table());
  const Value x = b.input(f32({2, 3}), "x"), y = b.input(f32({3}), "y");
  b.location = {"model.cpp", 7};
  b.device = 1;
  const Value sum = b.op("add", {x, y});
  b.location = {"model.cpp", 8};
  b.device = -1;
  return b.finish({b.op("add", {sum, sum}), sum}, "chain");
}

TEST(NodeMap, AValueStandsForItsNode) {
  const Graph g = chain();
  NodeMap<int> uses(g);
  for (const Node& n : g.nodes)
    for (const Value v : n.inputs) ++uses[v];
  EXPECT_EQ(uses[0], 1);
  EXPECT_EQ(uses[2], 2);
  EXPECT_EQ(uses[3], 0);
  EXPECT_TRUE(NodeMap<bool>(g, true)[3]);
}

TEST(ValueMap, EachResultHasItsOwn) {
  Graph g = chain();
  g.nodes[2].types.push_back(f32({}));  // two results
  ValueMap<int> things(g, 7);
  things[{2, 1}] = 1;
  things[{3, 0}] = 2;
  EXPECT_EQ(things[(Value{2, 0})], 7);
  EXPECT_EQ(things[(Value{2, 1})], 1);
  EXPECT_EQ(things[(Value{3, 0})], 2);
}

TEST(Rewriter, ACopyIsTheSameGraph) {
  const Graph g = chain();
  Builder b(test::table());
  Rewriter r(b, g);
  const Graph copy = r.run([&](int32_t n) { return r.copy(n); });
  EXPECT_EQ(print(copy), print(g));
  EXPECT_EQ(copy.nodes[2].location.line, 7u);
  EXPECT_EQ(copy.nodes[2].device, 1);
}

TEST(Rewriter, WhatIsEmittedTakesANodesPlaceAndItsLine) {
  const Graph g = chain();
  Builder b(test::table());
  Rewriter r(b, g);
  const Graph after = r.run([&](int32_t n) {
    if (n != 2) return r.copy(n);
    const std::vector<Value> in = r.now(g.node(n).inputs);
    return std::vector{b.op("add", {b.op("add", {in[0], in[1]}), in[1]})};
  });
  ASSERT_EQ(after.count(), 5);
  for (const int32_t n : {2, 3}) {
    EXPECT_EQ(after.node(n).location.line, 7u);
    EXPECT_EQ(after.node(n).device, 1);
  }
  EXPECT_EQ(after.node(4).inputs, (std::vector<Value>{{3, 0}, {3, 0}}));
  EXPECT_EQ(after.outputs, (std::vector<Value>{{4, 0}, {3, 0}}));
}

TEST(Rewriter, InputsMayBecomeValuesThatAreThere) {
  const Graph g = chain();
  Builder b(test::table());
  const Value x = b.input(f32({2, 3}));
  Rewriter r(b, g);
  EXPECT_EQ(error_of<InternalError>([&] { r.inputs(std::vector{x}); }).find("graph 'chain' takes 2 inputs, got 1") != std::string::npos,
            true);
  r.inputs(std::vector{x, b.input(f32({3}))});
  EXPECT_EQ(r.nodes([&](int32_t n) { return r.copy(n); }), (std::vector<Value>{{3, 0}, {2, 0}}));
}

TEST(Renumbering, TakesSomeNodesUnderNewNumbers) {
  Graph g = chain();
  g.outputs.erase(g.outputs.begin());
  const NodeMap<bool> needed = needed_nodes(g);
  EXPECT_FALSE(needed[3]);
  Renumbering numbers(g);
  for (const int32_t n : {1, 0, 2}) numbers.take(n, g.node(n));
  EXPECT_TRUE(numbers.has(2));
  EXPECT_FALSE(numbers.has(3));
  numbers.put(3, 2);  // as if it were the same as the sum
  EXPECT_EQ(numbers.apply({{3, 0}, {0, 0}}), (std::vector<Value>{{2, 0}, {1, 0}}));
  const Graph after = numbers.finish(g.inputs, g.outputs, "some");
  EXPECT_EQ(after.node(2).inputs, (std::vector<Value>{{1, 0}, {0, 0}}));
  EXPECT_EQ(after.inputs, (std::vector<Value>{{1, 0}, {0, 0}}));
  EXPECT_EQ(after.outputs, (std::vector<Value>{{2, 0}}));
  EXPECT_EQ(after.name, "some");
}

TEST(Subgraphs, EachIsReplaced) {
  Builder b(test::table());
  const Value x = b.input(f32({2, 3})), y = b.input(f32({3}));
  const Graph g = b.finish(b.nodes("call", std::vector{x, y}, {{"functions", Graphs{std::make_shared<const Graph>(chain())}}}));
  EXPECT_FALSE(has_subgraphs(g.nodes[0]));
  EXPECT_TRUE(has_subgraphs(g.nodes[2]));
  const Graph after = with_subgraphs(g, [](Graph inner) {
    inner.name = "other";
    return inner;
  });
  EXPECT_EQ(after.nodes[2].attrs.get<Graphs>("functions")[0]->name, "other");
  EXPECT_EQ(g.nodes[2].attrs.get<Graphs>("functions")[0]->name, "chain") << "a graph does not change once it is built";
}

}  // namespace
}  // namespace tandem::ir
