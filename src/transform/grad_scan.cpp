// The gradient of a scan: a scan over the same steps that also keeps what the way back needs, then a scan over the steps in reverse.
//
// Per step, only the values are kept that cost much to compute again (contractions, reductions, factorisations, inner loops) and the
// carries; elementwise and movement nodes are computed again from those.
#include <algorithm>
#include <map>

#include "transform/grad.hpp"
#include "transform/grad_rules.hpp"

namespace tandem::transform {
using namespace ir;

namespace {

// The inputs of the step's gradient, in order, and where each kind begins.
struct Layout {
  size_t carries, sequences, constants;
  std::vector<size_t> active;   // carries with a cotangent
  std::vector<size_t> outputs;  // per-step outputs (counted from 0) with a cotangent
  std::vector<size_t> sources;  // sequences and constants, as inputs of the body, that want a gradient
  size_t primal() const { return carries + sequences + constants; }
  bool is_sequence(size_t input) const { return input >= carries && input < carries + sequences; }
};

Layout layout_of(const NodeGrad& n, const Graph& body) {
  Layout l{.carries = static_cast<size_t>(n.node.attrs.get<int64_t>("carries")),
           .sequences = static_cast<size_t>(n.node.attrs.get<int64_t>("sequences")),
           .constants = 0,
           .active = {},
           .outputs = {},
           .sources = {}};
  l.constants = n.node.inputs.size() - l.carries - l.sequences;
  const std::vector<bool> varied = varied_carries(body, n.needed, l.carries);
  for (size_t j = 0; j < l.carries; ++j)
    if (varied[j]) l.active.push_back(j);
  for (size_t i = l.carries; i < n.output_grads.size(); ++i)
    if (n.output_grads[i]) l.outputs.push_back(i - l.carries);
  for (size_t k = l.carries; k < n.needed.size(); ++k)
    if (n.needed[k]) l.sources.push_back(k);
  return l;
}

// One step forward and back in one graph. Inputs: those of the body, then cotangents of active carries, then of per-step outputs.
// Outputs: those of the body, then the gradient of each active carry and of each source.
struct StepGrad {
  Graph graph;
  std::vector<bool> connected;  // one a source
};

StepGrad differentiate(const OpTable& table, const Graph& body, const Layout& l) {
  Builder b(table);
  std::vector<Value> inputs, targets, target_grads, sources;
  for (const TensorType& t : body.input_types()) inputs.push_back(b.input(t));
  const std::vector<TensorType> types = body.output_types();
  for (size_t j : l.active) target_grads.push_back(b.input(types[j]));
  for (size_t i : l.outputs) target_grads.push_back(b.input(types[l.carries + i]));
  std::vector<Value> outputs = inline_graph(b, body, inputs);
  for (size_t j : l.active) targets.push_back(outputs[j]);
  for (size_t i : l.outputs) targets.push_back(outputs[l.carries + i]);
  for (size_t j : l.active) sources.push_back(inputs[j]);
  for (size_t k : l.sources) sources.push_back(inputs[k]);

  StepGrad step;
  const std::vector<Value> found = gradients(b, targets, target_grads, sources);
  for (size_t i = 0; i < found.size(); ++i) outputs.push_back(found[i] ? found[i] : zeros(b, b.type(sources[i])));
  for (size_t i = l.active.size(); i < found.size(); ++i) step.connected.push_back(bool(found[i]));
  step.graph = b.finish(std::move(outputs), body.name);
  return step;
}

// Whether computing a node again costs more than keeping its result.
bool is_costly(const OpTable& table, const Graph& g, const Node& node) {
  const OpDef& op = *node.op;
  if (op.has(kView) || op.body || op.name == "input" || op.name == "constant") return false;
  if (op.has(kStructural) || op.evaluate) return true;
  std::vector<TensorType> in;
  for (Value v : node.inputs) in.push_back(g.type(v));
  if (op.loops) {
    const Loops loops = loops_of(op, in, node.attrs, node.types);
    return loops.reduction.has_value();
  }
  Builder b(table);
  std::vector<Expr> operands;
  for (const TensorType& t : in) operands.emplace_back(b, b.input(t));
  op.decompose(b, OpCall{op, in, node.attrs}, operands);
  const Graph& parts = b.graph();
  return std::ranges::any_of(parts.nodes, [&](const Node& part) { return is_costly(table, parts, part); });
}

// Copies what some outputs need of a graph into a builder, where the values in `known` are there already.
class Copier {
 public:
  Copier(Builder& b, const Graph& g, std::map<Value, Value> known) : builder_(b), graph_(g), known_(std::move(known)) {}
  Value copy(Value v) {
    if (const auto found = known_.find(v); found != known_.end()) return found->second;
    mark(v.node);
    // In the order of the graph, so that the same nodes come out in the same order wherever they are copied to.
    for (const int32_t i : pending_) make(i);
    pending_.clear();
    return known_.at(v);
  }

