#include "transform/grad.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "transform/grad_rules.hpp"

namespace tandem::transform {
using namespace ir;

namespace {

// Nothing flows back through these, so nothing behind them is looked at.
bool cuts(const OpDef& op) { return op.has(kZeroGradient) || op.name == "stop_gradient"; }

[[noreturn]] void no_gradient(const Node& node) {
  const std::string where = node.location.str();
  user_error(ErrorCode::Unimplemented, node.op->name, ": has no gradient", where.empty() ? "" : "\n  at " + where,
             "\n  hint: put stop_gradient in front of it when none is meant to flow");
}

// The node's decomposition is made again, behind everything else, and differentiated there; common sub-expressions with the forward
// pass are found by the compiler.
InputGrads decomposed_gradients(const NodeGrad& n) {
  Builder& b = n.builder;
  const auto first = static_cast<int32_t>(b.graph().nodes.size());
  std::vector<TensorType> types;
  for (Value v : n.node.inputs) types.push_back(b.type(v));
  const std::vector<Expr> in = exprs(b, n.node.inputs);
  const std::vector<Value> outputs = values(n.node.op->decompose(b, OpCall{*n.node.op, types, n.node.attrs}, in));

  std::vector<Value> targets, target_grads, sources;
  std::vector<size_t> source_input;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!n.output_grads[i]) continue;
    targets.push_back(outputs[i]);
    target_grads.push_back(n.output_grads[i]);
  }
  for (size_t k = 0; k < n.node.inputs.size(); ++k) {
    const Value v = n.node.inputs[k];
    // The total over all uses of a value goes to the first input that is it.
    if (!n.needed[k] || std::ranges::find(sources, v) != sources.end()) continue;
    sources.push_back(v);
    source_input.push_back(k);
  }
  const std::vector<Value> found = gradients_within(b, first, targets, target_grads, sources);
  InputGrads grads(n.node.inputs.size());
  for (size_t i = 0; i < found.size(); ++i) grads[source_input[i]] = found[i];
  return grads;
}

// The decomposition is made again behind a barrier, so that nobody takes it for the first one. The cotangents wait there too: it does not
// begin before the way back has come so far.
InputGrads recomputed_gradients(NodeGrad n) {
  std::vector<Value> operands = n.node.inputs;
  for (Value g : n.output_grads)
    if (g) operands.push_back(g);
  const std::vector<Value> behind = n.builder.nodes("barrier", operands);
  size_t at = 0;
  for (Value& v : n.node.inputs) v = behind[at++];
  for (Value& g : n.output_grads)
    if (g) g = behind[at++];
  return decomposed_gradients(n);
}

InputGrads vjp_gradients(const NodeGrad& n) {
  GradCall call{.builder = n.builder,
                .node = n.node,
                .in = exprs(n.builder, n.node.inputs),
                .out = exprs(n.builder, n.outputs),
                .grads = {},
                .needed = n.needed};
  for (Value g : n.output_grads) call.grads.push_back(g ? Expr(n.builder, g) : Expr());
  const std::vector<Expr> found = n.node.op->vjp(call);
  if (found.empty() && n.node.op->decompose) return decomposed_gradients(n);
  TANDEM_CHECK(found.size() == n.node.inputs.size(), n.node.op->name, ": the gradient rule gives ", found.size(), " values for ",
               n.node.inputs.size(), " inputs");
  InputGrads grads;
  for (const Expr& e : found) grads.push_back(e ? e.value() : Value{});
  return grads;
}

InputGrads rule_of(const NodeGrad& n) {
  const OpDef& op = *n.node.op;
  if (op.has(kNotDifferentiable)) no_gradient(n.node);
  if (op.vjp) return vjp_gradients(n);
  if (op.body) return body_gradients(n);
  if (op.name == "remat") return recomputed_gradients(n);
  if (op.decompose) return decomposed_gradients(n);
  if (op.name == "branch") return branch_gradients(n);
  if (op.name == "scan") return scan_gradients(n);
  if (op.name == "while") return while_gradients(n);
  no_gradient(n.node);
}

