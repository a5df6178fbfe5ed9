#include "ops/helpers.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tandem::ops {
using namespace ir;

Scalar index_constant(int64_t v) { return constant_int(DType::I64, v); }

std::vector<Scalar> output_axes(int rank) {
  std::vector<Scalar> axes;
  for (int k = 0; k < rank; ++k) axes.push_back(axis(k));
  return axes;
}

Scalar in_range(const Scalar& i, const Scalar& size) { return (i >= 0) & (i < size); }

Scalar floor_mod(const Scalar& a, const Scalar& n) {
  Scalar r = a % n;
  return select(r < 0, r + n, r);
}

Scalar clamp_index(const Scalar& i, const Scalar& low, const Scalar& high) { return max(min(i, high), low); }

Scalar both(const Scalar& a, const Scalar& b) { return a ? a & b : b; }

Scalar load_when(int input, DType t, std::vector<Scalar> index, const Scalar& valid) {
  return valid ? load_if(input, t, std::move(index), valid, constant(t, 0)) : load(input, t, std::move(index));
}

Loops map_loops(const Dims& dims, Scalar result) { return {.extents = dims, .results = {std::move(result)}}; }

namespace {
// A run of input axes that holds the same elements in the same order as a run of output axes.
struct Group {
  size_t in_begin, in_end, out_begin, out_end;
};

// Cuts both shapes at the places where the products of the axes so far are equal, so that axes that stay need no division.
std::vector<Group> matching_groups(const Dims& in, const Dims& out) {
  std::vector<Group> groups;
  size_t i = 0, j = 0;
  while (i < in.size() && j < out.size()) {
    Group g{i, i + 1, j, j + 1};
    Dim a = in[i], b = out[j];
    while (!(a == b)) {
      Dim quotient;
      bool a_is_smaller = a.is_const() && b.is_const() ? a.value() < b.value() : divides_exactly(b, a, quotient);
      if (a_is_smaller && g.in_end < in.size()) {
        a = a * in[g.in_end++];
      } else if (!a_is_smaller && g.out_end < out.size()) {
        b = b * out[g.out_end++];
      } else {  // zeros or symbols that do not divide: all that is left is one group
        g.in_end = in.size();
        g.out_end = out.size();
        break;
      }
    }
    groups.push_back(g);
    i = g.in_end;
    j = g.out_end;
  }
  return groups;
}
}  // namespace

Loops reshape_loops(const TensorType& in, const Dims& out) {
  std::vector<Scalar> index(in.dims.size(), index_constant(0));  // axes beyond the last group have extent 1
  for (const Group& g : matching_groups(in.dims, out)) {
    Scalar position = axis(static_cast<int>(g.out_begin));
    for (size_t j = g.out_begin + 1; j < g.out_end; ++j) position = position * extent(out[j]) + axis(static_cast<int>(j));
    for (size_t i = g.in_end; i-- > g.in_begin;) {
      Scalar size = extent(in.dims[i]);
      index[i] = i == g.in_begin ? position : position % size;
      if (i != g.in_begin) position = position / size;
    }
  }
  return map_loops(out, load(0, in.dtype, index));
}

bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }
DType accumulator_type(DType t) { return is_half(t) ? DType::F32 : t; }

DType sum_type(DType t) {
  switch (t) {
    case DType::Bool:
    case DType::I8:
    case DType::I16: return DType::I32;
    case DType::U8:
    case DType::U16: return DType::U32;
    default: return t;
  }
}

Dims reduced_dims(const Dims& dims, const Ints& axes, bool keepdims) {
  Dims out;
  for (size_t k = 0; k < dims.size(); ++k) {
    bool reduced = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(k));
    if (!reduced)
      out.push_back(dims[k]);
    else if (keepdims)
      out.push_back(1);
  }
  return out;
}

