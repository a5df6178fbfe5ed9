// Convolutions: shapes with symbols, texts of mistakes, numbers from Keras.
#include "ops_calls.hpp"

namespace tandem {
namespace {
using namespace ir;
using namespace test::calls;
using test::Array;

Attrs same(Ints strides = {1}) { return {{"padding", "same"}, {"strides", std::move(strides)}}; }

TEST(OpsConvolution, ConvShapes) {
  EXPECT_EQ(types_of("conv", {f32({b, 28, 28, 1}), f32({3, 3, 1, 32})}), "float32[b,26,26,32]");
  EXPECT_EQ(types_of("conv", {f32({b, n, n, 3}), f32({3, 3, 3, 8})}, same()), "float32[b,n,n,8]");
  // Two branches of a residual block meet, whatever their kernels.
  EXPECT_EQ(types_of("conv", {f32({b, n, n, 3}), f32({3, 3, 3, 8})}, same({2})),
            types_of("conv", {f32({b, n, n, 3}), f32({1, 1, 3, 8})}, same({2})));
  EXPECT_EQ(types_of("conv", {f32({b, n, 3}), f32({5, 3, 8})}, same({2})),
            types_of("max_pool", {f32({b, n, 8})}, {{"pool_size", Ints{2}}, {"padding", "same"}}));
  EXPECT_EQ(types_of("conv", {f32({b, n, 4}), f32({3, 2, 6})}, {{"padding", "causal"}, {"dilation", Ints{2}}}), "float32[b,n,6]");
  EXPECT_EQ(types_of("depthwise_conv", {f32({b, 8, 8, 3}), f32({3, 3, 3, 2})}, same({2})), "float32[b,4,4,6]");
  EXPECT_EQ(types_of("separable_conv", {f32({b, 8, 8, 3}), f32({3, 3, 3, 2}), f32({1, 1, 6, 5})}, same()), "float32[b,8,8,5]");
  EXPECT_EQ(types_of("conv_transpose", {f32({b, n, n, 3}), f32({4, 4, 5, 3})}, same({2})), "float32[b,n*2,n*2,5]");
  EXPECT_EQ(types_of("conv", {f32({2, 4, 4, 4, 2}), f32({2, 2, 2, 2, 3})}), "float32[2,3,3,3,3]");
}

TEST(OpsConvolution, ConvMistakes) {
  EXPECT_EQ(error_of("conv", {f32({1, 4, 4, 3}), f32({5, 5, 3, 8})}),
            "conv: a window of 5 does not fit into an axis of 4\n  hint: padding='same' pads the input");
  EXPECT_EQ(error_of("conv", {f32({1, 8, 8, 4}), f32({3, 3, 3, 8})}),
            "conv: the kernel's 3 channels do not divide the input's 4, input [1,8,8,4] and kernel [3,3,3,8]");
  EXPECT_EQ(error_of("conv", {f32({1, 8, 8, 4}), f32({3, 3, 4, 8})}, {{"groups", 2}}),
            "conv: channels differ, input [1,8,8,4] with 2 groups and kernel [3,3,4,8] (2 != 4)");
  EXPECT_EQ(error_of("conv", {f32({1, 8, 8, 4}), f32({3, 3, 2, 5})}), "conv: 5 output channels do not divide into 2 groups");
  EXPECT_EQ(error_of("conv", {f32({1, 8, 4}), f32({3, 3, 4, 8})}),
            "conv: the kernel needs as many axes as the input, got input [1,8,4] and kernel [3,3,4,8]");
  EXPECT_EQ(error_of("conv", {f32({8, 4}), f32({4, 8})}), "conv: takes [batch, 1 to 3 spatial axes, channels], got float32[8,4]");
  EXPECT_EQ(error_of("conv", {f32({1, 8, 8, 4}), f32({3, 3, 4, 8})}, {{"strides", Ints{1, 2, 3}}}),
            "conv: strides has 3 entries for 2 spatial axes");
  EXPECT_EQ(error_of("conv", {f32({1, 8, 4}), f32({3, 4, 8})}, {{"strides", Ints{0}}}), "conv: strides must be at least 1, got 0");
  EXPECT_EQ(error_of("conv", {f32({1, 8, 4}), f32({3, 4, 8})}, {{"padding", "full"}}),
            "conv: padding must be 'valid', 'same' or 'causal', got 'full'");
  EXPECT_EQ(error_of("conv_transpose", {f32({1, 8, 4}), f32({3, 4, 8})}),
            "conv_transpose: channels differ, input [1,8,4] and kernel [3,4,8] (4 != 8)\n"
            "  hint: the kernel is [spatial, output channels, input channels]");
}

Array kernel(const Doubles& v) { return of({static_cast<int64_t>(v.size()), 1, 1}, v); }

TEST(OpsConvolution, ConvValues) {
  const Array x = series({1, 2, 3, 4, 5}), odd = kernel({1, 10, 100}), even = kernel({1, 10});
  EXPECT_EQ(run("conv", {x, odd}).values(), (Doubles{321, 432, 543}));
  EXPECT_EQ(run("conv", {x, odd}, same()).values(), (Doubles{210, 321, 432, 543, 54}));
  EXPECT_EQ(run("conv", {x, odd}, same({2})).values(), (Doubles{210, 432, 54}));
  EXPECT_EQ(run("conv", {x, even}, same({2})).values(), (Doubles{21, 43, 5}));
  EXPECT_EQ(run("conv", {x, kernel({1})}, same({3})).values(), (Doubles{1, 4}));
  EXPECT_EQ(run("conv", {x, odd}, {{"padding", "same"}, {"dilation", Ints{2}}}).values(), (Doubles{310, 420, 531, 42, 53}));
  EXPECT_EQ(run("conv", {x, odd}, {{"padding", "causal"}}).values(), (Doubles{100, 210, 321, 432, 543}));
}

TEST(OpsConvolution, ConvTransposeValues) {
  const Array x = series({1, 2, 3}), odd = kernel({1, 10, 100}), even = kernel({1, 10, 100, 1000});
  EXPECT_EQ(run("conv_transpose", {x, odd}, {{"strides", Ints{2}}}).values(), (Doubles{1, 10, 102, 20, 203, 30, 300}));
  EXPECT_EQ(run("conv_transpose", {x, odd}, same({2})).values(), (Doubles{1, 10, 102, 20, 203, 30}));
  EXPECT_EQ(run("conv_transpose", {x, kernel({1, 10})}, {{"strides", Ints{3}}}).values(), (Doubles{1, 10, 0, 2, 20, 0, 3, 30, 0}));
  EXPECT_EQ(run("conv_transpose", {x, even}, same({2})).values(), (Doubles{10, 102, 1020, 203, 2030, 300}));
  EXPECT_EQ(run("conv_transpose", {x, kernel({1})}, same({2})).values(), (Doubles{1, 0, 2, 0, 3, 0}));
  Attrs padded = same({2});
  padded.set("output_padding", Ints{0});
  EXPECT_EQ(run("conv_transpose", {x, odd}, padded).values(), (Doubles{10, 102, 20, 203, 30}));
  padded.set("strides", Ints{3});
  padded.set("output_padding", Ints{1});
  EXPECT_EQ(run("conv_transpose", {x, even}, padded).values(), (Doubles{10, 100, 1002, 20, 200, 2003, 30}));
}

bool has_guard(const Scalar& s) {
  return s->guarded || std::ranges::any_of(s->in, [](const Scalar& x) { return has_guard(x); });
}

TEST(OpsConvolution, ConvGuardsOnlyWhatItPads) {
  const auto guarded = [](const Attrs& attrs) {
    const Graph g = expanded("conv", {f32({b, 8, 8, 3}), f32({3, 3, 3, 4})}, attrs);
    const Node& node = g.node(g.outputs[0]);
    const std::vector<TensorType> in{g.type(node.inputs[0]), g.type(node.inputs[1])};
    return has_guard(loops_of(*node.op, in, node.attrs, node.types).reduction->element[0]);
  };
  EXPECT_FALSE(guarded({}));
  EXPECT_TRUE(guarded(same()));
}

}  // namespace
}  // namespace tandem
