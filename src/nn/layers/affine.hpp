// Pictures turned, moved and scaled.
#pragma once
#include <string>

#include <tandem/tensor.hpp>

namespace tandem::nn {

// Where each element of the result is taken from, one number a picture each: x' = a0 x + a1 y + a2, y' = b0 x + b1 y + b2.
struct Affine {
  Tensor a0, a1, a2, b0, b1, b2;
};

struct Sampling {
  std::string interpolation = "bilinear";  // nearest, bilinear
  std::string fill_mode = "reflect";       // what lies outside: reflect (dcba|abcd|dcba), wrap, constant, nearest
  double fill_value = 0;
};

// x is [batch, height, width, channels] with known height and width.
Tensor affine_transform(const Tensor& x, const Affine& affine, const Sampling& sampling);

}  // namespace tandem::nn
