// Dead code. One walk backwards: a node is needed when one of its results is read; a branch or a loop is cut down to what its read
// results need, which decides what of its operands is read.
#include <utility>

#include "ir/builder.hpp"
#include "passes/pipeline.hpp"
#include "passes/subgraphs.hpp"

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
  Flags used(g.nodes.size());
  for (const ir::Node& n : g.nodes)
    for (ir::Value v : n.inputs) used[static_cast<size_t>(v.node)] = true;
  for (ir::Value v : g.outputs) used[static_cast<size_t>(v.node)] = true;
  Flags result;
  for (ir::Value v : g.inputs) result.push_back(used[static_cast<size_t>(v.node)]);
  return result;
}

// Without some inputs, which nothing uses.
ir::Graph without_inputs(ir::Graph g, const Flags& keep) {
  std::vector<int32_t> place(g.nodes.size(), 0);
  for (size_t i = 0; i < g.inputs.size(); ++i)
    if (!keep[i]) place[static_cast<size_t>(g.inputs[i].node)] = -1;
  ir::Graph out;
  out.name = g.name;
  const auto moved = [&](std::vector<ir::Value> values) {
    for (ir::Value& v : values) v.node = place[static_cast<size_t>(v.node)];
    return values;
  };
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    if (place[i] < 0) continue;
    place[i] = static_cast<int32_t>(out.nodes.size());
    ir::Node& n = out.nodes.emplace_back(std::move(g.nodes[i]));
    n.inputs = moved(std::move(n.inputs));
    if (n.op->name != "input") continue;
    n.attrs.set("index", static_cast<int64_t>(out.inputs.size()));
    out.inputs.push_back({place[i], 0});
  }
  out.outputs = moved(g.outputs);
  return out;
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
  std::vector<Flags> read(g.nodes.size());
  for (size_t i = 0; i < g.nodes.size(); ++i) read[i].resize(g.nodes[i].types.size());
  const auto mark = [&](ir::Value v) { read[static_cast<size_t>(v.node)][static_cast<size_t>(v.out)] = true; };
  for (ir::Value v : g.outputs) mark(v);
  for (ir::Value v : g.inputs) mark(v);

  std::vector<Cut> cuts;  // of needed nodes, the last first
  std::vector<int32_t> place(g.nodes.size(), -1);
  for (size_t i = g.nodes.size(); i-- > 0;) {
    if (count(read[i]) == 0) continue;
    cuts.push_back(cut_node(table, g.nodes[i], read[i]));
    for (ir::Value v : cuts.back().node.inputs) mark(v);
    place[i] = static_cast<int32_t>(cuts.size()) - 1;
  }
  // Where each value is now: its node's place counted from the front, and its number among the results that are left.
  const auto moved = [&](std::vector<ir::Value> values) {
    for (ir::Value& v : values) {
      const int32_t at = place[static_cast<size_t>(v.node)];
      const Flags& results = cuts[static_cast<size_t>(at)].results;
      v.out = static_cast<int32_t>(std::count(results.begin(), results.begin() + v.out, true));
      v.node = static_cast<int32_t>(cuts.size()) - 1 - at;
    }
    return values;
  };
  ir::Graph out;
  out.name = g.name;
  out.inputs = moved(g.inputs);
  out.outputs = moved(g.outputs);
  out.nodes.reserve(cuts.size());
  for (size_t i = cuts.size(); i-- > 0;) {
    ir::Node n = std::move(cuts[i].node);
    n.inputs = moved(std::move(n.inputs));
    out.nodes.push_back(std::move(n));
  }
  return out;
}

}  // namespace tandem::passes
