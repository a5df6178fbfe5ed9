// The default gradient of an elementwise row: the derivative of its body, each primitive written as the row that computes it.
#include <bit>
#include <map>
#include <tuple>

#include "base/text.hpp"
#include "transform/grad_rules.hpp"

namespace tandem::transform {
using namespace ir;

namespace {

// The row with the meaning of one primitive; empty where several rows are needed or none has it.
std::string_view row_of(Prim p, DType t) {
  const bool is_bool = t == DType::Bool;
  switch (p) {
    case Prim::Add: return "add";
    case Prim::Sub: return "subtract";
    case Prim::Mul: return "multiply";
    case Prim::Div: return is_float(t) ? "divide" : is_signed(t) ? "" : "floor_divide";
    case Prim::Rem: return "fmod";
    case Prim::Min: return "minimum";
    case Prim::Max: return "maximum";
    case Prim::Pow: return "power";
    case Prim::Atan2: return "arctan2";
    case Prim::And: return is_bool ? "logical_and" : "bitwise_and";
    case Prim::Or: return is_bool ? "logical_or" : "bitwise_or";
    case Prim::Xor: return is_bool ? "logical_xor" : "bitwise_xor";
    case Prim::Shl: return "left_shift";
    case Prim::Shr: return "right_shift";
    case Prim::Eq: return "equal";
    case Prim::Ne: return "not_equal";
    case Prim::Lt: return "less";
    case Prim::Le: return "less_equal";
    case Prim::Gt: return "greater";
    case Prim::Ge: return "greater_equal";
    case Prim::Select: return "where";
    case Prim::Neg: return "negative";
    case Prim::Abs: return "absolute";
    case Prim::Not: return is_bool ? "logical_not" : "bitwise_not";
    case Prim::Floor: return "floor";
    case Prim::Ceil: return "ceil";
    case Prim::Trunc: return "trunc";
    case Prim::Round: return "round";
    case Prim::Sqrt: return "sqrt";
    case Prim::Cbrt: return "cbrt";
    case Prim::Exp: return "exp";
    case Prim::Exp2: return "exp2";
    case Prim::Expm1: return "expm1";
    case Prim::Log: return "log";
    case Prim::Log2: return "log2";
    case Prim::Log10: return "log10";
    case Prim::Log1p: return "log1p";
    case Prim::Sin: return "sin";
    case Prim::Cos: return "cos";
    case Prim::Tan: return "tan";
    case Prim::Asin: return "arcsin";
    case Prim::Acos: return "arccos";
    case Prim::Atan: return "arctan";
    case Prim::Sinh: return "sinh";
    case Prim::Cosh: return "cosh";
    case Prim::Tanh: return "tanh";
    case Prim::Asinh: return "arcsinh";
    case Prim::Acosh: return "arccosh";
    case Prim::Atanh: return "arctanh";
    case Prim::Erf: return "erf";
    case Prim::Erfc: return "erfc";
    case Prim::LGamma: return "lgamma";
    case Prim::Const:
    case Prim::Arg:
    case Prim::Load:
    case Prim::Axis:
    case Prim::Extent:
    case Prim::Acc:
    case Prim::Right:
    case Prim::MulHi:
    case Prim::Fma:
    case Prim::Cast:
    case Prim::Bitcast: break;
  }
  return {};
}

Literal constant_of(const ScalarNode& s) {
  static_assert(std::endian::native == std::endian::little, "the low bytes of `bits` are the value");
  return Literal::of(s.dtype, Shape{}, &s.bits);
}

// Writes scalar expressions as nodes over the operands of one call. Equal expressions become one node, however they came about.
class Emitter {
 public:
  Emitter(Builder& b, std::string_view op, std::span<const Expr> args) : builder_(b), op_(op), args_(args) {}
  void known(const Scalar& s, const Expr& value) { seen_.emplace(s.get(), value); }

  Expr emit(const Scalar& s) {
    if (const auto found = seen_.find(s.get()); found != seen_.end()) return found->second;
    std::vector<Expr> in;
    std::vector<Value> key;
    for (const Scalar& x : s->in) {
      in.push_back(emit(x));
      key.push_back(in.back().value());
    }
    auto [slot, is_new] = numbered_.try_emplace({s->prim, s->dtype, s->index, s->bits, key});
    if (is_new) slot->second = node(*s, in);
    seen_.emplace(s.get(), slot->second);
    keep_.push_back(s);
    return slot->second;
  }

 private:
  Expr node(const ScalarNode& s, const std::vector<Expr>& in) {
    switch (s.prim) {
      case Prim::Const: return {builder_, builder_.constant(constant_of(s))};
      case Prim::Arg: return args_[static_cast<size_t>(s.index)];
      case Prim::Fma: return in[0] * in[1] + in[2];
      case Prim::Cast: return in[0].cast(s.dtype);
      case Prim::Bitcast: return in[0].op("bitcast", {{"dtype", s.dtype}});
      default: break;
    }
    const DType t = in.empty() ? s.dtype : in.back().dtype();  // of the operands; a condition comes first
    if (s.prim == Prim::Div && is_int(t) && is_signed(t))      // truncates: what floor_divide would round down is taken away first
      return (in[0] - in[0].op("fmod", {in[1]})).op("floor_divide", {in[1]});
    const std::string_view row = row_of(s.prim, t);
    TANDEM_CHECK(!row.empty(), op_, ": the derivative of its body needs the primitive ", name(s.prim), ", for which there is no row");
    return call(builder_, row, in)[0];
  }

  using Key = std::tuple<Prim, DType, int32_t, uint64_t, std::vector<Value>>;
  Builder& builder_;
  std::string_view op_;
  std::span<const Expr> args_;
  std::map<const ScalarNode*, Expr> seen_;
  std::map<Key, Expr> numbered_;
  std::vector<Scalar> keep_;  // an expression that goes away could leave its address to another one
};

bool is_one(const Scalar& s) { return s->prim == Prim::Const && s->bits == constant(s.dtype(), 1)->bits; }

}  // namespace

InputGrads body_gradients(const NodeGrad& n) {
  Builder& b = n.builder;
  const std::vector<Expr> in = exprs(b, n.node.inputs);
  std::vector<TensorType> types;
  std::vector<Scalar> args;
  for (const Expr& e : in) {
    args.push_back(arg(static_cast<int>(args.size()), e.dtype()));
    types.push_back(e.type());
  }
  const Scalar body = n.node.op->body(OpCall{*n.node.op, types, n.node.attrs}, args);
  const Expr g(b, n.output_grads[0]);
  Emitter emitter(b, n.node.op->name, in);
  emitter.known(body, Expr(b, n.outputs[0]));  // d exp(x) = exp(x) dx: the result is there already

  InputGrads grads(in.size());
  for (size_t k = 0; k < in.size(); ++k) {
    if (!n.needed[k]) continue;
    const Scalar d = derivative(body, static_cast<int>(k));
    if (!d) continue;
    const Expr flow = is_one(d) ? g : g * emitter.emit(d);
    grads[k] = flow.sum_to(types[k].dims).cast(types[k].dtype).value();
  }
  return grads;
}

}  // namespace tandem::transform
