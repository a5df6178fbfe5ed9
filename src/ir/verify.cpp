// The rules of each stage. Later ones may rely on earlier ones: they are tried in order, node by node.
#include "ir/verify.hpp"

#include <array>

#include "base/env.hpp"

namespace tandem::ir {
namespace {

const Node& node_of(const Graph& g, int32_t node) { return g.nodes[static_cast<size_t>(node)]; }

bool exists(const Graph& g, Value v) {
  return v.node >= 0 && static_cast<size_t>(v.node) < g.nodes.size() && v.out >= 0 && static_cast<size_t>(v.out) < g.node(v).types.size();
}

std::string value_text(Value v) { return v.out == 0 ? cat('%', v.node) : cat('%', v.node, '.', v.out); }

std::string row_is_known(const OpTable& table, const Graph& g, int32_t node, const VerifyContext&) {
  const OpDef* op = node_of(g, node).op;
  if (!op) return "it has no op";
  return table.find(op->name) == op ? "" : cat("the row '", op->name, "' is not one of this table");
}

std::string inputs_come_first(const OpTable&, const Graph& g, int32_t node, const VerifyContext&) {
  for (Value v : node_of(g, node).inputs)
    if (v.node < 0 || v.node >= node) return cat("it uses ", value_text(v), ", which does not precede it");
  return "";
}

std::string operands_exist(const OpTable&, const Graph& g, int32_t node, const VerifyContext&) {
  for (Value v : node_of(g, node).inputs)
    if (!exists(g, v)) return cat("it uses ", value_text(v), ", but node ", v.node, " has ", g.node(v).types.size(), " results");
  return "";
}

std::string attributes_are_complete(const OpTable&, const Graph& g, int32_t node, const VerifyContext&) {
  const Node& n = node_of(g, node);
  try {
    return complete_attrs(*n.op, n.attrs) == n.attrs ? "" : "its attributes are not those of the signature, in order and complete";
  } catch (const UserError& e) {
    return e.what();
  }
}

std::string types_are_inferred(const OpTable&, const Graph& g, int32_t node, const VerifyContext&) {
  const Node& n = node_of(g, node);
  std::vector<TensorType> in;
  for (Value v : n.inputs) in.push_back(g.type(v));
  std::vector<TensorType> inferred;
  try {
    inferred = infer(*n.op, in, n.attrs);
  } catch (const UserError& e) {
    return e.what();
  }
  if (inferred.size() != n.types.size()) return cat("it has ", n.types.size(), " results, inference gives ", inferred.size());
  for (size_t i = 0; i < inferred.size(); ++i)
    if (!(inferred[i] == n.types[i])) return cat("result ", i, " is ", n.types[i], ", inference gives ", inferred[i]);
  return "";
}

// A sub-graph can only name its own nodes, so it is closed when it is a good graph by itself.
std::string subgraphs_are_good(const OpTable& table, const Graph& g, int32_t node, const VerifyContext& spec) {
  for (const Attrs::Entry& e : node_of(g, node).attrs.entries()) {
    const auto* graphs = std::get_if<Graphs>(&e.value);
    if (!graphs) continue;
    for (size_t i = 0; i < graphs->size(); ++i) {
      try {
        verify(table, *(*graphs)[i], spec.stage, spec.keeps);
      } catch (const InternalError& error) {
        return cat("in graph ", i, " of '", e.name, "': ", error.what());
      }
    }
  }
  return "";
}

std::string nothing_decomposes(const OpTable&, const Graph& g, int32_t node, const VerifyContext& spec) {
  const Node& n = node_of(g, node);
  if (!n.op->decompose) return "";
  std::vector<TensorType> in;
  for (Value v : n.inputs) in.push_back(g.type(v));
  return spec.keeps && spec.keeps({*n.op, in, n.attrs, n.device}) ? "" : "it still has a decomposition, and is not kept";
}

std::string inputs_are_listed(const OpTable&, const Graph& g, int32_t, const VerifyContext&) {
  std::vector<Value> found;
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    if (g.nodes[i].op->name != "input") continue;
    const auto place = g.nodes[i].attrs.get<int64_t>("index");
    if (place != static_cast<int64_t>(found.size()))
      return cat("%", i, " is input number ", place, ", and number ", found.size(), " in order");
    found.push_back({static_cast<int32_t>(i), 0});
  }
  return found == g.inputs ? ""
                           : cat("the graph lists ", g.inputs.size(), " inputs, which are not its ", found.size(), " input nodes in order");
}

std::string outputs_exist(const OpTable&, const Graph& g, int32_t, const VerifyContext&) {
  for (size_t i = 0; i < g.outputs.size(); ++i)
    if (!exists(g, g.outputs[i])) return cat("output ", i, " is ", value_text(g.outputs[i]), ", which is not there");
  return "";
}

constexpr VerifyRule kRowIsKnown{"the row is one of the table", true, row_is_known};
constexpr VerifyRule kInputsComeFirst{"I1: inputs precede their users", true, inputs_come_first};
constexpr VerifyRule kOperandsExist{"operands exist", true, operands_exist};
constexpr VerifyRule kAttributesAreComplete{"attributes are complete", true, attributes_are_complete};
constexpr VerifyRule kTypesAreInferred{"I2: types are as inferred", true, types_are_inferred};
constexpr VerifyRule kSubgraphsAreGood{"sub-graphs are closed and good", true, subgraphs_are_good};
constexpr VerifyRule kInputsAreListed{"inputs are listed in order", false, inputs_are_listed};
constexpr VerifyRule kOutputsExist{"outputs exist", false, outputs_exist};
constexpr VerifyRule kNothingDecomposes{"nothing is left to decompose", true, nothing_decomposes};

constexpr std::array kTraced = {kRowIsKnown,       kInputsComeFirst,  kOperandsExist,   kAttributesAreComplete,
                                kTypesAreInferred, kSubgraphsAreGood, kInputsAreListed, kOutputsExist};
constexpr std::array kExpanded = {kRowIsKnown,        kInputsComeFirst,  kOperandsExist,   kAttributesAreComplete, kTypesAreInferred,
                                  kNothingDecomposes, kSubgraphsAreGood, kInputsAreListed, kOutputsExist};

}  // namespace

