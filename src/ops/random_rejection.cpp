// Distributions that are sampled by trying: every attempt proposes a number for all elements, and those not yet settled take it or not.
// A loop over attempts runs until all are settled; which attempt an element takes depends on the key and its position alone.
#include <cmath>
#include <functional>
#include <limits>

#include "ops/helpers.hpp"
#include "ops/random.hpp"

namespace tandem::ops {
using namespace ir;

namespace {

Expr both(const Expr& a, const Expr& b) { return a.op("logical_and", {b}); }
Expr either(const Expr& a, const Expr& b) { return a.op("logical_or", {b}); }
Expr negated(const Expr& a) { return a.op("logical_not"); }
Expr square(const Expr& a) { return a * a; }

// What one attempt proposes: new values of the states, and which elements are settled by it.
struct Proposal {
  std::vector<Expr> states;
  Expr settled;
};
using Exprs = std::span<const Expr>;
using AttemptFn = std::function<Proposal(const Expr& attempt, Exprs states, Exprs parameters)>;

// Runs attempts 0, 1, 2 … (int32) until every element of `settled` is true. Settled elements keep their states.
std::vector<Expr> try_until_settled(Builder& b, const std::vector<Expr>& states, const Expr& settled, const std::vector<Expr>& parameters,
                                    const AttemptFn& f) {
  std::vector<Expr> start{Expr(b, b.scalar(DType::I32, 0)), settled};
  start.insert(start.end(), states.begin(), states.end());
  start.insert(start.end(), parameters.begin(), parameters.end());
  const auto graph = [&](const std::function<std::vector<Expr>(Exprs)>& g) {
    Builder inner(b.table());
    std::vector<Expr> in;
    for (const Expr& e : start) in.emplace_back(inner, inner.input(e.type()));
    return std::make_shared<const Graph>(inner.finish(values(g(in))));
  };
  const GraphRef condition = graph([](Exprs in) { return std::vector{negated(in[1].op("all"))}; });
  const GraphRef body = graph([&](Exprs in) {
    const Exprs now = in.subspan(2, states.size()), fixed = in.subspan(2 + states.size());
    const Proposal p = f(in[0], now, fixed);
    std::vector<Expr> next{in[0] + 1, either(in[1], p.settled)};
    for (size_t i = 0; i < now.size(); ++i) next.push_back(where(in[1], now[i], p.states[i]));
    next.insert(next.end(), fixed.begin(), fixed.end());
    return next;
  });
  const std::vector<Expr> end = call(b, "while", start, {{"functions", Graphs{condition, body}}});
  return {end.begin() + 2, end.begin() + 2 + static_cast<std::ptrdiff_t>(states.size())};
}

// --- gamma -----------------------------------------------------------------------------------------------------------------

// A gamma variate in two factors, value * exp(log_boost): for small alpha the product would often leave the range of the type.
struct GammaParts {
  Expr value, log_boost;
};

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). Below 1, gamma(alpha) = gamma(alpha + 1) * U^(1/alpha).
GammaParts gamma_parts(Builder& b, const Expr& key, const Expr& alpha) {
  const DType t = alpha.dtype();
  const Dims& shape = alpha.dims();
  const Expr is_small = alpha < 1, d = where(is_small, alpha + 1, alpha) - 1.0 / 3, c = 1 / sqrt(d * 9);
  const Expr usable = both(alpha > 0, alpha.op("is_finite"));
  const Expr otherwise = where(alpha > 0, alpha, std::numeric_limits<double>::quiet_NaN());  // infinity stays, the rest is NaN
  const Expr value = try_until_settled(b, {otherwise}, negated(usable), {key, c, d}, [&](const Expr& attempt, Exprs, Exprs p) {
    const Expr x = draw_key(p[0], attempt * 2).op("standard_normal", {{"shape", shape}, {"dtype", t}});
    const Expr u = random_unit(draw_key(p[0], attempt * 2 + 1), shape, t);
    const Expr root = p[1] * x + 1, v = root * root * root;
    const Expr accepted = both(v > 0, log(u) < square(x) * 0.5 + p[2] * (1 - v + log(v)));
    return Proposal{{p[2] * v}, accepted};
  })[0];
  const Expr u = 1 - random_unit(draw_key(key, -1), shape, t);
  return {value, where(both(is_small, usable), log(u) / alpha, 0)};
}

std::vector<TensorType> infer_same(const OpCall& call) { return {random_result(call, call.in[1].dtype)}; }

// An operand in the type the sampler computes in, at its full shape.
Expr parameter(const OpCall& call, const Expr& x) {
  return x.cast(accumulator_type(x.dtype())).broadcast_to(call.attrs.get<Dims>("shape"));
}

std::vector<Expr> decompose_gamma(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const GammaParts g = gamma_parts(b, in[0], parameter(call, in[1]));
  return {(g.value * exp(g.log_boost)).cast(in[1].dtype())};
}

// X / (X + Y) of two gamma variates, from their logarithms.
std::vector<Expr> decompose_beta(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const GammaParts x = gamma_parts(b, draw_key(in[0], 0), parameter(call, in[1]));
  const GammaParts y = gamma_parts(b, draw_key(in[0], 1), parameter(call, in[2]));
  const Expr difference = (log(x.value) + x.log_boost) - (log(y.value) + y.log_boost);
  return {difference.op("sigmoid").cast(in[1].dtype())};
}

// --- binomial --------------------------------------------------------------------------------------------------------------

constexpr double kSmallMean = 10;  // below, counting gaps is faster; transformed rejection needs at least this

// Successes are geometrically distributed gaps apart; counts how many fit into n trials.
Expr count_gaps(Builder& b, const Expr& key, const Expr& n, const Expr& p, const Expr& skip) {
  const DType t = n.dtype();
  const Dims& shape = n.dims();
  const Expr position = n.like(0), count = position;
  return try_until_settled(b, {position, count}, skip, {key, n, (-p).op("log1p")}, [&](const Expr& attempt, Exprs state, Exprs q) {
    const Expr u = 1 - random_unit(draw_key(q[0], attempt), shape, t);
    const Expr next = state[0] + maximum((log(u) / q[2]).op("ceil"), 1), fits = next <= q[1];
    return Proposal{{next, state[1] + fits.cast(t)}, negated(fits)};
  })[1];
}

// log k! minus Stirling's formula for it.
Expr stirling_tail(const Expr& k) {
  const Expr next = k + 1, inverse = 1 / next, squared = square(inverse);
  const Expr series = inverse * (1.0 / 12 - squared * (1.0 / 360 - squared * (1.0 / 1260)));
  const Expr exact = next.op("lgamma") - ((k + 0.5) * log(next) - next + 0.91893853320467274);
  return where(k < 10, exact, series);
}

// BTRS: Hörmann, "The generation of binomial random variates" (1993). Needs n * p >= 10 and p <= 1/2.
Expr transformed_rejection(Builder& b, const Expr& key, const Expr& n, const Expr& p, const Expr& skip) {
  const DType t = n.dtype();
  const Dims& shape = n.dims();
  return try_until_settled(b, {n.like(0)}, skip, {key, n, p}, [&](const Expr& attempt, Exprs, Exprs q) {
    const Expr &count = q[1], &chance = q[2];
    const Expr deviation = sqrt(count * chance * (1 - chance)), width = deviation * 2.53 + 1.15;
    const Expr a = width * 0.0248 + chance * 0.01 - 0.0873, center = count * chance + 0.5;
    const Expr u = random_unit(draw_key(q[0], attempt * 2), shape, t) - 0.5, v = 1 - random_unit(draw_key(q[0], attempt * 2 + 1), shape, t);
    const Expr us = 0.5 - u.op("absolute"), k = ((a * 2 / us + width) * u + center).op("floor");
    const Expr inside = both(k >= 0, k <= count), sure = both(us >= 0.07, v <= 0.92 - 4.2 / width);

    const Expr odds = chance / (1 - chance), alpha = (5.1 / width + 2.83) * deviation, mode = ((count + 1) * chance).op("floor");
    const Expr rest = count - mode + 1, left = count - k + 1;
    const Expr bound = (mode + 0.5) * log((mode + 1) / (odds * rest)) + (count + 1) * log(rest / left) +
                       (k + 0.5) * log(odds * left / (k + 1)) + stirling_tail(mode) + stirling_tail(count - mode) - stirling_tail(k) -
                       stirling_tail(count - k);
    const Expr accepted = log(v * alpha / (a / square(us) + width)) <= bound;
    return Proposal{{k}, both(inside, either(sure, accepted))};
  })[0];
}

std::vector<Expr> decompose_binomial(Builder& b, const OpCall& call, std::span<const Expr> in) {
  const Expr n = parameter(call, in[1]).op("floor"), p = parameter(call, in[2]);
  const Expr valid = both(both(n >= 0, n.op("is_finite")), both(p >= 0, p <= 1));
  const Expr flipped = p > 0.5, q = where(flipped, 1 - p, p);
  const Expr usable = both(valid, q > 0), is_small = n * q < kSmallMean;
  const Expr few = count_gaps(b, draw_key(in[0], 0), n, q, negated(both(usable, is_small)));
  const Expr many = transformed_rejection(b, draw_key(in[0], 1), n, q, either(negated(usable), is_small));
  const Expr drawn = where(is_small, few, many), found = where(flipped, n - drawn, drawn);
  return {where(valid, found, std::numeric_limits<double>::quiet_NaN()).cast(in[1].dtype())};
}

}  // namespace

