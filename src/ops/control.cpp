// Control flow: rows whose sub-graphs the executor runs, and calls of the host program. Sub-graphs are closed: all that they read comes in
// through their inputs, so they can be moved, differentiated and compiled on their own.
#include "ops/control.hpp"

#include <unordered_map>

#include "ops/table.hpp"

namespace tandem::ops {
using namespace ir;

namespace {

std::string list(std::span<const TensorType> types) {
  std::string text = "(";
  for (size_t i = 0; i < types.size(); ++i) text += cat(i ? ", " : "", types[i]);
  return text + ")";
}

// One sub-graph of a call, as messages call it: "branch 1", "the condition", "the body".
struct Part {
  const OpCall& call;
  const Graph& graph;
  std::string name;

  void check_inputs(std::span<const TensorType> operands, std::string_view what) const {
    const std::vector<TensorType> inputs = graph.input_types();
    if (inputs.size() != operands.size())
      call.fail(name, " takes ", inputs.size(), " inputs ", list(inputs), ", there are ", operands.size(), " ", what, " ", list(operands));
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!(inputs[i] == operands[i])) call.fail("input ", i, " of ", name, " is ", inputs[i], ", the operand is ", operands[i]);
  }
  void check_carries(std::span<const TensorType> carries) const {
    const std::vector<TensorType> outputs = graph.output_types();
    if (outputs.size() < carries.size())
      call.fail(name, " gives ", outputs.size(), " outputs ", list(outputs), ", there are ", carries.size(), " carries ", list(carries));
    for (size_t i = 0; i < carries.size(); ++i)
      if (!(outputs[i] == carries[i]))
        call.fail("carry ", i, " is ", carries[i], ", ", name, " turns it into ", outputs[i],
                  "\n  hint: a carry keeps its element type and its shape from trip to trip");
  }
};

std::vector<TensorType> infer_branch(const OpCall& call) {
  const auto& branches = call.attrs.get<Graphs>("branches");
  if (call.in[0].rank() != 0) call.fail("the index must be a scalar, it is ", call.in[0]);
  if (branches.empty()) call.fail("there must be at least one branch");
  std::vector<TensorType> first = branches[0]->output_types();
  for (size_t i = 0; i < branches.size(); ++i) {
    const Part part{call, *branches[i], cat("branch ", i)};
    part.check_inputs(call.in.subspan(1), "operands");
    const std::vector<TensorType> outputs = branches[i]->output_types();
    if (outputs.size() != first.size())
      call.fail("branch ", i, " gives ", outputs.size(), " outputs ", list(outputs), ", branch 0 gives ", first.size(), " ", list(first));
    for (size_t k = 0; k < first.size(); ++k)
      if (!(outputs[k] == first[k])) call.fail("output ", k, " of branch ", i, " is ", outputs[k], ", that of branch 0 is ", first[k]);
  }
  return first;
}

std::vector<TensorType> infer_while(const OpCall& call) {
  const auto& functions = call.attrs.get<Graphs>("functions");
  if (functions.size() != 2) call.fail("takes two functions, the condition and the body, got ", functions.size());
  if (call.attrs.has("max_trips") && call.attrs.get<int64_t>("max_trips") < 0)
    call.fail("max_trips must not be negative, it is ", call.attrs.get<int64_t>("max_trips"));
  const Part condition{call, *functions[0], "the condition"}, body{call, *functions[1], "the body"};
  condition.check_inputs(call.in, "carries");
  body.check_inputs(call.in, "carries");
  const std::vector<TensorType> test = functions[0]->output_types();
  if (test.size() != 1 || !(test[0] == TensorType{DType::Bool, {}})) call.fail("the condition must give one bool[], it gives ", list(test));
  body.check_carries(call.in);
  if (functions[1]->outputs.size() != call.in.size())
    call.fail("the body gives ", functions[1]->outputs.size(), " outputs, there are ", call.in.size(), " carries");
  return {call.in.begin(), call.in.end()};
}

// The type of one step's slice of a sequence.
TensorType slice_type(const OpCall& call, size_t index, const TensorType& sequence, const Dim& length) {
  if (sequence.rank() == 0) call.fail("sequence ", index, " is ", sequence, ", it needs a leading axis of ", length, " steps");
  if (!(sequence.dims[0] == length)) call.fail("sequence ", index, " is ", sequence, ", its leading axis must be the length ", length);
  return {sequence.dtype, Dims(sequence.dims.begin() + 1, sequence.dims.end())};
}

std::vector<TensorType> infer_scan(const OpCall& call) {
  const auto& functions = call.attrs.get<Graphs>("functions");
  if (functions.size() != 1) call.fail("takes one function, the body, got ", functions.size());
  const int64_t carries = call.attrs.get<int64_t>("carries"), sequences = call.attrs.get<int64_t>("sequences");
  if (carries < 0 || sequences < 0 || carries + sequences > static_cast<int64_t>(call.in.size()))
    call.fail(carries, " carries and ", sequences, " sequences of ", call.in.size(), " operands");
  const Dims& length = call.attrs.get<Dims>("length");
  if (length.size() != 1) call.fail("length must have one entry, it is ", str(length));
  if (length[0].is_const() && length[0].value() < 0) call.fail("length must not be negative, it is ", length[0]);

  std::vector<TensorType> step(call.in.begin(), call.in.end());
  for (auto i = static_cast<size_t>(carries); i < static_cast<size_t>(carries + sequences); ++i)
    step[i] = slice_type(call, i - static_cast<size_t>(carries), call.in[i], length[0]);
  const Part body{call, *functions[0], "the body"};
  body.check_inputs(step, "operands of one step");
  body.check_carries(call.in.first(static_cast<size_t>(carries)));
  std::vector<TensorType> out = functions[0]->output_types();
  for (auto i = static_cast<size_t>(carries); i < out.size(); ++i) out[i].dims.insert(out[i].dims.begin(), length[0]);
  return out;
}

// --- calls of the host program ----------------------------------------------------------------------------------------------

std::vector<TensorType> infer_host_call(const OpCall& call) {
  if (call.in.empty() || !(call.in[0] == TensorType{DType::U8, {}})) call.fail("operand 0 must be the token, a uint8[]");
  const Ints &dtypes = call.attrs.get<Ints>("dtypes"), &ranks = call.attrs.get<Ints>("ranks");
  const Dims& dims = call.attrs.get<Dims>("dims");
  if (dtypes.size() != ranks.size()) call.fail(dtypes.size(), " element types for ", ranks.size(), " ranks");
  std::vector<TensorType> out{call.in[0]};
  size_t at = 0;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    if (dtypes[i] < 0 || dtypes[i] >= kDTypeCount) call.fail("there is no element type ", dtypes[i]);
    const auto end = at + static_cast<size_t>(ranks[i]);
    if (ranks[i] < 0 || end > dims.size()) call.fail("result ", i, " has ", ranks[i], " axes, ", dims.size() - at, " extents are left");
    out.push_back(
        {static_cast<DType>(dtypes[i]), Dims(dims.begin() + static_cast<ptrdiff_t>(at), dims.begin() + static_cast<ptrdiff_t>(end))});
    at = end;
  }
  return out;
}

