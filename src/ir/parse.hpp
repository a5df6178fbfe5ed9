// Reads what print() wrote. Nodes are made by a Builder, so types are inferred again and must be those in the text.
#pragma once
#include <string_view>

#include "ir/graph.hpp"
#include "ir/op.hpp"

namespace tandem::ir {

Graph parse(const OpTable& table, std::string_view text);  // UserError with line and column

}  // namespace tandem::ir
