// What a graph must be between stages, as tables of rules. A breach is our bug: an InternalError names node and rule.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/graph.hpp"
#include "ir/op.hpp"

namespace tandem::ir {

enum class Stage : uint8_t {
  Traced,    // as built: any row
  Expanded,  // no row with a decomposition is left, but those that are kept
};
std::string_view name(Stage s);

// What a graph is checked against.
struct VerifyContext {
  Stage stage;
  const KeepsFn& keeps;
};

// One rule, about one node or (node < 0) about the graph as a whole. `breach` says what is wrong, or nothing.
struct VerifyRule {
  std::string_view text;  // begins with its number if it is one of the invariants of ARCHITECTURE.md
  bool is_about_nodes;
  std::string (*breach)(const OpTable& table, const Graph& g, int32_t node, const VerifyContext& spec);
};
std::span<const VerifyRule> rules(Stage s);

void verify(const OpTable& table, const Graph& g, Stage stage, const KeepsFn& keeps = {});

// Whether what every pass and every planner made is verified: always in a debug build, else when TANDEM_VERIFY says so.
bool verifying();

}  // namespace tandem::ir
