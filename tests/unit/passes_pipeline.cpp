// The pipeline: its steps together, the same bits with and without it, for random graphs and for every row and its gradient; and time that
// grows with the graph, not faster.
#include <algorithm>
#include <ctime>
#include <optional>

#include "passes_loop_graphs.hpp"
#include "transform/grad.hpp"

namespace tandem::passes {
namespace {

// A random graph of small tensors: elementwise ops, movement, reductions, constants that rules look for.
class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed), b_(table()) {}

  Graph make() {
    for (int i = 0; i < 3; ++i) add(b_.input({pick({DType::F32, DType::I32, DType::F16}), shape()}));
    const int steps = 5 + static_cast<int>(random_() % 40);
    for (int i = 0; i < steps; ++i) step();
    std::vector<ir::Value> outputs;
    for (int i = 0; i < 3; ++i) outputs.push_back(any());
    return b_.finish(outputs);
  }

 private:
  template <class T> T pick(std::initializer_list<T> from) { return *(from.begin() + random_() % from.size()); }
  void add(ir::Value v) { values_.push_back(v); }
  ir::Value any() { return values_[random_() % values_.size()]; }
  Dims shape() { return pick<Dims>({{3, 4}, {4, 3}, {1, 4}, {3, 1}, {12}, {2, 3, 2}, {}}); }

  // Tries one; what does not fit together is a UserError and leaves the graph as it was.
  void step() {
    try {
      const ir::Value x = any();
      const ir::TensorType t = b_.type(x);
      switch (random_() % 9) {
        case 0: add(b_.op(pick({"negative", "absolute", "exp", "square", "identity", "cos", "floor"}), {x})); break;
        case 1:
        case 2: add(b_.op(pick({"add", "subtract", "multiply", "maximum", "minimum", "divide", "power"}), {x, any()})); break;
        case 3:
          add(b_.op(pick({"add", "subtract", "multiply", "divide", "power"}),
                    {x, b_.scalar(t.dtype, pick({0.0, -0.0, 1.0, 2.0, 0.5, 3.0}))}));
          break;
        case 4: add(b_.op("transpose", {x}, permutation_of(t))); break;
        case 5: add(b_.op("reshape", {x}, {{"shape", pick<Dims>({{3, 4}, {4, 3}, {12}, {2, 6}, {3, 2, 2}, {-1}})}})); break;
        case 6: add(b_.op("cast", {x}, {{"dtype", pick({DType::F32, DType::F16, DType::I32, DType::F64, DType::I8})}})); break;
        case 7: add(b_.op("where", {b_.op("less", {x, any()}), x, any()})); break;
        default: add(b_.op(pick({"sum", "max", "mean"}), {x}, {{"axis", ir::Ints{0}}, {"keepdims", pick({true, false})}})); break;
      }
    } catch (const UserError&) {
      return;  // operands that do not go together
    }
  }
  ir::Attrs permutation_of(const ir::TensorType& t) {
    ir::Ints perm;
    for (int i = 0; i < t.rank(); ++i) perm.push_back(i);
    std::shuffle(perm.begin(), perm.end(), random_);
    return {{"perm", perm}};
  }

  std::mt19937_64 random_;
  ir::Builder b_;
  std::vector<ir::Value> values_;
};

TEST(Pipeline, AllStepsTogetherOnTheGradientOfALoop) {
  const std::vector<int> wrt{1};
  const Graph before = expand(table(), transform::grad_graph(table(), recurrence(), wrt));
  const Graph after = run_pipeline(table(), before);
  EXPECT_EQ(count_of(after, "scan"), 2u);
  EXPECT_LT(after.nodes.size(), before.nodes.size());
  expect_same_bytes(before, after, "pipeline");
}

TEST(Pipeline, StepsCanBeSwitchedOff) {
  const Graph g = graph("graph (%0: float32[4]) {\n  %1 = negative(%0) : float32[4]\n  %2 = negative(%1) : float32[4]\n  return %2\n}\n");
  EXPECT_EQ(run_pipeline(table(), g).nodes.size(), 1u);
  setenv("TANDEM_DISABLE_PASS", "cse,simplify,fuse", 1);
  EXPECT_EQ(run_pipeline(table(), g).nodes.size(), 3u);
  unsetenv("TANDEM_DISABLE_PASS");
}

