#include "evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tandem::test {

using namespace ir;

namespace {

// One element: a float as double, anything else as its bits sign- or zero-extended.
struct Number {
  double f = 0;
  int64_t i = 0;
};

template <class F> auto as_int(DType t, F f) {
  switch (t) {
    case DType::U8: return f(uint8_t{});
    case DType::U16: return f(uint16_t{});
    case DType::U32: return f(uint32_t{});
    case DType::U64: return f(uint64_t{});
    case DType::I8: return f(int8_t{});
    case DType::I16: return f(int16_t{});
    case DType::I32: return f(int32_t{});
    default: return f(int64_t{});
  }
}

Number rounded(DType t, double v) {
  switch (t) {
    case DType::F32: return {static_cast<double>(static_cast<float>(v)), 0};
    case DType::F16: return {static_cast<double>(static_cast<float>(Half(static_cast<float>(v)))), 0};
    case DType::BF16: return {static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(v)))), 0};
    default: return {v, 0};
  }
}

Number read(DType t, const std::byte* p) {
  return dispatch(t, [&](auto zero) -> Number {
    using T = decltype(zero);
    T v;
    std::memcpy(&v, p, sizeof v);
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      return {static_cast<double>(static_cast<float>(v)), 0};
    else if constexpr (std::is_floating_point_v<T>)
      return {static_cast<double>(v), 0};
    else
      return {0, static_cast<int64_t>(v)};
  });
}
void write(DType t, std::byte* p, Number n) {
  dispatch(t, [&](auto zero) {
    using T = decltype(zero);
    T v;
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      v = T(static_cast<float>(n.f));
    else if constexpr (std::is_floating_point_v<T>)
      v = static_cast<T>(n.f);
    else
      v = static_cast<T>(n.i);
    std::memcpy(p, &v, sizeof v);
  });
}

Number cast_number(DType from, DType to, Number x) {
  if (to == DType::Bool) return {0, is_float(from) ? x.f != 0 : x.i != 0};
  if (is_float(to))
    return rounded(to, is_float(from)       ? x.f
                       : from == DType::U64 ? static_cast<double>(static_cast<uint64_t>(x.i))
                                            : static_cast<double>(x.i));
  return as_int(to, [&](auto zero) -> Number {
    using T = decltype(zero);
    if (!is_float(from)) return {0, static_cast<int64_t>(static_cast<T>(x.i))};
    if (std::isnan(x.f)) return {0, 0};
    if (x.f >= static_cast<double>(std::numeric_limits<T>::max())) return {0, static_cast<int64_t>(std::numeric_limits<T>::max())};
    if (x.f <= static_cast<double>(std::numeric_limits<T>::min())) return {0, static_cast<int64_t>(std::numeric_limits<T>::min())};
    return {0, static_cast<int64_t>(static_cast<T>(x.f))};
  });
}

double float_op(Prim p, double a, double b, double c) {
  switch (p) {
    case Prim::Add: return a + b;
    case Prim::Sub: return a - b;
    case Prim::Mul: return a * b;
    case Prim::Div: return a / b;
    case Prim::Rem: return std::fmod(a, b);
    case Prim::Min: return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
    case Prim::Max: return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
    case Prim::Pow: return std::pow(a, b);
    case Prim::Atan2: return std::atan2(a, b);
    case Prim::Fma: return std::fma(a, b, c);
    case Prim::Neg: return -a;
    case Prim::Abs: return std::fabs(a);
    case Prim::Floor: return std::floor(a);
    case Prim::Ceil: return std::ceil(a);
    case Prim::Trunc: return std::trunc(a);
    case Prim::Round: return std::nearbyint(a);
    case Prim::Sqrt: return std::sqrt(a);
    case Prim::Cbrt: return std::cbrt(a);
    case Prim::Exp: return std::exp(a);
    case Prim::Exp2: return std::exp2(a);
    case Prim::Expm1: return std::expm1(a);
    case Prim::Log: return std::log(a);
    case Prim::Log2: return std::log2(a);
    case Prim::Log10: return std::log10(a);
    case Prim::Log1p: return std::log1p(a);
    case Prim::Sin: return std::sin(a);
    case Prim::Cos: return std::cos(a);
    case Prim::Tan: return std::tan(a);
    case Prim::Asin: return std::asin(a);
    case Prim::Acos: return std::acos(a);
    case Prim::Atan: return std::atan(a);
    case Prim::Sinh: return std::sinh(a);
    case Prim::Cosh: return std::cosh(a);
    case Prim::Tanh: return std::tanh(a);
    case Prim::Asinh: return std::asinh(a);
    case Prim::Acosh: return std::acosh(a);
    case Prim::Atanh: return std::atanh(a);
    case Prim::Erf: return std::erf(a);
    case Prim::Erfc: return std::erfc(a);
    case Prim::LGamma: return std::lgamma(a);
    default: internal_error("no meaning for ", name(p), " of floats");
  }
}

