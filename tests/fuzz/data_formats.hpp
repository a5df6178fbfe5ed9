// What the formats that pipelines read share.
#pragma once
#include <tandem/data.hpp>

#include "format.hpp"

namespace tandem::fuzz {

// As a user may have limited it: what takes more than this has no bytes for it.
inline data::PipelineOptions small_budget() { return {.ram_budget_bytes = size_t{16} << 20}; }

// To its end or so far, and on behind errors.
inline void read_elements(const data::Dataset& dataset, int most = 100) {
  data::Iterator it = dataset.options(small_budget()).ignore_errors().iterate();
  data::Element element;
  for (int i = 0; i < most && it.next(element); ++i) {
  }
}

}  // namespace tandem::fuzz
