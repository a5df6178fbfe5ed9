// What a graph must be between stages, as tables of numbered rules. A breach is our bug: an InternalError names node and rule.
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
  Expanded,  // no row with a decomposition is left
};
std::string_view name(Stage s);

// One rule, about one node or (node < 0) about the graph as a whole. `breach` says what is wrong, or nothing.
struct VerifyRule {
  int number;
  std::string_view text;
  bool is_about_nodes;
  std::string (*breach)(const OpTable& table, const Graph& g, int32_t node, Stage stage);
};
std::span<const VerifyRule> rules(Stage s);

void verify(const OpTable& table, const Graph& g, Stage stage);

}  // namespace tandem::ir
