#include "ir/compose.hpp"

#include <algorithm>
#include <array>

#include "ir/op.hpp"

namespace tandem::ir {
namespace {

constexpr std::array<std::string_view, 4> kForms = {"map", "reduce", "row", "epilogue"};

Scalar both(const Scalar& a, const Scalar& b) { return !a ? b : !b ? a : a & b; }

std::vector<Scalar> axes_of(size_t count, int first = 0) {
  std::vector<Scalar> axes;
  for (size_t j = 0; j < count; ++j) axes.push_back(axis(first + static_cast<int>(j)));
  return axes;
}

// The body's inputs by number.
Composer::InputFn body_inputs(const Graph& body) {
  return [&body](Value v) {
    const Node& n = body.node(v);
    return n.op->name == "input" ? static_cast<int>(n.attrs.get<int64_t>("index")) : -1;
  };
}

std::vector<int32_t> reduction_nodes(const Graph& body, Composer& c) {
  std::vector<int32_t> found;
  for (size_t i = 0; i < body.nodes.size(); ++i) {
    const OpDef& op = *body.nodes[i].op;
    if (op.loops && c.loops(static_cast<int32_t>(i)).reduction) found.push_back(static_cast<int32_t>(i));
  }
  return found;
}

void add_results(const Graph& body, Composer& c, Loops& l) {
  for (Value v : body.outputs) l.results.push_back(c.at(v, places(body.type(v).dims, l.extents)));
}

// The accumulators of a combination, `by` components further on.
Scalar shifted(const Scalar& s, int by) {
  return rewrite(s, [&](const Scalar& x) -> Scalar {
    if (x->prim == Prim::Acc) return acc(x->index + by, x.dtype());
    if (x->prim == Prim::Right) return right(x->index + by, x.dtype());
    return {};
  });
}

Loops compose_reduce(const Graph& body) {
  Composer c(body, body_inputs(body));
  const std::vector<int32_t> nodes = reduction_nodes(body, c);
  TANDEM_CHECK(!nodes.empty(), "a body of form reduce without a reduction");
  Loops l;
  l.extents = c.loops(nodes[0]).extents;
  l.reduction.emplace();
  Reduction& all = *l.reduction;
  all.extents = c.loops(nodes[0]).reduction->extents;
  bool any_later = false;
  for (int32_t n : nodes) {
    const Loops& own = c.loops(n);
    TANDEM_CHECK(own.reduction->extents == all.extents && !own.reduction->limit, "reductions of one body over different axes");
    const int first = static_cast<int>(all.element.size());
    std::vector<Scalar> axes = places(own.extents, l.extents);
    for (const Scalar& a : axes_of(all.extents.size(), static_cast<int>(l.extents.size()))) axes.push_back(a);
    for (const Scalar& e : own.reduction->element) all.element.push_back(c.inside(n, e, axes));
    for (const Scalar& i : own.reduction->identity) all.identity.push_back(i);
    for (const Scalar& s : own.reduction->combine) all.combine.push_back(shifted(s, first));
    for (const Scalar& s : own.reduction->in_order()) all.later.push_back(shifted(s, first));
    any_later = any_later || !own.reduction->later.empty();
    c.number_state(n, first);
  }
  if (!any_later) all.later.clear();
  add_results(body, c, l);
  return l;
}

Loops compose_row(const Graph& body) {
  Composer c(body, body_inputs(body));
  const std::vector<int32_t> nodes = reduction_nodes(body, c);
  TANDEM_CHECK(!nodes.empty(), "a body of form row without a reduction");
  Loops l;
  const Loops& first_loops = c.loops(nodes[0]);
  const Dims rows = without_ones(first_loops.extents);
  l.extents = rows;
  l.extents.push_back(first_loops.reduction->extents.at(0));
  int state = 0;
  for (int32_t n : nodes) {
    const Loops& own = c.loops(n);
    TANDEM_CHECK(own.reduction->extents == Dims{l.extents.back()}, "a reduction of a row body along something else");
    std::vector<Scalar> axes = places(own.extents, rows);
    axes.push_back(axis(static_cast<int>(rows.size())));
    Reduction r = *own.reduction;
    r.extents.clear();
    for (Scalar& e : r.element) e = c.inside(n, e, axes);
    c.number_state(n, state);
    state += static_cast<int>(r.element.size());
    l.row_reductions.push_back(std::move(r));
  }
  for (Value v : body.outputs) {
    const bool per_row = same_space(body.type(v).dims, rows);
    TANDEM_CHECK(per_row || l.row_results == 0, "results of whole rows come before those of one element a row");
    l.results.push_back(c.at(v, places(body.type(v).dims, per_row ? rows : l.extents)));
    if (per_row) ++l.row_results;
  }
  return l;
}

Loops compose_epilogue(const Graph& body) {
  const int32_t product = product_node(body);
  const auto input = body_inputs(body);
  Composer c(body, [&](Value v) { return v.node == product ? static_cast<int>(body.inputs.size()) : input(v); });
  Loops l;
  l.extents = body.nodes[static_cast<size_t>(product)].types[0].dims;
  add_results(body, c, l);
  return l;
}

// One node for each distinct expression in all of the loops: what two results have in common is computed once.
Loops shared(Loops l) {
  std::vector<Scalar*> places;
  const auto add = [&](std::vector<Scalar>& list) {
    for (Scalar& s : list) places.push_back(&s);
  };
  if (l.reduction) add(l.reduction->element);
  for (Reduction& r : l.row_reductions) add(r.element);
  add(l.results);
  std::vector<Scalar> roots;
  for (const Scalar* s : places) roots.push_back(*s);
  roots = share(roots);
  for (size_t i = 0; i < places.size(); ++i) *places[i] = roots[i];
  return l;
}

Loops compose_map(const Graph& body) {
  Composer c(body, body_inputs(body));
  Loops l;
  l.extents = body.type(body.outputs.at(0)).dims;
  add_results(body, c, l);
  return l;
}

}  // namespace

std::string_view name(Form f) { return kForms[static_cast<size_t>(f)]; }

Form parse_form(std::string_view name) {
  const auto found = std::ranges::find(kForms, name);
  if (found == kForms.end()) internal_error("a fused body has the form '", name, "'");
  return static_cast<Form>(found - kForms.begin());
}

const Loops& Composer::loops(int32_t node) {
  if (const auto it = loops_.find(node); it != loops_.end()) return it->second;
  const Node& n = graph_.nodes[static_cast<size_t>(node)];
  std::vector<TensorType> in;
  for (Value v : n.inputs) in.push_back(graph_.type(v));
  return loops_.emplace(node, loops_of(*n.op, in, n.attrs, n.types)).first->second;
}

Scalar Composer::at(Value v, const std::vector<Scalar>& index, const Scalar& guard) {
  const DType t = graph_.type(v).dtype;
  if (const int input = input_(v); input >= 0) return guard ? load_if(input, t, index, guard, constant(t, 0)) : load(input, t, index);
  const Node& n = graph_.node(v);
  if (n.op->name == "constant") {
    const auto& literal = n.attrs.get<Literal>("value");
    TANDEM_CHECK(literal.bytes->size() == size_of(t), "a constant of more than one element inside a fused body");
    uint64_t bits = 0;
    std::copy_n(literal.bytes->data(), literal.bytes->size(), reinterpret_cast<std::byte*>(&bits));
    return program_constant(t, bits);
  }
  Key key{v, {}};
  for (const Scalar& i : index) key.second.push_back(i.get());
  key.second.push_back(guard.get());
  if (const auto it = known_.find(key); it != known_.end()) return it->second;
  const Scalar element = inside(v.node, loops(v.node).results.at(static_cast<size_t>(v.out)), index, guard);
  alive_.insert(alive_.end(), index.begin(), index.end());
  if (guard) alive_.push_back(guard);
  known_.emplace(std::move(key), element);
  return element;
}

Scalar Composer::inside(int32_t node, const Scalar& s, const std::vector<Scalar>& axes, const Scalar& guard) {
  const Node& n = graph_.nodes[static_cast<size_t>(node)];
  return rewrite(s, [&](const Scalar& x) -> Scalar {
    if (x->prim == Prim::Axis) return axes.at(static_cast<size_t>(x->index));
    if (x->prim == Prim::Acc) return acc(first_state_.at(node) + x->index, x.dtype());
    if (x->prim != Prim::Load) return {};
    const Value from = n.inputs[static_cast<size_t>(x->index)];
    if (!x->guarded) return at(from, x->in, guard);
    const std::vector<Scalar> index(x->in.begin(), x->in.end() - 2);
    const Scalar &valid = x->in[index.size()], &otherwise = x->in[index.size() + 1];
    if (const int input = input_(from); input >= 0) return load_if(input, x.dtype(), index, both(guard, valid), otherwise);
    return select(valid, at(from, index, both(guard, valid)), otherwise);
  });
}

namespace {
bool is_affine(const Scalar& s) {
  switch (s->prim) {
    case Prim::Const:
    case Prim::Extent:
    case Prim::Axis: return true;
    case Prim::Add:
    case Prim::Sub:
    case Prim::Neg: return std::ranges::all_of(s->in, is_affine);
    case Prim::Mul:
      return std::ranges::all_of(s->in, is_affine) && std::ranges::any_of(s->in, [](const Scalar& x) { return x->prim != Prim::Axis; });
    default: return false;
  }
}
}  // namespace

bool moves_element(const Scalar& s) { return s->prim == Prim::Load && !s->guarded && std::ranges::all_of(s->in, is_affine); }

bool moves_only(const Scalar& s) {
  if (s->prim == Prim::Const || s->prim == Prim::Axis || s->prim == Prim::Extent || moves_element(s)) return true;
  if (s->prim != Prim::Cast) return false;
  const Scalar& x = s->in[0];
  const bool widens = s.dtype() == DType::F32 && (x.dtype() == DType::F16 || x.dtype() == DType::BF16);
  return x->prim == Prim::Axis || x->prim == Prim::Extent || (widens && moves_element(x));
}

Dims without_ones(const Dims& dims) {
  Dims kept;
  for (const Dim& d : dims)
    if (!d.is(1)) kept.push_back(d);
  return kept;
}

bool same_space(const Dims& a, const Dims& b) { return a == b || without_ones(a) == without_ones(b); }

bool is_own_element(std::span<const Scalar> index, const Dims& dims, const Dims& reader) {
  if (index.size() != dims.size()) return false;
  size_t next = 0;
  const auto skip_ones = [&] {
    while (next < reader.size() && reader[next].is(1)) ++next;
  };
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].is(1)) continue;
    skip_ones();
    const bool own = next < reader.size() && reader[next] == dims[d] && index[d]->prim == Prim::Axis;
    if (!own || index[d]->index != static_cast<int>(next)) return false;
    ++next;
  }
  skip_ones();
  return next == reader.size();
}

std::vector<Scalar> places(const Dims& dims, const Dims& space) {
  TANDEM_CHECK(same_space(dims, space), "the extents ", str(dims), " are not those of the space ", str(space));
  std::vector<Scalar> index;
  size_t next = 0;
  for (const Dim& d : dims) {
    if (d.is(1)) {
      index.push_back(constant_int(DType::I64, 0));
      continue;
    }
    while (space[next].is(1)) ++next;
    index.push_back(axis(static_cast<int>(next++)));
  }
  return index;
}

int32_t product_node(const Graph& body) {
  for (size_t i = 0; i < body.nodes.size(); ++i)
    if (body.nodes[i].op->has(kProduct)) return static_cast<int32_t>(i);
  internal_error("a body of form epilogue without a product");
}

Loops compose(const Graph& body, Form form) {
  switch (form) {
    case Form::Map: return shared(compose_map(body));
    case Form::Reduce: return shared(compose_reduce(body));
    case Form::Row: return shared(compose_row(body));
    case Form::Epilogue: return shared(compose_epilogue(body));
  }
  internal_error("no such form");
}

}  // namespace tandem::ir
