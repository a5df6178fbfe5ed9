#include "transform/vmap.hpp"

#include <map>

#include "base/text.hpp"
#include "ir/rewrite.hpp"
#include "ops/table.hpp"

namespace tandem::transform {
namespace {

using ir::Attrs;
using ir::Builder;
using ir::Graph;
using ir::Ints;
using ir::Node;
using ir::TensorType;
using ir::Value;

// A reason; caught where vmap begins.
struct Refusal {
  std::string why;
};
template <class... T> [[noreturn]] void refuse(const T&... parts) { throw Refusal{cat(parts...)}; }

// A value of the new graph and whether it has the new axis.
struct Lane {
  Value value;
  bool batched = false;
};

Dims prefixed(const Dim& first, const Dims& rest) {
  Dims dims{first};
  dims.insert(dims.end(), rest.begin(), rest.end());
  return dims;
}

Ints prefixed(int64_t first, const Ints& rest) {
  Ints ints{first};
  ints.insert(ints.end(), rest.begin(), rest.end());
  return ints;
}

// One node as its rule sees it: the element's types and the new operands.
class Call {
 public:
  Call(Builder& b, const Graph& g, const Node& n, std::vector<Lane> lanes, const Dim& batch, Exactness exactness)
      : builder(b), node(n), lanes(std::move(lanes)), batch(batch), exactness(exactness) {
    for (const Value v : n.inputs) types.push_back(g.type(v));
  }

  const TensorType& in(size_t i) const { return types[i]; }
  const TensorType& out(size_t i = 0) const { return node.types[i]; }
  int rank(size_t i = 0) const { return in(i).rank(); }
  bool batched(size_t i) const { return lanes[i].batched; }

  Value reshape(Value v, Dims dims) const { return builder.op("reshape", {v}, {{"shape", std::move(dims)}}); }
  Value broadcast(Value v, Dims dims) const { return builder.op("broadcast_to", {v}, {{"shape", std::move(dims)}}); }
  // Operand i with the batch in front, whether it had it or not.
  Value full(size_t i) const { return batched(i) ? lanes[i].value : broadcast(lanes[i].value, prefixed(batch, in(i).dims)); }
  // Operand i such that broadcasting against `to` axes meets the right ones.
  Value aligned(size_t i, int to) const {
    if (!batched(i) || rank(i) == to) return lanes[i].value;
    Dims dims(static_cast<size_t>(to - rank(i)), Dim(1));
    dims.insert(dims.end(), in(i).dims.begin(), in(i).dims.end());
    return reshape(lanes[i].value, prefixed(batch, dims));
  }
  std::vector<Value> same(std::vector<Value> operands, const Attrs& attrs) const { return builder.node(*node.op, operands, attrs); }
  std::vector<Value> same(std::vector<Value> operands) const { return same(std::move(operands), node.attrs); }
  Attrs with(std::string_view name, ir::Attr value) const {
    Attrs attrs = node.attrs;
    attrs.set(name, std::move(value));
    return attrs;
  }
  // An axis of the element of `rank` axes, counted in the batch.
  static int64_t moved(int64_t axis, int rank) { return (axis < 0 ? axis + rank : axis) + 1; }
  static Ints moved(Ints axes, int rank) {
    for (int64_t& a : axes) a = moved(a, rank);
    return axes;
  }
  Ints moved_axes(std::string_view name, int rank) const {  // none: all
    if (node.attrs.has(name)) return moved(node.attrs.get<Ints>(name), rank);
    Ints all;
    for (int i = 0; i < rank; ++i) all.push_back(i + 1);
    return all;
  }
  void only_first_batched() const {
    for (size_t i = 1; i < lanes.size(); ++i)
      if (batched(i)) refuse(node.op->name, " has another ", node.op->signature.operands[i].name, " for each element");
    if (!batched(0)) refuse(node.op->name, " has the same ", node.op->signature.operands[0].name, " for each element");
  }
  void needs_tolerance() const {
    if (exactness == Exactness::Bits && is_float(out().dtype))
      refuse(node.op->name, " adds floating-point numbers in an order that may be another one for a batch");
  }

