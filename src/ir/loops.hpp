// Loops: what one kernel computes, said once for every device. For each point of the output space evaluate `results`;
// where there is a reduction, first combine its elements. Loads name inputs by index expressions, so slices, transposes,
// padding, gathers, convolutions and random numbers are all the same thing: an expression over axes.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/scalar.hpp"

namespace tandem::ir {

// An associative and commutative combination of states. State has one or more components (argmax: value and index).
struct Reduction {
  Dims extents;                    // reduce axes: Axis(outputs.size() + k)
  std::vector<Scalar> element;     // the state of one element, over Axis and Load
  std::vector<Scalar> identity;    // constants: the state of nothing
  std::vector<Scalar> combine;     // over Acc(k) and Right(k)
  std::vector<Scalar> later = {};  // likewise, for a Right that comes behind all of Acc in the order of elements; empty: as combine
  Scalar limit = {};               // when set: reduce axis 0 runs only to this i64, over output axes (the last block of a split reduction)
  const std::vector<Scalar>& in_order() const { return later.empty() ? combine : later; }
};

struct Loops {
  Dims extents;  // output space; every output has this shape
  std::optional<Reduction> reduction;
  int scan_axis = -1;  // >= 0: no reduce axes; Acc is the combination of the elements 0..i along this output axis
  // Reductions along the last output axis, one after the other (softmax: the largest, then the sum). They have no axes of their own, and
  // their components are counted through: Acc(k), in the elements of later ones and in `results`, is the same for a whole row.
  std::vector<Reduction> row_reductions = {};
  std::vector<Scalar> results;  // one an output, over output Axis, Load and Acc
  int row_results = 0;          // so many of the last results have one element a row; they do not use the last axis
};

enum class Fold : uint8_t { Sum, Product, Min, Max, And, Or };
// The reduction of one component under a usual combination. Sums of float16/bfloat16 run in float32: `element` must already be cast.
Reduction fold(Fold how, Dims extents, Scalar element);
Scalar identity_of(Fold how, DType t);
// The reduction to (value, position) of the least or greatest element (Fold::Min or Max): of equal ones the first, and a NaN before every
// number, as in NumPy. An element may itself be that of nothing, with kNowhere as its position.
Reduction fold_position(Fold how, Dims extents, Scalar element, Scalar position);
inline constexpr int64_t kNowhere = INT32_MAX;

std::string str(const Loops& l);  // complete and canonical: equal text means equal kernels

}  // namespace tandem::ir
