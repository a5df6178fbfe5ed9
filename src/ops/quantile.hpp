// Quantiles and medians: reductions that sort first. Part of the reduce family.
#pragma once
#include "ops/table.hpp"

namespace tandem::ops {

Rows quantile_rows();  // quantile nanquantile median nanmedian

}  // namespace tandem::ops