TEST(Pipeline, RandomGraphsKeepTheirBits) {
  size_t before_count = 0, after_count = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const Graph before = expand(table(), RandomGraph(seed).make()), after = run_pipeline(table(), before);
    before_count += before.nodes.size();
    after_count += after.nodes.size();
    expect_same_bytes(before, after, cat("seed ", seed), seed);
    if (HasFatalFailure()) return;
  }
  EXPECT_LT(after_count, before_count * 9 / 10);
}

// The gradient of a weighted sum of the first result, where the row has one.
std::optional<Graph> with_gradient(const Graph& g) {
  ir::Builder b(table());
  std::vector<ir::Value> in;
  for (const ir::TensorType& t : g.input_types()) in.push_back(b.input(t));
  const std::vector<ir::Value> out = ir::inline_graph(b, g, in);
  std::vector<ir::Value> sources;
  for (ir::Value v : in)
    if (is_float(b.type(v).dtype)) sources.push_back(v);
  if (out.empty() || sources.empty() || !is_float(b.type(out[0]).dtype)) return {};
  try {
    const ir::Expr y(b, out[0]);
    const ir::Value loss = (y * y).value();
    std::vector<ir::Value> results = transform::gradients(b, {&loss, 1}, {}, sources);
    std::erase_if(results, [](ir::Value v) { return !v; });
    results.insert(results.end(), out.begin(), out.end());
    return b.finish(results);
  } catch (const UserError&) {
    return {};
  }
}

// Matrix products of floats are left out: a library adds in another order when an operand lies another way (ADR 0009).
bool multiplies_transposed(const Graph& g) {
  return count_of(g, "matmul") > 0 && (count_of(g, "transpose") > 0 || count_of(g, "reshape") > 0);
}

TEST(Pipeline, EveryRowAndItsGradientKeepTheirBits) {
  const Without fusion("fuse");
  int compared = 0;
  for (const ir::OpDef* op : table().all()) {
    if (op->has(ir::kStructural) || op->evaluate) continue;
    int samples = 0;
    testing::for_each_sample(
        *op, [&](const ir::Sample& s, const std::vector<DType>& types, const std::vector<Literal>& in, const std::string& what) {
          const bool is_float32 = std::ranges::all_of(types, [](DType t) { return !is_float(t) || t == DType::F32; });
          if (!is_float32 || samples >= 3) return;
          ++samples;
          const Graph plain = testing::call_graph(*op, s.attrs, in);
          const std::optional<Graph> traced = with_gradient(plain);
          const Graph before = expand(table(), traced ? *traced : plain);
          if (multiplies_transposed(before)) return;
          const Graph after = run_pipeline(table(), before);
          ir::verify(table(), after, ir::Stage::Expanded);
          testing::expect_same_bits(results(before, "cpu", in), results(after, "cpu", in), what);
          // Fusion may add up in another order, so it is close and not equal; on the interpreter, which adds in order, it is equal.
          const Graph fused = fuse(table(), after);
          ir::verify(table(), fused, ir::Stage::Expanded);
          testing::expect_close(results(fused, "cpu", in), results(after, "cpu", in), *op, what + ", fused");
          testing::expect_same_bits(results(fused, "ref", in), results(after, "ref", in), what + ", fused");
          ++compared;
        });
  }
  EXPECT_GT(compared, 400);
}

// Of processor time, the least of a few tries: other programs are not what is measured.
double seconds(const Graph& g) {
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t start = std::clock();
    EXPECT_GT(run_pipeline(table(), g).nodes.size(), 0u);
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least;
}

Graph chain(int length) {
  ir::Builder b(table());
  ir::Expr x(b, b.input({DType::F32, {8, 16}}));
  for (int i = 0; i < length / 5; ++i) {
    x = ir::exp(x) * 1.0;
    x = x.transpose({1, 0}).op("tanh").transpose({1, 0});
  }
  return b.finish({x.value()});
}
Graph wide(int width) {
  ir::Builder b(table());
  const ir::Expr x(b, b.input({DType::F32, {8, 16}}));
  std::vector<ir::Value> out;
  for (int i = 0; i < width / 5; ++i) out.push_back((ir::exp(x * static_cast<double>(i)) + x / 2.0).value());
  return b.finish(out);
}

TEST(Pipeline, TimeGrowsLikeTheGraph) {
  for (const auto& [make, what] : {std::pair{&chain, "chain"}, std::pair{&wide, "wide"}}) {
    const double small = seconds(make(5000)), large = seconds(make(50000));
    RecordProperty(what, cat(large));
    EXPECT_LT(large, 30 * small + 0.3) << what << ": " << small << " s, then " << large << " s for ten times as many nodes";
  }
}

}  // namespace
}  // namespace tandem::passes