 private:
  void mark(int32_t node) {
    if (!pending_.insert(node).second) return;
    for (Value v : graph_.nodes[static_cast<size_t>(node)].inputs)
      if (!known_.contains(v)) mark(v.node);
  }
  void make(int32_t index) {
    const Node& node = graph_.nodes[static_cast<size_t>(index)];
    std::vector<Value> in;
    for (Value v : node.inputs) in.push_back(known_.at(v));
    builder_.location = node.location;
    const std::vector<Value> out = builder_.node(*node.op, in, node.attrs);
    for (size_t i = 0; i < out.size(); ++i) known_.try_emplace({index, static_cast<int32_t>(i)}, out[i]);
  }

  Builder& builder_;
  const Graph& graph_;
  std::map<Value, Value> known_;
  std::set<int32_t> pending_;
};

// What the reverse scan reads of the forward one: values kept for each step, and which inputs of the body it reads themselves.
struct Kept {
  std::vector<Value> values;
  std::set<size_t> inputs;  // sequences and constants
};

class Partition {
 public:
  Partition(const OpTable& table, const Graph& g, const Layout& l) : table_(table), graph_(g), layout_(l) {
    for (size_t k = 0; k < g.inputs.size(); ++k) input_of_[g.inputs[k]] = k;
    for (const Node& node : g.nodes) {
      bool tangent = false, varies = false;  // with the cotangents; from step to step
      for (Value v : node.inputs) {
        tangent = tangent || tangent_[static_cast<size_t>(v.node)];
        varies = varies || varies_[static_cast<size_t>(v.node)];
      }
      const Value self{static_cast<int32_t>(tangent_.size()), 0};
      if (const auto found = input_of_.find(self); found != input_of_.end()) {
        tangent = found->second >= l.primal();
        varies = found->second < l.carries + l.sequences;
      }
      tangent_.push_back(tangent);
      varies_.push_back(varies);
    }
  }
  Kept keep(std::span<const Value> outputs) {
    for (Value v : outputs) visit(v);
    return std::move(kept_);
  }

 private:
  void visit(Value v) {
    if (!seen_.insert(v).second) return;
    const auto node = static_cast<size_t>(v.node);
    if (const auto input = input_of_.find(v); input != input_of_.end()) {
      if (input->second < layout_.carries)
        kept_.values.push_back(v);
      else if (input->second < layout_.primal())
        kept_.inputs.insert(input->second);
      return;
    }
    if (!tangent_[node] && varies_[node] && is_costly(table_, graph_, graph_.nodes[node])) {
      kept_.values.push_back(v);
      return;
    }
    for (Value in : graph_.nodes[node].inputs) visit(in);
  }

