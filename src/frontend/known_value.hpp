// What a traced tensor is before the function that is traced ever runs.
#pragma once
#include <optional>

#include <tandem/tensor.hpp>

namespace tandem::frontend {

// Computed now, from constants and from tensors and variables outside of the trace; nothing when it depends on an argument of the function
// or on an extent that is not known. A tensor that is not traced is itself.
std::optional<Tensor> known_value(const Tensor& t);

}  // namespace tandem::frontend
