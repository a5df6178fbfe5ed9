#include "codegen/convolution.hpp"

namespace tandem::codegen {

Conv conv_of(const ir::Attrs& attrs, const Shape& x, const Shape& w, const Shape& y) {
  Conv c{.batch = x[0], .channels = x[x.size() - 1], .filters = w[w.size() - 1], .groups = attrs.get<int64_t>("groups"), .axes = {}};
  const size_t own = x.size() - 2, first = kSpatial - own;
  using Ints = std::vector<int64_t>;
  const auto &strides = attrs.get<Ints>("strides"), &dilation = attrs.get<Ints>("dilation"), &spread = attrs.get<Ints>("input_dilation");
  const auto& low = attrs.get<Dims>("low");
  for (size_t i = 0; i < own; ++i) c.axes[first + i] = {x[i + 1], y[i + 1], w[i], strides[i], dilation[i], spread[i], low[i].value()};
  return c;
}

ImageSteps image_steps(const codegen::Layout& x) {
  const size_t own = x.shape.size() - 2, first = kSpatial - own;
  ImageSteps s{x.strides[0], x.strides[x.shape.size() - 1], {}};
  for (size_t i = 0; i < own; ++i) s.axes[first + i] = x.strides[i + 1];
  return s;
}

KernelSteps kernel_steps(const codegen::Layout& w) {
  const size_t own = w.shape.size() - 2, first = kSpatial - own;
  KernelSteps s{w.strides[own], w.strides[own + 1], {}};
  for (size_t i = 0; i < own; ++i) s.axes[first + i] = w.strides[i];
  return s;
}

}  // namespace tandem::codegen
