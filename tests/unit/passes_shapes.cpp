// Elementwise ops behind a reshape go before it, where that keeps a product and its end together.
#include "passes_support.hpp"

namespace tandem::passes {
namespace {

TEST(Shapes, AReshapeDoesNotCutTheEndOff) {
  ir::Builder b(table());
  const auto input = [&](Dims dims) { return b.input({DType::F32, std::move(dims)}); };
  const ir::Value x = input({9, 16}), w = input({16, 12}), bias = input({3, 4});
  const ir::Value heads = b.op("reshape", {b.op("matmul", {x, w})}, {{"shape", Dims{9, 3, 4}}});
  const Graph before = b.finish({b.op("add", {heads, bias})});
  const Graph after = fuse(table(), shapes(table(), before));
  ir::verify(table(), after, ir::Stage::Expanded);
  EXPECT_EQ(form(after), "epilogue");
  expect_same_bytes(before, shapes(table(), before), "shapes");
}

TEST(Shapes, AShapeThatCannotBeCutStays) {
  // The rows of [9,16] are not those of [12,12]: what is repeated along them cannot be added before the reshape.
  const Graph before = graph(
      "graph (%0: float32[9,16], %1: float32[12]) {\n"
      "  %2 = exp(%0) : float32[9,16]\n"
      "  %3 = reshape(%2; shape=[12,12]) : float32[12,12]\n"
      "  %4 = add(%3, %1) : float32[12,12]\n"
      "  return %4\n"
      "}\n");
  EXPECT_EQ(ir::print(shapes(table(), before)), ir::print(before));
}

TEST(Shapes, GoesIntoSubgraphs) {
  const ir::TensorType type{DType::F32, {4, 6}};
  const auto body =
      part({type}, [](ir::Builder&, std::vector<ir::Expr> x) { return std::vector{(ir::exp(x[0]).reshape({24}) * 0.5).reshape({4, 6})}; });
  const Graph before = built({type}, [&](ir::Builder& b, std::vector<ir::Expr> in) {
    return ir::call(b, "scan", {in[0]},
                    {{"functions", ir::Graphs{body}}, {"carries", int64_t{1}}, {"sequences", int64_t{0}}, {"length", Dims{2}}});
  });
  const Graph after = shapes(table(), before);
  const Graph& inside = *after.node(after.outputs[0]).attrs.get<ir::Graphs>("functions")[0];
  for (const ir::Node& n : inside.nodes)
    if (n.op->name == "multiply") {
      EXPECT_EQ(n.types[0], type) << ir::print(inside);
    }
  EXPECT_NE(ir::print(inside), ir::print(*body));
  expect_same_bytes(before, after, "shapes in a body");
}

}  // namespace
}  // namespace tandem::passes
