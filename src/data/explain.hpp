// explain(): what each stage of an iterator has done, as a table.
#pragma once
#include <string>

#include "data/context.hpp"

namespace tandem::data {

std::string explain_stages(Context& context);

}  // namespace tandem::data
