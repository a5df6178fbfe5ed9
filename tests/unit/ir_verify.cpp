// The verifier of graphs: every rule is broken once.
#include "ir/verify.hpp"

#include <gtest/gtest.h>

#include <set>

#include "ir_rows.hpp"

namespace tandem::ir {
namespace {

using test::f32;

Graph small() {
  Builder b(test::table());
  const Value x = b.input(f32({2, 3}), "x");
  const Value y = b.input(f32({3}), "y");
  return b.finish({b.op("sum", {b.op("add", {x, y})})}, "small");
}

std::string breach(const Graph& g, Stage stage = Stage::Traced) {
  return error_of<InternalError>([&] { verify(test::table(), g, stage); });
}
bool breaks(const Graph& g, std::string_view rule, int node) {
  const std::string text = breach(g);
  return text.find(cat("breaks '", rule, "': ")) != std::string::npos &&
         (node < 0 || text.find(cat("node %", node, " ")) != std::string::npos);
}

TEST(Verify, GoodGraphs) {
  EXPECT_EQ(breach(small()), "no error");
  EXPECT_EQ(breach(small(), Stage::Expanded), "no error");
  EXPECT_EQ(breach(test::rich_graph()), "no error");
  EXPECT_EQ(breach(Graph{}), "no error");
}

TEST(Verify, NamesNodeAndRule) {
  Graph g = small();
  g.nodes[2].types[0] = f32({2});
  EXPECT_EQ(breach(g),
            "internal error (this is a bug in tandem): verify, stage traced: node %2 add of graph 'small' breaks 'I2: types are as "
            "inferred': "
            "result 0 is float32[2], inference gives float32[2,3]");
}

TEST(Verify, EachRule) {
  OpTable other;
  test::add_rows(other);
  Graph g = small();
  g.nodes[2].op = &other.at("add");
  EXPECT_TRUE(breaks(g, "the row is one of the table", 2)) << breach(g);

  g = small();
  g.nodes[2].op = nullptr;
  EXPECT_TRUE(breaks(g, "the row is one of the table", 2)) << breach(g);

  g = small();
  g.nodes[2].inputs[0] = {2, 0};
  EXPECT_TRUE(breaks(g, "I1: inputs precede their users", 2)) << breach(g);
  g.nodes[2].inputs[0] = {99, 0};
  EXPECT_TRUE(breaks(g, "I1: inputs precede their users", 2)) << breach(g);
  g.nodes[2].inputs[0] = {};
  EXPECT_TRUE(breaks(g, "I1: inputs precede their users", 2)) << breach(g);

  g = small();
  g.nodes[2].inputs[0].out = 1;
  EXPECT_TRUE(breaks(g, "operands exist", 2)) << breach(g);

  g = small();
  g.nodes[3].attrs = {};
  EXPECT_TRUE(breaks(g, "attributes are complete", 3)) << breach(g);
  g.nodes[3].attrs = {{"axes", 1}};
  EXPECT_TRUE(breaks(g, "attributes are complete", 3)) << breach(g);

  g = small();
  g.nodes[2].inputs.pop_back();
  EXPECT_TRUE(breaks(g, "I2: types are as inferred", 2)) << breach(g);
  g = small();
  g.nodes[3].types.push_back(f32({}));
  EXPECT_TRUE(breaks(g, "I2: types are as inferred", 3)) << breach(g);

  g = small();
  g.inputs.pop_back();
  EXPECT_TRUE(breaks(g, "inputs are listed in order", -1)) << breach(g);
  g = small();
  std::swap(g.inputs[0], g.inputs[1]);
  EXPECT_TRUE(breaks(g, "inputs are listed in order", -1)) << breach(g);
  g = small();
  g.nodes[1].attrs.set("index", 0);
  EXPECT_TRUE(breaks(g, "inputs are listed in order", -1)) << breach(g);

  g = small();
  g.outputs.push_back({4, 0});
  EXPECT_TRUE(breaks(g, "outputs exist", -1)) << breach(g);
}

TEST(Verify, LooksIntoSubgraphs) {
  Graph inner = small();
  inner.nodes[2].inputs[0] = {3, 0};
  Builder b(test::table());
  const Value x = b.input(f32({2, 3}));
  const Value y = b.input(f32({3}));
  const Graph g = b.finish(b.nodes("call", std::vector{x, y}, {{"functions", Graphs{std::make_shared<const Graph>(inner)}}}));
  EXPECT_TRUE(breaks(g, "sub-graphs are closed and good", 2)) << breach(g);
  EXPECT_TRUE(breaks(g, "I1: inputs precede their users", 2)) << breach(g);
}

TEST(Verify, ExpandedHasNothingToDecompose) {
  Builder b(test::table());
  const Graph g = b.finish({b.op("square", {b.input(f32({2}))})});
  EXPECT_EQ(breach(g), "no error");
  EXPECT_NE(breach(g, Stage::Expanded).find("stage expanded: node %1 square of graph breaks 'nothing is left to decompose': "),
            std::string::npos)
      << breach(g, Stage::Expanded);

  Builder outer(test::table());
  const Value x = outer.input(f32({2}));
  const Graph calling = outer.finish(outer.nodes("call", std::vector{x}, {{"functions", Graphs{std::make_shared<const Graph>(g)}}}));
  EXPECT_NE(breach(calling, Stage::Expanded).find("breaks 'nothing is left to decompose': "), std::string::npos);
}

TEST(Verify, RulesHaveNamesOfTheirOwn) {
  for (Stage s : {Stage::Traced, Stage::Expanded}) {
    std::set<std::string_view> texts;
    for (const VerifyRule& r : rules(s)) EXPECT_TRUE(texts.insert(r.text).second) << r.text;
  }
}

}  // namespace
}  // namespace tandem::ir
