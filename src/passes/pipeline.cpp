#include "passes/pipeline.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/env.hpp"
#include "base/log.hpp"
#include "ir/print.hpp"
#include "ir/verify.hpp"

namespace tandem::passes {
namespace {

// What TANDEM_DISABLE_PASS may name: the steps that can be left out, and that composites are kept.
constexpr std::string_view kOptional[] = {"fold", "simplify", "cse", "loops", "stack", "layout", "shapes", "dce", "fuse", "keep"};

class Disabled {
 public:
  bool has(std::string_view name) const {
    TANDEM_CHECK(std::ranges::find(kOptional, name) != std::end(kOptional), name, " is not in the list of what can be left out");
    return std::ranges::find(names_, name) != names_.end();
  }

 private:
  const std::vector<std::string> names_ = env::get_names("TANDEM_DISABLE_PASS", kOptional);
};

void dump(int graph, int step, std::string_view pass, const ir::Graph& g) {
  const std::string folder = env::get("TANDEM_DUMP");
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::ofstream out(cat(folder, "/", graph, "-", step, "-", pass, ".txt"));
  out << ir::print(g);
  if (!out) log::line(log::Topic::Pass, "cannot write to TANDEM_DUMP=", folder);
}

class Pipeline {
 public:
  Pipeline(const ir::OpTable& table, const ir::Graph& g, const ir::KeepsFn& keeps, const Disabled& disabled)
      : table_(table), graph_(g), keeps_(keeps), disabled_(disabled) {
    static std::atomic<int> count{0};
    number_ = count++;
    dump(number_, step_, "traced", graph_);
  }
  template <class F> Pipeline& step(std::string_view name, ir::Stage stage, F pass, bool optional = true) {
    ++step_;
    if (optional && disabled_.has(name)) return *this;
    const auto start = std::chrono::steady_clock::now();
    ir::Graph after = pass(graph_);
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    log::line(log::Topic::Pass, name, ": ", after.nodes.size(), " nodes, ", ms, " ms");
    if (ir::verifying()) {
      ir::verify(table_, after, stage, keeps_);
      TANDEM_CHECK(after.input_types() == graph_.input_types() && after.output_types() == graph_.output_types(), "I4: the pass '", name,
                   "' changed the inputs or outputs of graph '", graph_.name, "'");
    }
    graph_ = std::move(after);
    dump(number_, step_, name, graph_);
    return *this;
  }
  ir::Graph finish() { return std::move(graph_); }

 private:
  const ir::OpTable& table_;
  ir::Graph graph_;
  const ir::KeepsFn& keeps_;
  const Disabled& disabled_;
  int number_ = 0, step_ = 0;
};

}  // namespace

// Constants first, for the rules of `simplify` look for them; then equal nodes meet, which is how `loops` sees that two loops have the
// same operands. `layout` counts users, so it comes when there are no equal ones left (and after `loops`, which compares bodies that it
// might turn differently). `precision` looks at who reads a value, so it wants equal and covered nodes gone, and comes before the passes
// that arrange what it makes; `stack` compares operands, so it comes when equal ones are one and have their types. `dce` sees what all of
// them left behind, and `fuse` what is left to compute.
ir::Graph run_pipeline(const ir::OpTable& table, const ir::Graph& graph, const ir::KeepsFn& keeps, Precision precision) {
  const Disabled disabled;
  const ir::KeepsFn kept = disabled.has("keep") ? ir::KeepsFn() : keeps;
  const auto pass = [&](ir::Graph (*f)(const ir::OpTable&, const ir::Graph&)) {
    return [&, f](const ir::Graph& g) { return f(table, g); };
  };
  Pipeline p(table, graph, kept, disabled);
  p.step(
       "expand", ir::Stage::Expanded, [&](const ir::Graph& g) { return expand(table, g, kept); }, /*optional=*/false)
      .step("fold", ir::Stage::Expanded, pass(fold))
      .step("simplify", ir::Stage::Expanded, pass(simplify))
      .step("cse", ir::Stage::Expanded, pass(cse))
      .step("loops", ir::Stage::Expanded, pass(loops));
  if (precision != Precision::Float32)
    p.step("precision", ir::Stage::Expanded, [&](const ir::Graph& g) { return mix(table, g, precision); }, /*optional=*/false);
  return p.step("stack", ir::Stage::Expanded, pass(stack))
      .step("layout", ir::Stage::Expanded, pass(layout))
      .step("shapes", ir::Stage::Expanded, pass(shapes))
      .step("dce", ir::Stage::Expanded, pass(dce))
      .step("fuse", ir::Stage::Expanded, pass(fuse))
      .finish();
}

}  // namespace tandem::passes