void evaluate_host_call(const HostCall& c) {
  *c.out[0].as<uint8_t>() = 0;
  (*c.attrs.get<HostFunctionRef>("function"))(c.in.subspan(1), c.out.subspan(1));
}

// --- equal computations in two graphs --------------------------------------------------------------------------------------

// Gives equal computations over the inputs (which count by position) equal numbers, also across graphs.
class Numbering {
 public:
  std::vector<Value> outputs(const Graph& g) {
    std::vector<int32_t> number(g.nodes.size());
    for (size_t i = 0; i < g.nodes.size(); ++i) number[i] = of(g.nodes[i], number);
    std::vector<Value> out;
    for (Value v : g.outputs) out.push_back({number[static_cast<size_t>(v.node)], v.out});
    return out;
  }

 private:
  struct Known {
    const Node* node;
    std::vector<Value> inputs;
  };
  int32_t of(const Node& node, const std::vector<int32_t>& number) {
    std::vector<Value> inputs;
    for (Value v : node.inputs) inputs.push_back({number[static_cast<size_t>(v.node)], v.out});
    const bool is_input = node.op->name == "input";
    const Attr* index = is_input ? node.attrs.find("index") : nullptr;  // an input's name does not matter
    const size_t key = std::hash<const void*>()(node.op) ^ (index ? hash(*index) : node.attrs.hash());
    for (auto [at, end] = by_hash_.equal_range(key); at != end; ++at) {
      const Known& k = known_[static_cast<size_t>(at->second)];
      if (k.node->op != node.op || k.inputs != inputs) continue;
      const bool same = is_input ? equal(*k.node->attrs.find("index"), *index) && k.node->types == node.types : k.node->attrs == node.attrs;
      if (same) return at->second;
    }
    const auto next = static_cast<int32_t>(known_.size());
    known_.push_back({&node, std::move(inputs)});
    by_hash_.emplace(key, next);
    return next;
  }
  std::vector<Known> known_;
  std::unordered_multimap<size_t, int32_t> by_hash_;
};