template <class T> int64_t int_op(Prim p, T a, T b) {
  using U = std::make_unsigned_t<T>;
  constexpr T width = sizeof(T) * 8;
  const auto wrap = [](auto v) { return static_cast<int64_t>(static_cast<T>(v)); };
  const bool wide_shift = b < 0 || b >= width;
  switch (p) {
    case Prim::Add: return wrap(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    case Prim::Sub: return wrap(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    case Prim::Mul: return wrap(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    case Prim::Div: return b == 0 ? 0 : std::is_signed_v<T> && b == static_cast<T>(-1) ? wrap(-static_cast<uint64_t>(a)) : wrap(a / b);
    case Prim::Rem: return b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1)) ? 0 : wrap(a % b);
    case Prim::Min: return wrap(std::min(a, b));
    case Prim::Max: return wrap(std::max(a, b));
    case Prim::And: return wrap(a & b);
    case Prim::Or: return wrap(a | b);
    case Prim::Xor: return wrap(a ^ b);
    case Prim::Shl: return wide_shift ? 0 : wrap(static_cast<U>(static_cast<U>(a) << b));
    case Prim::Shr: return wide_shift ? (a < 0 ? wrap(-1) : 0) : wrap(a >> b);
    case Prim::MulHi: {
      __extension__ typedef __int128 Wide;
      __extension__ typedef unsigned __int128 WideU;
      if constexpr (std::is_signed_v<T>)
        return wrap(static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> width));
      else
        return wrap(static_cast<T>((static_cast<WideU>(a) * static_cast<WideU>(b)) >> width));
    }
    case Prim::Neg: return wrap(-static_cast<uint64_t>(a));
    case Prim::Abs: return a < 0 ? wrap(-static_cast<uint64_t>(a)) : wrap(a);
    case Prim::Not: return wrap(static_cast<T>(~a));
    case Prim::Floor:
    case Prim::Ceil:
    case Prim::Trunc:
    case Prim::Round: return wrap(a);
    default: internal_error("no meaning for ", name(p), " of integers");
  }
}

template <class T> bool compare(Prim p, T a, T b) {
  switch (p) {
    case Prim::Eq: return a == b;
    case Prim::Ne: return a != b;
    case Prim::Lt: return a < b;
    case Prim::Le: return a <= b;
    case Prim::Gt: return a > b;
    default: return a >= b;
  }
}

Number primitive(const ScalarNode& s, const Number* x) {
  if (s.prim == Prim::Select) return x[0].i ? x[1] : x[2];
  const DType t = s.in[0].dtype();
  if (s.prim == Prim::Cast) return cast_number(t, s.dtype, x[0]);
  if (s.prim == Prim::Bitcast) {
    std::byte buffer[8] = {};
    write(t, buffer, x[0]);
    return read(s.dtype, buffer);
  }
  const Number b = s.in.size() > 1 ? x[1] : Number{}, c = s.in.size() > 2 ? x[2] : Number{};
  if (s.prim >= Prim::Eq && s.prim <= Prim::Ge) {
    if (is_float(t)) return {0, compare(s.prim, x[0].f, b.f)};
    return {0, t == DType::U64 ? compare(s.prim, static_cast<uint64_t>(x[0].i), static_cast<uint64_t>(b.i)) : compare(s.prim, x[0].i, b.i)};
  }
  if (is_float(t)) return rounded(s.dtype, float_op(s.prim, x[0].f, b.f, c.f));
  if (t == DType::Bool) {
    const bool p = x[0].i, q = b.i;
    switch (s.prim) {
      case Prim::Not: return {0, !p};
      case Prim::Xor: return {0, p != q};
      case Prim::Or:
      case Prim::Max:
      case Prim::Add: return {0, p || q};
      default: return {0, p && q};
    }
  }
  if (s.prim == Prim::Fma)
    return as_int(t, [&](auto zero) -> Number {
      using T = decltype(zero);
      return {0,
              int_op<T>(Prim::Add, static_cast<T>(int_op<T>(Prim::Mul, static_cast<T>(x[0].i), static_cast<T>(b.i))), static_cast<T>(c.i))};
    });
  return as_int(t, [&](auto zero) -> Number {
    using T = decltype(zero);
    return {0, int_op<T>(s.prim, static_cast<T>(x[0].i), static_cast<T>(b.i))};
  });
}