std::string_view name(Stage s) { return s == Stage::Traced ? "traced" : "expanded"; }

std::span<const VerifyRule> rules(Stage s) { return s == Stage::Traced ? std::span<const VerifyRule>(kTraced) : kExpanded; }

void verify(const OpTable& table, const Graph& g, Stage stage, const KeepsFn& keeps) {
  const VerifyContext spec{stage, keeps};
  const auto check = [&](const VerifyRule& rule, int32_t node) {
    const std::string breach = rule.breach(table, g, node, spec);
    if (breach.empty()) return;
    const std::string graph = g.name.empty() ? "" : cat(" '", g.name, "'");
    if (node < 0) internal_error("verify, stage ", stage, ": graph", graph, " breaks '", rule.text, "': ", breach);
    const OpDef* op = node_of(g, node).op;
    internal_error("verify, stage ", stage, ": node %", node, op ? cat(" ", op->name) : "", " of graph", graph, " breaks '", rule.text,
                   "': ", breach);
  };
  for (size_t i = 0; i < g.nodes.size(); ++i)
    for (const VerifyRule& rule : rules(stage))
      if (rule.is_about_nodes) check(rule, static_cast<int32_t>(i));
  for (const VerifyRule& rule : rules(stage))
    if (!rule.is_about_nodes) check(rule, -1);
}

bool verifying() {
#ifdef NDEBUG
  return env::get_flag("TANDEM_VERIFY");
#else
  return true;
#endif
}

}  // namespace tandem::ir
