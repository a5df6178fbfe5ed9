// Graph -> graph, as one straight list of named steps. Each can be printed (TANDEM_DUMP=folder), timed (TANDEM_LOG=pass) and switched
// off (TANDEM_DISABLE_PASS=name; `expand` and `precision` cannot), and the verifier checks what it made. All go into sub-graphs too. No
// step changes a bit of any result (ADR 0009) but three: `precision`, which only runs when it is asked for and rounds; `fuse`, which may
// add up in another order; and `stack`, after which a device may cut a product of other sizes into other blocks.
#pragma once
#include <tandem/precision.hpp>

#include "ir/graph.hpp"
#include "ir/op.hpp"
#include "ir/pattern.hpp"

namespace tandem::passes {

// What `keeps` accepts goes through all steps as it is; without it, and with TANDEM_DISABLE_PASS=keep, every composite is expanded.
ir::Graph run_pipeline(const ir::OpTable& table, const ir::Graph& graph, const ir::KeepsFn& keeps = {},
                       Precision precision = Precision::Float32);

// Replaces every node whose row has a decomposition, but for those that are kept, until none is left; sub-graphs too.
ir::Graph expand(const ir::OpTable& table, const ir::Graph& graph, const ir::KeepsFn& keeps = {});
// Nodes of constants become constants, where the interpreter gives the very bits that a device would.
ir::Graph fold(const ir::OpTable& table, const ir::Graph& graph);
// Algebra: the rules of simplify_rules, until none applies.
ir::Graph simplify(const ir::OpTable& table, const ir::Graph& graph);
const ir::pattern::RuleSet& simplify_rules();
// Common subexpressions: equal nodes become one.
ir::Graph cse(const ir::OpTable& table, const ir::Graph& graph);
// A loop that another one covers (ops/control.hpp) is not run: the other one's first results take the place of its own.
ir::Graph loops(const ir::OpTable& table, const ir::Graph& graph);
// Mixed precision: products take 16-bit operands, and what lies between products is kept in 16 bits (ADR 0015).
ir::Graph mix(const ir::OpTable& table, const ir::Graph& graph, Precision precision);
// Products of several matrices with the same one, over a long sum, become one product: each element is the same sum.
ir::Graph stack(const ir::OpTable& table, const ir::Graph& graph);
// Transposes move towards others that undo them, where fewer are left then.
ir::Graph layout(const ir::OpTable& table, const ir::Graph& graph);
// Elementwise ops behind a reshape are computed in the shape before it, so that a product keeps its epilogue.
ir::Graph shapes(const ir::OpTable& table, const ir::Graph& graph);
// Dead code: nodes that nobody needs, and what branches and loops carry and compute for results that nobody reads.
ir::Graph dce(const ir::OpTable& table, const ir::Graph& graph);

// Groups nodes into kernels: node `fused`; sub-graphs too.
ir::Graph fuse(const ir::OpTable& table, const ir::Graph& graph);

}  // namespace tandem::passes
