// What several op families write again and again: index arithmetic, shapes of reductions, small graph pieces for gradients.
#pragma once
#include <string_view>
#include <vector>

#include "ir/builder.hpp"
#include "ir/loops.hpp"
#include "ir/op.hpp"

namespace tandem::ops {

// --- index expressions (all int64) ---
ir::Scalar index_constant(int64_t v);
std::vector<ir::Scalar> output_axes(int rank);                     // axis(0) … axis(rank-1)
ir::Scalar in_range(const ir::Scalar& i, const ir::Scalar& size);  // 0 <= i < size
ir::Scalar floor_mod(const ir::Scalar& a, const ir::Scalar& n);    // in [0, n), n > 0
ir::Scalar clamp_index(const ir::Scalar& i, const ir::Scalar& low, const ir::Scalar& high);
ir::Scalar both(const ir::Scalar& a, const ir::Scalar& b);  // a & b; an empty a is true
// The element where `valid` holds, else 0; an empty `valid` is true.
ir::Scalar load_when(int input, DType t, std::vector<ir::Scalar> index, const ir::Scalar& valid);
// Conditions under which an element is there; an empty one is "always".
void require(ir::Scalar& valid, const ir::Scalar& condition);
ir::Scalar load_where(int input, DType t, const std::vector<ir::Scalar>& index, const ir::Scalar& valid, const ir::Scalar& otherwise);
// Loops without a reduction: one result for each point of `dims`.
ir::Loops map_loops(const Dims& dims, ir::Scalar result);
// Input 0 read at the element with the same row-major position: what reshape, squeeze and expand_dims all are.
ir::Loops reshape_loops(const ir::TensorType& in, const Dims& out);

// --- types and shapes ---
DType accumulator_type(DType t);  // float32 for float16 and bfloat16, else t itself
bool is_half(DType t);            // float16 or bfloat16
DType sum_type(DType t);          // what sum, prod and trace give: Keras takes them of small integers and bool in 32 bits
// The element type of a product's result: that of its operands, or the type that the attribute `dtype` widens it to.
DType product_dtype(const ir::OpCall& call);
inline DType product_sum_type(DType operands, DType result) { return operands == DType::F64 ? operands : accumulator_type(result); }
Dims reduced_dims(const Dims& dims, const ir::Ints& axes, bool keepdims);
ir::Ints other_axes(const ir::Ints& axes, int rank);  // those not in the sorted list `axes`
ir::Ints all_axes(int rank);
ir::Ints consecutive(int64_t first, int64_t count);                       // `count` axes from `first` on
int64_t axis_extent(const ir::OpCall& call, const Dims& dims, int axis);  // the number; UserError names the symbol when it is one
// UserError when a reduced axis is the constant 0: max, argmax … of nothing have no value.
void require_elements(const ir::OpCall& call, const Dims& dims, const ir::Ints& axes);
void require_int32(const ir::OpCall& call, const Dim& extent);                      // positions along `extent` must fit into int32
const Dims& dims_attr(const ir::OpCall& call, std::string_view attr, int entries);  // UserError unless it has that many
// An int attribute that shifts a diagonal; far beyond any tensor all values mean the same, so these are cut off to stay computable.
int64_t diagonal_attr(const ir::OpCall& call, std::string_view attr);
// The same questions in a gradient rule, about input 0.
ir::Ints grad_axes(const ir::GradCall& g, std::string_view attr = "axis");
int grad_axis(const ir::GradCall& g, std::string_view attr = "axis");

// True only when it holds for every binding: symbols are extents, so a Dim without a minus sign is never negative.
bool never_negative(const Dim& d);

// --- pieces of graphs ---
// Whether an expression is this very number, known while the graph is built (an optional operand that was filled in).
bool is_number(const ir::Expr& e, double value);
// In the type that sums and long formulas run in: float32 for the 16-bit floats.
inline ir::Expr wide(const ir::Expr& x) { return x.cast(accumulator_type(x.dtype())); }
ir::Expr iota(ir::Builder& b, const Dims& shape, int axis, DType t);
ir::Expr filled(ir::Builder& b, const ir::TensorType& type, double value);
// A number of elements as a scalar of type t; works for symbols too.
ir::Expr count_of(ir::Builder& b, const Dim& count, DType t);
ir::Expr divide_by_count(const ir::Expr& x, const Dim& count);  // float16: divides in float32, for 65504 is a small count
// The gradient of a reduction over `axes` (with or without keepdims) stretched over `dims` again.
ir::Expr spread(const ir::Expr& g, const Dims& dims, const ir::Ints& axes);
// x with `axes` moved behind the others and made one: [others…, product of axes].
ir::Expr flatten_axes(const ir::Expr& x, const ir::Ints& axes);
ir::Expr unflatten_axes(const ir::Expr& x, const Dims& dims, const ir::Ints& axes);  // the way back to `dims`
// The transpose of take(x, indices, axis): sums `updates` into zeros of `dims` at the indices along `axis`.
ir::Expr add_at(const ir::Expr& updates, const ir::Expr& indices, const Dims& dims, int axis);
ir::Ints inverse_permutation(const ir::Ints& perm);

}  // namespace tandem::ops
