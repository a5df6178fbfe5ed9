// Composites become what they stand for: all of them but those that are kept, inside other composites and in bodies too.
#include "passes_support.hpp"

namespace tandem::passes {
namespace {

bool has_composites(const Graph& g) {
  for (const ir::Node& n : g.nodes) {
    if (n.op->decompose) return true;
    for (const auto& entry : n.attrs.entries())
      if (const auto* graphs = std::get_if<ir::Graphs>(&entry.value))
        for (const ir::GraphRef& inner : *graphs)
          if (has_composites(*inner)) return true;
  }
  return false;
}

Graph softmax_of(const ir::TensorType& type) {
  return built({type}, [](ir::Builder&, std::vector<ir::Expr> in) { return std::vector{in[0].op("log_softmax"), in[0].op("softmax")}; });
}

TEST(Expand, ADecompositionTakesTheNodesPlace) {
  const Graph before = built({{DType::F32, {4}}}, [](ir::Builder&, std::vector<ir::Expr> in) { return std::vector{in[0].op("softmax")}; });
  ASSERT_TRUE(has_composites(before));
  const Graph after = expand(table(), before);
  EXPECT_FALSE(has_composites(after)) << ir::print(after);
  ir::verify(table(), after, ir::Stage::Expanded);
  EXPECT_EQ(after.input_types(), before.input_types());
  EXPECT_EQ(after.output_types(), before.output_types());
}

TEST(Expand, BodiesAreExpanded) {
  const ir::TensorType type{DType::F32, {4}};
  const auto body = part({type}, [](ir::Builder&, std::vector<ir::Expr> x) { return std::vector{x[0].op("softmax")}; });
  const Graph before = built({type}, [&](ir::Builder& b, std::vector<ir::Expr> in) {
    return ir::call(b, "scan", {in[0]},
                    {{"functions", ir::Graphs{body}}, {"carries", int64_t{1}}, {"sequences", int64_t{0}}, {"length", Dims{3}}});
  });
  ASSERT_TRUE(has_composites(before));
  EXPECT_FALSE(has_composites(expand(table(), before)));
}

TEST(Expand, WhatADeviceKeepsStaysWhole) {
  const Graph before = softmax_of({DType::F32, {3, 4}});
  const Graph after = expand(table(), before, [](const ir::OpCall& c) { return c.op.name == "softmax"; });
  EXPECT_EQ(count_of(after, "softmax"), 1u);
  EXPECT_EQ(count_of(after, "log_softmax"), 0u);
}

TEST(Expand, WhatNobodyReadsIsNotExpanded) {
  const Graph before = graph(
      "graph (%0: float32[4]) {\n"
      "  %1 = softmax(%0; axis=-1) : float32[4]\n"
      "  %2 = exp(%0) : float32[4]\n"
      "  return %2\n"
      "}\n");
  EXPECT_EQ(ir::print(expand(table(), before)),
            "graph(%0: float32[4]) {\n"
            "  %1 = exp(%0) : float32[4]\n"
            "  return %1\n"
            "}\n");
}

// The user's line and device go to every node of the decomposition, however deep.
TEST(Expand, NodesKeepThePlaceThatWroteThem) {
  ir::Builder b(table());
  const ir::Value x = b.input({DType::F32, {4}});
  b.location = {"model.cpp", 7};
  b.device = 1;
  const ir::Value first = b.op("softmax", {x});
  b.location = {"model.cpp", 9};
  b.device = -1;
  const Graph after = expand(table(), b.finish({b.op("log_softmax", {first})}));
  int seven = 0, nine = 0;
  for (const ir::Node& n : after.nodes) {
    if (n.op->name == "input" || n.op->name == "constant") continue;
    ASSERT_TRUE(n.location.line == 7 || n.location.line == 9) << n.op->name << " has line " << n.location.line;
    EXPECT_EQ(n.device, n.location.line == 7 ? 1 : -1) << n.op->name;
    ++(n.location.line == 7 ? seven : nine);
  }
  EXPECT_GT(seven, 1);
  EXPECT_GT(nine, 1);
}

}  // namespace
}  // namespace tandem::passes