  const OpTable& table_;
  const Graph& graph_;
  const Layout& layout_;
  std::map<Value, size_t> input_of_;
  std::vector<bool> tangent_, varies_;
  std::set<Value> seen_;
  Kept kept_;
};

// The body again, giving also the kept values of each step.
GraphRef keeping_body(const OpTable& table, const Graph& body, const StepGrad& step, const Kept& kept) {
  return make_graph(table, body.input_types(), body.name, [&](Builder& b, std::span<const Value> in) {
    std::map<Value, Value> known;
    for (size_t k = 0; k < in.size(); ++k) known[step.graph.inputs[k]] = in[k];
    Copier copier(b, step.graph, std::move(known));
    std::vector<Value> outputs;
    for (size_t i = 0; i < body.outputs.size(); ++i) outputs.push_back(copier.copy(step.graph.outputs[i]));
    for (Value v : kept.values) outputs.push_back(copier.copy(v));
    return outputs;
  });
}

// The reverse step. Carries: cotangents of active carries, then sums of the constants' gradients. Sequences: cotangents of per-step
// outputs, kept values, then the sequences read. Constants: those read.
struct ReverseScan {
  std::vector<TensorType> types;  // of the body's inputs
  std::vector<Value> replaced;    // the values of the step's graph that they stand for; invalid for the sums
  std::vector<size_t> sums;       // positions in layout.sources of the constants
  std::vector<size_t> slices;     // … of the sequences
  size_t carries = 0, sequences = 0;
};

ReverseScan plan_reverse(const StepGrad& step, const Layout& l, const Kept& kept) {
  const Graph& g = step.graph;
  ReverseScan r;
  auto add = [&](Value v) {
    r.types.push_back(g.type(v));
    r.replaced.push_back(v);
  };
  for (size_t i = 0; i < l.sources.size(); ++i)
    if (step.connected[i]) (l.is_sequence(l.sources[i]) ? r.slices : r.sums).push_back(i);
  for (size_t i = 0; i < l.active.size(); ++i) add(g.inputs[l.primal() + i]);
  for (size_t i : r.sums) {
    r.types.push_back(g.type(g.inputs[l.sources[i]]));
    r.replaced.push_back({});
  }
  r.carries = r.types.size();
  for (size_t i = 0; i < l.outputs.size(); ++i) add(g.inputs[l.primal() + l.active.size() + i]);
  for (Value v : kept.values) add(v);
  for (size_t k : kept.inputs)
    if (l.is_sequence(k)) add(g.inputs[k]);
  r.sequences = r.types.size() - r.carries;
  for (size_t k : kept.inputs)
    if (!l.is_sequence(k)) add(g.inputs[k]);
  return r;
}

GraphRef reverse_body(const OpTable& table, const StepGrad& step, const Layout& l, const ReverseScan& r, size_t first_grad) {
  return make_graph(table, r.types, step.graph.name + "_grad", [&](Builder& b, std::span<const Value> in) {
    std::map<Value, Value> known;
    for (size_t k = 0; k < in.size(); ++k)
      if (r.replaced[k]) known[r.replaced[k]] = in[k];
    Copier copier(b, step.graph, std::move(known));
    std::vector<Value> outputs;
    auto grad = [&](size_t i) { return copier.copy(step.graph.outputs[first_grad + i]); };
    for (size_t i = 0; i < l.active.size(); ++i) outputs.push_back(grad(i));
    for (size_t i = 0; i < r.sums.size(); ++i) outputs.push_back(b.op("add", {in[l.active.size() + i], grad(l.active.size() + r.sums[i])}));
    for (size_t i : r.slices) outputs.push_back(grad(l.active.size() + i));
    return outputs;
  });
}

}  // namespace

InputGrads scan_gradients(const NodeGrad& n) {
  Builder& b = n.builder;
  const OpTable& table = b.table();
  const Graph& body = *n.node.attrs.get<Graphs>("functions")[0];
  const Layout l = layout_of(n, body);
  InputGrads grads(n.node.inputs.size());
  if (l.active.empty() && (l.sources.empty() || l.outputs.empty())) return grads;

  const StepGrad step = differentiate(table, body, l);
  const size_t first_grad = body.outputs.size();
  std::vector<Value> wanted;
  for (size_t i = 0; i < l.active.size() + l.sources.size(); ++i)
    if (i < l.active.size() || step.connected[i - l.active.size()]) wanted.push_back(step.graph.outputs[first_grad + i]);
  const Kept kept = Partition(table, step.graph, l).keep(wanted);

  std::vector<Value> forward;
  if (!kept.values.empty()) {
    Attrs attrs = n.node.attrs;
    attrs.set("functions", Graphs{keeping_body(table, body, step, kept)});
    forward = b.nodes("scan", n.node.inputs, attrs);
  }
  const ReverseScan r = plan_reverse(step, l, kept);
  std::vector<Value> operands;
  for (size_t j : l.active) operands.push_back(n.output_grads[j] ? n.output_grads[j] : zeros(b, b.type(n.node.inputs[j])));
  for (size_t i : r.sums) operands.push_back(zeros(b, b.type(n.node.inputs[l.sources[i]])));
  for (size_t i : l.outputs) operands.push_back(n.output_grads[l.carries + i]);
  for (size_t i = 0; i < kept.values.size(); ++i) operands.push_back(forward[body.outputs.size() + i]);
  for (bool sequences : {true, false})
    for (size_t k : kept.inputs)
      if (l.is_sequence(k) == sequences) operands.push_back(n.node.inputs[k]);
  Attrs attrs = n.node.attrs;
  attrs.set("functions", Graphs{reverse_body(table, step, l, r, first_grad)});
  attrs.set("carries", static_cast<int64_t>(r.carries));
  attrs.set("sequences", static_cast<int64_t>(r.sequences));
  attrs.set("reverse", !n.node.attrs.get<bool>("reverse"));
  const std::vector<Value> back = b.nodes("scan", operands, attrs);

  for (size_t i = 0; i < l.active.size(); ++i) grads[l.active[i]] = back[i];
  for (size_t i = 0; i < r.sums.size(); ++i) grads[l.sources[r.sums[i]]] = back[l.active.size() + i];
  for (size_t i = 0; i < r.slices.size(); ++i) grads[l.sources[r.slices[i]]] = back[r.carries + i];
  return grads;
}

}  // namespace tandem::transform
