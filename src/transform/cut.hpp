// Products whose epilogue is an update of state, as two nodes: so that the update may run where the state is.
#pragma once
#include "ir/op.hpp"

namespace tandem::transform {

// Whether each element of the node's results is made of elements of its operands by operations that every device rounds alike (moves,
// + − × ÷ √, comparisons), and none is a sum over others: then any device may compute it.
bool is_exact_map(const ir::Graph& g, const ir::Node& n);
// Whether the node is a product with such an epilogue.
bool has_exact_epilogue(const ir::Node& n);

// The graph with the epilogues of these nodes (by number; each has_exact_epilogue) as nodes of their own. The product is the same kernel as
// before, so every bit stays.
ir::Graph cut_epilogues(const ir::OpTable& table, const ir::Graph& g, const std::vector<bool>& ends);

}  // namespace tandem::transform
