// Pictures of another size.
#pragma once
#include <string>

#include <tandem/tensor.hpp>

namespace tandem::nn {

void expect_interpolation(const char* kind, const std::string& interpolation);

// x is [..., height, width, channels] with known extents. With antialias, a smaller picture averages over what it leaves out.
Tensor resize_image(const Tensor& x, int64_t height, int64_t width, const std::string& interpolation, bool antialias = false);

}  // namespace tandem::nn