// Symbols may be written in ways that cannot be compared, so only what is known to differ is an error.
bool may_equal(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.rank() != b.rank()) return false;
  for (size_t k = 0; k < a.dims.size(); ++k)
    if (a.dims[k].is_const() && b.dims[k].is_const() && !(a.dims[k] == b.dims[k])) return false;
  return true;
}

// Puts the builder's location and device back, also when a rule throws.
class KeepLocation {
 public:
  explicit KeepLocation(Builder& b) : builder_(b), location_(b.location), device_(b.device) {}
  ~KeepLocation() { builder_.location = location_, builder_.device = device_; }
  KeepLocation(const KeepLocation&) = delete;
  KeepLocation& operator=(const KeepLocation&) = delete;

 private:
  Builder& builder_;
  Location location_;
  int32_t device_;
};

// Cotangents on their way back: what has arrived at each value so far.
class Cotangents {
 public:
  explicit Cotangents(Builder& b) : builder_(b) {}
  void add(Value at, Value grad) { parts_[at].push_back(grad); }
  // The sum of all that arrived, in the order of arrival; invalid when nothing did.
  Value total(Value at) {
    const auto found = parts_.find(at);
    if (found == parts_.end()) return {};
    std::vector<Value>& parts = found->second;
    Value sum = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) sum = builder_.op("add", {sum, parts[i]});
    parts = {sum};
    return sum;
  }

 private:
  Builder& builder_;
  std::map<Value, std::vector<Value>> parts_;
};

// Passes what arrived at the outputs of node `index` on to those of its inputs that depend on a source.
void step_back(Builder& b, int32_t index, const std::set<Value>& reached, Cotangents& cotangents) {
  NodeGrad n{b, b.graph().nodes[static_cast<size_t>(index)], {}, {}, {}};
  if (cuts(*n.node.op)) return;
  for (Value v : n.node.inputs) n.needed.push_back(reached.contains(v));
  if (std::ranges::find(n.needed, true) == n.needed.end()) return;
  b.follow(n.node);
  bool any = false;
  for (size_t i = 0; i < n.node.types.size(); ++i) {
    n.outputs.push_back({index, static_cast<int32_t>(i)});
    n.output_grads.push_back(reached.contains(n.outputs[i]) ? cotangents.total(n.outputs[i]) : Value{});
    any = any || n.output_grads[i];
  }
  if (!any) return;
  const InputGrads grads = rule_of(n);
  for (size_t k = 0; k < grads.size(); ++k) {
    if (!grads[k] || !n.needed[k]) continue;
    TANDEM_CHECK(may_equal(b.type(grads[k]), b.type(n.node.inputs[k])), n.node.op->name, ": the gradient of input ", k, " is ",
                 b.type(grads[k]), ", the input is ", b.type(n.node.inputs[k]));
    cotangents.add(n.node.inputs[k], grads[k]);
  }
}

void check_floating(const Builder& b, Value v, std::string_view role, size_t index) {
  if (!v || static_cast<size_t>(v.node) >= b.graph().nodes.size())
    user_error("gradients: ", role, ' ', index, " is not a value of this graph");
  if (!is_float(b.type(v).dtype))
    user_error("gradients: ", role, ' ', index, " must be floating, it is ", b.type(v), "\n  hint: integers have no gradient; cast first");
}

}  // namespace

void spread_reached(const Graph& g, int32_t first, int32_t end, std::set<Value>& reached) {
  for (int32_t i = first; i < end; ++i) {
    const Node& node = g.nodes[static_cast<size_t>(i)];
    if (cuts(*node.op) || std::ranges::none_of(node.inputs, [&](Value v) { return reached.contains(v); })) continue;
    for (size_t k = 0; k < node.types.size(); ++k)
      if (is_float(node.types[k].dtype)) reached.insert({i, static_cast<int32_t>(k)});
  }
}

