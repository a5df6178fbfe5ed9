// Movement without moving: a transpose, broadcast or slice is its operand's memory, walked in other steps.
#pragma once
#include <optional>

#include "codegen/kernel.hpp"

namespace tandem::codegen {

struct View {
  Layout operand;      // how the result lies
  int64_t offset = 0;  // of its first element, in elements from the operand's first
};
// The result of loops that only load one element of input 0, at indices affine in the axes; nothing when they do more.
std::optional<View> as_view(const ir::Loops& loops, const Bindings& bindings, const Layout& in);

}  // namespace tandem::codegen
