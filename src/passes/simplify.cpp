// Algebraic rules, as data. Each one gives the same bytes as what it replaces, for NaN, infinities and -0 too; what only looks like algebra
// (x + 0, x * 0, pow(x, 2)) is not here.
#include <algorithm>
#include <cmath>

#include "passes/permutation.hpp"
#include "passes/pipeline.hpp"

namespace tandem::passes {
namespace {

using namespace ir;
using namespace ir::pattern;

// --- what rules ask ----------------------------------------------------------------------------------------------------------

bool is_whole(const Node& n) { return !is_float(n.types[0].dtype); }
bool has_sign(const Node& n) { return is_float(n.types[0].dtype) || is_signed(n.types[0].dtype); }

bool is_one_of(std::span<const char* const> names, const Match& m, std::string_view capture) {
  return std::ranges::find(names, m.node(capture).op->name) != names.end();
}

// x in the place of the root, which may have a larger shape.
Expr in_place(const Match& m, const Expr& x) { return x.dims() == m.root().dims() ? x : x.broadcast_to(m.root().dims()); }
Expr filled(const Match& m, double v) { return m.root().dims().empty() ? m.root().number(v) : m.root().like(v); }
Expr itself(Match& m) { return in_place(m, m["x"]); }

// --- arithmetic --------------------------------------------------------------------------------------------------------------

// 1/c where it and c are powers of two: then dividing by the one and multiplying by the other round the same number.
Expr exact_reciprocal(Match& m) {
  const Literal c = m.literal("c");
  const double value = element_count(c.shape) == 1 ? load_number(c.dtype, c.bytes->data()) : 0.0;
  int exponent = 0;
  if (!std::isfinite(value) || std::abs(std::frexp(value, &exponent)) != 0.5) return {};
  std::byte reciprocal[sizeof(double)];
  store_number(c.dtype, reciprocal, 1 / value);
  if (!std::isfinite(1 / value) || load_number(c.dtype, reciprocal) != 1 / value) return {};
  return m["x"] * Expr(m.builder(), m.builder().constant(Literal::of(c.dtype, c.shape, reciprocal)));
}

std::vector<Rule> arithmetic_rules() {
  const P x = any("x"), y = any("y"), c = any("c");
  const auto whole = [](const P& p) { return p.where(is_whole); };
  std::vector<Rule> rules = {
      {"multiply-one", op("multiply", {x, constant_value(1)}), itself},
      {"multiply-zero", whole(op("multiply", {x, constant_value(0)})), [](Match& m) { return filled(m, 0); }},
      {"add-zero", op("add", {x, constant_value(-0.0)}), itself},  // of floats -0 only: -0 + 0 is 0
      {"subtract-zero", op("subtract", {x, constant_value(0)}), itself},
      {"subtract-itself", whole(op("subtract", {x, x})), [](Match& m) { return filled(m, 0); }},
      {"negative-negative", op("negative", {op("negative", {x})}), itself},
      {"absolute-absolute", op("absolute", {op("absolute", {x}).as("y")}), [](Match& m) { return m["y"]; }},
      {"absolute-negative", op("absolute", {op("negative", {x})}).where(has_sign), [](Match& m) { return m["x"].op("absolute"); }},
      {"divide-one", op("divide", {x, constant_value(1)}), itself},
      {"divide-power-of-two", op("divide", {x, constant("c")}), exact_reciprocal},
      {"maximum-itself", op("maximum", {x, x}), itself},
      {"minimum-itself", op("minimum", {x, x}), itself},
      {"integer-power-one", whole(op("power", {x, constant_value(1)})), itself},
      {"integer-power-two", whole(op("power", {x, constant_value(2)})), [](Match& m) { return in_place(m, m["x"] * m["x"]); }},
      {"where-same", op("where", {c, x, x}), itself},
      {"where-true", op("where", {constant_value(1), x, y}), itself},
      {"where-false", op("where", {constant_value(0), y, x}), itself},
      {"where-not", op("where", {op("logical_not", {c}), x, y}), [](Match& m) { return where(m["c"], m["y"], m["x"]); }},
      {"identity", op("identity", {x}), itself},
      {"stop-gradient", op("stop_gradient", {x}), itself},  // gradients are taken before
  };
  for (const char* name : {"logical_not", "bitwise_not"}) rules.push_back({cat(name, "-twice"), op(name, {op(name, {x})}), itself});
  for (const char* name : {"logical_and", "logical_or", "bitwise_and", "bitwise_or"})
    rules.push_back({cat(name, "-itself"), op(name, {x, x}), itself});
  for (const char* name : {"logical_xor", "bitwise_xor"})
    rules.push_back({cat(name, "-itself"), op(name, {x, x}), [](Match& m) { return filled(m, 0); }});
  rules.push_back({"logical_and-true", op("logical_and", {x, constant_value(1)}), itself});
  rules.push_back({"logical_or-false", op("logical_or", {x, constant_value(0)}), itself});
  rules.push_back({"logical_and-false", op("logical_and", {x, constant_value(0)}), [](Match& m) { return filled(m, 0); }});
  rules.push_back({"logical_or-true", op("logical_or", {x, constant_value(1)}), [](Match& m) { return filled(m, 1); }});
  return rules;
}

// --- conversions -------------------------------------------------------------------------------------------------------------

struct Range {
  int bits;  // of whole numbers that are held exactly, without the sign
  bool negative;
};
Range range_of(DType t) {
  switch (t) {
    case DType::Bool: return {1, false};
    case DType::F16: return {11, true};
    case DType::BF16: return {8, true};
    case DType::F32: return {24, true};
    case DType::F64: return {53, true};
    default: return {static_cast<int>(8 * size_of(t)) - (is_signed(t) ? 1 : 0), is_signed(t)};
  }
}

// Whether every value of one type is one of the other.
bool holds(DType to, DType from) {
  if (to == from) return true;
  if (is_float(from)) return to == DType::F64 || (to == DType::F32 && from != DType::F64);
  const Range a = range_of(from), b = range_of(to);
  return a.bits <= b.bits && (!a.negative || b.negative);
}

// Through a type that holds every value nothing is lost. An integer that went through a float saturates on the way to a narrower
// integer, where the direct way drops bits.
Expr direct_cast(Match& m) {
  const DType from = m["x"].dtype(), over = m["y"].dtype(), to = m.root().dtype();
  if (!holds(over, from)) return {};
  const bool saturates = is_float(over) && !is_float(from) && !is_float(to) && to != DType::Bool;
  return saturates && !holds(to, from) ? Expr() : m["x"].cast(to);
}

// --- movement ----------------------------------------------------------------------------------------------------------------

constexpr const char* kViews[] = {"reshape", "expand_dims", "squeeze"};

Expr view_of_view(Match& m) {
  if (!is_one_of(kViews, m, "y")) return {};
  return Expr(m.builder(), m.node("y").inputs[0]).reshape(m.root().dims());
}

Expr view_of_constant(Match& m) {
  Literal c = m.literal("c");
  c.shape = tandem::bind(m.root().dims(), {});
  return {m.builder(), m.builder().constant(std::move(c))};
}

// A transpose that moves only axes of size 1 leaves every element where it is.
Expr still_transpose(Match& m) { return is_reshape(m["x"].dims(), permutation(m.node())) ? m["x"].reshape(m.root().dims()) : Expr(); }
Expr composed_transpose(Match& m) { return m["x"].transpose(composed(permutation(m.node()), permutation(m.node("y")))); }

bool takes_everything(const Node& n, const Dims& from) {
  const Dims& start = n.attrs.get<Dims>("start");
  const Ints& step = n.attrs.get<Ints>("step");
  for (size_t k = 0; k < from.size(); ++k)
    if (!start[k].is(0) || step[k] != 1 || !(n.types[0].dims[k] == from[k])) return false;
  return true;
}

Ints normalized_axes(const Node& n, int rank) {
  Ints axes;
  if (n.attrs.has("axis"))
    for (int64_t a : n.attrs.get<Ints>("axis")) axes.push_back(a < 0 ? a + rank : a);
  else
    for (int64_t a = 0; a < rank; ++a) axes.push_back(a);
  std::ranges::sort(axes);
  return axes;
}

// Whether a reduction has nothing to combine: every axis that it reduces has size 1.
bool reduces_nothing(const Match& m) {
  const Dims dims = m["x"].dims();
  return std::ranges::all_of(normalized_axes(m.node(), static_cast<int>(dims.size())),
                             [&](int64_t a) { return dims[static_cast<size_t>(a)].is(1); });
}

Expr only_element(Match& m) { return reduces_nothing(m) ? m["x"].cast(m.root().dtype()).reshape(m.root().dims()) : Expr(); }

// The value of a tensor that is one number everywhere.
Expr refilled(Match& m) { return m["x"].op("full", {{"shape", m.root().dims()}}); }

std::vector<Rule> movement_rules() {
  const P x = any("x");
  std::vector<Rule> rules = {
      {"cast-same", op("cast", {x}), [](Match& m) { return m["x"].dtype() == m.root().dtype() ? m["x"] : Expr(); }},
      {"cast-cast", op("cast", {op("cast", {x}).as("y")}), direct_cast},
      {"transpose-transpose", op("transpose", {op("transpose", {x}).as("y")}), composed_transpose},
      {"transpose-still", op("transpose", {x}), still_transpose},
      {"transpose-full", op("transpose", {op("full", {x})}), refilled},
      {"broadcast-same", op("broadcast_to", {x}), [](Match& m) { return m["x"].dims() == m.root().dims() ? m["x"] : Expr(); }},
      {"broadcast-broadcast", op("broadcast_to", {op("broadcast_to", {x})}), [](Match& m) { return m["x"].broadcast_to(m.root().dims()); }},
      {"broadcast-full", op("broadcast_to", {op("full", {x})}), refilled},
      {"broadcast-one", op("broadcast_to", {x}),
       [](Match& m) {
         const bool is_one = std::ranges::all_of(m["x"].dims(), [](const Dim& d) { return d.is(1); });
         return is_one ? m["x"].reshape({}).op("full", {{"shape", m.root().dims()}}) : Expr();
       }},
      {"full-scalar", op("full", {x}), [](Match& m) { return m.root().dims().empty() ? m["x"] : Expr(); }},
      {"flip-flip", op("flip", {op("flip", {x}).as("y")}),
       [](Match& m) {
         const int rank = m.root().rank();
         return normalized_axes(m.node(), rank) == normalized_axes(m.node("y"), rank) ? m["x"] : Expr();
       }},
      {"slice-everything", op("slice", {x}), [](Match& m) { return takes_everything(m.node(), m["x"].dims()) ? m["x"] : Expr(); }},
      {"concatenate-one", op("concatenate_few", {x}), itself},
      {"tile-once", op("tile", {x}),
       [](Match& m) {
         const Node n = m.node();
         return std::ranges::all_of(n.attrs.get<Ints>("repeats"), [](int64_t r) { return r == 1; }) ? m["x"].reshape(m.root().dims())
                                                                                                    : Expr();
       }},
      {"repeat-once", op("repeat", {x}), [](Match& m) { return m.node().attrs.get<int64_t>("repeats") == 1 ? m["x"] : Expr(); }},
  };
  for (const char* view : kViews) {
    rules.push_back({cat(view, "-same"), op(view, {x}), [](Match& m) { return m["x"].dims() == m.root().dims() ? m["x"] : Expr(); }});
    rules.push_back({cat(view, "-full"), op(view, {op("full", {x})}), refilled});
    rules.push_back({cat(view, "-view"), op(view, {any("y")}), view_of_view});
    rules.push_back({cat(view, "-constant"), op(view, {constant("c")}), view_of_constant});
  }
  for (const char* name : {"max", "min", "prod"}) rules.push_back({cat(name, "-of-one"), op(name, {x}), only_element});
  rules.push_back({"sum-of-one", op("sum", {x}).where(is_whole), only_element});  // of floats it begins with 0, and 0 + -0 is 0
  return rules;
}

// --- broadcasts go down ----------------------------------------------------------------------------------------------------------

// f(x, full(s)) = f(x, s), stretched behind f where x alone does not give the shape: nothing is computed more than once, and the stretched
// tensor need not be made.
Expr unstretched(Match& m) {
  const Graph& g = m.builder().graph();
  std::vector<Value> operands = g.node(m.root().value()).inputs;
  bool is_stretched = false;
  for (Value& v : operands) {
    const Node& operand = g.node(v);
    if (operand.op->name != "full" && operand.op->name != "broadcast_to") continue;
    v = operand.inputs[0];
    is_stretched = true;
  }
  if (!is_stretched) return {};
  const Node n = m.node();
  return in_place(m, Expr(m.builder(), m.builder().node(*n.op, operands, n.attrs).front()));
}

std::vector<Rule> broadcast_rules() { return {{"unstretched", elementwise(), unstretched}}; }

// --- matrix products -----------------------------------------------------------------------------------------------------------
// The same products in the same order as the row says. A library may have routines of its own for each way an operand lies, which add
// in another order: for floats this is the one family whose last bits depend on the device (ADR 0009).

bool swaps_last_two(const Node& n) {
  const Ints perm = permutation(n);
  const auto rank = static_cast<int64_t>(perm.size());
  if (rank < 2) return false;
  for (int64_t k = 0; k < rank - 2; ++k)
    if (perm[static_cast<size_t>(k)] != k) return false;
  return perm[static_cast<size_t>(rank) - 1] == rank - 2;
}

std::vector<Rule> matmul_rules() {
  const P swapped = op("transpose", {any("t")}).where(swaps_last_two);
  const auto turned = [](Match& m, const char* flag) {
    Attrs attrs = m.node().attrs;
    attrs.set(flag, !attrs.get<bool>(flag));
    return attrs;
  };
  return {
      {"matmul-transpose-x", op("matmul", {swapped, any("y")}),
       [turned](Match& m) { return m["t"].op("matmul", {m["y"]}, turned(m, "transpose_x")); }},
      {"matmul-transpose-y", op("matmul", {any("x"), swapped}),
       [turned](Match& m) { return m["x"].op("matmul", {m["t"]}, turned(m, "transpose_y")); }},
  };
}

// --- pooling -------------------------------------------------------------------------------------------------------------------

// The gradient of relu behind that of max_pool: what reaches an input is kept where the input is positive. A window sends its number to its
// largest input, so its maximum can be asked instead, before the numbers are spread: there are fewer windows than inputs.
Expr masked_by_maximum(Match& m) {
  const auto pool_of = [](const Node& n) {
    Attrs pool;
    for (const char* name : {"pool_size", "strides", "padding"}) pool.set(name, *n.attrs.find(name));
    return pool;
  };
  const Node grad = m.node("grad");
  const Attrs pool = pool_of(grad);
  if (!(pool == pool_of(m.node("index")))) return {};
  return where(m["x"].op("max_pool", pool) > 0.0, m["g"], 0.0).op("max_pool_grad", {m["index"]}, grad.attrs);
}

std::vector<Rule> pooling_rules() {
  const P x = any("x"), zero = constant_value(0);
  const P grad = op("max_pool_grad", {any("g"), op("max_pool_index", {x}).as("index")}).as("grad");
  return {{"where-max_pool_grad", op("where", {op("greater", {x, zero}), grad, zero}), masked_by_maximum}};
}

std::vector<Rule> all_rules() {
  std::vector<Rule> rules;
  for (auto family : {broadcast_rules, arithmetic_rules, movement_rules, matmul_rules, pooling_rules})
    for (Rule& r : family()) rules.push_back(std::move(r));
  return rules;
}

}  // namespace

const RuleSet& simplify_rules() {
  static const auto& rules = *new RuleSet("simplify", all_rules());
  return rules;
}

Graph simplify(const OpTable& table, const Graph& g) { return rewrite(table, g, simplify_rules()); }

}  // namespace tandem::passes
