// Nodes that several sources are made of.
#pragma once
#include "data/node.hpp"

namespace tandem::data {

NodeRef rows_source(std::string name, std::string from, Rows rows);

}  // namespace tandem::data
