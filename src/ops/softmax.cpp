// Softmax and the cross-entropies, with Keras's definitions. float16 and bfloat16 are computed in float32 and rounded once.
#include <limits>

#include "ops/helpers.hpp"
#include "ops/table.hpp"

namespace tandem::ops {

using namespace ir;

namespace {

constexpr double kEpsilon = 1e-7;  // Keras's: probabilities are kept this far from 0 and 1 before a logarithm

std::vector<TensorType> infer_along_axis(const OpCall& call) {
  call.axis("axis", call.in[0].rank());
  return {call.in[0]};
}

// --- softmax --------------------------------------------------------------------------------------------------------------------

// x less its largest element, so that no exponential overflows; the sum of exponentials is then at least 1.
struct Shifted {
  Expr x, exponentials, sum;
};
Shifted shifted(const Expr& x, int64_t axis) {
  const Expr s = x - x.max({axis}, true);
  const Expr e = exp(s);
  return {s, e, e.sum({axis}, true)};
}

std::vector<Expr> expand_softmax(Builder&, const OpCall& call, std::span<const Expr> in) {
  const int64_t axis = call.axis("axis", in[0].rank());
  if (in[0].dims()[static_cast<size_t>(axis)].is(0)) return {in[0]};  // nothing has no largest element
  const Shifted s = shifted(wide(in[0]), axis);
  return {(s.exponentials / s.sum).cast(in[0].dtype())};
}

std::vector<Expr> expand_log_softmax(Builder&, const OpCall& call, std::span<const Expr> in) {
  const int64_t axis = call.axis("axis", in[0].rank());
  if (in[0].dims()[static_cast<size_t>(axis)].is(0)) return {in[0]};
  const Shifted s = shifted(wide(in[0]), axis);
  return {(s.x - log(s.sum)).cast(in[0].dtype())};
}

int64_t grad_axis(const GradCall& call, size_t operand) {
  return normalize_axis(call.node.attrs.get<int64_t>("axis"), call.in[operand].rank(), call.node.op->name);
}

std::vector<Expr> softmax_vjp(const GradCall& call) {
  const Expr y = wide(call.out[0]), g = wide(call.grad());
  return {(y * (g - (g * y).sum({grad_axis(call, 0)}, true))).cast(call.in[0].dtype())};
}

std::vector<Expr> log_softmax_vjp(const GradCall& call) {
  const Expr g = wide(call.grad());
  return {(g - exp(wide(call.out[0])) * g.sum({grad_axis(call, 0)}, true)).cast(call.in[0].dtype())};
}

// The projection onto the simplex (Martins and Astudillo, 2016): the largest k elements stay, less one common number.
std::vector<Expr> expand_sparsemax(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const int64_t axis = call.axis("axis", in[0].rank());
  if (in[0].dims()[static_cast<size_t>(axis)].is(0)) return {in[0]};
  const Expr x = wide(in[0]);
  const Expr sorted = x.op("sort", {{"axis", axis}, {"descending", true}});
  const Expr rank = iota(b, x.dims(), static_cast<int>(axis), x.dtype()) + 1;
  const Expr kept = (rank * sorted + 1 > sorted.op("cumsum", {{"axis", axis}})).cast(x.dtype());
  const Expr threshold = ((kept * sorted).sum({axis}, true) - 1) / kept.sum({axis}, true);
  return {maximum(x - threshold, 0).cast(in[0].dtype())};
}

std::vector<Expr> sparsemax_vjp(const GradCall& call) {
  const Ints axis{grad_axis(call, 0)};
  const Expr g = wide(call.grad()), y = wide(call.out[0]);
  const Expr kept = (y > 0).cast(g.dtype());
  return {(kept * (g - (kept * g).sum(axis, true) / kept.sum(axis, true))).cast(call.in[0].dtype())};
}

// --- cross-entropy over classes -------------------------------------------------------------------------------------------------

// Probabilities as Keras takes them: made to sum to 1, then kept away from 0 and 1.
Expr log_of_probabilities(const Expr& output, int64_t axis) {
  const Expr p = output / output.sum({axis}, true);
  return log(p.op("clip", {p.number(kEpsilon), p.number(1 - kEpsilon)}));
}

std::vector<TensorType> infer_classes(const OpCall& call) {
  const TensorType &target = call.in[0], &output = call.in[1];
  const int64_t axis = call.axis("axis", output.rank());
  if (!(target.dims == output.dims)) call.fail("shapes differ, target ", str(target.dims), " and output ", str(output.dims));
  return {{output.dtype, reduced_dims(output.dims, {axis}, false)}};
}

std::vector<Expr> expand_softmax_crossentropy(Builder&, const OpCall& call, std::span<const Expr> in) {
  const int64_t axis = call.axis("axis", in[1].rank());
  const Expr log_p = wide(in[1]).op("log_softmax", {{"axis", axis}});
  return {(-(wide(in[0]) * log_p).sum({axis})).cast(in[1].dtype())};
}

std::vector<Expr> softmax_crossentropy_vjp(const GradCall& call) {
  const int64_t axis = grad_axis(call, 1);
  const DType t = call.in[1].dtype();
  const Expr target = wide(call.in[0]), logits = wide(call.in[1]);
  const Expr g = wide(call.grad()).reshape(reduced_dims(logits.dims(), {axis}, true));
  std::vector<Expr> grads(2);
  if (call.needed[0]) grads[0] = (-logits.op("log_softmax", {{"axis", axis}}) * g).cast(t);
  if (call.needed[1]) {
    const Expr p = logits.op("softmax", {{"axis", axis}});
    grads[1] = ((p * target.sum({axis}, true) - target) * g).cast(t);
  }
  return grads;
}

std::vector<Expr> expand_categorical(Builder&, const OpCall& call, std::span<const Expr> in) {
  const int64_t axis = call.axis("axis", in[1].rank());
  if (call.attrs.get<bool>("from_logits")) return {in[0].op("softmax_crossentropy", {in[1]}, {{"axis", axis}})};
  return {(-(wide(in[0]) * log_of_probabilities(wide(in[1]), axis)).sum({axis})).cast(in[1].dtype())};
}

// The same with class numbers as targets. A target may also have a last axis of 1.
std::vector<TensorType> infer_sparse(const OpCall& call) {
  const TensorType &target = call.in[0], &output = call.in[1];
  const int64_t axis = call.axis("axis", output.rank());
  const Dims out = reduced_dims(output.dims, {axis}, false);
  Dims with_one = out;
  with_one.emplace_back(1);
  if (!(target.dims == out) && !(target.dims == with_one))
    call.fail("target ", str(target.dims), " must be output ", str(output.dims), " without axis ", axis, " (", str(out), ")");
  return {{output.dtype, out}};
}

// Where along `axis` the target's class is; and whether there is such a class, with an axis of 1.
struct ClassMask {
  Expr chosen, known;
};
ClassMask class_mask(const Expr& target, const Dims& dims, int64_t axis) {
  const Expr t = target.reshape(reduced_dims(dims, {axis}, true));
  Dims classes(dims.size(), Dim(1));
  classes[static_cast<size_t>(axis)] = dims[static_cast<size_t>(axis)];
  const Expr chosen = equal(t, iota(target.builder(), classes, static_cast<int>(axis), t.dtype()));
  const Expr number = t.cast(DType::I64), count = count_of(target.builder(), dims[static_cast<size_t>(axis)], DType::I64);
  return {chosen, (number >= 0).op("logical_and", {number < count})};
}

// -log_p at the target's class. A class that there isn't gives NaN: a loss that cannot be overlooked.
Expr picked_loss(const Expr& log_p, const Expr& target, int64_t axis) {
  const ClassMask mask = class_mask(target, log_p.dims(), axis);
  const Expr loss = -where(mask.chosen, log_p, 0.0).sum({axis}, true);
  return where(mask.known, loss, std::numeric_limits<double>::quiet_NaN()).reshape(reduced_dims(log_p.dims(), {axis}, false));
}

std::vector<Expr> expand_sparse_softmax(Builder&, const OpCall& call, std::span<const Expr> in) {
  const int64_t axis = call.axis("axis", in[1].rank());
  const Expr log_p = wide(in[1]).op("log_softmax", {{"axis", axis}});
  return {picked_loss(log_p, in[0], axis).cast(in[1].dtype())};
}

std::vector<Expr> sparse_softmax_vjp(const GradCall& call) {
  const int64_t axis = grad_axis(call, 1);
  const Expr logits = wide(call.in[1]);
  const ClassMask mask = class_mask(call.in[0], logits.dims(), axis);
  const Expr g = wide(call.grad()).reshape(reduced_dims(logits.dims(), {axis}, true));
  const Expr slope = logits.op("softmax", {{"axis", axis}}) - mask.chosen.cast(logits.dtype());
  return {{}, (slope * where(mask.known, g, 0.0)).cast(call.in[1].dtype())};
}

std::vector<Expr> expand_sparse_categorical(Builder&, const OpCall& call, std::span<const Expr> in) {
  const int64_t axis = call.axis("axis", in[1].rank());
  if (call.attrs.get<bool>("from_logits")) return {in[0].op("sparse_softmax_crossentropy", {in[1]}, {{"axis", axis}})};
  return {picked_loss(log_of_probabilities(wide(in[1]), axis), in[0], axis).cast(in[1].dtype())};
}

// --- cross-entropy of yes and no ------------------------------------------------------------------------------------------------

// max(x, 0) - x t + log(1 + exp(-|x|)): no exponential of a large number.
Scalar sigmoid_crossentropy(Scalar target, Scalar logits) {
  const DType t = logits.dtype(), w = accumulator_type(t);
  const Scalar x = cast(logits, w);
  return cast(max(x, 0.0) - x * cast(target, w) + log1p(exp(-abs(x))), t);
}

std::vector<Expr> sigmoid_crossentropy_vjp(const GradCall& call) {
  const Expr target = wide(call.in[0]), x = wide(call.in[1]), g = wide(call.grad());
  const DType t = call.in[1].dtype();
  return {(-x * g).sum_to(target.dims()).cast(t), ((x.op("sigmoid") - target) * g).sum_to(x.dims()).cast(t)};
}

std::vector<TensorType> infer_binary(const OpCall& call) {
  if (!(call.in[0].dims == call.in[1].dims))
    call.fail("shapes differ, target ", str(call.in[0].dims), " and output ", str(call.in[1].dims));
  return {call.in[1]};
}

std::vector<Expr> expand_binary(Builder&, const OpCall& call, std::span<const Expr> in) {
  if (call.attrs.get<bool>("from_logits")) return {in[0].op("sigmoid_crossentropy", {in[1]})};
  const Expr target = wide(in[0]), output = wide(in[1]);
  const Expr p = output.op("clip", {output.number(kEpsilon), output.number(1 - kEpsilon)});
  return {(-(target * log(p) + (1 - target) * log(1 - p))).cast(in[1].dtype())};
}

}  // namespace

Rows softmax_rows() {
  return {
      {.name = "softmax",
       .sig = "(x: float; axis: int = -1) -> same",
       .doc = "exp(x) / sum(exp(x)) along an axis, computed without overflow.",
       .infer = infer_along_axis,
       .decompose = expand_softmax,
       .vjp = softmax_vjp,
       .samples = {"([2,3])", "([3]; axis=0)", "([2,3,4]; axis=1)", "([2,3,4]; axis=-3)", "([0,3])", "([3,0])", "([2,130])",
                   "([2,2,2,2,3]; axis=2)", "([2,3] in 500..900)", "([2,9] special) !grad"}},
      {.name = "log_softmax",
       .sig = "(x: float; axis: int = -1) -> same",
       .doc = "The logarithm of softmax, computed without overflow or loss of small probabilities.",
       .infer = infer_along_axis,
       .decompose = expand_log_softmax,
       .vjp = log_softmax_vjp,
       .samples = {"([2,3])", "([3]; axis=0)", "([2,3,4]; axis=1)", "([2,3,4]; axis=-3)", "([0,3])", "([3,0])", "([2,130])",
                   "([2,2,2,2,3]; axis=2)", "([2,3] in 500..900)", "([2,9] special) !grad"}},
      {.name = "sparsemax",
       .sig = "(x: float; axis: int = -1) -> same",
       .doc = "The nearest probabilities to x along an axis: like softmax, with exact zeros.",
       .infer = infer_along_axis,
       .decompose = expand_sparsemax,
       .vjp = sparsemax_vjp,
       .samples = {"([2,5] distinct)", "([5,2] in -1..1; axis=0)", "([0,3])", "([3,0])", "([2,70] in -0.05..0.05)"}},
      {.name = "softmax_crossentropy",
       .sig = "(target: float, logits: float; axis: int = -1) -> same",
       .doc = "-sum(target * log_softmax(logits)) along an axis.",
       .infer = infer_classes,
       .decompose = expand_softmax_crossentropy,
       .vjp = softmax_crossentropy_vjp,
       .samples = {"([2,3] in 0..1, [2,3])", "([3,2,4] in 0..1, [3,2,4]; axis=1)", "([3] in 0..1, [3])", "([0,3], [0,3])",
                   "([2,70] in 0..1, [2,70] in -9..9)"}},
      {.name = "sparse_softmax_crossentropy",
       .sig = "(target: index, logits: float; axis: int = -1) -> same",
       .doc = "-log_softmax(logits) at each target's class; NaN for a class that there isn't.",
       .infer = infer_sparse,
       .decompose = expand_sparse_softmax,
       .vjp = sparse_softmax_vjp,
       .samples = {"([4] in 0..2, [4,3])", "([4,1] in 0..2, [4,3])", "([2,4] in 0..2, [2,3,4]; axis=1)", "({-1,0,3,1}, [4,3]) !grad",
                   "([0], [0,3])", "([3] in 0..69, [3,70] in -9..9)"}},
      {.name = "categorical_crossentropy",
       .sig = "(target: float, output: float; from_logits: bool = false, axis: int = -1) -> same",
       .doc =
           "Keras's loss of class probabilities (made to sum to 1 and kept 1e-7 from 0 and 1), or of logits, against target probabilities.",
       .infer = infer_classes,
       .decompose = expand_categorical,
       .samples = {"([2,3] in 0..1, [2,3] in 0.1..1)", "([2,3] in 0..1, [2,3]; from_logits=true)",
                   "([3,2,4] in 0..1, [3,2,4] in 0.1..1; axis=1)", "([3] in 0..1, [3] in 0.1..1)", "([0,3], [0,3] in 0.1..1)",
                   "({{0,1,0}}, {{0,1,0}}) !grad", "([2,70] in 0..1, [2,70] in 0.1..1)"}},
      {.name = "sparse_categorical_crossentropy",
       .sig = "(target: index, output: float; from_logits: bool = false, axis: int = -1) -> same",
       .doc = "Keras's loss of class probabilities or logits against class numbers; NaN for a class that there isn't.",
       .infer = infer_sparse,
       .decompose = expand_sparse_categorical,
       .samples = {"([4] in 0..2, [4,3] in 0.1..1)", "([4] in 0..2, [4,3]; from_logits=true)", "([4,1] in 0..2, [4,3] in 0.1..1)",
                   "([2,4] in 0..2, [2,3,4] in 0.1..1; axis=1)", "({-1,0,3,1}, [4,3] in 0.1..1) !grad", "([0], [0,3] in 0.1..1)",
                   "([3] in 0..69, [3,70] in 0.1..1)"}},
      {.name = "sigmoid_crossentropy",
       .sig = "(target: float, logits: float) -> same",
       .doc = "-target * log(sigmoid(logits)) - (1 - target) * log(1 - sigmoid(logits)), element by element and without overflow.",
       .body = sigmoid_crossentropy,
       .vjp = sigmoid_crossentropy_vjp,
       .samples = {"([2,3] in 0..1, [2,3])", "([] in 0..1, [])", "([3] in 0..1, [2,3] in -90..90)", "([0,3], [0,3])",
                   "([70] in 0..1, [70] in -9..9)", "({0,1,0.5}, {0,0,0})"}},
      {.name = "binary_crossentropy",
       .sig = "(target: float, output: float; from_logits: bool = false) -> same",
       .doc = "Keras's loss of probabilities (kept 1e-7 from 0 and 1), or of logits, against targets from 0 to 1, element by element.",
       .infer = infer_binary,
       .decompose = expand_binary,
       .samples = {"([2,3] in 0..1, [2,3] in 0.1..0.9)", "([2,3] in 0..1, [2,3]; from_logits=true)", "([] in 0..1, [] in 0.1..0.9)",
                   "([0,3], [0,3] in 0.1..0.9)", "({0,1,0,1}, {0,1,1,0}) !grad", "([70] in 0..1, [70] in 0.1..0.9)"}},
  };
}

}  // namespace tandem::ops