Rows rejection_rows() {
  constexpr Tolerance kTranscendental{1e-3, 1e-5};
  return {
      {.name = "gamma",
       .sig = "(key: key, alpha: float; shape: shape) -> same",
       .doc = "Gamma distributed random numbers of shape parameter alpha and scale 1; NaN where alpha is not positive.",
       .traits = kNotDifferentiable,
       .infer = infer_same,
       .decompose = decompose_gamma,
       .samples = {"({1,2}:uint32, [3] in 0.2..4; shape=[2,3]) !numpy", "({1,2}:uint32, [] in 2..3; shape=[70]) !numpy",
                   "({1,2}:uint32, []; shape=[0]) !numpy"},
       .tolerance = kTranscendental},
      {.name = "beta",
       .sig = "(key: key, a: float, b: float; shape: shape) -> same",
       .doc = "Beta distributed random numbers with the parameters a and b; NaN where one of them is not positive.",
       .traits = kNotDifferentiable,
       .infer = infer_same,
       .decompose = decompose_beta,
       .samples = {"({1,2}:uint32, [3] in 0.2..4, [2,1] in 0.2..4; shape=[2,3]) !numpy"},
       .tolerance = kTranscendental},
      {.name = "binomial",
       .sig = "(key: key, counts: float, probabilities: float; shape: shape) -> same",
       .doc = "How many of `counts` trials succeed when each does with the given probability; NaN for a negative count or a probability "
              "outside 0..1.",
       .traits = kNotDifferentiable,
       .infer = infer_same,
       .decompose = decompose_binomial,
       .samples = {"({1,2}:uint32, [] in 5..9, [3] in 0.1..0.9; shape=[2,3]) !numpy",
                   "({1,2}:uint32, [] in 900..1000, [2] in 0.1..0.9; shape=[40,2]) !numpy"},
       .tolerance = kTranscendental},
  };
}

}  // namespace tandem::ops
