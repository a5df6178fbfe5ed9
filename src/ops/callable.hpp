// Which rows a caller can call with operands and attributes alone, and so have a function of their own in every language.
#pragma once
#include <algorithm>

#include "ir/op.hpp"

namespace tandem::ops {

// Control flow, custom gradients, host calls and constants hold graphs or functions: theirs are written by hand.
inline bool is_callable(const ir::OpDef& op) {
  const auto is_inner = [](const ir::Signature::Attribute& a) { return a.kind >= ir::AttrKind::Graphs; };
  return !op.has(ir::kStructural) && std::ranges::none_of(op.signature.attributes, is_inner);
}

}  // namespace tandem::ops
