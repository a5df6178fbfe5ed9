// Products: shapes with symbols, texts of mistakes, and sums in wider types.
#include "ops_calls.hpp"

namespace tandem {
namespace {
using namespace ir;
using namespace test::calls;
using test::Array;

TEST(OpsMatmul, MatmulShapes) {
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

TEST(OpsMatmul, MatmulMistakes) {
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

TEST(OpsMatmul, MatmulSumsInWiderTypes) {
  // In float16 alone the sum would stop at 2048.
  const Array ones = of({1, 4096}, Doubles(4096, 1), DType::F16);
  EXPECT_EQ(run("matmul", {ones, ones}, {{"transpose_y", true}}).at(0), 4096);
  const Array bytes = of({1, 4}, {100, 100, 100, 100}, DType::I8);
  EXPECT_EQ(run("matmul", {bytes, bytes}, {{"transpose_y", true}, {"dtype", DType::I32}}).at(0), 40000);
  EXPECT_EQ(run("matmul", {bytes, bytes}, {{"transpose_y", true}}).at(0), static_cast<int8_t>(40000)) << "integers wrap";
}

TEST(OpsMatmul, MatmulGradientOfDenseLayerIsOneProduct) {
  const OpDef& op = ops::table().at("matmul");
  const Gradient g = gradient_of(op, {f32({b, 7, 4}), f32({4, 5})}, complete_attrs(op, {}));
  EXPECT_EQ(count_of(g.graph, "sum"), 0);
  EXPECT_EQ(count_of(g.graph, "transpose"), 0);
  EXPECT_EQ(g.graph.type(g.graph.outputs[0]), f32({b, 7, 4}));
  EXPECT_EQ(g.graph.type(g.graph.outputs[1]), f32({4, 5}));
}

}  // namespace
}  // namespace tandem
