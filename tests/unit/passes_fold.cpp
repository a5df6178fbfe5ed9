// Constant folding: what is folded has the bits that a device would have given, and what must not be folded stays.
#include "passes_support.hpp"

namespace tandem::passes {
namespace {

// One op on constants.
Graph of_constants(const ir::OpDef& op, const ir::Attrs& attrs, const std::vector<Literal>& in) {
  ir::Builder b(table());
  std::vector<ir::Value> v;
  for (const Literal& l : in) v.push_back(b.constant(l));
  return b.finish(b.node(op, v, attrs));
}

bool is_folded(const Graph& g) {
  return dce(table(), fold(table(), g)).nodes[0].op->name == "constant" && dce(table(), fold(table(), g)).nodes.size() == 1;
}

// Some samples of every row that is folded at all: the interpreter's bits against the generated kernel's.
TEST(Fold, GivesTheDevicesBits) {
  constexpr int kMostOfOneRow = 8;
  int folded = 0;
  for (const ir::OpDef* op : table().all()) {
    if (op->has(ir::kStructural)) continue;
    int of_row = 0;
    testing::for_each_sample(*op, [&](const ir::Sample& s, const auto&, const std::vector<Literal>& in, const std::string& what) {
      if (of_row >= kMostOfOneRow) return;
      const Graph g = expand(table(), of_constants(*op, s.attrs, in));
      const Graph f = fold(table(), g);
      if (f == g) return;
      ++folded;
      ++of_row;
      testing::expect_same_bits(results(f, "cpu", {}), results(g, "cpu", {}), what);
    });
  }
  EXPECT_GT(folded, 500);
}

TEST(Fold, ChainsOfScalarsBecomeOneConstant) {
  const Graph g = graph(
      "graph (%0: float32[4]) {\n"
      "  %1 = constant(; value=int32[]{6}) : int32[]\n"
      "  %2 = cast(%1; dtype=float32) : float32[]\n"
      "  %3 = constant(; value=float32[]{0.5}) : float32[]\n"
      "  %4 = multiply(%2, %3) : float32[]\n"
      "  %5 = sqrt(%4) : float32[]\n"
      "  %6 = add(%0, %5) : float32[4]\n"
      "  return %6\n"
      "}\n");
  EXPECT_EQ(ir::print(dce(table(), fold(table(), g))),
            "graph(%0: float32[4]) {\n"
            "  %1 = constant(; value=float32[]{1.7320508}) : float32[]\n"
            "  %2 = add(%0, %1) : float32[4]\n"
            "  return %2\n"
            "}\n");
}

TEST(Fold, StopsWhereItMust) {
  const auto one = [](const char* text) { return graph(cat("graph () {\n", text, "\n  return %9\n}\n")); };
  EXPECT_TRUE(is_folded(one("  %1 = constant(; value=int32[3]{1,2,3}) : int32[3]\n  %9 = sum(%1; axis=none, keepdims=false) : int32[]")));
  for (const char* text : {
           // A library's exp may differ in the last bit.
           "  %1 = constant(; value=float32[]{1}) : float32[]\n  %9 = exp(%1) : float32[]",
           // The order of a sum of floats is the device's.
           "  %1 = constant(; value=float32[3]{1,2,3}) : float32[3]\n  %9 = sum(%1; axis=none, keepdims=false) : float32[]",
           // Larger than what it is made of.
           "  %9 = iota(; shape=[1000000], axis=0, dtype=int32) : int32[1000000]",
           "  %1 = constant(; value=float32[]{1}) : float32[]\n  %9 = full(%1; shape=[8]) : float32[8]",
           // Which NaN it is.
           "  %1 = constant(; value=float32[]{0}) : float32[]\n  %9 = divide(%1, %1) : float32[]",
           // Random.
           "  %1 = constant(; value=uint32[2]{1,2}) : uint32[2]\n  %9 = random_bits(%1; shape=[1]) : uint32[1]",
       })
    EXPECT_FALSE(is_folded(one(text))) << text;
}

TEST(Fold, GoesIntoSubgraphs) {
  const Graph g = fold(table(), graph(R"(graph (%0: int32[]) {
  %1 = branch(%0; branches=[
    graph () {
      %0 = constant(; value=int32[]{2}) : int32[]
      %1 = add(%0, %0) : int32[]
      return %1
    }
  ]) : int32[]
  return %1
}
)"));
  const Graph& branch = *g.nodes[1].attrs.get<ir::Graphs>("branches")[0];
  EXPECT_EQ(branch.node(branch.outputs[0]).attrs.get<Literal>("value").values<int32_t>()[0], 4);
}

}  // namespace
}  // namespace tandem::passes