std::vector<Value> gradients_within(Builder& b, int32_t first, std::span<const Value> targets, std::span<const Value> target_grads,
                                    std::span<const Value> sources) {
  int32_t end = first;
  for (Value t : targets) end = std::max(end, t.node + 1);
  std::set<Value> reached(sources.begin(), sources.end());
  spread_reached(b.graph(), first, end, reached);

  const KeepLocation keep(b);
  Cotangents cotangents(b);
  for (size_t i = 0; i < targets.size(); ++i)
    if (reached.contains(targets[i])) cotangents.add(targets[i], target_grads[i]);
  for (int32_t i = end - 1; i >= first; --i) step_back(b, i, reached, cotangents);
  std::vector<Value> found;
  for (Value s : sources) found.push_back(cotangents.total(s));
  return found;
}

Value zeros(Builder& b, const TensorType& type) { return Expr(b, b.scalar(type.dtype, 0)).broadcast_to(type.dims).value(); }

GraphRef make_graph(const OpTable& table, std::span<const TensorType> inputs, const std::string& name, const GraphFn& f) {
  Builder b(table);
  std::vector<Value> in;
  for (const TensorType& t : inputs) in.push_back(b.input(t));
  std::vector<Value> outputs = f(b, in);
  return std::make_shared<const Graph>(prune(table, b.finish(std::move(outputs), name)));
}

std::vector<Value> gradients(Builder& b, std::span<const Value> targets, std::span<const Value> target_grads,
                             std::span<const Value> sources) {
  if (!target_grads.empty() && target_grads.size() != targets.size())
    user_error("gradients: ", targets.size(), " targets, but ", target_grads.size(), " target gradients");
  std::vector<Value> grads;
  for (size_t i = 0; i < targets.size(); ++i) {
    check_floating(b, targets[i], "target", i);
    const bool given = !target_grads.empty() && target_grads[i];
    if (given && !may_equal(b.type(target_grads[i]), b.type(targets[i])))
      user_error("gradients: target ", i, " is ", b.type(targets[i]), ", its gradient is ", b.type(target_grads[i]));
    grads.push_back(given ? target_grads[i] : Expr(b, targets[i]).like(1).value());
  }
  for (size_t i = 0; i < sources.size(); ++i) check_floating(b, sources[i], "source", i);
  return gradients_within(b, 0, targets, grads, sources);
}

Graph grad_graph(const OpTable& table, const Graph& g, std::span<const int> wrt) {
  if (g.outputs.empty()) user_error("grad_graph: the graph has no output to differentiate");
  if (const TensorType& t = g.type(g.outputs[0]); !is_float(t.dtype) || t.rank() != 0)
    user_error("grad_graph: output 0 must be a floating scalar, it is ", t);
  Builder b(table);
  std::vector<Value> inputs, sources;
  for (Value v : g.inputs) {
    const Attr* name = g.node(v).attrs.find("name");
    const auto* text = name ? std::get_if<std::string>(name) : nullptr;
    inputs.push_back(b.input(g.type(v), text ? *text : ""));
  }
  for (int k : wrt) {
    if (k < 0 || static_cast<size_t>(k) >= inputs.size())
      user_error("grad_graph: there is no input ", k, ", the graph has ", inputs.size());
    sources.push_back(inputs[static_cast<size_t>(k)]);
  }
  std::vector<Value> outputs = inline_graph(b, g, inputs);
  const Value target = outputs[0];
  const std::vector<Value> found = gradients(b, {&target, 1}, {}, sources);
  for (size_t i = 0; i < found.size(); ++i) outputs.push_back(found[i] ? found[i] : zeros(b, b.type(sources[i])));
  return b.finish(std::move(outputs), g.name);
}

}  // namespace tandem::transform
