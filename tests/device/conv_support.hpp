// What tests of convolutions share: geometries, and calls of the op and of its gradient by the kernel.
#pragma once
#include "base/text.hpp"
#include "product_support.hpp"

namespace tandem::testing {

using Ints = std::vector<int64_t>;

// One axis of a convolution; the same for all axes unless said otherwise.
struct Axis {
  int64_t in, kernel, stride = 1, low = 0, high = 0, dilation = 1, spread = 1;
  int64_t out() const {
    const int64_t span = in == 0 ? 0 : (in - 1) * spread + 1;
    return std::max<int64_t>(0, (span + low + high - ((kernel - 1) * dilation + 1)) / stride + 1);
  }
};

struct Geometry {
  int64_t batch, channels, filters;
  std::vector<Axis> axes;
  std::string text() const {
    std::string t = cat(batch, " images, ", channels, "->", filters);
    for (const Axis& a : axes)
      t += cat("; in ", a.in, " kernel ", a.kernel, " stride ", a.stride, " pad ", a.low, ",", a.high, " dilation ", a.dilation, ",",
               a.spread);
    return t;
  }
  ir::Attrs attrs() const {
    Ints strides, dilation, spread;
    Dims low, high;
    for (const Axis& a : axes) {
      strides.push_back(a.stride);
      dilation.push_back(a.dilation);
      spread.push_back(a.spread);
      low.emplace_back(a.low);
      high.emplace_back(a.high);
    }
    return {{"strides", strides}, {"low", low}, {"high", high}, {"dilation", dilation}, {"input_dilation", spread}, {"groups", int64_t{1}}};
  }
  Shape image(bool output) const {
    Shape s{batch};
    for (const Axis& a : axes) s.push_back(output ? a.out() : a.in);
    s.push_back(output ? filters : channels);
    return s;
  }
  Shape kernel() const {
    Shape s;
    for (const Axis& a : axes) s.push_back(a.kernel);
    s.push_back(channels);
    s.push_back(filters);
    return s;
  }
  Dims kernel_attr() const {
    Dims d;
    for (const Axis& a : axes) d.emplace_back(a.kernel);
    return d;
  }
};

enum class Lies { Densely, Anyhow };
inline HostTensor tensor(DType t, const Shape& s, std::mt19937_64& random, Lies lies) {
  return lies == Lies::Densely ? dense(t, s, random) : scattered(t, s, random);
}

inline ProductCall forward(const Geometry& g, std::mt19937_64& random, Lies lies = Lies::Densely, DType t = DType::F32) {
  ir::Attrs attrs = g.attrs();
  attrs.set("dtype", DType::F32);
  return product_call("general_conv", attrs, {tensor(t, g.image(false), random, lies), tensor(t, g.kernel(), random, lies)});
}

inline ProductCall weights(const Geometry& g, std::mt19937_64& random, Lies lies = Lies::Densely, DType t = DType::F32) {
  ir::Attrs attrs = g.attrs();
  attrs.set("kernel", g.kernel_attr());
  attrs.set("dtype", DType::F32);
  return product_call("conv_kernel_gradient", attrs, {tensor(t, g.image(false), random, lies), dense(t, g.image(true), random)});
}

}  // namespace tandem::testing
