#include "nn/layers/resize.hpp"

#include <cmath>
#include <numbers>
#include <vector>

#include <tandem/ops.hpp>

#include "base/checked.hpp"
#include "nn/kind.hpp"
#include "nn/saving/loading.hpp"

namespace tandem::nn {
namespace {

// How much a sample at distance x counts.
double weight_at(double x, const std::string& interpolation) {
  if (interpolation == "bilinear") return std::max(0.0, 1 - x);
  if (interpolation == "bicubic") {  // Keys (1981), a = -1/2
    if (x >= 2) return 0;
    return x >= 1 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : (1.5 * x - 2.5) * x * x + 1;
  }
  const double radius = interpolation == "lanczos3" ? 3 : 5;
  if (x > radius) return 0;
  const double pi_x = std::numbers::pi * x;
  return x > 1e-3 ? radius * std::sin(pi_x) * std::sin(pi_x / radius) / (pi_x * pi_x) : 1;
}

// Row i says how the new element i is made of the old ones; centres of elements lie at halves.
std::vector<float> weights(int64_t from, int64_t to, const std::string& interpolation, bool antialias) {
  const int64_t count = product_of(from, to, "a new size");
  LoadingScope::take_constant(cat("resizing ", from, " to ", to), count);
  std::vector<float> all(static_cast<size_t>(count), 0.f);
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double reach = antialias ? std::max(scale, 1.0) : 1.0;
  for (int64_t i = 0; i < to; ++i) {
    float* row = all.data() + i * from;
    const double at = (static_cast<double>(i) + 0.5) * scale;
    if (interpolation == "nearest") {
      row[std::min(from - 1, static_cast<int64_t>(at))] = 1;
      continue;
    }
    std::vector<double> w(static_cast<size_t>(from));
    double total = 0;
    for (int64_t j = 0; j < from; ++j)
      total += w[static_cast<size_t>(j)] = weight_at(std::abs(at - 0.5 - static_cast<double>(j)) / reach, interpolation);
    for (int64_t j = 0; j < from; ++j) row[j] = static_cast<float>(w[static_cast<size_t>(j)] / total);
  }
  return all;
}

}  // namespace

void expect_interpolation(const char* kind, const std::string& interpolation) {
  expect_one_of(kind, "interpolation", interpolation, {"nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"});
}

Tensor resize_image(const Tensor& x, int64_t height, int64_t width, const std::string& interpolation, bool antialias) {
  const Spec spec{x.dtype(), x.dims()};
  const int64_t old_height = known_extent(spec, -3, "a new size"), old_width = known_extent(spec, -2, "a new size");
  Tensor y = x;
  if (height != old_height) {
    const Tensor w = Tensor::from(weights(old_height, height, interpolation, antialias), {height, old_height}).cast(x.dtype());
    y = einsum({w, y}, "ih,...hwc->...iwc");
  }
  if (width != old_width) {
    const Tensor w = Tensor::from(weights(old_width, width, interpolation, antialias), {width, old_width}).cast(x.dtype());
    y = einsum({w, y}, "jw,...hwc->...hjc");
  }
  return y;
}

}  // namespace tandem::nn