  Builder& builder;
  const Node& node;
  const std::vector<Lane> lanes;
  std::vector<TensorType> types;
  const Dim& batch;
  const Exactness exactness;
};

using Rule = std::vector<Value> (*)(const Call&);

std::vector<Value> elementwise(const Call& c) {
  int rank = 0;
  for (size_t i = 0; i < c.lanes.size(); ++i) rank = std::max(rank, c.rank(i));
  std::vector<Value> operands;
  for (size_t i = 0; i < c.lanes.size(); ++i) operands.push_back(c.aligned(i, rank));
  return c.same(std::move(operands));
}

std::vector<Value> as_reshape(const Call& c) { return {c.reshape(c.lanes[0].value, prefixed(c.batch, c.out().dims))}; }

std::vector<Value> as_broadcast(const Call& c) { return {c.broadcast(c.aligned(0, c.out().rank()), prefixed(c.batch, c.out().dims))}; }

std::vector<Value> reduction(const Call& c) { return c.same({c.lanes[0].value}, c.with("axis", c.moved_axes("axis", c.rank()))); }
std::vector<Value> inexact_reduction(const Call& c) {
  c.needs_tolerance();
  return reduction(c);
}

std::vector<Value> arg_reduction(const Call& c) {
  if (c.node.attrs.has("axis")) return c.same({c.lanes[0].value}, c.with("axis", Call::moved(c.node.attrs.get<int64_t>("axis"), c.rank())));
  if (c.node.attrs.get<bool>("keepdims")) refuse(c.node.op->name, " over all axes that keeps them");
  return c.same({c.reshape(c.lanes[0].value, {c.batch, product(c.in(0).dims)})}, c.with("axis", int64_t{1}));
}

std::vector<Value> one_axis(const Call& c) {
  c.only_first_batched();
  return c.same({c.lanes[0].value}, c.with("axis", Call::moved(c.node.attrs.get<int64_t>("axis"), c.rank())));
}

std::vector<Value> axes(const Call& c) { return c.same({c.lanes[0].value}, c.with("axis", c.moved_axes("axis", c.rank()))); }

std::vector<Value> transpose(const Call& c) {
  Ints perm;
  for (int i = c.rank(); i-- > 0;) perm.push_back(i);
  if (c.node.attrs.has("perm")) perm = c.node.attrs.get<Ints>("perm");
  return c.same({c.lanes[0].value}, c.with("perm", prefixed(0, Call::moved(perm, c.rank()))));
}

std::vector<Value> tile(const Call& c) {
  const Ints repeats = c.node.attrs.get<Ints>("repeats");
  Ints all(static_cast<size_t>(c.out().rank()) - repeats.size() + 1, 1);
  all.insert(all.end(), repeats.begin(), repeats.end());
  return c.same({c.aligned(0, c.out().rank())}, c.with("repeats", all));
}

std::vector<Value> concatenate(const Call& c) {
  std::vector<Value> operands;
  for (size_t i = 0; i < c.lanes.size(); ++i) operands.push_back(c.full(i));
  return c.same(std::move(operands), c.with("axis", Call::moved(c.node.attrs.get<int64_t>("axis"), c.rank())));
}

std::vector<Value> slice(const Call& c) {
  Attrs attrs = c.with("start", prefixed(Dim(0), c.node.attrs.get<Dims>("start")));
  attrs.set("limit", prefixed(c.batch, c.node.attrs.get<Dims>("limit")));
  attrs.set("step", prefixed(1, c.node.attrs.get<Ints>("step")));
  return c.same({c.lanes[0].value}, attrs);
}

std::vector<Value> place(const Call& c) {
  Attrs attrs = c.with("shape", prefixed(c.batch, c.node.attrs.get<Dims>("shape")));
  attrs.set("start", prefixed(Dim(0), c.node.attrs.get<Dims>("start")));
  attrs.set("step", prefixed(1, c.node.attrs.get<Ints>("step")));
  return c.same({c.lanes[0].value}, attrs);
}

std::vector<Value> pad(const Call& c) {
  c.only_first_batched();
  Attrs attrs = c.with("low", prefixed(Dim(0), c.node.attrs.get<Dims>("low")));
  attrs.set("high", prefixed(Dim(0), c.node.attrs.get<Dims>("high")));
  return c.same({c.lanes[0].value, c.lanes[1].value}, attrs);
}

std::vector<Value> pad_mode(const Call& c) {
  Attrs attrs = c.with("low", prefixed(0, c.node.attrs.get<Ints>("low")));
  attrs.set("high", prefixed(0, c.node.attrs.get<Ints>("high")));
  return c.same({c.lanes[0].value}, attrs);
}

std::vector<Value> one_hot(const Call& c) {
  return c.same({c.lanes[0].value}, c.with("axis", Call::moved(c.node.attrs.get<int64_t>("axis"), c.out().rank())));
}

// Either every element picks from the same tensor, or the same indices pick from every element.
std::vector<Value> take(const Call& c) {
  const int64_t axis = Call::moved(c.node.attrs.get<int64_t>("axis"), c.rank(0));
  if (c.batched(0) && c.batched(1)) refuse(c.node.op->name, " has other indices for each element");
  if (c.batched(0)) return c.same({c.lanes[0].value, c.lanes[1].value}, c.with("axis", axis));
  const std::vector<Value> taken = c.same({c.lanes[0].value, c.lanes[1].value}, c.with("axis", axis - 1));
  Ints perm{axis - 1};  // the batch lies where the indices' axes begin
  for (int64_t i = 0; i <= c.out().rank(); ++i)
    if (i != axis - 1) perm.push_back(i);
  return {c.builder.op("transpose", {taken[0]}, {{"perm", perm}})};
}

std::vector<Value> take_along(const Call& c) {
  return c.same({c.full(0), c.full(1)}, c.with("axis", Call::moved(c.node.attrs.get<int64_t>("axis"), c.rank(0))));
}

// As matrices of at least two axes each, whose leading axes broadcast.
std::vector<Value> matmul(const Call& c) {
  c.needs_tolerance();
  const int rank = std::max({c.rank(0), c.rank(1), 2});
  const auto matrix = [&](size_t i) {
    if (c.rank(i) >= 2) return c.aligned(i, c.batched(i) ? rank : c.rank(i));
    const Dim k = c.in(i).dims[0];
    Dims dims = i == 0 ? Dims{Dim(1), k} : Dims{k, Dim(1)};
    if (!c.batched(i)) return c.reshape(c.lanes[i].value, dims);
    dims.insert(dims.begin(), static_cast<size_t>(rank - 2), Dim(1));
    return c.reshape(c.lanes[i].value, prefixed(c.batch, dims));
  };
  for (size_t i = 0; i < 2; ++i)
    if (c.rank(i) < 2 && c.node.attrs.get<bool>(i == 0 ? "transpose_x" : "transpose_y")) refuse("matmul transposes a vector");
  return {c.reshape(c.same({matrix(0), matrix(1)})[0], prefixed(c.batch, c.out().dims))};
}

std::vector<Value> max_pool(const Call& c) {  // has an axis of images already: the batch joins it
  Dims joined = c.in(0).dims;
  joined[0] = joined[0] * c.batch;
  return {c.reshape(c.same({c.reshape(c.lanes[0].value, joined)})[0], prefixed(c.batch, c.out().dims))};
}

std::vector<Value> unchanged(const Call& c) {  // works on the last axes
  c.only_first_batched();
  return c.same({c.lanes[0].value});
}

const std::map<std::string_view, Rule>& rules() {
  static const auto& table = *new std::map<std::string_view, Rule>{
      // never destroyed: gradients may be asked for while the program ends
      {"reshape", as_reshape},
      {"expand_dims", as_reshape},
      {"squeeze", as_reshape},
      {"broadcast_to", as_broadcast},
      {"full", as_broadcast},
      {"transpose", transpose},
      {"flip", axes},
      {"roll", axes},
      {"tile", tile},
      {"repeat", one_axis},
      {"concatenate", concatenate},
      {"concatenate_few", concatenate},
      {"slice", slice},
      {"place", place},
      {"pad", pad},
      {"pad_mode", pad_mode},
      {"tril", unchanged},
      {"triu", unchanged},
      {"bitcast", unchanged},
      {"max", reduction},
      {"min", reduction},
      {"any", reduction},
      {"all", reduction},
      {"count_nonzero", reduction},
      {"sum", inexact_reduction},
      {"prod", inexact_reduction},
      {"mean", inexact_reduction},
      {"argmax", arg_reduction},
      {"argmin", arg_reduction},
      {"sort", one_axis},
      {"argsort", one_axis},
      {"one_hot", one_hot},
      {"take_clipped", take},
      {"take_along_axis_clipped", take_along},
      {"matmul", matmul},
      {"max_pool", max_pool},
  };
  return table;
}

class Vmap {
 public:
  Vmap(Builder& b, const Dim& batch, Exactness exactness) : builder_(b), batch_(batch), exactness_(exactness) {}

