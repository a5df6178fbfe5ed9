// Images as tensors: uint8[height, width, channels].
#pragma once
#include <cstdint>

#include <tandem/tensor.hpp>

namespace tandem::data {

// `bytes` is the file, uint8[n]. channels: 1 grey, 3 colour, 4 with transparency (PNG only), 0 as in the file. ResourceError when they are
// damaged or end early.
Tensor decode_jpeg(const Tensor& bytes, int64_t channels = 0);
Tensor decode_png(const Tensor& bytes, int64_t channels = 0);
Tensor decode_image(const Tensor& bytes, int64_t channels = 0);  // whichever of the two it is

// Bilinear, as tf.image.resize does it: centres of pixels at halves, no smoothing. uint8 is rounded, float32 stays float32.
Tensor resize_image(const Tensor& image, int64_t height, int64_t width);

Tensor read_file(const std::string& path);  // uint8[n]

}  // namespace tandem::data
