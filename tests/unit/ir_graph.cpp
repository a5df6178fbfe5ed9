// Graphs compared and hashed by structure.
#include "ir/graph.hpp"

#include <gtest/gtest.h>

#include "ir_rows.hpp"

namespace tandem::ir {
namespace {

using test::f32;
using test::sym;

Graph sum_of(const char* op, Dims dims, const char* name, Location where = {}) {
  Builder b(test::table());
  const Value x = b.input(f32(dims), name);
  const Value y = b.input(f32(dims));
  b.location = where;
  return b.finish({b.op(op, {x, y})}, name);
}

TEST(Graph, EqualityIsStructure) {
  const Graph g = sum_of("add", {2, 3}, "x");
  EXPECT_EQ(g, sum_of("add", {2, 3}, "another", {"model.cpp", 3}));
  EXPECT_EQ(hash(g), hash(sum_of("add", {2, 3}, "another", {"model.cpp", 3})));
  EXPECT_FALSE(g == sum_of("subtract", {2, 3}, "x"));
  EXPECT_FALSE(g == sum_of("add", {2, 4}, "x"));
  EXPECT_FALSE(g == sum_of("add", {2, sym("b")}, "x"));
  EXPECT_NE(hash(g), hash(sum_of("subtract", {2, 3}, "x")));
  EXPECT_NE(hash(g), hash(sum_of("add", {2, 4}, "x")));
}

TEST(Graph, EqualityLooksIntoAttributesInputsAndOutputs) {
  const auto scaled = [](double by, bool second) {
    Builder b(test::table());
    const Value x = b.input(f32({2}));
    const Value y = b.input(f32({2}));
    const Value z = b.op("scale", {second ? y : x}, {{"by", by}});
    return b.finish({z, second ? x : y});
  };
  EXPECT_EQ(scaled(3, false), scaled(3, false));
  EXPECT_FALSE(scaled(3, false) == scaled(4, false));
  EXPECT_FALSE(scaled(3, false) == scaled(3, true));
  EXPECT_NE(hash(scaled(3, false)), hash(scaled(4, false)));
}

TEST(Graph, EqualityLooksIntoSubgraphs) {
  const auto calling = [](const char* op) {
    Builder b(test::table());
    const Value x = b.input(f32({2}));
    const auto inner = std::make_shared<const Graph>(sum_of(op, {2}, "f"));
    return b.finish(b.nodes("call", std::vector{x, x}, {{"functions", Graphs{inner}}}));
  };
  EXPECT_EQ(calling("add"), calling("add"));
  EXPECT_FALSE(calling("add") == calling("multiply"));
  EXPECT_NE(hash(calling("add")), hash(calling("multiply")));
}

TEST(Graph, TypesAndSymbols) {
  Builder b(test::table());
  const Value x = b.input(f32({sym("b"), sym("n") * 2}));
  const Value y = b.input(f32({sym("n") * 2}));
  const Graph g = b.finish({b.op("add", {x, y}), y});
  EXPECT_EQ(g.input_types(), (std::vector{f32({sym("b"), sym("n") * 2}), f32({sym("n") * 2})}));
  EXPECT_EQ(g.output_types(), g.input_types());
  EXPECT_EQ(g.symbols(), (std::vector<std::string>{"b", "n"}));
}

}  // namespace
}  // namespace tandem::ir
