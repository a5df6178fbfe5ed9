// Facts about loops, and about rows that are loops, that graph to graph stages ask for.
#pragma once
#include "ir/graph.hpp"

namespace tandem::ops {

// Whether a gradient runs such a node again, keeping more of each step: a scan, a while loop, or a row with the attribute `keep`.
bool may_keep_more(const ir::Node& node);
// Whether a loop computes all that another one does: the same steps on the same operands, with further carries or outputs behind. Then the
// first results of `wide` are those of `narrow`, which need not run.
bool covers(const ir::Node& wide, const ir::Node& narrow);

}  // namespace tandem::ops
