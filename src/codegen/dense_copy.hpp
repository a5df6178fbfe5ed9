// Row-major copies of operands that lie otherwise, for routines that only read dense memory.
#pragma once
#include "codegen/kernel.hpp"

namespace tandem::codegen {

// to: byte_size(layout.shape, layout.dtype) bytes.
void dense_copy(const Layout& layout, const void* from, void* to);

}  // namespace tandem::codegen
