// Facts about control-flow nodes that graph to graph stages ask for.
#pragma once
#include "ir/graph.hpp"

namespace tandem::ops {

// Whether a scan or while loop computes all that another one does: the same steps on the same operands, with further carries or outputs
// behind. Then the first results of `wide` are those of `narrow`, which need not run. The gradient of a loop runs it again in this way,
// keeping more of each step.
bool covers(const ir::Node& wide, const ir::Node& narrow);

}  // namespace tandem::ops
