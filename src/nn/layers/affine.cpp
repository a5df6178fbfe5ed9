#include "nn/layers/affine.hpp"

#include <tandem/ops.hpp>

#include "nn/layers/images.hpp"

namespace tandem::nn {
namespace {

// Whole numbers brought into 0 … extent-1; with "constant" the caller asks which were outside.
Tensor inside(const Tensor& at, int64_t extent, const std::string& fill_mode) {
  if (fill_mode == "wrap") return remainder(at, extent);
  if (fill_mode == "reflect") {
    const Tensor m = remainder(at, 2 * extent);
    return minimum(m, 2 * extent - 1 - m);
  }
  return clip(at, 0, extent - 1);
}

class Sampler {
 public:
  Sampler(const Tensor& x, const Sampling& sampling) : x_(x), sampling_(sampling), height_(height_of(x)), width_(width_of(x)) {
    const Dims d = x.dims();
    flat_ = x.reshape({d[0] * (height_ * width_), d[3]});
    first_ = iota({d[0], 1, 1}) * (height_ * width_);
  }
  // The elements at whole places [batch, height, width].
  Tensor at(const Tensor& row, const Tensor& column) const {
    const Tensor index = first_ + inside(row, height_, sampling_.fill_mode) * width_ + inside(column, width_, sampling_.fill_mode);
    const Tensor y = take_clipped(flat_, index);
    if (sampling_.fill_mode != "constant") return y;
    const Tensor is_inside = (row >= 0) & (row < height_) & (column >= 0) & (column < width_);
    return where(is_inside.expand_dims(-1), y, sampling_.fill_value);
  }

 private:
  const Tensor& x_;
  const Sampling& sampling_;
  int64_t height_, width_;
  Tensor flat_, first_;
};

}  // namespace

Tensor affine_transform(const Tensor& x, const Affine& affine, const Sampling& sampling) {
  const Dims grid{1, height_of(x), width_of(x)};
  const Tensor row = iota(grid, 1, DType::I32).cast(DType::F32), column = iota(grid, 2, DType::I32).cast(DType::F32);
  const auto each = [](const Tensor& t) { return t.expand_dims({1, 2}); };  // one a picture, for all its places
  const Tensor from_x = each(affine.a0) * column + each(affine.a1) * row + each(affine.a2);
  const Tensor from_y = each(affine.b0) * column + each(affine.b1) * row + each(affine.b2);
  const Sampler sampler(x, sampling);
  if (sampling.interpolation == "nearest") return sampler.at(floor(from_y + 0.5).cast(DType::I32), floor(from_x + 0.5).cast(DType::I32));
  const Tensor top = floor(from_y), left = floor(from_x);
  const Tensor down = (from_y - top).expand_dims(-1).cast(x.dtype()), right = (from_x - left).expand_dims(-1).cast(x.dtype());
  const Tensor r = top.cast(DType::I32), c = left.cast(DType::I32);
  const Tensor upper = sampler.at(r, c) * (1.0 - right) + sampler.at(r, c + 1) * right;
  const Tensor lower = sampler.at(r + 1, c) * (1.0 - right) + sampler.at(r + 1, c + 1) * right;
  return upper * (1.0 - down) + lower * down;
}

}  // namespace tandem::nn
