// Recurrent layers over a whole sequence, with Keras's definitions. The projection of the inputs is one product for all steps, so it is the
// caller's; here is what one step needs of the step before. ADR 0014 says why these are rows.
#include <functional>

#include "ops/helpers.hpp"
#include "ops/table.hpp"

namespace tandem::ops {

using namespace ir;

namespace {

// --- shapes ---

// inputs [time, batch, gates * units], recurrent_kernel [units, gates * units].
struct Sequence {
  Dim time, batch, units;
  Dims all(const Dim& width) const { return {time, batch, width}; }  // one row of numbers for each step and example
  Dims state() const { return {batch, units}; }
};

void require(const OpCall& call, size_t operand, const Dims& wanted, std::string_view axes) {
  const Dims& dims = call.in[operand].dims;
  if (!(dims == wanted)) call.fail(call.op.signature.operands[operand].name, " must be ", axes, " = ", str(wanted), ", it is ", str(dims));
}

Sequence sequence_of(const OpCall& call, size_t inputs, size_t recurrent_kernel, int gates, int kernel_gates) {
  const TensorType &x = call.in[inputs], &r = call.in[recurrent_kernel];
  const auto& operands = call.op.signature.operands;
  if (x.rank() != 3) call.fail(operands[inputs].name, " must be [time, batch, ", gates, " * units], it is ", str(x.dims));
  if (r.rank() != 2 || !(r.dims[1] == r.dims[0] * Dim(kernel_gates)))
    call.fail("recurrent_kernel must be [units, ", kernel_gates, " * units], it is ", str(r.dims));
  const Sequence s{x.dims[0], x.dims[1], r.dims[0]};
  require(call, inputs, s.all(s.units * Dim(gates)), cat("[time, batch, ", gates, " * units]"));
  return s;
}

void require_mask(const OpCall& call, size_t operand, const Sequence& s) {
  if (operand < call.in.size()) require(call, operand, {s.time, s.batch}, "[time, batch]");
}

// The cotangent of all outputs: nothing flows into them when it is a number.
bool has_steps(const TensorType& gradient) { return gradient.rank() > 0; }
void require_steps(const OpCall& call, size_t operand, const Sequence& s) {
  if (has_steps(call.in[operand])) require(call, operand, s.all(s.units), "[time, batch, units] or a number");
}

// --- pieces of graphs ---

Expr sigmoid(const Expr& x) { return x.op("sigmoid"); }
Expr tanh(const Expr& x) { return x.op("tanh"); }
Expr product(const Expr& x, const Expr& y) { return x.op("matmul", {y}); }
Expr product_transposed(const Expr& x, const Expr& y) { return x.op("matmul", {y}, {{"transpose_y", true}}); }

std::vector<Expr> split(const Expr& x, const Dim& units, size_t count) {
  return call(x.builder(), "split", {x}, {{"sizes", Dims(count, units)}, {"axis", int64_t{-1}}});
}
Expr join(std::initializer_list<Expr> parts, int64_t axis = -1) {
  return call(parts.begin()->builder(), "concatenate", parts, {{"axis", axis}})[0];
}
Expr steps(const Expr& x, const Dim& first, const Dim& limit) {
  Dims start(x.dims().size(), Dim(0)), end = x.dims();
  start[0] = first;
  end[0] = limit;
  return x.op("slice", {{"start", start}, {"limit", end}, {"step", Ints(x.dims().size(), 1)}});
}

// What each step began with: the state before the first, then that after every step but the last.
Expr previous(const Expr& first, const Expr& after, const Sequence& s) {
  return steps(join({first.reshape({Dim(1), s.batch, s.units}), after}, 0), Dim(0), s.time);
}

// The sum over steps of previous^T gradient, as one product.
Expr product_with_previous(const Expr& first, const Expr& after, const Expr& gradient, const Sequence& s) {
  const auto rows = [&](const Expr& x) { return x.reshape({s.time * s.batch, x.dims()[2]}); };
  return rows(previous(first, after, s)).op("matmul", {rows(gradient)}, {{"transpose_x", true}});
}

// A scan whose step is a formula: (carries, slices of sequences, constants) -> (carries, outputs).
struct Loop {
  std::vector<Expr> carries, sequences, constants;
  bool reverse = false;
  using StepFunction = std::function<std::vector<Expr>(std::span<const Expr> in)>;

