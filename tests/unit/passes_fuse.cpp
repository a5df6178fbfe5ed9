// Fusion: what becomes one kernel, what must not, and that the values stay.
#include "passes_support.hpp"

namespace tandem::passes {
namespace {

using ir::Value;

struct Made {
  ir::Builder b{table()};
  Value input(Dims dims, DType t = DType::F32) { return b.input({t, std::move(dims)}); }
  Graph fused(std::vector<Value> outputs) {
    const Graph before = b.finish(std::move(outputs));
    const Graph after = fuse(table(), before);
    ir::verify(table(), after, ir::Stage::Expanded);
    EXPECT_EQ(before.output_types(), after.output_types());
    std::vector<Literal> in;
    std::mt19937_64 random(7);
    for (const ir::TensorType& t : before.input_types()) {
      const Shape shape = bind(t.dims, {{"b", 9}});
      std::vector<std::byte> bytes(byte_size(shape, t.dtype));
      for (size_t i = 0; i < bytes.size(); i += size_of(t.dtype))
        ir::store_number(t.dtype, &bytes[i], is_float(t.dtype) ? std::uniform_real_distribution<>(-2, 2)(random) : double(random() % 5));
      in.push_back(Literal::of(t.dtype, shape, bytes.data()));
    }
    const ir::OpDef& tolerance = table().at("add");
    testing::expect_close(results(after, "cpu", in), results(before, "ref", in), tolerance, ir::print(after));
    testing::expect_close(results(after, "ref", in), results(before, "ref", in), tolerance, ir::print(after));
    return after;
  }
};

// What runs: everything but inputs, constants and movement.
size_t kernels(const Graph& g) {
  size_t n = 0;
  for (const ir::Node& x : g.nodes)
    n += x.op->name == "fused" || x.op->has(ir::kProduct) || (x.op->body && !x.op->has(ir::kView)) || x.op->evaluate;
  return n;
}

TEST(Fuse, AChainIsOneKernel) {
  Made m;
  const Value x = m.input({5, 70}), y = m.input({70});
  const Value a = m.b.op("add", {m.b.op("exp", {x}), y});
  const Graph g = m.fused({m.b.op("multiply", {a, m.b.scalar(DType::F32, 0.5)}), a});
  EXPECT_EQ(kernels(g), 1u);
  EXPECT_EQ(form(g), "map");
}

// As in a gated recurrent unit: the product reads what its end reads too.
TEST(Fuse, WhatAProductReadsDoesNotJoinItsEnd) {
  Made m;
  const Value x = m.input({6, 6}), y = m.input({6, 6}), k = m.input({6, 6});
  const Value s = m.b.op("add", {x, y}), update = m.b.op("sin", {s}), reset = m.b.op("tanh", {s});
  const Value p = m.b.op("matmul", {m.b.op("multiply", {reset, x}), k});
  const Graph g = m.fused({m.b.op("multiply", {m.b.op("tanh", {p}), update})});
  EXPECT_EQ(kernels(g), 2u) << ir::print(g);
}

TEST(Fuse, MovementIsWrittenOutWhereItIsRead) {
  Made m;
  const Value x = m.input({6, 4}), y = m.input({4, 6});
  const Value t = m.b.op("transpose", {x});
  const Value s =
      m.b.op("slice", {m.b.op("add", {t, y})}, {{"start", ir::Ints{1, 0}}, {"limit", ir::Ints{3, 6}}, {"step", ir::Ints{1, 1}}});
  const Graph g = m.fused({m.b.op("negative", {s})});
  EXPECT_EQ(count_of(g, "transpose"), 0u);
  EXPECT_LE(kernels(g), 2u);
}

TEST(Fuse, AProductTakesItsElementwiseEnd) {
  Made m;
  const Value x = m.input({9, 33}), w = m.input({33, 20}), bias = m.input({20}), old = m.input({9, 20});
  const Value z = m.b.op("relu", {m.b.op("add", {m.b.op("matmul", {x, w}), bias})});
  const Graph g = m.fused({z, m.b.op("subtract", {old, z})});
  EXPECT_EQ(kernels(g), 1u);
  EXPECT_EQ(form(g), "epilogue");
}

TEST(Fuse, AProductOfOneOperandTwice) {
  Made m;
  const Value x = m.input({12, 12});
  const Graph g = m.fused({m.b.op("add", {m.b.op("matmul", {x, x}), x})});
  EXPECT_EQ(form(g), "epilogue");
}

TEST(Fuse, SoftmaxIsOneKernel) {
  for (const int64_t length : {3, 17, 70, 200}) {
    Made m;
    const Value x = m.input({11, length});
    const ir::Attrs along{{"axis", ir::Ints{1}}, {"keepdims", true}};
    const Value e = m.b.op("exp", {m.b.op("subtract", {x, m.b.op("max", {x}, along)})});
    const Value sum = m.b.op("sum", {e}, along);
    const Graph g = m.fused({m.b.op("divide", {e, sum}), m.b.op("log", {sum})});
    EXPECT_EQ(kernels(g), 1u);
    EXPECT_EQ(form(g), "row");
  }
}

TEST(Fuse, ReductionsOfTheSameRowsWalkTogether) {
  Made m;
  const Value x = m.input({11, 70});
  const Value place = m.b.op("argmax", {x}, {{"axis", int64_t{1}}}), sum = m.b.op("sum", {x}, {{"axis", ir::Ints{1}}});
  const Graph g = m.fused({m.b.op("negative", {sum}), m.b.op("add", {place, place})});
  EXPECT_EQ(kernels(g), 1u);
  EXPECT_EQ(form(g), "row");
}

TEST(Fuse, AReductionTakesWhatItAloneReadsAndWhatFollows) {
  Made m;
  const Value x = m.input({40, 6}), y = m.input({40, 6}), z = m.input({6});
  const Value sum = m.b.op("sum", {m.b.op("multiply", {x, y})}, {{"axis", ir::Ints{0}}});
  const Value other = m.b.op("sum", {x}, {{"axis", ir::Ints{0}}});
  const Graph g = m.fused({m.b.op("add", {sum, z}), other});
  EXPECT_EQ(kernels(g), 1u);  // both sums walk over x together
  EXPECT_EQ(form(g), "reduce");
}

TEST(Fuse, SymbolsStaySymbols) {
  Made m;
  const Value x = m.input({Dim::symbol("b"), 8});
  const Value mean = m.b.op("mean", {x}, {{"axis", ir::Ints{1}}, {"keepdims", true}});
  const Graph g = m.fused({m.b.op("subtract", {x, mean})});
  EXPECT_EQ(g.output_types()[0].str(), "float32[b,8]");
}

TEST(Fuse, RowsMayTurnOutEmpty) {
  Made m;
  const Value x = m.input({4, Dim::symbol("b")});
  const ir::Attrs along{{"axis", ir::Ints{1}}, {"keepdims", true}};
  const Value e = m.b.op("exp", {x}), sum = m.b.op("sum", {e}, along);
  const Graph before = m.b.finish({m.b.op("divide", {e, sum}), m.b.op("log", {sum})});
  const Graph after = fuse(table(), before);
  EXPECT_EQ(form(after), "row");
  const std::vector<Literal> in{Literal::of(DType::F32, {4, 0}, nullptr)};
  for (const char* device : {"cpu", "ref"}) testing::expect_same_bits(results(after, device, in), results(before, device, in), device);
}

// a -> reduction -> c, and a -> c: a and c must not be one kernel around the reduction.
TEST(Fuse, NothingRunsBothBeforeAndAfterSomethingElse) {
  Made m;
  const Value x = m.input({9, 7}), w = m.input({7, 7});
  const Value p = m.b.op("matmul", {x, w});
  const Value mean = m.b.op("mean", {p}, {{"axis", ir::Ints{0}}});
  const Graph g = m.fused({m.b.op("subtract", {p, mean})});
  EXPECT_EQ(count_of(g, "matmul"), 1u);
  EXPECT_EQ(count_of(g, "mean") + count_of(g, "subtract"), 2u);
}

TEST(Fuse, AnAddressIsNotMadeOfAnAccumulator) {
  Made m;
  const Value x = m.input({5, 9}), t = m.input({9});
  const Value place = m.b.op("argmax", {x}, {{"axis", int64_t{1}}});
  const Graph before = m.b.finish({m.b.op("take_clipped", {t, place}, {{"axis", int64_t{0}}})});
  const Graph after = fuse(table(), before);
  ir::verify(table(), after, ir::Stage::Expanded);
  EXPECT_EQ(count_of(after, "argmax") + count_of(after, "take_clipped"), 2u);
}

TEST(Fuse, CheapResultsAreComputedAgainInsteadOfKept) {
  Made m;
  const Value x = m.input({30, 6}), mean = m.input({6});
  const Value centred = m.b.op("subtract", {x, mean});
  const Value variance = m.b.op("mean", {m.b.op("square", {centred})}, {{"axis", ir::Ints{0}}});
  const Graph g = m.fused({m.b.op("divide", {centred, m.b.op("sqrt", {variance})})});
  EXPECT_EQ(kernels(g), 2u);
}

}  // namespace
}  // namespace tandem::passes
