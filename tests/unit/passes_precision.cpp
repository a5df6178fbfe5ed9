// Mixed precision: where values are rounded and where not, against the same graphs with the casts written by hand.
#include <array>
#include <optional>

#include "passes_support.hpp"
#include "plan/plan.hpp"
#include "transform/grad.hpp"

namespace tandem::passes {
namespace {

using ir::Expr;
using ir::Value;

constexpr Precision kMixed[] = {Precision::MixedFloat16, Precision::MixedBFloat16};
DType half_of(Precision p) { return p == Precision::MixedFloat16 ? DType::F16 : DType::BF16; }

// A graph as mixed precision makes it, and the same one by hand: what the helpers below round is rounded only in the second.
struct ByHand {
  ir::Builder b{table()};
  std::optional<DType> half;

  Expr input(Dims dims) { return {b, b.input({DType::F32, std::move(dims)})}; }
  // In 16 bits and back, for all that read the result; a product takes it without a loss.
  Expr kept(const Expr& x) const { return half ? x.cast(*half).cast(DType::F32) : x; }
  Expr product(const Expr& x, const Expr& y, std::string_view op, ir::Attrs attrs = {}) const {
    if (!half) return x.op(op, {y}, attrs);
    attrs.set("dtype", DType::F32);
    return x.cast(*half).op(op, {y.cast(*half)}, attrs);
  }
  Expr matmul(const Expr& x, const Expr& y, bool transpose_x = false, bool transpose_y = false) const {
    return product(x, y, "matmul", {{"transpose_x", transpose_x}, {"transpose_y", transpose_y}});
  }
};

std::vector<Literal> numbers(const Graph& g, double size = 1) {
  std::vector<Literal> in;
  std::mt19937_64 random(5);
  for (const ir::TensorType& t : g.input_types()) {
    const Shape shape = bind(t.dims, {{"b", 7}});
    std::vector<std::byte> bytes(byte_size(shape, t.dtype));
    for (size_t i = 0; i < bytes.size(); i += size_of(t.dtype))
      ir::store_number(t.dtype, &bytes[i], std::uniform_real_distribution<>(-size, size)(random));
    in.push_back(Literal::of(t.dtype, shape, bytes.data()));
  }
  return in;
}

// `build` gives the outputs of a graph. Mixing it gives the bits of the graph by hand in the interpreter, through all passes too, and
// on the cpu what differs by the order of sums only.
template <class F> Graph expect_as_by_hand(F build) {
  Graph mixed;
  for (Precision p : kMixed) {
    ByHand plain, rounded{.half = half_of(p)};
    const Graph before = plain.b.finish(ir::values(build(plain))), wanted = rounded.b.finish(ir::values(build(rounded)));
    mixed = mix(table(), before, p);
    ir::verify(table(), mixed, ir::Stage::Expanded);
    EXPECT_EQ(before.input_types(), mixed.input_types());
    EXPECT_EQ(before.output_types(), mixed.output_types());
    const std::vector<Literal> in = numbers(before);
    const auto expected = results(wanted, "ref", in);
    testing::expect_same_bits(results(mixed, "ref", in), expected, ir::print(mixed));
    const Graph compiled = run_pipeline(table(), before, {}, p);
    testing::expect_same_bits(results(compiled, "ref", in), expected, ir::print(compiled));
    testing::expect_close(results(compiled, "cpu", in), expected, table().at("mean"), ir::print(compiled));
  }
  return mixed;
}

TEST(Precision, ProductsTakeHalvesAndSumInFloat32) {
  const Graph g = expect_as_by_hand([](ByHand& h) {
    const Expr x = h.input({9, 20}), w = h.input({20, 6});
    return std::vector{h.matmul(x, w)};
  });
  for (const ir::Node& n : g.nodes)
    if (n.op->has(ir::kProduct)) {
      EXPECT_EQ(g.type(n.inputs[0]).dtype, DType::BF16);
      EXPECT_EQ(n.types[0].dtype, DType::F32);
    }
}

TEST(Precision, ATrainingStepOfTwoLayers) {
  expect_as_by_hand([](ByHand& h) {
    const Expr x = h.input({8, 12}), w1 = h.input({12, 10}), b1 = h.input({10}), w2 = h.input({10, 4});
    const Expr y = h.kept((h.matmul(x, w1) + b1).op("relu"));
    const Expr logits = h.matmul(y, w2);  // read by exp: not rounded
    const Expr e = exp(logits - logits.max({1}, true));
    const Expr p = e / e.sum({1}, true);
    const Expr g = h.kept(p - x.op("slice", {{"start", Dims{0, 0}}, {"limit", Dims{8, 4}}, {"step", ir::Ints{1, 1}}}));
    const Expr dw2 = h.matmul(y, g, true);  // to the optimizer alone: not rounded
    const Expr dy = h.kept(where(y > 0, h.matmul(g, w2, false, true), 0));
    const Expr dw1 = h.matmul(x, dy, true), db1 = dy.sum({0});
    return std::vector{w1 - dw1 * 0.1, b1 - db1 * 0.1, w2 - dw2 * 0.1, log(e.sum({1}))};
  });
}

TEST(Precision, WhatLiesBetweenProductsIsKeptInHalf) {
  // A pool and a normalisation read what a convolution made: that is rounded, their own arithmetic is not.
  expect_as_by_hand([](ByHand& h) {
    const ir::Attrs conv{{"strides", ir::Ints{1, 1}},
                         {"low", Dims{1, 1}},
                         {"high", Dims{1, 1}},
                         {"dilation", ir::Ints{1, 1}},
                         {"input_dilation", ir::Ints{1, 1}}};
    const Expr x = h.input({2, 6, 6, 3}), w1 = h.input({3, 3, 3, 4}), b = h.input({4}), w2 = h.input({3, 3, 4, 5});
    const Expr y = h.kept((h.product(x, w1, "general_conv", conv) + b).op("relu"));
    const Expr pooled = y.op("max_pool", {{"pool_size", ir::Ints{2, 2}}});
    const Expr centered = pooled - pooled.op("mean", {{"axis", ir::Ints{0, 1, 2}}, {"keepdims", true}});
    return std::vector{h.product(h.kept(centered), w2, "general_conv", conv), y.sum({0})};
  });
}

TEST(Precision, ResultsOfTheGraphStayFloat32) {
  expect_as_by_hand([](ByHand& h) {
    const Expr x = h.input({5, 6}), w = h.input({6, 6});
    const Expr y = h.matmul(x, w).op("relu");  // a result: others than products read it whole
    return std::vector{y, h.matmul(y, w), y.sum({0})};
  });
}

TEST(Precision, MovementIsOfHalves) {
  const Graph g = expect_as_by_hand([](ByHand& h) {
    const Expr x = h.input({6, 8}), w = h.input({8, 8});
    const Expr y = h.kept(h.matmul(x, w));
    return std::vector{h.matmul(w.transpose({1, 0}), y.reshape({2, 3, 8}).transpose({0, 2, 1}))};
  });
  for (const ir::Node& n : g.nodes)
    if (n.op->name == "transpose" || n.op->name == "reshape") {
      EXPECT_EQ(n.types[0].dtype, DType::BF16) << ir::print(g);
    }
}

TEST(Precision, AWeightIsCastOnce) {
  ByHand h;
  const Expr x = h.input({6, 8}), w = h.input({8, 8});
  const Graph g = mix(table(), h.b.finish(ir::values(std::vector{h.matmul(h.matmul(x, w), w, false, true)})), Precision::MixedFloat16);
  EXPECT_EQ(count_of(g, "cast"), 3u) << ir::print(g);  // x, w, the first product
}

TEST(Precision, SumsAndOtherTypesAreLeftAlone) {
  ByHand h;
  const Expr v = h.input({50}), wide{h.b, h.b.input({DType::F64, {6, 6}})}, small{h.b, h.b.input({DType::BF16, {6, 6}})};
  const Graph before = h.b.finish(ir::values(std::vector{h.matmul(v, v), h.matmul(wide, wide), h.matmul(small, small), v.sum({0})}));
  EXPECT_EQ(mix(table(), before, Precision::MixedFloat16), before);
}

TEST(Precision, DefaultGraphsAreUnchanged) {
  ByHand h;
  const Expr x = h.input({6, 8}), w = h.input({8, 8});
  const Graph before = h.b.finish(ir::values(std::vector{h.matmul(x, w).op("relu")}));
  EXPECT_EQ(mix(table(), before, Precision::Float32), before);
  EXPECT_EQ(run_pipeline(table(), before, {}, Precision::Float32), run_pipeline(table(), before));
  EXPECT_EQ(ir::print(run_pipeline(table(), before)).find("cast"), std::string::npos);
}

TEST(Precision, GoesIntoLoops) {
  for (Precision p : kMixed) {
    ir::Builder inner(table());
    const Expr h{inner, inner.input({DType::F32, {4, 8}})}, x{inner, inner.input({DType::F32, {4, 8}})},
        w{inner, inner.input({DType::F32, {8, 8}})};
    const Expr next = (h.op("matmul", {w}) + x).op("tanh");
    const Graph body = inner.finish({next.value()});
    ir::Builder b(table());
    const Value carry = b.input({DType::F32, {4, 8}}), sequence = b.input({DType::F32, {3, 4, 8}}), weights = b.input({DType::F32, {8, 8}});
    const ir::Attrs attrs{{"functions", ir::Graphs{std::make_shared<const Graph>(body)}},
                          {"carries", int64_t{1}},
                          {"sequences", int64_t{1}},
                          {"length", Dims{3}}};
    const std::vector<Value> out = b.nodes("scan", std::array{carry, sequence, weights}, attrs);
    const Graph before = b.finish({out[0]}), after = mix(table(), before, p);
    ir::verify(table(), after, ir::Stage::Expanded);
    const Graph& mixed = *after.nodes.back().attrs.get<ir::Graphs>("functions")[0];
    EXPECT_EQ(mixed.input_types(), body.input_types());
    EXPECT_EQ(count_of(mixed, "cast"), 2u) << ir::print(mixed);
  }
}

// A deep network's activations, which its backward pass reads again, take half the memory. (With each lies a mask of a byte an element.)
TEST(Precision, TheArenaShrinks) {
  ir::Builder b(table());
  const int64_t rows = 512, width = 64;
  Expr x{b, b.input({DType::F32, {rows, width}})};
  std::vector<Value> weights;
  for (int i = 0; i < 8; ++i) {
    weights.push_back(b.input({DType::F32, {width, width}}));
    x = x.op("matmul", {Expr{b, weights.back()}}).op("relu");
  }
  const Value loss = (x * x).sum({0, 1}).value();
  std::vector<Value> outputs = transform::gradients(b, std::array{loss}, {}, weights);
  outputs.push_back(loss);
  const Graph g = b.finish(std::move(outputs));
  const auto arena = [&](Precision p) {
    const Graph mixed = run_pipeline(table(), g, {}, p);
    return engine::planned({mixed}, testing::engine_on("ref").devices()).plan.arena_bytes();
  };
  const size_t whole = arena(Precision::Float32);
  EXPECT_GT(whole, 8u * rows * width * sizeof(float));
  for (Precision p : kMixed) EXPECT_LT(arena(p), whole * 3 / 4);
}

}  // namespace
}  // namespace tandem::passes