// Whether the first `count` outputs of two graphs are equal.
bool same_outputs(const Graph& wide, const Graph& narrow, size_t count) {
  Numbering numbering;
  const std::vector<Value> a = numbering.outputs(wide), b = numbering.outputs(narrow);
  return a.size() >= count && b.size() >= count && std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(count), b.begin());
}

bool same_attributes(const Node& a, const Node& b, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (!equal(*a.attrs.find(name), *b.attrs.find(name))) return false;
  return true;
}

constexpr std::string_view kKeep = "keep";

bool covers_by_keeping(const Node& wide, const Node& narrow) {
  Attrs kept = narrow.attrs;
  kept.set(kKeep, true);
  return wide.inputs.size() == narrow.inputs.size() && wide.attrs == kept;
}

}  // namespace

bool may_keep_more(const Node& node) { return node.op->name == "scan" || node.op->name == "while" || node.attrs.find(kKeep); }

bool covers(const Node& wide, const Node& narrow) {
  if (wide.op != narrow.op || wide.device != narrow.device || &wide == &narrow || wide.inputs.size() < narrow.inputs.size()) return false;
  if (!std::equal(narrow.inputs.begin(), narrow.inputs.end(), wide.inputs.begin())) return false;
  if (wide.attrs.find(kKeep)) return covers_by_keeping(wide, narrow);
  const bool is_scan = wide.op->name == "scan";
  if (!is_scan && wide.op->name != "while") return false;
  const auto &a = wide.attrs.get<Graphs>("functions"), &b = narrow.attrs.get<Graphs>("functions");
  if (is_scan)
    return wide.inputs.size() == narrow.inputs.size() && same_attributes(wide, narrow, {"carries", "sequences", "length", "reverse"}) &&
           same_outputs(*a[0], *b[0], narrow.types.size());
  return same_attributes(wide, narrow, {"max_trips"}) && same_outputs(*a[0], *b[0], 1) && same_outputs(*a[1], *b[1], narrow.types.size());
}

Rows control_rows() {
  return {
      {.name = "branch",
       .sig = "(index: index, operands: own...; branches: graphs) -> custom",
       .doc = "Runs the sub-graph that the scalar `index` chooses, clamped to the branches there are, and gives its outputs. All branches "
              "take the operands and give outputs of the same types.",
       .traits = kStructural,
       .infer = infer_branch},
      {.name = "while",
       .sig = "(operands: own...; functions: graphs, max_trips: int? = none) -> custom",
       .doc = "Runs the body, functions[1], on the carries as long as the condition, functions[0], says so, and at most max_trips times; "
              "gives the last carries.",
       .traits = kStructural,
       .infer = infer_while},
      {.name = "scan",
       .sig = "(operands: own...; functions: graphs, carries: int, sequences: int, length: shape, reverse: bool = false) -> custom",
       .doc = "Runs the body `length` times. Operands are carries, then sequences of which each step sees one slice of the leading axis, "
              "then constants. The body gives the next carries, then outputs that are stacked; with `reverse` the last slice comes first.",
       .traits = kStructural,
       .infer = infer_scan},
      {.name = "host_call",
       .sig = "(operands: own...; function: function, dtypes: ints, ranks: ints, dims: shape) -> custom",
       .doc =
           "Calls a function of the host program. The first operand and the first result are a token: calls happen in the order in which "
           "the token goes through them, and as long as the last one is an output, all of them happen.",
       .traits = kZeroGradient,
       .infer = infer_host_call,
       .evaluate = evaluate_host_call},
  };
}

}  // namespace tandem::ops
