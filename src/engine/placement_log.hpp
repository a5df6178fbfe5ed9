// What the user asked to see: which op runs where.
#pragma once
#include "engine/placement.hpp"

namespace tandem::engine {

bool is_logging_placement();
void write_placement(const plan::Request& request, const Placed& placed);  // one line an op, on stderr

}  // namespace tandem::engine
