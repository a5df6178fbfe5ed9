// Recurrent layers that a device keeps whole: the gradient runs the sequence once, and the results are those of the loop that they stand
// for.
#include "passes_support.hpp"
#include "transform/grad.hpp"

namespace tandem::passes {
namespace {

using ir::Builder;
using ir::Expr;

bool keeps(const ir::OpCall& call) { return device::get("cpu").keeps(call); }

// The layer behind an elementwise op (so that its inputs are memory of the plan), the gradient of a number that all results have a part in.
Graph training_step(std::string_view op, bool with_gradient) {
  Builder b(table());
  const int64_t time = 5, batch = 18, units = 20, gates = op == "lstm" ? 4 : 3;
  const auto input = [&](Dims dims) { return Expr(b, b.input({DType::F32, std::move(dims)})); };
  const Expr x = input({time, batch, gates * units}), kernel = input({units, gates * units}), h = input({batch, units});
  const Expr other = op == "lstm" ? input({batch, units}) : input({gates * units});
  const std::vector<Expr> out = ir::call(b, op, {x * 0.5, kernel, h, other});
  Expr total;
  for (const Expr& e : out) {
    const Expr part = (e * e).sum(e.rank() == 3 ? ir::Ints{0, 1, 2} : ir::Ints{0, 1});
    total = total ? total + part : part;
  }
  std::vector<ir::Value> results{total.value(), out[0].value()};
  if (!with_gradient) return b.finish(results);
  const ir::Value target = total.value();
  const std::vector<ir::Value> sources{x.value(), kernel.value(), h.value(), other.value()};
  for (ir::Value g : transform::gradients(b, {&target, 1}, {}, sources)) results.push_back(g);
  return b.finish(results);
}

class RecurrentRow : public ::testing::TestWithParam<std::string> {};

TEST_P(RecurrentRow, TheGradientRunsTheSequenceOnce) {
  const Graph g = run_pipeline(table(), training_step(GetParam(), true), keeps);
  EXPECT_EQ(count_of(g, GetParam()), 1u) << ir::print(g);
  EXPECT_EQ(count_of(g, GetParam() + "_gradient"), 1u) << ir::print(g);
  EXPECT_EQ(count_of(g, "scan"), 0u) << ir::print(g);
  const Graph expanded = run_pipeline(table(), training_step(GetParam(), true));
  EXPECT_EQ(count_of(expanded, "scan"), 2u) << ir::print(expanded);
}

TEST_P(RecurrentRow, NothingIsKeptWithoutAGradient) {
  const Graph g = run_pipeline(table(), training_step(GetParam(), false), keeps);
  for (const ir::Node& n : g.nodes)
    if (n.op->name == GetParam()) {
      EXPECT_FALSE(n.attrs.get<bool>("keep")) << ir::print(g);
    }
}

TEST_P(RecurrentRow, KeptAndExpandedAgree) {
  const Graph step = training_step(GetParam(), true);
  const std::vector<Literal> in = random_inputs(step);
  const auto run = [&](std::string_view device) {
    engine::Engine e(device::get(device));
    return testing::run_graph(*e.compile(step), e, in);
  };
  const auto kept = run("cpu");
  testing::expect_close(kept, run("ref"), table().at("matmul"), "against the interpreter");
  const Without keep("keep");
  testing::expect_close(kept, run("cpu"), table().at("matmul"), "against the loop");
}

INSTANTIATE_TEST_SUITE_P(Layers, RecurrentRow, ::testing::Values("lstm", "gru"), [](const auto& i) { return i.param; });

}  // namespace
}  // namespace tandem::passes
