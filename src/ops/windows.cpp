#include "ops/windows.hpp"

namespace tandem::ops {

using namespace ir;

int spatial_axes(const OpCall& call, const TensorType& x) {
  const int axes = x.rank() - 2;
  if (axes < 1 || axes > 3) call.fail("takes [batch, 1 to 3 spatial axes, channels], got ", x);
  return axes;
}

Ints spatial_ints(const OpCall& call, std::string_view attr, int axes, int64_t otherwise) {
  if (!call.attrs.has(attr)) return Ints(static_cast<size_t>(axes), otherwise);
  Ints v = call.attrs.get<Ints>(attr);
  if (v.size() == 1) v.resize(static_cast<size_t>(axes), v[0]);
  if (v.size() != static_cast<size_t>(axes)) call.fail(attr, " has ", v.size(), " entries for ", axes, " spatial axes");
  for (int64_t e : v)
    if (e < 1) call.fail(attr, " must be at least 1, got ", e);
  return v;
}

Padding padding_of(const OpCall& call, int axes) {
  const auto& text = call.attrs.get<std::string>("padding");
  if (text == "valid") return Padding::Valid;
  if (text == "same") return Padding::Same;
  if (text != "causal") call.fail("padding must be 'valid', 'same' or 'causal', got '", text, "'");
  if (axes != 1) call.fail("padding 'causal' is for one spatial axis, got ", axes);
  return Padding::Causal;
}

Dim window_count(const Dim& input, const Dim& low, const Dim& high, const Dim& extent, int64_t stride) {
  const Dim count = floor_div(input + low + high - extent, stride) + 1;
  return count.is_const() && count.value() < 0 ? Dim(0) : count;
}

Window place_windows(const OpCall& call, Padding padding, const Dim& input, const Dim& extent, int64_t stride) {
  Window w{0, 0, 0};
  if (padding == Padding::Causal) w.low = extent - 1;
  if (padding == Padding::Same) {
    w.count = ceil_div(input, stride);
    const Dim total = (w.count - 1) * stride + extent - input;
    // What is left for the high side may be negative. Not clipping it keeps the count an exact quotient, so that it is
    // ceil(input / stride) for symbols too.
    w.low = floor_div(max(total, 0), 2);
    w.high = total - w.low;
    return w;
  }
  w.count = window_count(input, w.low, w.high, extent, stride);
  if (w.count.is(0) && !input.is(0))
    call.fail("a window of ", extent, " does not fit into an axis of ", input + w.low, "\n  hint: padding='same' pads the input");
  return w;
}

}  // namespace tandem::ops