  // The outputs of a graph whose inputs are these.
  std::vector<Lane> run(const Graph& g, const std::vector<Lane>& inputs) {
    ir::ValueMap<Lane> lanes(g);
    for (size_t i = 0; i < inputs.size(); ++i) lanes[g.inputs[i]] = inputs[i];
    for (int32_t n = 0; n < g.count(); ++n) {
      const Node& node = g.node(n);
      if (node.op->name == "input") continue;
      std::vector<Lane> in;
      bool is_batched = false;
      for (const Value v : node.inputs) {
        in.push_back(lanes[v]);
        is_batched |= in.back().batched;
      }
      builder_.follow(node);
      const std::vector<Lane> out = is_batched ? batched(g, node, in) : unbatched(node, in);
      for (int32_t o = 0; o < std::ssize(out); ++o) lanes[{n, o}] = out[static_cast<size_t>(o)];
    }
    std::vector<Lane> out;
    for (const Value v : g.outputs) out.push_back(lanes[v]);
    return out;
  }

 private:
  std::vector<Lane> unbatched(const Node& node, const std::vector<Lane>& in) {
    std::vector<Value> operands;
    for (const Lane& l : in) operands.push_back(l.value);
    Value first = builder_.copy(node, operands);
    std::vector<Lane> out;
    for (size_t i = 0; i < node.types.size(); ++i) out.push_back({{first.node, static_cast<int32_t>(i)}, false});
    return out;
  }

