#include "frontend/shape_values.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "frontend/tensor_impl.hpp"
#include "frontend/tracer.hpp"

namespace tandem::frontend {
namespace {

constexpr int64_t kMost = 64;  // elements: a shape is short

using Maybe = std::optional<Dims>;

// Walks back through one trace's graph, and through those that it is inside of.
class Reader {
 public:
  explicit Reader(const Tracer& t) : tracer_(t) {}

  Maybe read(ir::Value v) const {
    const ir::Graph& g = tracer_.graph();
    const ir::TensorType& type = g.type(v);
    if (!is_int(type.dtype) || type.rank() > 1) return {};
    if (type.rank() == 1 && (!type.dims[0].is_const() || type.dims[0].value() > kMost)) return {};
    const ir::Node& n = g.node(v);
    const std::string_view op = n.op->name;
    if (op == "input") return from_outside(v);
    if (op == "constant") return numbers(n.attrs.get<ir::Literal>("value"));
    if (op == "extent") return Dims{product(n.attrs.get<Dims>("dims"))};
    if (op == "cast" || op == "reshape" || op == "expand_dims" || op == "squeeze" || op == "identity" || op == "stop_gradient")
      return of_size(read(n.inputs[0]), type);
    if (op == "broadcast_to" || op == "full") return repeated(read(n.inputs[0]), type);
    if (op == "stack" || op == "concatenate" || op == "concatenate_few") return joined(n);
    if (op == "unstack") return one(read(n.inputs[0]), v.out);
    if (op == "slice") return sliced(n);
    if (op == "prod") return folded(n, type, Dim(1), [](const Dim& a, const Dim& b) { return a * b; });
    if (op == "sum") return folded(n, type, Dim(0), [](const Dim& a, const Dim& b) { return a + b; });
    if (op == "add") return zipped(n, [](const Dim& a, const Dim& b) { return a + b; });
    if (op == "subtract") return zipped(n, [](const Dim& a, const Dim& b) { return a - b; });
    if (op == "multiply") return zipped(n, [](const Dim& a, const Dim& b) { return a * b; });
    if (op == "maximum") return zipped(n, [](const Dim& a, const Dim& b) { return max(a, b); });
    if (op == "minimum") return zipped(n, [](const Dim& a, const Dim& b) { return min(a, b); });
    if (op == "negative") return zipped_with_zero(n);
    if (op == "floor_divide" || op == "remainder") return divided(n, op == "remainder");
    return {};
  }

 private:
  Maybe from_outside(ir::Value v) const {
    for (const Tracer::External& e : tracer_.externals())
      if (e.input == v && e.outer.defined()) return try_dims_of(e.outer);
    return {};
  }

  static Maybe numbers(const ir::Literal& literal) {
    Dims dims;
    const size_t size = size_of(literal.dtype);
    for (size_t at = 0; at + size <= literal.bytes->size(); at += size)
      dims.emplace_back(static_cast<int64_t>(ir::load_number(literal.dtype, literal.bytes->data() + at)));
    return dims;
  }

  static Maybe of_size(Maybe dims, const ir::TensorType& type) {
    const int64_t size = type.rank() == 0 ? 1 : type.dims[0].value();
    if (dims && static_cast<int64_t>(dims->size()) != size) return {};
    return dims;
  }

  static Maybe repeated(const Maybe& dims, const ir::TensorType& type) {
    const auto size = static_cast<size_t>(type.rank() == 0 ? 1 : type.dims[0].value());
    if (!dims || (dims->size() != 1 && dims->size() != size)) return {};
    return dims->size() == size ? *dims : Dims(size, dims->front());
  }

  static Maybe one(const Maybe& dims, int32_t at) {
    if (!dims || static_cast<size_t>(at) >= dims->size()) return {};
    return Dims{(*dims)[static_cast<size_t>(at)]};
  }

  Maybe joined(const ir::Node& n) const {
    Dims all;
    for (const ir::Value v : n.inputs) {
      const Maybe part = read(v);
      if (!part) return {};
      all.insert(all.end(), part->begin(), part->end());
    }
    return all;
  }

  Maybe sliced(const ir::Node& n) const {
    const Maybe all = read(n.inputs[0]);
    const Dims &start = n.attrs.get<Dims>("start"), &limit = n.attrs.get<Dims>("limit");
    if (!all || start.size() > 1) return {};
    if (start.empty()) return all;
    const int64_t step = n.attrs.get<ir::Ints>("step")[0];
    if (!start[0].is_const() || !limit[0].is_const()) return {};
    Dims part;
    for (int64_t i = start[0].value(); step > 0 ? i < limit[0].value() : i > limit[0].value(); i += step) {
      if (i < 0 || i >= static_cast<int64_t>(all->size())) return {};
      part.push_back((*all)[static_cast<size_t>(i)]);
    }
    return part;
  }

  template <class F> Maybe folded(const ir::Node& n, const ir::TensorType& type, const Dim& from, F f) const {
    const Maybe all = read(n.inputs[0]);
    if (!all || type.rank() != 0) return {};
    Dim total = from;
    for (const Dim& d : *all) total = f(total, d);
    return Dims{total};
  }

  template <class F> Maybe zipped(const ir::Node& n, F f) const {
    const Maybe a = read(n.inputs[0]), b = read(n.inputs[1]);
    if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return {};
    Dims result;
    for (size_t i = 0; i < std::max(a->size(), b->size()); ++i)
      result.push_back(f((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]));
    return result;
  }

  Maybe zipped_with_zero(const ir::Node& n) const {
    Maybe a = read(n.inputs[0]);
    if (a)
      for (Dim& d : *a) d = Dim(0) - d;
    return a;
  }

  // Only by numbers above zero: what an expression is, is not known.
  Maybe divided(const ir::Node& n, bool wants_remainder) const {
    const Maybe divisor = read(n.inputs[1]);
    if (!divisor || std::ranges::any_of(*divisor, [](const Dim& d) { return !d.is_const() || d.value() <= 0; })) return {};
    return zipped(n, [&](const Dim& a, const Dim& b) { return wants_remainder ? a - floor_div(a, b) * b : floor_div(a, b); });
  }

  const Tracer& tracer_;
};

}  // namespace

std::optional<Dims> try_dims_of(const Tensor& t) {
  const TracedTensor* value = traced(t);
  if (!value) {
    if (!t.defined() || !is_int(t.dtype()) || t.rank() > 1 || t.size() > kMost) return {};
    Dims dims;
    for (const int64_t n : t.to_vector<int64_t>()) dims.emplace_back(n);
    return dims;
  }
  for (const Tracer* tracer = thread_state.tracer; tracer; tracer = tracer->parent())
    if (tracer->id() == value->tracer) return Reader(*tracer).read(value->value);
  return {};
}

Dims dims_of(const Tensor& t) {
  std::optional<Dims> dims = try_dims_of(t);
  if (!dims)
    user_error("a shape is wanted, but ", t.type_str(), " depends on data, or is no list of integers",
               "\n  hint: a compiled function's shapes are computed from the shapes of its arguments");
  return *dims;
}

}  // namespace tandem::frontend
