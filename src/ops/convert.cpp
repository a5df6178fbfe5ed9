// From one element type to another: by value, and by the bits.
#include "ops/elementwise.hpp"
#include "ops/table.hpp"

namespace tandem::ops {
namespace {

using namespace ir;

std::vector<TensorType> infer_cast(const OpCall& c) { return {{c.attrs.get<DType>("dtype"), c.in[0].dims}}; }

std::vector<Expr> cast_vjp(const GradCall& c) {
  const bool flows = is_float(c.in[0].dtype()) && is_float(c.out[0].dtype());
  return {flows ? c.grad().cast(c.in[0].dtype()) : Expr()};
}

// --- bitcast ---------------------------------------------------------------------------------------------------------------

// Between types of one width the shape stays; otherwise the last axis holds more or fewer elements in as many bytes.
std::vector<TensorType> infer_bitcast(const OpCall& c) {
  const DType from = c.in[0].dtype, to = c.attrs.get<DType>("dtype");
  if (from != to && (from == DType::Bool || to == DType::Bool))
    c.fail("bool has no bits of its own, got ", c.in[0], " to ", to, "\n  hint: cast to uint8 first");
  Dims dims = c.in[0].dims;
  const auto wide = static_cast<int64_t>(size_of(from)), narrow = static_cast<int64_t>(size_of(to));
  if (wide == narrow) return {{to, dims}};
  if (dims.empty()) c.fail("a tensor without axes cannot change its width, ", from, " has ", wide, " bytes, ", to, " has ", narrow);
  if (wide > narrow) {
    dims.back() = dims.back() * Dim(wide / narrow);
  } else {
    Dim count;
    if (!divides_exactly(dims.back(), Dim(narrow / wide), count))
      c.fail("the last axis of ", c.in[0], " must be a multiple of ", narrow / wide, " to become ", to, ", it is ", dims.back());
    dims.back() = count;
  }
  return {{to, dims}};
}

DType unsigned_type(DType t) {
  switch (size_of(t)) {
    case 1: return DType::U8;
    case 2: return DType::U16;
    case 4: return DType::U32;
    default: return DType::U64;
  }
}

Scalar bits_at(const TensorType& in, std::vector<Scalar> index) {
  return bitcast(load(0, in.dtype, std::move(index)), unsigned_type(in.dtype));
}

// One of the `parts` pieces of a wider element, the lowest bits first.
Scalar narrow_element(const TensorType& in, DType to, std::vector<Scalar> index, int64_t parts) {
  const Scalar last = index.back();
  index.back() = last / index_constant(parts);
  const Scalar bits = bits_at(in, index);
  const Scalar shift = last % index_constant(parts) * index_constant(static_cast<int64_t>(8 * size_of(to)));
  return cast(bits >> cast(shift, bits.dtype()), unsigned_type(to));
}

// `parts` neighbours put together, the first one lowest.
Scalar joined_element(const TensorType& in, DType to, const std::vector<Scalar>& index, int64_t parts) {
  const DType bits = unsigned_type(to);
  Scalar all = constant_int(bits, 0);
  for (int64_t k = 0; k < parts; ++k) {
    std::vector<Scalar> at = index;
    at.back() = at.back() * index_constant(parts) + index_constant(k);
    const int64_t shift = k * static_cast<int64_t>(8 * size_of(in.dtype));
    all = all | (cast(bits_at(in, std::move(at)), bits) << constant_int(bits, shift));
  }
  return all;
}

Loops bitcast_loops(const OpCall& c, std::span<const TensorType> out) {
  const TensorType& in = c.in[0];
  const DType to = out[0].dtype;
  const auto from_bytes = static_cast<int64_t>(size_of(in.dtype)), to_bytes = static_cast<int64_t>(size_of(to));
  const std::vector<Scalar> index = output_axes(out[0].rank());
  Scalar element;
  if (from_bytes == to_bytes)
    element = load(0, in.dtype, index);
  else if (from_bytes > to_bytes)
    element = narrow_element(in, to, index, from_bytes / to_bytes);
  else
    element = joined_element(in, to, index, to_bytes / from_bytes);
  return map_loops(out[0].dims, bitcast(element, to));
}

}  // namespace

Rows convert_rows() {
  return {
      {.name = "cast",
       .sig = "(x: own; dtype: dtype) -> custom",
       .doc = "x as another element type. Floats become integers by truncation, and the nearest integer there is when they are out of "
              "range (NaN: 0); to bool is `!= 0`; integers keep their low bits.",
       .body = [](const OpCall& c, Scalar x) { return ir::cast(x, c.attrs.get<DType>("dtype")); },
       .infer = infer_cast,
       .vjp = cast_vjp,
       .samples = {"([2,3]; dtype=float32)",
                   "([2,3]; dtype=int32)",
                   "([2,3]; dtype=bool)",
                   "([2,3]; dtype=float16)",
                   "([67]; dtype=bfloat16)",
                   "([67]; dtype=float64)",
                   "([67] in 0..100; dtype=uint8)",
                   "([0,3]; dtype=float32)",
                   "([]; dtype=int64)",
                   "([2,1,3,2,2]; dtype=int8)",
                   "([2,1,3,2,2] in 0..9; dtype=uint16)",
                   "([5] in 0..9; dtype=uint32)",
                   "([5] in 0..9; dtype=uint64)",
                   "([5]; dtype=int16)",
                   "([24] special; dtype=int32) !grad",
                   "([24] special; dtype=uint8) !grad",
                   "([24] special; dtype=float16) !grad",
                   "([24] special; dtype=float32) !grad",
                   "([24] special; dtype=bool) !grad",
                   "([24] special; dtype=int64) !grad",
                   "([24] special; dtype=uint64) !grad"}},
      {.name = "bitcast",
       .sig = "(x: own; dtype: dtype) -> custom",
       .doc = "The same bytes read as another element type, little-endian. When the width changes, so does the length of the last axis.",
       .traits = kZeroGradient,
       .infer = infer_bitcast,
       .loops = bitcast_loops,
       .samples = {"([2,3]:float32; dtype=int32)", "([67]:int32; dtype=float32)", "([2,3]:float64; dtype=uint64)",
                   "([5]:float16; dtype=int16)", "([5]:bfloat16; dtype=uint16)", "([]:int8; dtype=uint8)", "([0,3]:float32; dtype=uint32)",
                   "([2,3]:float32; dtype=uint8)", "([2,8]:uint8; dtype=float32)", "([2,8]:int8; dtype=int64)",
                   "([3]:int64; dtype=float16)", "([2,1,2,2,4]:uint16; dtype=uint32)", "([3]:bool; dtype=bool)"}},
  };
}

}  // namespace tandem::ops