  std::vector<Lane> batched(const Graph& g, const Node& node, const std::vector<Lane>& in) {
    const ir::OpDef& op = *node.op;
    const auto rule = rules().find(op.name);
    if (rule == rules().end() && !op.body && op.decompose) return decomposed(g, node, in);
    if (rule == rules().end() && !op.body) refuse(op.name, " has no rule for batches");
    const Call call(builder_, g, node, in, batch_, exactness_);
    const std::vector<Value> values = op.body ? elementwise(call) : rule->second(call);
    std::vector<Lane> out;
    for (size_t i = 0; i < node.types.size(); ++i) {
      const TensorType wanted{node.types[i].dtype, prefixed(batch_, node.types[i].dims)};
      if (!(builder_.type(values[i]) == wanted)) refuse(op.name, " gives ", builder_.type(values[i]), " for a batch instead of ", wanted);
      out.push_back({values[i], true});
    }
    return out;
  }

  std::vector<Lane> decomposed(const Graph& g, const Node& node, const std::vector<Lane>& in) {
    Builder inner(builder_.table());
    inner.device = node.device;
    std::vector<TensorType> types;
    std::vector<Value> inputs;
    for (const Value v : node.inputs) {
      types.push_back(g.type(v));
      inputs.push_back(inner.input(types.back()));
    }
    const std::vector<ir::Expr> results = node.op->decompose(inner, {*node.op, types, node.attrs}, ir::exprs(inner, inputs));
    return run(inner.finish(ir::values(results)), in);
  }

  Builder& builder_;
  const Dim& batch_;
  const Exactness exactness_;
};

}  // namespace

std::optional<Graph> vmap(const Graph& graph, const std::vector<bool>& batched, const Dim& batch, Exactness exactness,
                          std::string* why) try {
  TANDEM_CHECK(batched.size() == graph.inputs.size(), "one flag an input");
  Builder b(ops::table());
  std::vector<Lane> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Node& input = graph.node(graph.inputs[i]);
    const TensorType& type = input.types[0];
    inputs.push_back({batched[i] ? b.input({type.dtype, prefixed(batch, type.dims)}) : b.input_like(input), batched[i]});
  }
  std::vector<Value> outputs;
  for (const Lane& l : Vmap(b, batch, exactness).run(graph, inputs))
    outputs.push_back(l.batched ? l.value : b.op("broadcast_to", {l.value}, {{"shape", prefixed(batch, b.type(l.value).dims)}}));
  if (why) why->clear();
  return b.finish(std::move(outputs), graph.name);
} catch (const Refusal& r) {
  if (why) *why = r.why;
  return {};
} catch (const UserError& e) {  // an op that does not take symbols
  if (why) *why = e.what();
  return {};
}

}  // namespace tandem::transform
