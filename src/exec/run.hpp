// Follows a plan on a device. No policy: everything was decided before.
#pragma once
#include "plan/plan.hpp"

namespace tandem::exec {

// inputs, outputs: one pointer each, at the first byte (outputs that are aliases are not touched and may be null).
// arena: plan.arena_bytes, aligned to codegen::kAlignment. Errors keep their kind and get the step's label and location appended.
void run(const plan::Plan& plan, device::Stream& stream, void* arena, void* const* inputs, void* const* outputs);

}  // namespace tandem::exec