// Expressions as a list of steps, each shared sub-expression once.
class Program {
 public:
  explicit Program(std::span<const Scalar> roots) {
    for (const Scalar& r : roots) roots_.push_back(add(r));
  }
  struct Context {
    const std::vector<Array>& in;
    const Bindings& bindings;
    std::vector<int64_t> axes;
    std::vector<Number> acc, right;
  };
  std::vector<Number> run(const Context& c) {
    for (size_t i = 0; i < steps_.size(); ++i) values_[i] = eval(steps_[i], c);
    std::vector<Number> out;
    for (size_t r : roots_) out.push_back(values_[r]);
    return out;
  }

 private:
  struct Step {
    Scalar s;
    std::vector<size_t> in;
  };
  size_t add(const Scalar& s) {
    if (const auto found = place_.find(s.get()); found != place_.end()) return found->second;
    Step step{s, {}};
    for (const Scalar& x : s->in) step.in.push_back(add(x));
    steps_.push_back(step);
    values_.emplace_back();
    return place_[s.get()] = steps_.size() - 1;
  }
  Number eval(const Step& step, const Context& c) {
    const ScalarNode& s = *step.s;
    Number x[16];
    for (size_t i = 0; i < step.in.size(); ++i) x[i] = values_[step.in[i]];
    const auto k = static_cast<size_t>(s.index);
    switch (s.prim) {
      case Prim::Const: {
        std::byte buffer[8];
        std::memcpy(buffer, &s.bits, 8);
        return read(s.dtype, buffer);
      }
      case Prim::Axis: return {0, c.axes[k]};
      case Prim::Extent: return {0, s.dim.eval(c.bindings)};
      case Prim::Acc: return c.acc[k];
      case Prim::Right: return c.right[k];
      case Prim::Load: return load(s, c.in[k], x);
      default: return primitive(s, x);
    }
  }
  static Number load(const ScalarNode& s, const Array& a, const Number* x) {
    const size_t rank = a.shape.size();
    if (s.guarded && !x[rank].i) return x[rank + 1];
    int64_t at = 0;
    for (size_t d = 0; d < rank; ++d) {
      TANDEM_CHECK(x[d].i >= 0 && x[d].i < a.shape[d], "load at ", x[d].i, " of axis ", d, " of ", a.shape);
      at = at * a.shape[d] + x[d].i;
    }
    return read(a.dtype, a.bytes.data() + static_cast<size_t>(at) * size_of(a.dtype));
  }
  std::vector<Step> steps_;
  std::vector<Number> values_;
  std::vector<size_t> roots_;
  std::map<const ScalarNode*, size_t> place_;
};

bool next_point(std::vector<int64_t>& axes, size_t first, const Shape& extents) {
  for (size_t d = extents.size(); d-- > 0;) {
    if (++axes[first + d] < extents[d]) return true;
    axes[first + d] = 0;
  }
  return false;
}

// Two ways to say the same, bit by bit.
void check_same(const std::vector<Number>& a, const std::vector<Number>& b) {
  const bool same = std::equal(a.begin(), a.end(), b.begin(), b.end(),
                               [](const Number& x, const Number& y) { return std::memcmp(&x.f, &y.f, sizeof x.f) == 0 && x.i == y.i; });
  if (!same) internal_error("a reduction combines what comes later in another way");
}

}  // namespace

