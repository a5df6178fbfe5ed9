// Precision: the types in which a compiled function computes. Chosen by FunctionOptions::precision; see also <tandem/loss_scale.hpp>.
#pragma once
#include <cstdint>
#include <string_view>

namespace tandem {

// Float32: every float32 stays float32. The mixed ones round the operands of matrix products and convolutions to a type of 16 bits, and
// keep what lies between products in it; products still sum in float32, and all else (arithmetic, sums, exponentials, losses, weights,
// the optimizer's state, arguments and results) stays float32. float16 has 11 bits of precision and needs a LossScale, because small
// gradients become zero in it; bfloat16 has 8 bits and float32's range.
enum class Precision : uint8_t { Float32, MixedFloat16, MixedBFloat16 };

std::string_view name(Precision p);                // "float32", "mixed_float16", "mixed_bfloat16"; UserError when it is none of them
Precision parse_precision(std::string_view name);  // UserError lists the names that there are

}  // namespace tandem
