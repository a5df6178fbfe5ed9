// Nodes that several sources are made of.
#pragma once
#include <functional>

#include "data/node.hpp"

namespace tandem::data {

NodeRef rows_source(std::string name, std::string from, Rows rows);
// Elements that can be made from their number.
NodeRef numbered_source(std::string name, std::string arguments, Specs specs, int64_t count, std::function<void(int64_t, Element&)> at);

}  // namespace tandem::data
