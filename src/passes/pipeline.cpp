#include "passes/pipeline.hpp"

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

// Names in TANDEM_DISABLE_PASS, separated by commas.
bool disabled(std::string_view pass) {
  const std::string list = "," + env::get("TANDEM_DISABLE_PASS") + ",";
  return list.find(cat(",", pass, ",")) != std::string::npos;
}

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
  Pipeline(const ir::OpTable& table, const ir::Graph& g) : table_(table), graph_(g) {
    static std::atomic<int> count{0};
    number_ = count++;
    dump(number_, step_, "traced", graph_);
  }
  template <class F> Pipeline& step(std::string_view name, ir::Stage stage, F pass, bool optional = true) {
    ++step_;
    if (optional && disabled(name)) return *this;
    const auto start = std::chrono::steady_clock::now();
    graph_ = pass(graph_);
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    log::line(log::Topic::Pass, name, ": ", graph_.nodes.size(), " nodes, ", ms, " ms");
    if (verifying()) ir::verify(table_, graph_, stage);
    dump(number_, step_, name, graph_);
    return *this;
  }
  ir::Graph finish() { return std::move(graph_); }

 private:
  static bool verifying() {
#ifdef NDEBUG
    return env::get_flag("TANDEM_VERIFY");
#else
    return true;
#endif
  }
  const ir::OpTable& table_;
  ir::Graph graph_;
  int number_ = 0, step_ = 0;
};

}  // namespace

ir::Graph run_pipeline(const ir::OpTable& table, const ir::Graph& graph) {
  return Pipeline(table, graph)
      .step(
          "expand", ir::Stage::Expanded, [&](const ir::Graph& g) { return expand(table, g); }, /*optional=*/false)
      .step("fuse", ir::Stage::Expanded, [&](const ir::Graph& g) { return fuse(table, g); })
      .finish();
}

}  // namespace tandem::passes