  std::vector<Expr> run(Builder& b, const Dim& length, const std::string& name, const StepFunction& step) const {
    Builder inner(b.table());
    std::vector<Expr> operands, in;
    for (const auto* part : {&carries, &sequences, &constants})
      for (const Expr& e : *part) {
        TensorType t = e.type();
        if (part == &sequences) t.dims.erase(t.dims.begin());
        operands.push_back(e);
        in.emplace_back(inner, inner.input(t));
      }
    const GraphRef body = std::make_shared<const Graph>(inner.finish(values(step(in)), name));
    return call(b, "scan", operands,
                {{"functions", Graphs{body}},
                 {"carries", static_cast<int64_t>(carries.size())},
                 {"sequences", static_cast<int64_t>(sequences.size())},
                 {"length", Dims{length}},
                 {"reverse", reverse}});
  }
};

// A masked step keeps the state.
Expr unless_masked(const Expr& mask, const Expr& next, const Expr& before) {
  return mask ? where(mask.reshape({mask.dims()[0], Dim(1)}), next, before) : next;
}

bool keeps(const OpCall& call) { return call.attrs.get<bool>("keep"); }
Attrs keeping(const Attrs& attrs) {
  Attrs with = attrs;
  with.set("keep", true);
  return with;
}
// Whether a gradient flows into what is kept for the gradient, which makes it one of second order.
bool flows_into_kept(const GradCall& g, size_t results) {
  for (size_t i = results; i < g.grads.size(); ++i)
    if (g.grads[i]) return true;
  return false;
}
Expr steps_gradient(const GradCall& g) { return g.grads[0] ? g.grads[0] : g.out[0].number(0); }

// --- lstm ---

constexpr size_t kLstmResults = 3, kLstmMask = 4;  // and where the mask is among the operands

Sequence lstm_sequence(const OpCall& call) { return sequence_of(call, 0, 1, 4, 4); }

std::vector<TensorType> infer_lstm(const OpCall& call) {
  const Sequence s = lstm_sequence(call);
  require(call, 2, s.state(), "[batch, units]");
  require(call, 3, s.state(), "[batch, units]");
  require_mask(call, kLstmMask, s);
  const DType t = call.in[0].dtype;
  std::vector<TensorType> out{{t, s.all(s.units)}, {t, s.state()}, {t, s.state()}};
  if (keeps(call)) {
    out.push_back({t, s.all(s.units * Dim(4))});
    out.push_back({t, s.all(s.units)});
  }
  return out;
}

std::vector<Expr> expand_lstm(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const Sequence s = lstm_sequence(call);
  const bool masked = in.size() > kLstmMask, keep = keeps(call);
  Loop loop{.carries = {in[2], in[3]}, .sequences = {in[0]}, .constants = {in[1]}};
  if (masked) loop.sequences.push_back(in[kLstmMask]);
  const std::vector<Expr> out = loop.run(b, s.time, "lstm", [&](std::span<const Expr> e) {
    const Expr &h = e[0], &c = e[1], &x = e[2], &recurrent = e.back();
    const Expr mask = masked ? e[3] : Expr();
    const std::vector<Expr> sums = split(x + product(h, recurrent), s.units, 4);
    const Expr i = sigmoid(sums[0]), f = sigmoid(sums[1]), g = tanh(sums[2]), o = sigmoid(sums[3]);
    const Expr next_c = f * c + i * g;
    const Expr h_after = unless_masked(mask, o * tanh(next_c), h), c_after = unless_masked(mask, next_c, c);
    std::vector<Expr> results{h_after, c_after, h_after};
    if (keep) results.insert(results.end(), {join({i, f, g, o}), c_after});
    return results;
  });
  std::vector<Expr> results{out[2], out[0], out[1]};
  results.insert(results.end(), out.begin() + 3, out.end());
  return results;
}

std::vector<Expr> lstm_vjp(const GradCall& g) {
  if (flows_into_kept(g, kLstmResults) || g.in.size() > kLstmMask) return {};
  const std::vector<Expr> kept = call(g.builder, "lstm", g.in, keeping(g.node.attrs));
  const Expr &hidden = kept[0], &gates = kept[3], &cells = kept[4];
  const std::vector<Expr> grads =
      call(g.builder, "lstm_gradient", {gates, cells, g.in[1], g.in[3], steps_gradient(g), g.grad(1), g.grad(2)});
  const Sequence s{g.in[0].dims()[0], g.in[0].dims()[1], g.in[1].dims()[0]};
  const Expr by_kernel = g.needed[1] ? product_with_previous(g.in[2], hidden, grads[0], s) : Expr();
  return {grads[0], by_kernel, grads[1], grads[2]};
}

std::vector<TensorType> infer_lstm_gradient(const OpCall& call) {
  const Sequence s = sequence_of(call, 0, 2, 4, 4);
  require(call, 1, s.all(s.units), "[time, batch, units]");
  require(call, 3, s.state(), "[batch, units]");
  require_steps(call, 4, s);
  require(call, 5, s.state(), "[batch, units]");
  require(call, 6, s.state(), "[batch, units]");
  return {call.in[0], call.in[5], call.in[6]};
}

std::vector<Expr> expand_lstm_gradient(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const Sequence s = sequence_of(call, 0, 2, 4, 4);
  const bool outputs = has_steps(call.in[4]);
  Loop loop{.carries = {in[5], in[6]}, .sequences = {in[0], in[1], previous(in[3], in[1], s)}, .constants = {in[2]}, .reverse = true};
  if (outputs) loop.sequences.push_back(in[4]);
  const std::vector<Expr> out = loop.run(b, s.time, "lstm_gradient", [&](std::span<const Expr> e) {
    const Expr dh = outputs ? e[0] + e[5] : e[0];
    const std::vector<Expr> gates = split(e[2], s.units, 4);
    const Expr &i = gates[0], &f = gates[1], &g = gates[2], &o = gates[3], &before = e[4], &recurrent = e.back();
    const Expr activated = tanh(e[3]);
    const Expr dc = e[1] + dh * o * (1.0 - activated * activated);
    const Expr sums = join({dc * g * i * (1.0 - i), dc * before * f * (1.0 - f), dc * i * (1.0 - g * g), dh * activated * o * (1.0 - o)});
    return std::vector<Expr>{product_transposed(sums, recurrent), dc * f, sums};
  });
  return {out[2], out[0], out[1]};
}

// --- gru ---

constexpr size_t kGruResults = 2, kGruMask = 4;

Sequence gru_sequence(const OpCall& call) { return sequence_of(call, 0, 1, 3, 3); }
bool resets_after(const OpCall& call) { return call.attrs.get<bool>("reset_after"); }

std::vector<TensorType> infer_gru(const OpCall& call) {
  const Sequence s = gru_sequence(call);
  require(call, 2, s.state(), "[batch, units]");
  require(call, 3, {s.units * Dim(3)}, "[3 * units]");
  require_mask(call, kGruMask, s);
  const DType t = call.in[0].dtype;
  std::vector<TensorType> out{{t, s.all(s.units)}, {t, s.state()}};
  if (keeps(call)) {
    if (!resets_after(call)) call.fail("keep is there for reset_after=true only");
    out.push_back({t, s.all(s.units * Dim(4))});
  }
  return out;
}

std::vector<Expr> expand_gru(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const Sequence s = gru_sequence(call);
  const bool masked = in.size() > kGruMask, keep = keeps(call), after = resets_after(call);
  Loop loop{.carries = {in[2]}, .sequences = {in[0]}, .constants = {in[3], in[1]}};
  if (masked) loop.sequences.push_back(in[kGruMask]);
  const std::vector<Expr> out = loop.run(b, s.time, "gru", [&](std::span<const Expr> e) {
    const Expr &h = e[0], &bias = e[e.size() - 2], &recurrent = e.back();
    const Expr mask = masked ? e[2] : Expr();
    const std::vector<Expr> x = split(e[1], s.units, 3);
    Expr z, r, candidate, from_state;
    if (after) {
      const std::vector<Expr> sums = split(product(h, recurrent) + bias, s.units, 3);
      z = sigmoid(x[0] + sums[0]);
      r = sigmoid(x[1] + sums[1]);
      from_state = sums[2];
      candidate = tanh(x[2] + r * from_state);
    } else {
      const std::vector<Expr> kernels = split(recurrent, s.units, 3), biases = split(bias, s.units, 3);
      z = sigmoid(x[0] + (product(h, kernels[0]) + biases[0]));
      r = sigmoid(x[1] + (product(h, kernels[1]) + biases[1]));
      candidate = tanh(x[2] + (product(r * h, kernels[2]) + biases[2]));
    }
    const Expr h_after = unless_masked(mask, z * h + (1.0 - z) * candidate, h);
    std::vector<Expr> results{h_after, h_after};
    if (keep) results.push_back(join({z, r, candidate, from_state}));
    return results;
  });
  std::vector<Expr> results{out[1], out[0]};
  results.insert(results.end(), out.begin() + 2, out.end());
  return results;
}

std::vector<Expr> gru_vjp(const GradCall& g) {
  if (flows_into_kept(g, kGruResults) || g.in.size() > kGruMask || !g.node.attrs.get<bool>("reset_after")) return {};
  const std::vector<Expr> kept = call(g.builder, "gru", g.in, keeping(g.node.attrs));
  const Expr &hidden = kept[0], &gates = kept[2];
  const std::vector<Expr> grads = call(g.builder, "gru_gradient", {gates, hidden, g.in[1], g.in[2], steps_gradient(g), g.grad(1)});
  const Sequence s{g.in[0].dims()[0], g.in[0].dims()[1], g.in[1].dims()[0]};
  const Expr by_kernel = g.needed[1] ? product_with_previous(g.in[2], hidden, grads[1], s) : Expr();
  return {grads[0], by_kernel, grads[2], g.needed[3] ? grads[1].sum({0, 1}) : Expr()};
}

std::vector<TensorType> infer_gru_gradient(const OpCall& call) {
  const Sequence s = sequence_of(call, 0, 2, 4, 3);
  require(call, 1, s.all(s.units), "[time, batch, units]");
  require(call, 3, s.state(), "[batch, units]");
  require_steps(call, 4, s);
  require(call, 5, s.state(), "[batch, units]");
  const TensorType sums{call.in[0].dtype, s.all(s.units * Dim(3))};
  return {sums, sums, call.in[5]};
}

std::vector<Expr> expand_gru_gradient(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const Sequence s = sequence_of(call, 0, 2, 4, 3);
  const bool outputs = has_steps(call.in[4]);
  Loop loop{.carries = {in[5]}, .sequences = {in[0], previous(in[3], in[1], s)}, .constants = {in[2]}, .reverse = true};
  if (outputs) loop.sequences.push_back(in[4]);
  const std::vector<Expr> out = loop.run(b, s.time, "gru_gradient", [&](std::span<const Expr> e) {
    const Expr dh = outputs ? e[0] + e[3] : e[0];
    const std::vector<Expr> gates = split(e[1], s.units, 4);
    const Expr &z = gates[0], &r = gates[1], &candidate = gates[2], &from_state = gates[3], &before = e[2], &recurrent = e.back();
    const Expr dcandidate = dh * (1.0 - z) * (1.0 - candidate * candidate);
    const Expr dz = dh * (before - candidate) * z * (1.0 - z), dr = dcandidate * from_state * r * (1.0 - r);
    const Expr by_inputs = join({dz, dr, dcandidate}), by_state = join({dz, dr, dcandidate * r});
    return std::vector<Expr>{dh * z + product_transposed(by_state, recurrent), by_inputs, by_state};
  });
  return {out[1], out[2], out[0]};
}

}  // namespace

Rows recurrent_rows() {
  return {
      {.name = "lstm",
       .sig = "(inputs: float, recurrent_kernel: float, h: float, c: float, mask: bool?; keep: bool = false) -> custom",
       .doc = "A long short-term memory over a sequence. inputs [time, batch, 4 * units] are the projected ones with their bias, gates in "
              "the order input, forget, cell, output; recurrent_kernel [units, 4 * units], h and c [batch, units] the states to begin "
              "with. Where mask [time, batch] is false a step keeps the state. Gives the outputs [time, batch, units] and the last h and "
              "c; with keep also what the gradient needs, the gates and the cells of each step.",
       .infer = infer_lstm,
       .decompose = expand_lstm,
       .vjp = lstm_vjp,
       .samples = {"([4,2,12], [3,12], [2,3], [2,3])", "([3,7,4], [1,4], [7,1], [7,1]; keep=true)", "([1,1,20], [5,20], [1,5], [1,5])",
                   "([0,2,12], [3,12], [2,3], [2,3]; keep=true)", "([5,0,8], [2,8], [0,2], [0,2])",
                   "([3,2,8], [2,8], [2,2], [2,2], {{1,1},{1,0},{0,1}})", "([6,19,68], [17,68], [19,17], [19,17]) !numpy"}},
      {.name = "lstm_gradient",
       .sig = "(gates: float, cells: float, recurrent_kernel: float, c: float, outputs_gradient: float, h_gradient: float, "
              "c_gradient: float) -> custom",
       .doc = "The gradient of lstm by its inputs, h and c, from what it kept and the gradients of its results; outputs_gradient may be a "
              "number without axes, 0, when nothing flows into the outputs.",
       .infer = infer_lstm_gradient,
       .decompose = expand_lstm_gradient,
       .samples = {"([4,2,12] in 0..1, [4,2,3], [3,12], [2,3], [4,2,3], [2,3], [2,3])",
                   "([3,7,4] in 0..1, [3,7,1], [1,4], [7,1], 0, [7,1], [7,1])",
                   "([0,2,12] in 0..1, [0,2,3], [3,12], [2,3], [0,2,3], [2,3], [2,3])",
                   "([5,19,68] in 0..1, [5,19,17], [17,68], [19,17], [5,19,17], [19,17], [19,17]) !numpy"}},
      {.name = "gru",
       .sig = "(inputs: float, recurrent_kernel: float, h: float, recurrent_bias: float, mask: bool?; reset_after: bool = true, "
              "keep: bool = false) -> custom",
       .doc =
           "Gated recurrent units over a sequence. inputs [time, batch, 3 * units] are the projected ones with their bias, gates in the "
           "order update, reset, candidate; recurrent_kernel [units, 3 * units], recurrent_bias [3 * units], h [batch, units] the state to "
           "begin with. The reset gate applies to the product with the recurrent kernel, or before it. Where mask [time, batch] is false a "
           "step keeps the state. Gives the outputs [time, batch, units] and the last h; with keep also what the gradient needs.",
       .infer = infer_gru,
       .decompose = expand_gru,
       .vjp = gru_vjp,
       .samples = {"([4,2,9], [3,9], [2,3], [9])", "([3,7,3], [1,3], [7,1], [3]; keep=true)", "([1,1,15], [5,15], [1,5], [15])",
                   "([4,2,9], [3,9], [2,3], [9]; reset_after=false)", "([0,2,9], [3,9], [2,3], [9])", "([5,0,6], [2,6], [0,2], [6])",
                   "([3,2,6], [2,6], [2,2], [6], {{1,1},{1,0},{0,1}})", "([6,19,51], [17,51], [19,17], [51]) !numpy"}},
      {.name = "gru_gradient",
       .sig = "(gates: float, outputs: float, recurrent_kernel: float, h: float, outputs_gradient: float, h_gradient: float) -> custom",
       .doc =
           "The gradient of gru by its inputs, by the product of its state with the recurrent kernel, and by h, from what it kept and the "
           "gradients of its results; outputs_gradient may be a number without axes, 0, when nothing flows into the outputs.",
       .infer = infer_gru_gradient,
       .decompose = expand_gru_gradient,
       .samples = {"([4,2,12] in 0..1, [4,2,3], [3,9], [2,3], [4,2,3], [2,3])", "([3,7,4] in 0..1, [3,7,1], [1,3], [7,1], 0, [7,1])",
                   "([0,2,12] in 0..1, [0,2,3], [3,9], [2,3], [0,2,3], [2,3])",
                   "([5,19,68] in 0..1, [5,19,17], [17,51], [19,17], [5,19,17], [19,17]) !numpy"}},
  };
}

}  // namespace tandem::ops
