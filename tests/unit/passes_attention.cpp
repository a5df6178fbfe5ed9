// Attention as whole graphs: what the cpu keeps gives what its decomposition gives, forward and backward, and needs far less memory.
#include "passes_support.hpp"
#include "transform/grad.hpp"

namespace tandem::passes {
namespace {

using ir::Expr;
using ir::TensorType;

struct Operands {
  std::vector<TensorType> types;  // query, key, value, then bias and mask if they are there
  ir::Attrs attrs = {};
};

// Attention, and its gradients by every floating operand; the result's own gradient is the last input.
Graph with_gradients(const Operands& o) {
  ir::Builder b(table());
  std::vector<ir::Value> in, sources;
  for (const TensorType& t : o.types) {
    in.push_back(b.input(t));
    if (is_float(t.dtype)) sources.push_back(in.back());
  }
  std::vector<ir::Value> out = b.nodes("dot_product_attention", in, o.attrs);
  const ir::Value gradient = b.input(b.type(out[0]));
  for (ir::Value v : transform::gradients(b, {out.data(), 1}, {&gradient, 1}, sources)) out.push_back(v);
  return b.finish(out);
}

engine::Engine& expanding() {
  static engine::Engine e(device::get("cpu"));
  return e;
}

Literal random_values(const TensorType& type, const Bindings& bindings, uint64_t seed) {
  const Shape shape = tandem::bind(type.dims, bindings);
  std::vector<std::byte> bytes(byte_size(shape, type.dtype));
  std::mt19937_64 random(seed);
  for (size_t i = 0, width = size_of(type.dtype); i < bytes.size(); i += width)
    if (type.dtype == DType::Bool)
      bytes[i] = std::byte(random() % 4 != 0);
    else
      ir::store_number(type.dtype, &bytes[i], static_cast<double>(random() % 2001) / 1000 - 1);
  return Literal::of(type.dtype, shape, bytes.data());
}
std::vector<Literal> inputs(const Graph& g, const Bindings& bindings) {
  std::vector<Literal> in;
  for (const TensorType& t : g.input_types()) in.push_back(random_values(t, bindings, in.size() + 1));
  return in;
}
Literal in_type(const Literal& l, DType t) {
  std::vector<std::byte> bytes(byte_size(l.shape, t));
  for (size_t i = 0; i < testing::count(l); ++i) ir::store_number(t, bytes.data() + i * size_of(t), testing::at(l, i));
  return Literal::of(t, l.shape, bytes.data());
}

void expect_near(const std::vector<Literal>& got, const std::vector<Literal>& want, double allowed, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].shape.str(), want[k].shape.str());
    for (size_t i = 0; i < testing::count(got[k]); ++i)
      ASSERT_TRUE(testing::near(testing::at(got[k], i), testing::at(want[k], i), {allowed, allowed}))
          << what << ": result " << k << ", element " << i;
  }
}

// Kept, expanded on the cpu, and by the interpreter in double.
void check(const Operands& o, const Bindings& bindings) {
  std::string what = o.attrs.get<bool>("is_causal") ? "causal" : "";
  for (const TensorType& t : o.types) what += cat(" ", tandem::bind(t.dims, bindings));
  const Graph g = with_gradients(o);
  Operands wide = o;
  for (TensorType& t : wide.types)
    if (is_float(t.dtype)) t.dtype = DType::F64;
  const std::vector<Literal> in = inputs(g, bindings);
  std::vector<Literal> in_double;
  for (const Literal& l : in) in_double.push_back(is_float(l.dtype) ? in_type(l, DType::F64) : l);

  engine::Engine &cpu = testing::engine_on("cpu"), &ref = testing::engine_on("ref");
  const auto kept = cpu.compile(g);
  EXPECT_EQ(count_of(kept->graph(), "attention_parts"), 1u) << ir::print(kept->graph());  // forward and backward share it
  EXPECT_EQ(count_of(kept->graph(), "attention_gradient"), 1u);
  const auto results = testing::run_graph(*kept, cpu, in);
  const auto exact = ref.compile(with_gradients(wide));
  EXPECT_EQ(count_of(exact->graph(), "attention_parts") + count_of(exact->graph(), "attention_gradient"), 0u);
  expect_near(results, testing::run_graph(*exact, ref, in_double), 2e-4, what);
  const Without keeping("keep");
  const auto expanded = expanding().compile(g);
  EXPECT_EQ(count_of(expanded->graph(), "attention_parts") + count_of(expanded->graph(), "attention_gradient"), 0u);
  expect_near(results, testing::run_graph(*expanded, cpu, in), 2e-4, what + " expanded");
}

Operands operands(const Dim& batch, int64_t targets, int64_t sources, int64_t heads, int64_t key_heads, int64_t depth,
                  bool is_causal = false) {
  const auto f = [](Dims dims) { return TensorType{DType::F32, std::move(dims)}; };
  return {{f({batch, targets, heads, depth}), f({batch, sources, key_heads, depth}), f({batch, sources, key_heads, depth})},
          {{"is_causal", is_causal}}};
}

