// Vectorisation, graph to graph: what a graph computes for one element, computed for a batch of them along a new first axis.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace tandem::transform {

enum class Exactness : uint8_t {
  Bits,  // only ops that give every element the bits that it has alone: no sums of floating-point numbers, whose order follows from extents
  Tolerance,  // these too
};

// Inputs that are `batched`, and all outputs, get the leading extent `batch`. Nothing when an op cannot be vectorised, would give other
// results, or would fail for a whole batch where one element is at fault; `why` then names it. Never a wrong graph.
std::optional<ir::Graph> vmap(const ir::Graph& graph, const std::vector<bool>& batched, const Dim& batch, Exactness exactness,
                              std::string* why = nullptr);

}  // namespace tandem::transform
