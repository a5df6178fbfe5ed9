// Tensors of strings: bytes of any length with a shape, on the host. They go through input pipelines, can be indexed, reshaped, joined,
// chosen from, sorted and compared; every other op refuses them.
#pragma once
#include <span>
#include <string>
#include <vector>

#include <tandem/tensor.hpp>

namespace tandem {

// The type of their elements. It is none of the types that kernels know, and no question about numbers (is_float, size_of) is asked of it.
inline constexpr DType kString = static_cast<DType>(kDTypeCount);

Tensor from_strings(std::vector<std::string> values, const Shape& shape);  // row-major
Tensor from_string(std::string value);                                     // without axes
bool is_string(const Tensor& t);
// Row-major, as long as the tensor lives. UserError when it holds something else.
std::span<const std::string> strings_of(const Tensor& t);

}  // namespace tandem
