// The gradient of a scan: a scan over the same steps that also keeps what the way back needs, then a scan over the steps in reverse.
//
// Per step, only the values are kept that cost much to compute again (contractions, reductions, factorisations, inner loops) and the
// carries; elementwise and movement nodes are computed again from those. The gradient of a constant that is x' y at each step (the
// weights of a recurrent layer) is not summed step by step: x and y are stacked, and one product over all steps follows the loop.
#include <algorithm>
#include <map>
#include <optional>

#include "transform/grad.hpp"
#include "transform/grad_rules.hpp"

namespace tandem::transform {
using namespace ir;

namespace {

// The inputs of the step's gradient, in order, and where each kind begins.
struct ScanParts {
  size_t carries, sequences, constants;
  std::vector<size_t> active;   // carries with a cotangent
  std::vector<size_t> outputs;  // per-step outputs (counted from 0) with a cotangent
  std::vector<size_t> sources;  // sequences and constants, as inputs of the body, that want a gradient
  size_t primal() const { return carries + sequences + constants; }
  bool is_sequence(size_t input) const { return input >= carries && input < carries + sequences; }
};

ScanParts scan_parts(const NodeGrad& n, const Graph& body) {
  ScanParts l{.carries = static_cast<size_t>(n.node.attrs.get<int64_t>("carries")),
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

StepGrad differentiate(const OpTable& table, const Graph& body, const ScanParts& l) {
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
  op.decompose(b, OpCall{op, in, node.attrs, node.device}, operands);
  const Graph& parts = b.graph();
  return std::ranges::any_of(parts.nodes, [&](const Node& part) { return is_costly(table, parts, part); });
}

// Copies what some outputs need of a graph into a builder, where the values in `known` are there already.
class Copier {
 public:
  Copier(Builder& b, const Graph& g, std::map<Value, Value> known) : builder_(b), graph_(g), known_(std::move(known)) {}
  // The nodes are made in the order of the graph, so that the same ones come out in the same order wherever they are copied to.
  void copy(std::span<const Value> values) {
    for (Value v : values)
      if (!known_.contains(v)) mark(v.node);
    for (const int32_t i : pending_) make(i);
    pending_.clear();
  }
  Value at(Value v) const { return known_.at(v); }

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
    builder_.follow(node);
    const std::vector<Value> out = builder_.node(*node.op, in, node.attrs);
    for (size_t i = 0; i < out.size(); ++i) known_.try_emplace({index, static_cast<int32_t>(i)}, out[i]);
  }

  Builder& builder_;
  const Graph& graph_;
  std::map<Value, Value> known_;
  std::set<int32_t> pending_;
};

// Which values of a step's gradient come from the step itself, and which of those are worth keeping.
class Partition {
 public:
  Partition(const OpTable& table, const Graph& g, const ScanParts& l) : table_(table), graph_(g), parts_(l) {
    for (size_t k = 0; k < g.inputs.size(); ++k) input_of_[g.inputs[k]] = k;
    for (const Node& node : g.nodes) {
      bool tangent = false, varies = false;  // with the cotangents; from step to step
      for (Value v : node.inputs) {
        tangent = tangent || tangent_[static_cast<size_t>(v.node)];
        varies = varies || varies_[static_cast<size_t>(v.node)];
      }
      if (const auto input = input_of({static_cast<int32_t>(tangent_.size()), 0})) {
        tangent = *input >= l.primal();
        varies = *input < l.carries + l.sequences;
      }
      tangent_.push_back(tangent);
      varies_.push_back(varies);
    }
  }

  std::optional<size_t> input_of(Value v) const {
    const auto found = input_of_.find(v);
    return found == input_of_.end() ? std::nullopt : std::optional(found->second);
  }
  // A carry before the step, or a costly result of it.
  bool is_kept(Value v) const {
    if (const auto input = input_of(v)) return *input < parts_.carries;
    const auto node = static_cast<size_t>(v.node);
    return !tangent_[node] && varies_[node] && is_costly(table_, graph_, graph_.nodes[node]);
  }
  // What has to be there, besides the cotangents, to compute `outputs`: kept values, and sequences and constants as inputs of the body.
  struct Needs {
    std::vector<Value> kept;
    std::set<size_t> inputs;
  };
  Needs needs(std::span<const Value> outputs) const {
    Needs n;
    std::set<Value> seen;
    for (Value v : outputs) visit(v, seen, n);
    return n;
  }

 private:
  void visit(Value v, std::set<Value>& seen, Needs& n) const {
    if (!seen.insert(v).second) return;
    if (is_kept(v)) {
      n.kept.push_back(v);
    } else if (const auto input = input_of(v)) {
      if (*input < parts_.primal()) n.inputs.insert(*input);
    } else {
      for (Value in : graph_.nodes[static_cast<size_t>(v.node)].inputs) visit(in, seen, n);
    }
  }

  const OpTable& table_;
  const Graph& graph_;
  const ScanParts& parts_;
  std::map<Value, size_t> input_of_;
  std::vector<bool> tangent_, varies_;
};

// A source whose gradient at each step is x' y for matrices x and y.
struct Product {
  size_t source;  // position in layout.sources
  Value x, y;
};

std::optional<Product> product_of(const Graph& g, Value grad, size_t source) {
  const Node& node = g.node(grad);
  if (node.op->name != "matmul" || !node.attrs.get<bool>("transpose_x") || node.attrs.get<bool>("transpose_y")) return {};
  const Value x = node.inputs[0], y = node.inputs[1];
  if (g.type(x).rank() != 2 || g.type(y).rank() != 2 || g.type(x).dtype != g.type(grad).dtype) return {};
  return Product{source, x, y};
}

class ScanGrad {
 public:
  explicit ScanGrad(const NodeGrad& n)
      : n_(n),
        b_(n.builder),
        body_(*n.node.attrs.get<Graphs>("functions")[0]),
        parts_(scan_parts(n, body_)),
        step_(differentiate(b_.table(), body_, parts_)),
        partition_(b_.table(), step_.graph, parts_) {}

  InputGrads run() {
    InputGrads grads(n_.node.inputs.size());
    const auto& l = parts_;
    sort_sources();
    if (l.active.empty() && slices_.empty() && sums_.empty() && products_.empty()) return grads;
    find_needs();
    run_forward();
    const std::vector<Value> back = run_back();
    for (size_t i = 0; i < l.active.size(); ++i) grads[l.active[i]] = back[i];
    for (size_t i = 0; i < sums_.size(); ++i) grads[l.sources[sums_[i]]] = back[l.active.size() + i];
    const size_t first_slice = l.active.size() + sums_.size();
    for (size_t i = 0; i < slices_.size(); ++i) grads[l.sources[slices_[i]]] = back[first_slice + i];
    const auto stacks = std::span(back).subspan(first_slice + slices_.size());
    for (const Product& p : products_) grads[l.sources[p.source]] = product_over_steps(stacked(p.x, stacks), stacked(p.y, stacks)).value();
    return grads;
  }

 private:
  Value active_grad(size_t i) const { return step_.graph.outputs[body_.outputs.size() + i]; }
  Value source_grad(size_t i) const { return active_grad(parts_.active.size() + i); }

  // Sequences have one gradient a step; those of constants are sums over steps, or products.
  void sort_sources() {
    for (size_t i = 0; i < parts_.sources.size(); ++i) {
      if (!step_.connected[i]) continue;
      if (parts_.is_sequence(parts_.sources[i])) {
        slices_.push_back(i);
      } else if (const auto p = product_of(step_.graph, source_grad(i), i)) {
        products_.push_back(*p);
      } else {
        sums_.push_back(i);
      }
    }
  }

  // Whether all steps of a value are there without the reverse scan.
  bool is_there(Value v) const {
    const auto input = partition_.input_of(v);
    return partition_.is_kept(v) || (input && parts_.is_sequence(*input));
  }

  void find_needs() {
    for (const Product& p : products_)
      for (Value v : {p.x, p.y})
        if (!is_there(v) && std::ranges::find(stacks_, v) == stacks_.end()) stacks_.push_back(v);
    std::vector<Value> wanted = stacks_;
    for (size_t i = 0; i < parts_.active.size(); ++i) wanted.push_back(active_grad(i));
    for (const auto* list : {&sums_, &slices_})
      for (size_t i : *list) wanted.push_back(source_grad(i));
    needs_ = partition_.needs(wanted);
    kept_ = needs_.kept;
    for (const Product& p : products_)
      for (Value v : {p.x, p.y})
        if (partition_.is_kept(v) && std::ranges::find(kept_, v) == kept_.end()) kept_.push_back(v);
  }

  // The scan again, giving also the kept values of each step. Its first outputs are those of the scan itself (see ops/control.hpp).
  void run_forward() {
    if (kept_.empty()) return;
    const Graph& g = step_.graph;
    const GraphRef body = make_graph(b_.table(), body_.input_types(), body_.name, [&](Builder& b, std::span<const Value> in) {
      std::map<Value, Value> known;
      for (size_t k = 0; k < in.size(); ++k) known[g.inputs[k]] = in[k];
      std::vector<Value> outputs(g.outputs.begin(), g.outputs.begin() + static_cast<std::ptrdiff_t>(body_.outputs.size()));
      outputs.insert(outputs.end(), kept_.begin(), kept_.end());
      Copier copier(b, g, std::move(known));
      copier.copy(outputs);
      for (Value& v : outputs) v = copier.at(v);
      return outputs;
    });
    Attrs attrs = n_.node.attrs;
    attrs.set("functions", Graphs{body});
    forward_ = b_.nodes("scan", n_.node.inputs, attrs);
  }

  // Carries: cotangents of active carries, then sums. Sequences: cotangents of per-step outputs, kept values, sequences read.
  // Constants: those read. Outputs: the carries, gradients of sequences, then the stacks.
  std::vector<Value> run_back() {
    const auto& l = parts_;
    const Graph& g = step_.graph;
    std::vector<Value> operands, replaced;  // what each input of the body stands for in the step's graph; invalid for the sums
    const auto add = [&](Value operand, Value stands_for) {
      operands.push_back(operand);
      replaced.push_back(stands_for);
    };
    for (size_t i = 0; i < l.active.size(); ++i) {
      const Value given = n_.output_grads[l.active[i]];
      add(given ? given : zeros(b_, b_.type(n_.node.inputs[l.active[i]])), g.inputs[l.primal() + i]);
    }
    for (size_t i : sums_) add(zeros(b_, b_.type(n_.node.inputs[l.sources[i]])), {});
    const size_t carries = operands.size();
    for (size_t i = 0; i < l.outputs.size(); ++i)
      add(n_.output_grads[l.carries + l.outputs[i]], g.inputs[l.primal() + l.active.size() + i]);
    for (Value v : needs_.kept) add(stacked(v, {}), v);
    for (size_t k : needs_.inputs)
      if (l.is_sequence(k)) add(n_.node.inputs[k], g.inputs[k]);
    const size_t sequences = operands.size() - carries;
    for (size_t k : needs_.inputs)
      if (!l.is_sequence(k)) add(n_.node.inputs[k], g.inputs[k]);

    std::vector<TensorType> types;
    for (size_t i = 0; i < operands.size(); ++i) types.push_back(replaced[i] ? g.type(replaced[i]) : b_.type(operands[i]));
    Attrs attrs = n_.node.attrs;
    attrs.set("functions", Graphs{make_graph(b_.table(), types, body_.name + "_grad",
                                             [&](Builder& b, std::span<const Value> in) { return reverse_step(b, in, replaced); })});
    attrs.set("carries", static_cast<int64_t>(carries));
    attrs.set("sequences", static_cast<int64_t>(sequences));
    attrs.set("reverse", !n_.node.attrs.get<bool>("reverse"));
    return b_.nodes("scan", operands, attrs);
  }

  std::vector<Value> reverse_step(Builder& b, std::span<const Value> in, const std::vector<Value>& replaced) const {
    std::map<Value, Value> known;
    for (size_t k = 0; k < in.size(); ++k)
      if (replaced[k]) known[replaced[k]] = in[k];
    std::vector<Value> outputs;
    for (size_t i = 0; i < parts_.active.size(); ++i) outputs.push_back(active_grad(i));
    for (const auto* list : {&sums_, &slices_})
      for (size_t i : *list) outputs.push_back(source_grad(i));
    outputs.insert(outputs.end(), stacks_.begin(), stacks_.end());
    Copier copier(b, step_.graph, std::move(known));
    copier.copy(outputs);
    for (Value& v : outputs) v = copier.at(v);
    for (size_t i = parts_.active.size(); i < parts_.active.size() + sums_.size(); ++i) outputs[i] = b.op("add", {in[i], outputs[i]});
    return outputs;
  }

  // All steps of a value, as [steps, …]. `stacks` are the last outputs of the reverse scan.
  Value stacked(Value v, std::span<const Value> stacks) const {
    if (const auto at = std::ranges::find(kept_, v); at != kept_.end())
      return forward_[body_.outputs.size() + static_cast<size_t>(at - kept_.begin())];
    if (const auto input = partition_.input_of(v); input && parts_.is_sequence(*input)) return n_.node.inputs[*input];
    return stacks[static_cast<size_t>(std::ranges::find(stacks_, v) - stacks_.begin())];
  }

  // The sum of x' y over steps [steps, rows, …] is the product of the two with all rows of all steps in one column.
  Expr product_over_steps(Value x, Value y) const {
    const auto rows_of_all = [&](Value v) {
      const Dims& d = b_.type(v).dims;
      return Expr(b_, v).reshape({d[0] * d[1], d[2]});
    };
    return rows_of_all(x).op("matmul", {rows_of_all(y)}, {{"transpose_x", true}});
  }

  const NodeGrad& n_;
  Builder& b_;
  const Graph& body_;
  const ScanParts parts_;
  const StepGrad step_;
  const Partition partition_;
  std::vector<size_t> slices_, sums_;  // positions in layout.sources
  std::vector<Product> products_;
  std::vector<Value> stacks_;  // values of the step's graph that the reverse scan gives for the products
  Partition::Needs needs_;     // of the reverse scan
  std::vector<Value> kept_;    // by the forward scan: what the reverse scan needs, then what only the products do
  std::vector<Value> forward_;
};

}  // namespace

InputGrads scan_gradients(const NodeGrad& n) { return ScanGrad(n).run(); }

}  // namespace tandem::transform
