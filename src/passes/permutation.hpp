// The order of axes that a transpose gives.
#pragma once
#include "ir/graph.hpp"

namespace tandem::passes {

// Of a transpose node: axis k of the result is axis [k] of the operand. Normalised, also where the attribute is not given.
inline ir::Ints permutation(const ir::Node& n) {
  const auto rank = static_cast<int64_t>(n.types[0].dims.size());
  ir::Ints perm;
  for (int64_t k = 0; k < rank; ++k) perm.push_back(rank - 1 - k);
  if (n.attrs.has("perm")) perm = n.attrs.get<ir::Ints>("perm");
  for (int64_t& p : perm) p += p < 0 ? rank : 0;
  return perm;
}

// First `inner`, then `outer`.
inline ir::Ints composed(const ir::Ints& outer, const ir::Ints& inner) {
  ir::Ints perm;
  for (int64_t p : outer) perm.push_back(inner[static_cast<size_t>(p)]);
  return perm;
}

// Whether the axes that are not of size 1 keep their order: then every element stays where it is in memory.
inline bool is_reshape(const Dims& dims, const ir::Ints& perm) {
  int64_t last = -1;
  for (int64_t p : perm) {
    if (dims[static_cast<size_t>(p)].is(1)) continue;
    if (p < last) return false;
    last = p;
  }
  return true;
}

}  // namespace tandem::passes
