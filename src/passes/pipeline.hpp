// Graph -> graph, as one straight list of named steps. Each can be printed (TANDEM_DUMP=folder), timed (TANDEM_LOG=pass) and switched
// off (TANDEM_DISABLE_PASS=name), and the verifier checks what it made.
#pragma once
#include "ir/graph.hpp"
#include "ir/op.hpp"

namespace tandem::passes {

ir::Graph run_pipeline(const ir::OpTable& table, const ir::Graph& graph);

// Replaces every node whose row has a decomposition, until none is left; sub-graphs too.
ir::Graph expand(const ir::OpTable& table, const ir::Graph& graph);

// Groups nodes into kernels: node `fused`; sub-graphs too.
ir::Graph fuse(const ir::OpTable& table, const ir::Graph& graph);

}  // namespace tandem::passes