TEST(KeptAttention, ForwardAndBackwardAgreeWithTheFormula) {
  const Dim b = Dim::symbol("b");
  for (bool is_causal : {false, true}) {
    check(operands(b, 40, 150, 4, 2, 8, is_causal), {{"b", 2}});
    check(operands(b, 8, 5, 2, 2, 6, is_causal), {{"b", 1}});
    Operands o = operands(b, 33, 20, 4, 4, 4, is_causal);
    o.types.push_back({DType::F32, {4, 33, 1}});  // [batch, targets, sources]
    o.types.back().dims[0] = b;
    check(o, {{"b", 3}});
    o.types[3].dims = {1, 4, 33, 20};
    o.types.push_back({DType::Bool, {b, 1, 1, 20}});
    check(o, {{"b", 3}});
  }
}

TEST(KeptAttention, OneGraphServesEveryLength) {
  const Dim b = Dim::symbol("b"), n = Dim::symbol("n");
  Operands o = operands(b, 1, 1, 2, 2, 4, true);
  for (TensorType& t : o.types) t.dims[1] = n;
  for (int64_t length : {1, 5, 64, 200}) check(o, {{"b", 2}, {"n", length}});
  const Graph g = with_gradients(o);
  const auto kept = testing::engine_on("cpu").compile(g);
  for (const Literal& l : testing::run_graph(*kept, testing::engine_on("cpu"), inputs(g, {{"b", 2}, {"n", 0}})))
    EXPECT_EQ(testing::count(l), 0u);
}

TEST(KeptAttention, OtherTypesAreExpandedOrComputedInFloat32) {
  engine::Engine& cpu = testing::engine_on("cpu");
  Operands o = operands(Dim(2), 9, 7, 2, 1, 4);
  for (TensorType& t : o.types) t.dtype = DType::F64;
  EXPECT_EQ(count_of(cpu.compile(with_gradients(o))->graph(), "attention_parts"), 0u);
  for (TensorType& t : o.types) t.dtype = DType::F16;
  const Graph g = with_gradients(o);
  const auto kept = cpu.compile(g);
  EXPECT_EQ(count_of(kept->graph(), "attention_parts"), 1u);
  const auto in = inputs(g, {});
  const auto ref = testing::engine_on("ref").compile(g);
  expect_near(testing::run_graph(*kept, cpu, in), testing::run_graph(*ref, testing::engine_on("ref"), in), 4e-3, "float16");
}

TEST(KeptAttention, AFewTargetsAreExpandedWhenTheirNumberIsKnown) {
  Operands o = operands(Dim(2), 7, 9, 2, 2, 4);
  EXPECT_EQ(count_of(testing::engine_on("cpu").compile(with_gradients(o))->graph(), "attention_parts"), 0u);
  for (TensorType& t : o.types) t.dims[1] = Dim::symbol("n");
  EXPECT_EQ(count_of(testing::engine_on("cpu").compile(with_gradients(o))->graph(), "attention_parts"), 1u);
}

TEST(KeptAttention, ViewsAreReadWhereTheyLie) {
  // Query, key and value as parts of one projection [batch, length, 3, heads, depth].
  ir::Builder b(table());
  const Expr x(b, b.input({DType::F32, {2, 50, 3, 2, 8}}));
  std::vector<Expr> parts;
  for (int64_t i = 0; i < 3; ++i)
    parts.push_back(
        ir::call(b, "split", {x}, {{"sizes", Dims{1, 1, 1}}, {"axis", int64_t{2}}})[static_cast<size_t>(i)].reshape({2, 50, 2, 8}));
  const Graph g = b.finish({parts[0].op("dot_product_attention", {parts[1], parts[2]}).value()});
  const auto in = inputs(g, {});
  engine::Engine &cpu = testing::engine_on("cpu"), &ref = testing::engine_on("ref");
  expect_near(testing::run_graph(*cpu.compile(g), cpu, in), testing::run_graph(*ref.compile(g), ref, in), 1e-5, "split");
}

// 4096 tokens: the scores of 8 heads are 512 MiB, and backward would have several of them.
TEST(KeptAttention, MemoryDoesNotGrowWithTheSquareOfTheLength) {
  const int64_t length = 4096, heads = 8, depth = 64;
  const Graph g = with_gradients(operands(Dim(1), length, length, heads, heads, depth, true));
  const auto arena = [&](engine::Engine& e) {
    const Graph& graph = e.compile(g)->graph();
    return engine::planned({graph}, testing::engine_on("cpu").devices()).plan.arena_bytes();
  };
  const size_t scores = sizeof(float) * heads * length * length, operand = sizeof(float) * heads * length * depth;
  EXPECT_LT(arena(testing::engine_on("cpu")), 3 * operand);
  const Without keeping("keep");
  EXPECT_GT(arena(expanding()), scores);
}

}  // namespace
}  // namespace tandem::passes