std::vector<Array> run_loops(const Loops& l, const std::vector<Array>& in, const Bindings& bindings) {
  const Shape space = tandem::bind(l.extents, bindings);
  Program results(l.results);
  std::vector<Array> out;
  for (const Scalar& r : l.results) out.emplace_back(r.dtype(), space);
  if (element_count(space) == 0) return out;
  const Shape reduce = l.reduction && l.scan_axis < 0 ? tandem::bind(l.reduction->extents, bindings) : Shape{};
  std::optional<Program> element, identity, combine, later;
  if (l.reduction) {
    element.emplace(l.reduction->element);
    identity.emplace(l.reduction->identity);
    combine.emplace(l.reduction->combine);
    if (!l.reduction->later.empty()) later.emplace(l.reduction->later);
  }
  Program::Context c{in, bindings, std::vector<int64_t>(space.size() + reduce.size()), {}, {}};
  int64_t at = 0;
  do {
    if (l.reduction) {
      c.acc = identity->run(c);
      const auto fold = [&] {
        c.right = element->run(c);
        const std::vector<Number> next = combine->run(c);
        if (later) check_same(later->run(c), next);  // elements come in order here
        c.acc = next;
      };
      if (l.scan_axis >= 0) {
        int64_t& i = c.axes[static_cast<size_t>(l.scan_axis)];
        const int64_t last = i;
        for (i = 0; i <= last; ++i) fold();
        i = last;
      } else if (element_count(reduce) > 0) {
        do fold();
        while (next_point(c.axes, space.size(), reduce));
      }
    }
    const std::vector<Number> v = results.run(c);
    for (size_t k = 0; k < out.size(); ++k)
      write(out[k].dtype, out[k].bytes.data() + static_cast<size_t>(at) * size_of(out[k].dtype), v[k]);
    ++at;
  } while (next_point(c.axes, 0, space));
  return out;
}

Attrs bound_attrs(const Attrs& attrs, const Bindings& bindings) {
  Attrs out;
  for (const Attrs::Entry& e : attrs.entries()) {
    const auto* dims = std::get_if<Dims>(&e.value);
    out.set(e.name, dims ? Attr(to_dims(tandem::bind(*dims, bindings))) : e.value);
  }
  return out;
}

