// Dead code. One walk backwards: a node is needed when one of its results is read; a branch or a loop is cut down to what its read
// results need, which decides what of its operands is read.
#include <optional>
#include <utility>

#include "ir/rewrite.hpp"
#include "passes/pipeline.hpp"

namespace tandem::passes {
namespace {

using Flags = std::vector<bool>;

size_t count(const Flags& f) { return static_cast<size_t>(std::ranges::count(f, true)); }

template <class T> std::vector<T> kept(const std::vector<T>& items, const Flags& keep) {
  std::vector<T> some;
  for (size_t i = 0; i < items.size(); ++i)
    if (keep[i]) some.push_back(items[i]);
  return some;
}

// Which inputs of a graph its nodes and outputs use.
Flags used_inputs(const ir::Graph& g) {
  ir::NodeMap<bool> used(g);
  for (const ir::Node& n : g.nodes)
    for (ir::Value v : n.inputs) used[v] = true;
  for (ir::Value v : g.outputs) used[v] = true;
  Flags result;
  for (ir::Value v : g.inputs) result.push_back(used[v]);
  return result;
}

// Without some inputs, which nothing uses.
ir::Graph without_inputs(ir::Graph g, const Flags& keep) {
  ir::NodeMap<bool> goes(g);
  for (size_t i = 0; i < g.inputs.size(); ++i) goes[g.inputs[i]] = !keep[i];
  ir::Renumbering numbers(g);
  std::vector<ir::Value> inputs;
  for (int32_t n = 0; n < g.count(); ++n) {
    if (goes[n]) continue;
    ir::Node& node = g.nodes[static_cast<size_t>(n)];
    if (node.op->name == "input") {
      node.attrs.set("index", std::ssize(inputs));
      inputs.push_back({n, 0});
    }
    numbers.take(n, std::move(node));
  }
  return numbers.finish(std::move(inputs), std::move(g.outputs), std::move(g.name));
}

ir::Graph with_outputs(const ir::OpTable& table, const ir::Graph& g, const Flags& keep) {
  ir::Graph now = g;
  now.outputs = kept(g.outputs, keep);
  return dce(table, now);
}

// A node cut down: which results are left, and which operands.
struct Cut {
  ir::Node node;
  Flags results, operands;
};

Cut cut_branch(const ir::OpTable& table, const ir::Node& n, const Flags& read) {
  Cut cut{n, read, Flags(n.inputs.size(), false)};
  cut.operands[0] = true;
  std::vector<ir::Graph> branches;
  for (const ir::GraphRef& g : n.attrs.get<ir::Graphs>("branches")) {
    branches.push_back(with_outputs(table, *g, read));
    const Flags used = used_inputs(branches.back());
    for (size_t i = 0; i < used.size(); ++i)
      if (used[i]) cut.operands[i + 1] = true;
  }
  const Flags inputs(cut.operands.begin() + 1, cut.operands.end());
  ir::Graphs now;
  for (ir::Graph& g : branches) now.push_back(std::make_shared<const ir::Graph>(without_inputs(std::move(g), inputs)));
  cut.node.attrs.set("branches", std::move(now));
  return cut;
}

// What of a loop is needed: a carry is when its result is read, or when a step's needed results or the condition use it. Finds the least
// such set by growing it; each round looks at the body cut down to what is needed so far.
struct LoopNeeds {
  Flags results, operands;
  ir::Graph body;
};
LoopNeeds loop_needs(const ir::OpTable& table, const ir::Graph& body, size_t carries, const Flags& read, const Flags& always) {
  LoopNeeds needs{read, always, {}};
  for (;;) {
    for (size_t i = 0; i < carries; ++i)
      if (needs.operands[i]) needs.results[i] = true;
    needs.body = with_outputs(table, body, needs.results);
    const Flags used = used_inputs(needs.body);
    bool has_grown = false;
    for (size_t i = 0; i < used.size(); ++i) {
      const bool is_needed = used[i] || (i < carries && needs.results[i]);
      if (!is_needed || needs.operands[i]) continue;
      needs.operands[i] = true;
      has_grown = has_grown || (i < carries && !needs.results[i]);
    }
    if (!has_grown) return needs;
  }
}

Cut cut_scan(const ir::OpTable& table, const ir::Node& n, const Flags& read) {
  const auto carries = static_cast<size_t>(n.attrs.get<int64_t>("carries")),
             sequences = static_cast<size_t>(n.attrs.get<int64_t>("sequences"));
  LoopNeeds needs = loop_needs(table, *n.attrs.get<ir::Graphs>("functions")[0], carries, read, Flags(n.inputs.size(), false));
  Cut cut{n, needs.results, needs.operands};
  const auto first = cut.operands.begin();
  const auto among = [&](size_t from, size_t size) {
    return static_cast<int64_t>(
        std::count(first + static_cast<std::ptrdiff_t>(from), first + static_cast<std::ptrdiff_t>(from + size), true));
  };
  cut.node.attrs.set("carries", among(0, carries));
  cut.node.attrs.set("sequences", among(carries, sequences));
  cut.node.attrs.set("functions", ir::Graphs{std::make_shared<const ir::Graph>(without_inputs(std::move(needs.body), needs.operands))});
  return cut;
}

Cut cut_while(const ir::OpTable& table, const ir::Node& n, const Flags& read) {
  const auto& functions = n.attrs.get<ir::Graphs>("functions");
  ir::Graph condition = dce(table, *functions[0]);
  LoopNeeds needs = loop_needs(table, *functions[1], n.inputs.size(), read, used_inputs(condition));
  Cut cut{n, needs.results, needs.operands};
  ir::Graphs now{std::make_shared<const ir::Graph>(without_inputs(std::move(condition), needs.operands)),
                 std::make_shared<const ir::Graph>(without_inputs(std::move(needs.body), needs.operands))};
  cut.node.attrs.set("functions", std::move(now));
  return cut;
}

Cut cut_node(const ir::OpTable& table, const ir::Node& n, const Flags& read) {
  Cut cut;
  if (n.op->name == "branch")
    cut = cut_branch(table, n, read);
  else if (n.op->name == "scan")
    cut = cut_scan(table, n, read);
  else if (n.op->name == "while")
    cut = cut_while(table, n, read);
  else
    return {n, Flags(n.types.size(), true), Flags(n.inputs.size(), true)};
  cut.node.types = kept(n.types, cut.results);
  cut.node.inputs = kept(n.inputs, cut.operands);
  return cut;
}

}  // namespace

ir::Graph dce(const ir::OpTable& table, const ir::Graph& g) {
  ir::ValueMap<bool> read(g);
  for (ir::Value v : g.outputs) read[v] = true;

  ir::NodeMap<std::optional<Cut>> cuts(g);  // of needed nodes
  for (int32_t n = g.count(); n-- > 0;) {
    Flags results;
    for (int32_t o = 0; o < std::ssize(g.node(n).types); ++o) results.push_back(read[{n, o}]);
    if (count(results) == 0) continue;
    cuts[n] = cut_node(table, g.node(n), results);
    for (ir::Value v : cuts[n]->node.inputs) read[v] = true;
  }

  ir::Builder b(table);
  ir::Rewriter r(b, g);
  return r.run([&](int32_t n) {
    std::vector<ir::Value> results;
    if (!cuts[n]) return results;
    const std::vector<ir::Value> left = r.copy(cuts[n]->node);
    auto next = left.begin();
    for (const bool is_left : cuts[n]->results) results.push_back(is_left ? *next++ : ir::Value());
    return results;
  });
}

}  // namespace tandem::passes
