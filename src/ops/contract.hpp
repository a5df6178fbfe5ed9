// What the families of this corner share: the geometry of windows that slide over spatial axes, and small pieces of formulas.
#pragma once
#include <string_view>

#include "ops/helpers.hpp"

namespace tandem::ops {

// The number of spatial axes of a channels-last tensor [batch, 1 to 3 spatial axes, channels].
int spatial_axes(const ir::OpCall& call, const ir::TensorType& x);
// An `ints?` attribute with one entry a spatial axis or one for all; none is `otherwise`. Entries below 1 are UserErrors.
ir::Ints spatial_ints(const ir::OpCall& call, std::string_view attr, int axes, int64_t otherwise);

enum class Padding : uint8_t { Valid, Same, Causal };
Padding padding_of(const ir::OpCall& call, int axes);  // the attribute `padding`; causal needs one spatial axis

// How windows of `extent` inputs lie along one axis. `high` may be negative: then the last inputs belong to no window.
struct Window {
  Dim low, high;
  Dim count;  // windows
};
// UserError (named after `call`) when no window fits.
Window place_windows(const ir::OpCall& call, Padding padding, const Dim& input, const Dim& extent, int64_t stride);
// The number of windows: floor((input + low + high - extent) / stride) + 1, never negative.
Dim window_count(const Dim& input, const Dim& low, const Dim& high, const Dim& extent, int64_t stride);

// Conditions under which an element is there; an empty one is "always".
void require(ir::Scalar& valid, const ir::Scalar& condition);
ir::Scalar load_where(int input, DType t, const std::vector<ir::Scalar>& index, const ir::Scalar& valid, const ir::Scalar& otherwise);
// Without padding on a side no window reaches beyond the input on that side.
inline bool never_pads(const Dim& padding) { return padding.is_const() && padding.value() <= 0; }

// `count` axes from `first` on.
ir::Ints consecutive(int64_t first, int64_t count);

// In the type that sums and long formulas run in: float32 for the 16-bit floats.
inline ir::Expr wide(const ir::Expr& x) { return x.cast(accumulator_type(x.dtype())); }

// The element type of a product's result: that of its operands, or the type that the attribute `dtype` widens it to.
DType product_dtype(const ir::OpCall& call);
inline DType product_sum_type(DType operands, DType result) { return operands == DType::F64 ? operands : accumulator_type(result); }

// Whether an expression is this very number, known while the graph is built (an optional operand that was filled in).
bool is_number(const ir::Expr& e, double value);

}  // namespace tandem::ops