namespace {

std::vector<Array> run(const OpTable& table, const Graph& g, const std::vector<Array>& inputs, Bindings bindings = {});

Array slice_of(const Array& a, int64_t i) {
  Array s(a.dtype, Shape(std::span<const int64_t>(a.shape.data() + 1, a.shape.size() - 1)));
  std::memcpy(s.bytes.data(), a.bytes.data() + static_cast<size_t>(i) * s.bytes.size(), s.bytes.size());
  return s;
}

std::vector<Array> run_scan(const OpTable& table, const Node& n, const std::vector<Array>& in, const Bindings& bindings) {
  const Graph& body = *n.attrs.get<Graphs>("functions")[0];
  const auto carries = static_cast<size_t>(n.attrs.get<int64_t>("carries")),
             sequences = static_cast<size_t>(n.attrs.get<int64_t>("sequences"));
  const int64_t length = n.attrs.get<Dims>("length")[0].eval(bindings);
  std::vector<Array> state(in.begin(), in.begin() + static_cast<long>(carries)), out;
  for (const TensorType& t : n.types) out.emplace_back(t.dtype, tandem::bind(t.dims, bindings));
  for (int64_t k = 0; k < length; ++k) {
    const int64_t t = n.attrs.get<bool>("reverse") ? length - 1 - k : k;
    std::vector<Array> args = state;
    for (size_t i = carries; i < in.size(); ++i) args.push_back(i < carries + sequences ? slice_of(in[i], t) : in[i]);
    const std::vector<Array> next = run(table, body, args, bindings);
    for (size_t i = 0; i < next.size(); ++i) {
      if (i < carries)
        state[i] = next[i];
      else
        std::memcpy(out[i].bytes.data() + static_cast<size_t>(t) * next[i].bytes.size(), next[i].bytes.data(), next[i].bytes.size());
    }
  }
  for (size_t i = 0; i < carries; ++i) out[i] = state[i];
  return out;
}

std::vector<Array> run_structural(const OpTable& table, const Node& n, std::vector<Array> in, const Bindings& bindings) {
  if (n.op->name == "constant") return {Array::of(n.attrs.get<Literal>("value"))};
  if (n.op->name == "branch") {
    const auto& branches = n.attrs.get<Graphs>("branches");
    const auto index = std::clamp<int64_t>(static_cast<int64_t>(in[0].at(0)), 0, static_cast<int64_t>(branches.size()) - 1);
    return run(table, *branches[static_cast<size_t>(index)], {in.begin() + 1, in.end()}, bindings);
  }
  if (n.op->name == "scan") return run_scan(table, n, in, bindings);
  TANDEM_CHECK(n.op->name == "while", "the evaluator does not know ", n.op->name);
  const auto& functions = n.attrs.get<Graphs>("functions");
  const int64_t limit = n.attrs.has("max_trips") ? n.attrs.get<int64_t>("max_trips") : std::numeric_limits<int64_t>::max();
  for (int64_t trip = 0; trip < limit && run(table, *functions[0], in, bindings)[0].at(0) != 0; ++trip)
    in = run(table, *functions[1], in, bindings);
  return in;
}

// Decompositions and loops see the symbols, as they do when a graph is compiled; host routines see bound shapes.
std::vector<Array> run_node(const OpTable& table, const Graph& g, const Node& n, std::vector<Array> in, const Bindings& bindings) {
  const OpDef& op = *n.op;
  if (op.has(kStructural)) return run_structural(table, n, std::move(in), bindings);
  std::vector<TensorType> types;
  for (Value v : n.inputs) types.push_back(g.type(v));
  if (op.decompose) {
    Builder b(table);
    std::vector<Expr> operands;
    for (const TensorType& t : types) operands.emplace_back(b, b.input(t));
    std::vector<Value> outputs = values(op.decompose(b, OpCall{op, types, n.attrs}, operands));
    return run(table, prune(table, b.finish(std::move(outputs))), in, bindings);
  }
  if (op.evaluate) {
    const Attrs attrs = bound_attrs(n.attrs, bindings);
    std::vector<Array> out;
    std::vector<HostTensor> host_in, host_out;
    for (const TensorType& t : n.types) out.emplace_back(t.dtype, tandem::bind(t.dims, bindings));
    for (Array& a : in) host_in.push_back({a.dtype, a.shape, a.bytes.data()});
    for (Array& a : out) host_out.push_back({a.dtype, a.shape, a.bytes.data()});
    op.evaluate(HostCall{op, attrs, host_in, host_out, [](int64_t chunks, const std::function<void(int64_t)>& f) {
                           for (int64_t c = 0; c < chunks; ++c) f(c);
                         }});
    return out;
  }
  return run_loops(loops_of(op, types, n.attrs, n.types), in, bindings);
}

std::vector<Array> run(const OpTable& table, const Graph& g, const std::vector<Array>& inputs, Bindings bindings) {
  std::vector<std::vector<Array>> made(g.nodes.size());
  for (size_t i = 0; i < g.inputs.size(); ++i) {
    TANDEM_CHECK(inputs[i].dtype == g.type(g.inputs[i]).dtype, "input ", i);
    unify(g.type(g.inputs[i]).dims, inputs[i].shape, bindings, "input");
    made[static_cast<size_t>(g.inputs[i].node)] = {inputs[i]};
  }
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    if (!made[i].empty() || g.nodes[i].op->name == "input") continue;
    std::vector<Array> in;
    for (Value v : g.nodes[i].inputs) in.push_back(made[static_cast<size_t>(v.node)][static_cast<size_t>(v.out)]);
    made[i] = run_node(table, g, g.nodes[i], std::move(in), bindings);
    TANDEM_CHECK(made[i].size() == g.nodes[i].types.size(), g.nodes[i].op->name, " gave ", made[i].size(), " results");
    for (size_t k = 0; k < made[i].size(); ++k)
      TANDEM_CHECK(made[i][k].dtype == g.nodes[i].types[k].dtype && made[i][k].shape == tandem::bind(g.nodes[i].types[k].dims, bindings),
                   g.nodes[i].op->name, " gave ", made[i][k].shape, " for ", g.nodes[i].types[k]);
  }
  std::vector<Array> out;
  for (Value v : g.outputs) out.push_back(made[static_cast<size_t>(v.node)][static_cast<size_t>(v.out)]);
  return out;
}

}  // namespace

std::vector<Array> evaluate(const OpTable& table, const Graph& g, const std::vector<Array>& inputs, const Bindings& bindings) {
  return run(table, g, inputs, bindings);
}

}  // namespace tandem::test
