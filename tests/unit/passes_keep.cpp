// Composites that a device keeps whole: they go through every pass as they are, also in the bodies of loops.
#include "passes_support.hpp"

namespace tandem::passes {
namespace {

using ir::Expr;

// As a device would say it: by op, type and attributes, whatever the extents.
bool keeps_last_axis(const ir::OpCall& call) {
  return call.op.name == "softmax" && call.in[0].dtype == DType::F32 && call.axis("axis", call.in[0].rank()) == call.in[0].rank() - 1;
}

Graph two_softmaxes(DType t, int64_t axis) {
  ir::Builder b(table());
  const Expr x(b, b.input({t, {Dim::symbol("b"), 4}}));
  const Expr y = (x * 2).op("softmax", {{"axis", axis}}), z = (x * 2).op("softmax", {{"axis", axis}});
  return b.finish({(y + 1).value(), (z.transpose({1, 0}) * 3).value()});
}

TEST(Keep, WhatIsKeptGoesThroughAllPasses) {
  const Graph g = two_softmaxes(DType::F32, -1);
  const Graph kept = run_pipeline(table(), g, keeps_last_axis);
  EXPECT_EQ(count_of(kept, "softmax"), 1u) << ir::print(kept);  // equal ones meet, as all nodes do
  EXPECT_EQ(kept.output_types(), g.output_types());
  ir::verify(table(), kept, ir::Stage::Expanded, keeps_last_axis);
  EXPECT_THROW(ir::verify(table(), kept, ir::Stage::Expanded), InternalError);
}

TEST(Keep, OthersAreExpanded) {
  EXPECT_EQ(count_of(run_pipeline(table(), two_softmaxes(DType::F32, 0), keeps_last_axis), "softmax"), 0u);
  EXPECT_EQ(count_of(run_pipeline(table(), two_softmaxes(DType::F64, -1), keeps_last_axis), "softmax"), 0u);
  EXPECT_EQ(count_of(run_pipeline(table(), two_softmaxes(DType::F32, -1)), "softmax"), 0u);
  const Without keeping("keep");
  EXPECT_EQ(count_of(run_pipeline(table(), two_softmaxes(DType::F32, -1), keeps_last_axis), "softmax"), 0u);
}

TEST(Keep, InsideAnotherDecompositionAndInsideLoops) {
  ir::Builder inner(table());
  const ir::Value carry = inner.input({DType::F32, {4}}), x = inner.input({DType::F32, {4}});
  const ir::Value next = inner.op("softmax", {inner.op("add", {carry, x})});
  const auto body = std::make_shared<const Graph>(inner.finish({next, next}));
  ir::Builder b(table());
  const std::vector<ir::Value> in{b.input({DType::F32, {4}}), b.input({DType::F32, {5, 4}})};
  const Graph g = b.finish(
      b.nodes("scan", in, {{"functions", ir::Graphs{body}}, {"carries", int64_t{1}}, {"sequences", int64_t{1}}, {"length", Dims{5}}}));
  const Graph kept = run_pipeline(table(), g, keeps_last_axis);
  ASSERT_EQ(count_of(kept, "scan"), 1u);
  for (const ir::Node& n : kept.nodes)
    if (n.op->name == "scan") {
      EXPECT_EQ(count_of(*n.attrs.get<ir::Graphs>("functions")[0], "softmax"), 1u);
    }

  ir::Builder c(table());
  const ir::Value y = c.input({DType::F32, {2, 3}});
  const Graph loss = c.finish({c.op("categorical_crossentropy", {y, y}, {{"from_logits", true}})});
  EXPECT_EQ(count_of(run_pipeline(table(), loss, [](const ir::OpCall& call) { return call.op.name == "log_softmax"; }), "log_softmax"), 1u);
}

TEST(Keep, ADeviceWithoutAKernelForWhatItWasToKeepSaysSo) {
  engine::Engine& cpu = testing::engine_on("cpu");
  const Graph kept = run_pipeline(table(), two_softmaxes(DType::F32, -1), keeps_last_axis);
  engine::Executable x(kept, cpu.devices(), {});
  const Literal in = special_values({DType::F32, {3, 4}}, 1);
  try {
    testing::run_graph(x, cpu, {in});
    FAIL() << "no error";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("softmax: the cpu keeps it whole and has no kernel for it"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace tandem::passes
