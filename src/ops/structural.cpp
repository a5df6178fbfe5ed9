// What graphs are made of whatever they compute: inputs, constants, names for values, functions with a gradient of their own, and
// functions that are computed again.
#include "ops/elementwise.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
namespace {

using namespace ir;

// --- custom_gradient -------------------------------------------------------------------------------------------------------

const Graph& one_graph(const OpCall& call, std::string_view attr) {
  const Graphs& graphs = call.attrs.get<Graphs>(attr);
  if (graphs.size() != 1 || !graphs[0]) call.fail("'", attr, "' must be one graph, got ", graphs.size());
  return *graphs[0];
}

void check_inputs(const OpCall& call, std::string_view which, const Graph& g, std::span<const TensorType> given) {
  if (g.inputs.size() != given.size()) call.fail("the ", which, " graph takes ", g.inputs.size(), " inputs, but there are ", given.size());
  const std::vector<TensorType> wanted = g.input_types();
  for (size_t i = 0; i < given.size(); ++i)
    if (!(wanted[i] == given[i])) call.fail("input ", i, " of the ", which, " graph is ", wanted[i], ", but gets ", given[i]);
}

std::vector<TensorType> infer_custom_gradient(const OpCall& call) {
  const Graph& forward = one_graph(call, "forward");
  const Graph& backward = one_graph(call, "backward");
  check_inputs(call, "forward", forward, call.in);
  std::vector<TensorType> out = forward.output_types();

  std::vector<TensorType> seen(call.in.begin(), call.in.end());
  for (int i = 0; i < 2; ++i) seen.insert(seen.end(), out.begin(), out.end());  // the outputs, then a gradient for each
  check_inputs(call, "backward", backward, seen);
  const std::vector<TensorType> grads = backward.output_types();
  if (grads.size() != call.in.size())
    call.fail("the backward graph gives ", grads.size(), " gradients, but there are ", call.in.size(), " operands");
  for (size_t i = 0; i < grads.size(); ++i)
    if (is_float(call.in[i].dtype) && !(grads[i] == call.in[i]))
      call.fail("the backward graph gives ", grads[i], " as the gradient of operand ", i, ", which is ", call.in[i]);
  return out;
}

std::vector<Expr> decompose_custom_gradient(Builder& b, const OpCall& call, std::span<const Expr> in) {
  return exprs(b, inline_graph(b, one_graph(call, "forward"), values(in)));
}

std::vector<Expr> custom_gradient_vjp(const GradCall& c) {
  std::vector<Expr> all = c.in;
  all.insert(all.end(), c.out.begin(), c.out.end());
  for (size_t i = 0; i < c.out.size(); ++i) all.push_back(c.grad(i));
  const Graph& backward = *c.node.attrs.get<Graphs>("backward").at(0);
  std::vector<Expr> grads = exprs(c.builder, inline_graph(c.builder, backward, values(all)));
  for (size_t i = 0; i < grads.size(); ++i)
    if (!is_float(c.in[i].dtype())) grads[i] = Expr();
  return grads;
}

// --- remat and barrier -------------------------------------------------------------------------------------------------------

std::vector<TensorType> infer_remat(const OpCall& call) {
  const Graph& body = one_graph(call, "body");
  check_inputs(call, "body", body, call.in);
  return body.output_types();
}

std::vector<Expr> decompose_remat(Builder& b, const OpCall& call, std::span<const Expr> in) {
  return exprs(b, inline_graph(b, one_graph(call, "body"), values(in)));
}

std::vector<Expr> barrier_vjp(const GradCall& c) {
  std::vector<Expr> grads;
  for (size_t i = 0; i < c.in.size(); ++i) grads.push_back(c.needed[i] && c.grads[i] ? c.grads[i] : Expr());
  return grads;
}

// --- fused -----------------------------------------------------------------------------------------------------------------

std::vector<TensorType> infer_fused(const OpCall& call) {
  const Graph& body = one_graph(call, "body");
  check_inputs(call, "body", body, call.in);
  return body.output_types();
}

}  // namespace

Rows structural_rows() {
  return {
      {.name = "input",
       .sig = "(; index: int, dtype: dtype, shape: shape, name: string = '') -> custom",
       .doc = "The value that the graph is called with as its argument number `index`.",
       .traits = kStructural,
       .infer = [](const OpCall& c) { return std::vector<TensorType>{{c.attrs.get<DType>("dtype"), c.attrs.get<Dims>("shape")}}; }},
      {.name = "constant",
       .sig = "(; value: literal) -> custom",
       .doc = "A tensor that is part of the graph.",
       .traits = kStructural | kZeroGradient,
       .infer = [](const OpCall& c) { return std::vector{c.attrs.get<Literal>("value").type()}; }},
      {.name = "identity",
       .sig = "(x: own) -> same",
       .doc = "x itself.",
       .traits = kView,
       .body = [](Scalar x) { return x; },
       .vjp = [](const GradCall& c) { return std::vector{c.grad()}; },
       .samples = unary_samples()},
      {.name = "stop_gradient",
       .sig = "(x: own) -> same",
       .doc = "x itself, but a constant to differentiation.",
       .traits = kView | kZeroGradient,
       .body = [](Scalar x) { return x; },
       .samples = {"([2,3]) !grad", "([]) !grad", "([0,3]) !grad", "([67]) !grad"}},
      {.name = "custom_gradient",
       .sig = "(xs: own...; forward: graphs, backward: graphs) -> custom",
       .doc = "Calls the graph `forward`. Its gradient is `backward(inputs..., outputs..., gradients of the outputs...)`, which gives one "
              "for each input.",
       .infer = infer_custom_gradient,
       .decompose = decompose_custom_gradient,
       .vjp = custom_gradient_vjp},
      {.name = "remat",
       .sig = "(xs: own...; body: graphs) -> custom",
       .doc = "Calls the graph `body`. Its gradient computes it again from the operands, so that nothing inside is kept until then.",
       .infer = infer_remat,
       .decompose = decompose_remat},
      {.name = "barrier",
       .sig = "(xs: own...) -> custom",
       .doc = "The operands themselves, none of them before all are there. What is computed from them is not taken for the same as what is "
              "computed from the operands.",
       .traits = kStructural,
       .infer = [](const OpCall& c) { return std::vector<TensorType>(c.in.begin(), c.in.end()); },
       .vjp = barrier_vjp},
      {.name = "fused",
       .sig = "(xs: own...; body: graphs, form: string) -> custom",
       .doc = "The nodes of the graph `body` as one kernel; `form` says how they go together (map, reduce, row or end). Made by fusion.",
       .traits = kStructural,
       .infer = infer_fused},
  };
}

}  // namespace tandem::ops
