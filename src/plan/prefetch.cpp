#include "plan/prefetch.hpp"

#include <algorithm>

namespace tandem::plan {

Units with_prefetches(Units units) {
  if (units.fresh_inputs.empty()) return units;
  const auto is_prefetch = [&](const Unit& u) {
    if (u.kind != Kind::Upload) return false;
    const Block& from = units.blocks[static_cast<size_t>(u.reads[0].block)];
    return from.kind == Block::Kind::Input && units.fresh_inputs[static_cast<size_t>(from.index)];
  };
  const auto others = std::ranges::stable_partition(units.units, is_prefetch);
  for (auto u = units.units.begin(); u != others.begin(); ++u) units.blocks[static_cast<size_t>(u->writes[0].block)].is_prefetched = true;
  return units;
}

}  // namespace tandem::plan