Ints all_axes(int rank) {
  Ints axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Ints other_axes(const Ints& axes, int rank) {
  Ints others;
  for (int64_t k = 0; k < rank; ++k)
    if (!std::binary_search(axes.begin(), axes.end(), k)) others.push_back(k);
  return others;
}

int64_t axis_extent(const OpCall& call, const Dims& dims, int axis) {
  const Dim& d = dims[static_cast<size_t>(axis)];
  if (!d.is_const())
    call.fail("the size of axis ", axis, " of ", str(dims), " must be a number, it is the symbol ", d,
              "\n  hint: the number of results depends on it; trace with a fixed size");
  return d.value();
}

void require_elements(const OpCall& call, const Dims& dims, const Ints& axes) {
  for (int64_t a : axes)
    if (dims[static_cast<size_t>(a)].is(0)) call.fail("axis ", a, " of ", str(dims), " has no elements to choose from");
}

void require_int32(const OpCall& call, const Dim& extent) {
  if (extent.is_const() && extent.value() > std::numeric_limits<int32_t>::max())
    call.fail("positions are int32, and ", extent, " elements are more than 2147483647");
}

const Dims& dims_attr(const OpCall& call, std::string_view attr, int entries) {
  const Dims& d = call.attrs.get<Dims>(attr);
  if (static_cast<int>(d.size()) != entries)
    call.fail(attr, " ", str(d), " has ", d.size(), d.size() == 1 ? " entry, " : " entries, ", entries, " are needed");
  return d;
}

bool never_negative(const Dim& d) { return d.is_const() ? d.value() >= 0 : d.str().find('-') == std::string::npos; }

int64_t diagonal_attr(const OpCall& call, std::string_view attr) {
  constexpr int64_t kFar = int64_t{1} << 48;
  return std::clamp(call.attrs.get<int64_t>(attr), -kFar, kFar);
}

namespace {
template <class F> auto with_call(const GradCall& g, F f) {
  const TensorType type = g.in[0].type();
  const OpCall call{*g.node.op, {&type, 1}, g.node.attrs};
  return f(call, type.rank());
}
}  // namespace

Ints grad_axes(const GradCall& g, std::string_view attr) {
  return with_call(g, [&](const OpCall& call, int rank) { return call.axes(attr, rank); });
}
int grad_axis(const GradCall& g, std::string_view attr) {
  return static_cast<int>(with_call(g, [&](const OpCall& call, int rank) { return call.axis(attr, rank); }));
}

Expr iota(Builder& b, const Dims& shape, int axis, DType t) {
  return {b, b.op("iota", {}, {{"shape", shape}, {"axis", int64_t{axis}}, {"dtype", t}})};
}

Expr filled(Builder& b, const TensorType& type, double value) { return Expr(b, b.scalar(type.dtype, value)).broadcast_to(type.dims); }

Expr count_of(Builder& b, const Dim& count, DType t) {
  if (count.is_const()) return {b, b.scalar(t, static_cast<double>(count.value()))};
  return {b, b.op("extent", {}, {{"dims", Dims{count}}, {"dtype", t}})};
}

Expr divide_by_count(const Expr& x, const Dim& count) {
  DType t = accumulator_type(x.dtype());
  return (x.cast(t) / count_of(x.builder(), count, t)).cast(x.dtype());
}

Expr spread(const Expr& g, const Dims& dims, const Ints& axes) { return g.reshape(reduced_dims(dims, axes, true)).broadcast_to(dims); }

Ints inverse_permutation(const Ints& perm) {
  Ints inverse(perm.size());
  for (size_t k = 0; k < perm.size(); ++k) inverse[static_cast<size_t>(perm[k])] = static_cast<int64_t>(k);
  return inverse;
}

namespace {
// The others first, then `axes`: the order that flatten_axes brings about.
Ints others_then(const Ints& axes, int rank) {
  Ints perm = other_axes(axes, rank);
  perm.insert(perm.end(), axes.begin(), axes.end());
  return perm;
}
Dims permuted(const Dims& dims, const Ints& perm) {
  Dims out;
  for (int64_t p : perm) out.push_back(dims[static_cast<size_t>(p)]);
  return out;
}
}  // namespace

Expr flatten_axes(const Expr& x, const Ints& axes) {
  Dims flat = reduced_dims(x.dims(), axes, false);
  Dim count = 1;
  for (int64_t a : axes) count = count * x.dims()[static_cast<size_t>(a)];
  flat.push_back(count);
  return x.transpose(others_then(axes, x.rank())).reshape(flat);
}

Expr unflatten_axes(const Expr& x, const Dims& dims, const Ints& axes) {
  Ints perm = others_then(axes, static_cast<int>(dims.size()));
  return x.reshape(permuted(dims, perm)).transpose(inverse_permutation(perm));
}

Expr add_at(const Expr& updates, const Expr& indices, const Dims& dims, int axis) {
  // scatter addresses leading axes, so the axes of the indices go to the front and come back afterwards.
  int rank = static_cast<int>(dims.size()), index_rank = indices.rank();
  Ints to_front, from_front{axis};
  for (int k = 0; k < index_rank; ++k) to_front.push_back(axis + k);
  for (int k = 0; k < updates.rank(); ++k)
    if (k < axis || k >= axis + index_rank) to_front.push_back(k);
  for (int k = 0; k < rank; ++k)
    if (k != axis) from_front.push_back(k);
  Expr moved = updates.transpose(to_front);
  Dims index_dims = indices.dims();
  index_dims.push_back(1);
  Expr zeros = filled(updates.builder(), {updates.dtype(), permuted(dims, from_front)}, 0);
  Expr sum = zeros.op("scatter", {indices.reshape(index_dims), moved}, {{"mode", "add"}});
  return sum.transpose(inverse_permutation(from_front));
}

void require(Scalar& valid, const Scalar& condition) { valid = valid ? valid & condition : condition; }

Scalar load_where(int input, DType t, const std::vector<Scalar>& index, const Scalar& valid, const Scalar& otherwise) {
  return valid ? load_if(input, t, index, valid, otherwise) : load(input, t, index);
}

Ints consecutive(int64_t first, int64_t count) {
  Ints axes;
  for (int64_t i = 0; i < count; ++i) axes.push_back(first + i);
  return axes;
}

DType product_dtype(const OpCall& call) {
  const DType t = call.in[0].dtype;
  if (!call.attrs.has("dtype")) return t;
  const DType result = call.attrs.get<DType>("dtype");
  if (result == DType::Bool || (is_float(t) && !is_float(result))) call.fail("the product of ", t, " cannot be ", result);
  return result;
}

bool is_number(const Expr& e, double value) {
  if (e.rank() != 0) return false;
  const Node& node = e.builder().graph().node(e.value());
  if (node.op->name != "constant") return false;
  const auto& literal = node.attrs.get<Literal>("value");
  return load_number(literal.dtype, literal.bytes->data()) == value;
}

}  // namespace tandem::ops
