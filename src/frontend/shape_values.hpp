// Extents that a program computes with: from a tensor back to the dims that it was made of.
#pragma once
#include <optional>

#include <tandem/dim.hpp>
#include <tandem/tensor.hpp>

namespace tandem::frontend {

// The elements of an integer tensor of at most one axis as extents: its numbers, or, when it is traced, what the graph computes them from
// (`extent`, constants, arithmetic, slicing, stacking). Nothing when they depend on data.
std::optional<Dims> try_dims_of(const Tensor& t);
Dims dims_of(const Tensor& t);  // UserError then

}  // namespace tandem::frontend
