// Convolutions, channels last: one general form that has loops and is its own gradient, and Keras's forms made of it.
#include <algorithm>
#include <optional>

#include "ops/table.hpp"
#include "ops/windows.hpp"

namespace tandem::ops {

using namespace ir;

namespace {

// --- the general convolution ----------------------------------------------------------------------------------------------------
// y[n, o, c] = sum over k, i of xd[n, o * stride + k * dilation - low, i] * w[k, i, c], where xd is x with input_dilation - 1 zeros
// between its elements and zeros around it. Cutting at low or high is a negative padding.

struct Geometry {
  Ints strides, dilation, input_dilation;
  Dims low, high;
  int64_t groups = 1;
};

// How far `count` elements reach when they lie `step` apart.
Dim span_of(const Dim& count, int64_t step) { return count.is(0) ? Dim(0) : (count - 1) * step + 1; }

Geometry geometry_of(const Attrs& attrs) {
  return {attrs.get<Ints>("strides"), attrs.get<Ints>("dilation"), attrs.get<Ints>("input_dilation"),
          attrs.get<Dims>("low"),     attrs.get<Dims>("high"),     attrs.get<int64_t>("groups")};
}

Attrs attrs_of(const Geometry& g) {
  return {{"strides", g.strides}, {"low", g.low}, {"high", g.high}, {"dilation", g.dilation}, {"input_dilation", g.input_dilation},
          {"groups", g.groups}};
}

Expr general_conv(const Expr& x, const Expr& w, const Geometry& g) { return x.op("general_conv", {w}, attrs_of(g)); }

Dims kernel_extents(const TensorType& w) { return {w.dims.begin(), w.dims.end() - 2}; }

// The channels of one group; UserError when they do not divide.
Dim channels_per_group(const OpCall& call, const Dim& channels, int64_t groups, std::string_view what) {
  Dim each;
  if (!divides_exactly(channels, groups, each)) call.fail(channels, " ", what, " channels do not divide into ", groups, " groups");
  return each;
}

void check_channels(const OpCall& call, int64_t groups) {
  const Dims &x = call.in[0].dims, &w = call.in[1].dims;
  if (groups < 1) call.fail("groups must be at least 1, got ", groups);
  const Dim each = channels_per_group(call, x.back(), groups, "input");
  const Dim& kernel_channels = w[w.size() - 2];
  if (!(each == kernel_channels))
    call.fail("channels differ, input ", str(x), " with ", groups, groups == 1 ? " group" : " groups", " and kernel ", str(w), " (", each,
              " != ", kernel_channels, ")");
  channels_per_group(call, w.back(), groups, "output");
}

void check_kernel_rank(const OpCall& call, const TensorType& x, const TensorType& w) {
  if (w.rank() != x.rank()) call.fail("the kernel needs as many axes as the input, got input ", str(x.dims), " and kernel ", str(w.dims));
}

// The attributes that both forms of the general convolution have.
void check_geometry(const OpCall& call, int axes) {
  for (std::string_view name : {"strides", "dilation", "input_dilation"}) {
    if (call.attrs.get<Ints>(name).size() != static_cast<size_t>(axes))
      call.fail(name, " has ", call.attrs.get<Ints>(name).size(), " entries for ", axes, " spatial axes");
    spatial_ints(call, name, axes, 1);
  }
  dims_attr(call, "low", axes);
  dims_attr(call, "high", axes);
}

std::vector<TensorType> infer_general_conv(const OpCall& call) {
  const TensorType &x = call.in[0], &w = call.in[1];
  const int axes = spatial_axes(call, x);
  check_kernel_rank(call, x, w);
  check_geometry(call, axes);
  const Geometry g = geometry_of(call.attrs);
  check_channels(call, g.groups);
  Dims out{x.dims[0]};
  for (size_t i = 0; i < static_cast<size_t>(axes); ++i)
    out.push_back(
        window_count(span_of(x.dims[i + 1], g.input_dilation[i]), g.low[i], g.high[i], span_of(w.dims[i], g.dilation[i]), g.strides[i]));
  out.push_back(w.dims.back());
  return {{product_dtype(call), out}};
}

// Where along one input axis an output and a kernel position meet, and whether an element is there.
struct Tap {
  Scalar index;
  Scalar valid;  // empty: always
};

Tap tap(const Geometry& g, size_t i, const Dim& input, const Scalar& out, const Scalar& kernel) {
  const Scalar position = out * index_constant(g.strides[i]) + kernel * index_constant(g.dilation[i]) - extent(g.low[i]);
  Tap t{position, {}};
  if (g.input_dilation[i] > 1) {
    const Scalar step = index_constant(g.input_dilation[i]);
    require(t.valid, position % step == 0);
    t.index = position / step;
  }
  if (!never_pads(g.low[i])) require(t.valid, position >= 0);
  if (!never_pads(g.high[i])) require(t.valid, t.index < extent(input));
  return t;
}

// The input channel of output channel `channel`, `inner` within its group.
Scalar input_channel(const Scalar& channel, const Scalar& inner, const Dim& kernel_channels, const Dim& out_channels, int64_t groups) {
  if (groups == 1) return inner;
  Dim out_each;
  divides_exactly(out_channels, groups, out_each);
  const Scalar group = out_each.is(1) ? channel : channel / extent(out_each);
  return kernel_channels.is(1) ? group : group * extent(kernel_channels) + inner;
}

// The sum over all axes of y but its last of elements of x (0 where not valid) times elements of y, which are operands 0 and 1.
Loops sum_of_products(const std::vector<Scalar>& x_index, const Scalar& valid, const std::vector<Scalar>& y_index, const TensorType& y,
                      const TensorType& out) {
  const DType t = y.dtype, sum_type = product_sum_type(t, out.dtype);
  const Scalar element = load_where(0, t, x_index, valid, constant(t, 0));
  const Scalar product = cast(element, sum_type) * cast(load(1, t, y_index), sum_type);
  return {.extents = out.dims,
          .reduction = fold(Fold::Sum, Dims(y.dims.begin(), y.dims.end() - 1), product),
          .results = {cast(acc(0, sum_type), out.dtype)}};
}

Loops general_conv_loops(const OpCall& call, std::span<const TensorType> out) {
  const Geometry g = geometry_of(call.attrs);
  const TensorType &x = call.in[0], &w = call.in[1];
  const size_t axes = x.dims.size() - 2;
  const int rank = x.rank();
  std::vector<Scalar> x_index{axis(0)}, w_index;
  Scalar valid;
  for (size_t i = 0; i < axes; ++i) {
    const Scalar kernel = axis(rank + static_cast<int>(i));
    const Tap t = tap(g, i, x.dims[i + 1], axis(static_cast<int>(i) + 1), kernel);
    x_index.push_back(t.index);
    w_index.push_back(kernel);
    if (t.valid) require(valid, t.valid);
  }
  const Scalar channel = axis(rank - 1), inner = axis(rank + static_cast<int>(axes));
  x_index.push_back(input_channel(channel, inner, w.dims[axes], w.dims.back(), g.groups));
  w_index.push_back(inner);
  w_index.push_back(channel);
  return sum_of_products(x_index, valid, w_index, w, out[0]);
}

// --- its gradient ---------------------------------------------------------------------------------------------------------------

// The high padding that makes a convolution of these sizes give exactly `count` positions.
Dim high_for(const Dim& count, int64_t stride, const Dim& input_span, const Dim& kernel_span, const Dim& low) {
  return (count - 1) * stride + kernel_span - input_span - low;
}

// The kernel transposed: spatial axes flipped, input and output channels of each group exchanged.
Expr reversed_kernel(const Expr& w, int64_t groups) {
  const size_t axes = w.dims().size() - 2;
  const Dims spatial(w.dims().begin(), w.dims().begin() + static_cast<std::ptrdiff_t>(axes));
  const auto n = static_cast<int64_t>(axes);
  const Expr flipped = w.op("flip", {{"axis", consecutive(0, n)}});
  Ints perm = consecutive(0, n);
  if (groups == 1) {
    perm.insert(perm.end(), {n + 1, n});
    return flipped.transpose(perm);
  }
  Dim out_each;
  divides_exactly(w.dims().back(), groups, out_each);
  const Dim in_each = w.dims()[axes];
  Dims split = spatial, merged = spatial;
  split.insert(split.end(), {in_each, Dim(groups), out_each});
  merged.insert(merged.end(), {out_each, in_each * groups});
  perm.insert(perm.end(), {n + 2, n + 1, n});
  return flipped.reshape(split).transpose(perm).reshape(merged);
}

// An output element reached input position o * stride + k * dilation - low; seen from the input, that is a convolution of the
// gradient, spread by the strides, with the reversed kernel.
Expr input_gradient(const Expr& g, const Expr& x, const Expr& w, const Geometry& forward) {
  Geometry back = forward;
  back.strides = forward.input_dilation;
  back.input_dilation = forward.strides;
  for (size_t i = 0; i < forward.strides.size(); ++i) {
    const Dim kernel = span_of(w.dims()[i], forward.dilation[i]);
    back.low[i] = kernel - 1 - forward.low[i];
    back.high[i] = high_for(x.dims()[i + 1], back.strides[i], span_of(g.dims()[i + 1], forward.strides[i]), kernel, back.low[i]);
  }
  return general_conv(g, reversed_kernel(w, forward.groups), back);
}

// The sum over batch and output positions of what a kernel element multiplied.
Expr kernel_gradient(const Expr& g, const Expr& x, const Dims& kernel, const Geometry& forward) {
  Attrs attrs = attrs_of(forward);
  attrs.set("kernel", kernel);
  return x.op("conv_kernel_gradient", {g}, attrs);
}

// Gradients are computed in the type of the result, which may be wider than that of the operands.
std::vector<Expr> general_conv_vjp(const GradCall& call) {
  const Geometry g = geometry_of(call.node.attrs);
  const DType t = call.in[0].dtype();
  const Expr grad = call.grad(), x = call.in[0].cast(grad.dtype()), w = call.in[1].cast(grad.dtype());
  std::vector<Expr> grads(2);
  if (call.needed[0]) grads[0] = input_gradient(grad, x, w, g).cast(t);
  if (call.needed[1]) grads[1] = kernel_gradient(grad, x, kernel_extents(w.type()), g).cast(t);
  return grads;
}

std::vector<TensorType> infer_kernel_gradient(const OpCall& call) {
  const TensorType &x = call.in[0], &g = call.in[1];
  const int axes = spatial_axes(call, x);
  if (g.rank() != x.rank())
    call.fail("the gradient needs as many axes as the input, got input ", str(x.dims), " and gradient ", str(g.dims));
  check_geometry(call, axes);
  const Dims kernel = dims_attr(call, "kernel", axes);
  const Geometry geometry = geometry_of(call.attrs);
  if (geometry.groups < 1) call.fail("groups must be at least 1, got ", geometry.groups);
  const Dim each = channels_per_group(call, x.dims.back(), geometry.groups, "input");
  channels_per_group(call, g.dims.back(), geometry.groups, "output");
  Dims expected{x.dims[0]};
  for (size_t i = 0; i < static_cast<size_t>(axes); ++i)
    expected.push_back(window_count(span_of(x.dims[i + 1], geometry.input_dilation[i]), geometry.low[i], geometry.high[i],
                                    span_of(kernel[i], geometry.dilation[i]), geometry.strides[i]));
  expected.push_back(g.dims.back());
  if (!(expected == g.dims))
    call.fail("input ", str(x.dims), " with a kernel ", str(kernel), " gives ", str(expected), ", the gradient is ", str(g.dims));
  Dims out = kernel;
  out.insert(out.end(), {each, g.dims.back()});
  return {{product_dtype(call), out}};
}

Loops kernel_gradient_loops(const OpCall& call, std::span<const TensorType> out) {
  const Geometry geometry = geometry_of(call.attrs);
  const TensorType &x = call.in[0], &g = call.in[1];
  const size_t axes = x.dims.size() - 2;
  const int rank = x.rank();
  const Scalar batch = axis(rank), inner = axis(rank - 2), channel = axis(rank - 1);
  std::vector<Scalar> x_index{batch}, g_index{batch};
  Scalar valid;
  for (size_t i = 0; i < axes; ++i) {
    const Scalar position = axis(rank + 1 + static_cast<int>(i));
    const Tap t = tap(geometry, i, x.dims[i + 1], position, axis(static_cast<int>(i)));
    x_index.push_back(t.index);
    g_index.push_back(position);
    if (t.valid) require(valid, t.valid);
  }
  x_index.push_back(input_channel(channel, inner, out[0].dims[axes], g.dims.back(), geometry.groups));
  g_index.push_back(channel);
  return sum_of_products(x_index, valid, g_index, g, out[0]);
}

// It is linear in both operands: with a kernel in place of the result's gradient, one is the convolution itself, the other its gradient.
std::vector<Expr> kernel_gradient_vjp(const GradCall& call) {
  const Geometry g = geometry_of(call.node.attrs);
  const DType t = call.in[0].dtype();
  const Expr grad = call.grad(), x = call.in[0].cast(grad.dtype()), y = call.in[1].cast(grad.dtype());
  std::vector<Expr> grads(2);
  if (call.needed[0]) grads[0] = input_gradient(y, x, grad, g).cast(t);
  if (call.needed[1]) grads[1] = general_conv(x, grad, g).cast(t);
  return grads;
}

// --- Keras's forms --------------------------------------------------------------------------------------------------------------

// strides, padding and dilation as the general convolution has them. `kernel` holds the spatial extents of the kernel.
Geometry placed(const OpCall& call, const Dims& kernel, int64_t groups) {
  const Dims& x = call.in[0].dims;
  const int axes = static_cast<int>(kernel.size());
  const Padding padding = padding_of(call, axes);
  Geometry g{.strides = spatial_ints(call, "strides", axes, 1),
             .dilation = spatial_ints(call, "dilation", axes, 1),
             .input_dilation = Ints(kernel.size(), 1),
             .groups = groups};
  for (size_t i = 0; i < kernel.size(); ++i) {
    const Window w = place_windows(call, padding, x[i + 1], span_of(kernel[i], g.dilation[i]), g.strides[i]);
    g.low.push_back(w.low);
    g.high.push_back(w.high);
  }
  return g;
}

std::vector<TensorType> conv_type(const OpCall& call, const Geometry& g, const Dim& channels) {
  const Dims& x = call.in[0].dims;
  const Dims kernel = kernel_extents(call.in[1]);
  Dims out{x[0]};
  for (size_t i = 0; i < kernel.size(); ++i)
    out.push_back(window_count(x[i + 1], g.low[i], g.high[i], span_of(kernel[i], g.dilation[i]), g.strides[i]));
  out.push_back(channels);
  return {{call.in[0].dtype, out}};
}

// The attribute, or as many groups as the kernel's channels leave.
int64_t conv_groups(const OpCall& call) {
  if (call.attrs.has("groups")) return call.attrs.get<int64_t>("groups");
  const Dim &channels = call.in[0].dims.back(), &each = call.in[1].dims[call.in[1].dims.size() - 2];
  if (channels == each) return 1;
  Dim groups;
  if (each.is(0) || !divides_exactly(channels, each, groups) || !groups.is_const())
    call.fail("the kernel's ", each, " channels do not divide the input's ", channels, ", input ", str(call.in[0].dims), " and kernel ",
              str(call.in[1].dims));
  return groups.value();
}

std::vector<TensorType> infer_conv(const OpCall& call) {
  spatial_axes(call, call.in[0]);
  check_kernel_rank(call, call.in[0], call.in[1]);
  const int64_t groups = conv_groups(call);
  check_channels(call, groups);
  return conv_type(call, placed(call, kernel_extents(call.in[1]), groups), call.in[1].dims.back());
}

std::vector<Expr> expand_conv(Builder&, const OpCall& call, std::span<const Expr> in) {
  return {general_conv(in[0], in[1], placed(call, kernel_extents(call.in[1]), conv_groups(call)))};
}

void check_depthwise(const OpCall& call) {
  spatial_axes(call, call.in[0]);
  check_kernel_rank(call, call.in[0], call.in[1]);
  const Dims &x = call.in[0].dims, &w = call.in[1].dims;
  if (!(x.back() == w[w.size() - 2]))
    call.fail("channels differ, input ", str(x), " and kernel ", str(w), " (", x.back(), " != ", w[w.size() - 2], ")");
  axis_extent(call, x, call.in[0].rank() - 1);
}

// A depthwise kernel has the shape [spatial, channels, multiplier].
Dim depthwise_channels(const OpCall& call) { return call.in[1].dims[call.in[1].dims.size() - 2] * call.in[1].dims.back(); }

std::vector<TensorType> infer_depthwise(const OpCall& call) {
  check_depthwise(call);
  return conv_type(call, placed(call, kernel_extents(call.in[1]), 1), depthwise_channels(call));
}

// Every channel is a group of its own.
Expr depthwise(const OpCall& call, const Expr& x, const Expr& w) {
  Dims dims = kernel_extents(w.type());
  const Geometry g = placed(call, dims, std::max<int64_t>(1, x.dims().back().value()));
  dims.insert(dims.end(), {Dim(1), depthwise_channels(call)});
  if (x.dims().back().is(0)) dims[dims.size() - 2] = 0;  // no channels: one group without any
  return general_conv(x, w.reshape(dims), g);
}

std::vector<TensorType> infer_separable(const OpCall& call) {
  check_depthwise(call);
  const TensorType& pointwise = call.in[2];
  check_kernel_rank(call, call.in[0], pointwise);
  for (const Dim& d : kernel_extents(pointwise))
    if (!d.is(1)) call.fail("the pointwise kernel must have spatial extents of 1, got ", str(pointwise.dims));
  const Dim channels = depthwise_channels(call), &taken = pointwise.dims[pointwise.dims.size() - 2];
  if (!(channels == taken))
    call.fail("the depthwise step makes ", channels, " channels, the pointwise kernel ", str(pointwise.dims), " takes ", taken);
  return conv_type(call, placed(call, kernel_extents(call.in[1]), 1), pointwise.dims.back());
}

// The pointwise step is a product over the channels.
std::vector<Expr> expand_separable(Builder&, const OpCall& call, std::span<const Expr> in) {
  const Dims& w = in[2].dims();
  const Expr columns = in[2].reshape({w[w.size() - 2], w.back()});
  return {depthwise(call, in[0], in[1]).op("matmul", {columns})};
}

// Keras's paddings of a transposed convolution: 'valid' gives (input - 1) * stride + max(kernel, stride), 'same' gives input * stride;
// output_padding replaces what goes beyond the shortest possible output.
void pad_transposed(const OpCall& call, Geometry& g, const Dims& kernel, const Ints& strides) {
  const Padding padding = padding_of(call, static_cast<int>(kernel.size()));
  if (padding == Padding::Causal) call.fail("padding must be 'valid' or 'same', got 'causal'");
  for (size_t i = 0; i < kernel.size(); ++i) {
    const Dim span = span_of(kernel[i], g.dilation[i]), stride = strides[i];  // numbers, with checked arithmetic
    std::optional<Dim> extra;
    if (call.attrs.has("output_padding")) {
      const auto& given = call.attrs.get<Ints>("output_padding");
      if (given.size() != 1 && given.size() != kernel.size())
        call.fail("output_padding has ", given.size(), " entries for ", kernel.size(), " spatial axes");
      const int64_t entry = given[given.size() == 1 ? 0 : i];
      if (entry < 0) call.fail("output_padding must be at least 0, got ", entry);
      extra = entry;
    }
    Dim low = span - 1, high = 0;
    if (padding == Padding::Valid) {
      high = span - 1 + extra.value_or(max(stride - span, 0));
    } else {
      const Dim total = extra ? span + span.value() % 2 - 2 + *extra : stride + span - 2;
      low = min(ceil_div(total, 2), span - 1);
      high = total - low;
    }
    g.low.push_back(low);
    g.high.push_back(high);
  }
}

Geometry transposed_geometry(const OpCall& call) {
  const int axes = spatial_axes(call, call.in[0]);
  check_kernel_rank(call, call.in[0], call.in[1]);
  const Dims kernel = kernel_extents(call.in[1]);
  for (int i = 0; i < axes; ++i)
    if (axis_extent(call, call.in[1].dims, i) < 1) call.fail("the kernel ", str(call.in[1].dims), " has no elements along axis ", i);
  Geometry g{.strides = Ints(kernel.size(), 1),
             .dilation = spatial_ints(call, "dilation", axes, 1),
             .input_dilation = spatial_ints(call, "strides", axes, 1)};
  pad_transposed(call, g, kernel, g.input_dilation);
  return g;
}

std::vector<TensorType> infer_conv_transpose(const OpCall& call) {
  const Geometry g = transposed_geometry(call);
  const Dims &x = call.in[0].dims, &w = call.in[1].dims;
  if (!(x.back() == w.back()))
    call.fail("channels differ, input ", str(x), " and kernel ", str(w), " (", x.back(), " != ", w.back(),
              ")\n  hint: the kernel is [spatial, output channels, input channels]");
  Dims out{x[0]};
  for (size_t i = 0; i < g.strides.size(); ++i)
    out.push_back(window_count(span_of(x[i + 1], g.input_dilation[i]), g.low[i], g.high[i], span_of(w[i], g.dilation[i]), 1));
  out.push_back(w[w.size() - 2]);
  return {{call.in[0].dtype, out}};
}

std::vector<Expr> expand_conv_transpose(Builder&, const OpCall& call, std::span<const Expr> in) {
  return {general_conv(in[0], reversed_kernel(in[1], 1), transposed_geometry(call))};
}

}  // namespace

Rows convolution_rows() {
  return {
      {.name = "general_conv",
       .sig =
           "(x: number, w: number; strides: ints, low: shape, high: shape, dilation: ints, input_dilation: ints, groups: int = 1, dtype: "
           "dtype? = none) -> custom",
       .doc =
           "Convolution of [batch, spatial, channels] with a kernel [spatial, channels / groups, filters], in one to three spatial axes, "
           "with padding (or, when negative, cutting) on both sides, steps, and gaps within kernel and input. `dtype` widens the result.",
       .traits = kProduct,
       .infer = infer_general_conv,
       .loops = general_conv_loops,
       .vjp = general_conv_vjp,
       .samples =
           {"([2,7,3], [3,3,4]; strides=[1], low=[0], high=[0], dilation=[1], input_dilation=[1])",
            "([2,8,3], [3,3,4]; strides=[2], low=[1], high=[1], dilation=[1], input_dilation=[1])",
            "([2,9,4], [2,2,6]; strides=[3], low=[1], high=[2], dilation=[2], input_dilation=[1], groups=2)",
            "([1,5,2], [4,2,3]; strides=[1], low=[3], high=[4], dilation=[1], input_dilation=[2])",
            "([1,6,2], [3,2,3]; strides=[2], low=[-1], high=[2], dilation=[1], input_dilation=[3])",
            "([2,5,6,3], [3,2,3,4]; strides=[2,1], low=[1,0], high=[0,1], dilation=[1,2], input_dilation=[1,1])",
            "([1,5,5,6], [3,3,2,6]; strides=[1,1], low=[1,1], high=[1,1], dilation=[1,1], input_dilation=[1,1], groups=3)",
            "([2,4,5,3], [2,2,1,6]; strides=[2,2], low=[0,1], high=[1,1], dilation=[1,1], input_dilation=[2,1], groups=3)",
            "([1,3,4,3,2], [2,2,2,2,3]; strides=[1,2,1], low=[0,1,1], high=[1,0,0], dilation=[1,1,2], input_dilation=[1,1,1])",
            "([0,5,2], [3,2,3]; strides=[1], low=[0], high=[0], dilation=[1], input_dilation=[1])",
            "([2,2,2], [3,2,3]; strides=[1], low=[0], high=[0], dilation=[1], input_dilation=[1])",
            "([1,9,9,70] in -1..1, [3,3,70,3] in -1..1; strides=[1,1], low=[1,1], high=[1,1], dilation=[1,1], input_dilation=[1,1])"},
       .tolerance = {.abs = 1e-5}},  // sums of hundreds of products, in another order for each layout
      {.name = "conv_kernel_gradient",
       .sig = "(x: number, g: number; kernel: shape, strides: ints, low: shape, high: shape, dilation: ints, input_dilation: ints, groups: "
              "int = 1, dtype: dtype? = none) -> custom",
       .doc =
           "The gradient of general_conv with respect to its kernel, whose spatial extents are `kernel`: x is the convolution's input, g "
           "the gradient of its result.",
       .traits = kProduct,
       .infer = infer_kernel_gradient,
       .loops = kernel_gradient_loops,
       .vjp = kernel_gradient_vjp,
       .samples =
           {"([2,7,3], [2,5,4]; kernel=[3], strides=[1], low=[0], high=[0], dilation=[1], input_dilation=[1])",
            "([2,8,3], [2,4,4]; kernel=[3], strides=[2], low=[1], high=[1], dilation=[1], input_dilation=[1])",
            "([2,9,4], [2,4,6]; kernel=[2], strides=[3], low=[1], high=[2], dilation=[2], input_dilation=[1], groups=2)",
            "([1,5,2], [1,13,3]; kernel=[4], strides=[1], low=[3], high=[4], dilation=[1], input_dilation=[2])",
            "([1,6,2], [1,8,3]; kernel=[3], strides=[2], low=[-1], high=[2], dilation=[1], input_dilation=[3])",
            "([2,5,6,3], [2,2,5,4]; kernel=[3,2], strides=[2,1], low=[1,0], high=[0,1], dilation=[1,2], input_dilation=[1,1])",
            "([2,4,5,3], [2,4,3,6]; kernel=[2,2], strides=[2,2], low=[0,1], high=[1,1], dilation=[1,1], input_dilation=[2,1], groups=3)",
            "([1,3,4,3,2], [1,3,2,2,3]; kernel=[2,2,2], strides=[1,2,1], low=[0,1,1], high=[1,0,0], dilation=[1,1,2], "
            "input_dilation=[1,1,1])",
            "([0,5,2], [0,3,3]; kernel=[3], strides=[1], low=[0], high=[0], dilation=[1], input_dilation=[1])",
            "([2,2,2], [2,0,3]; kernel=[3], strides=[1], low=[0], high=[0], dilation=[1], input_dilation=[1])",
            "([5,9,9,7] in -1..1, [5,9,9,20] in -1..1; kernel=[3,3], strides=[1,1], low=[1,1], high=[1,1], dilation=[1,1], "
            "input_dilation=[1,1])"},
       .tolerance = {.abs = 1e-5}},  // long sums, in another order for each layout
      {.name = "conv",
       .sig =
           "(x: number, w: number; strides: ints? = none, padding: string = 'valid', dilation: ints? = none, groups: int? = none) -> same",
       .doc = "Keras's convolution in one to three spatial axes, channels last, kernel [spatial, channels / groups, filters]; padding is "
              "'valid', 'same' or (1-D) 'causal'. Without `groups` the channels decide.",
       .infer = infer_conv,
       .decompose = expand_conv,
       .samples = {"([2,7,3], [3,3,4])", "([2,7,3], [3,3,4]; padding='same', strides=[2])",
                   "([2,6,2], [3,2,3]; padding='causal', dilation=[2])", "([2,6,6,3], [3,3,3,4]; padding='same')",
                   "([1,7,6,4], [3,2,2,4]; strides=[2], padding='same')", "([1,7,6,4], [1,1,4,3]; strides=[2,3], padding='same')",
                   "([1,8,8,2], [3,3,2,2]; dilation=[2,2])", "([1,5,5,4], [2,2,1,4]; groups=4, padding='same')",
                   "([1,4,4,4,2], [2,2,2,2,3]; strides=[2,1,2], padding='same')", "([0,6,6,3], [3,3,3,4]; padding='same')",
                   "([1,12,12,3] in -1..1, [5,5,3,70] in -1..1; padding='same')"}},
      {.name = "depthwise_conv",
       .sig = "(x: number, w: number; strides: ints? = none, padding: string = 'valid', dilation: ints? = none) -> same",
       .doc = "Convolution of every channel by itself; the kernel is [spatial, channels, multiplier].",
       .infer = infer_depthwise,
       .decompose = [](Builder&, const OpCall& call, std::span<const Expr> in) { return std::vector<Expr>{depthwise(call, in[0], in[1])}; },
       .samples = {"([2,7,3], [3,3,1])", "([2,7,3], [3,3,2]; padding='same', strides=[2])", "([2,6,5,3], [3,2,3,2]; padding='same')",
                   "([1,8,8,4], [3,3,4,1]; dilation=[2])", "([1,7,7,2], [3,3,2,3]; strides=[2], padding='same')", "([0,6,6,3], [3,3,3,1])",
                   "([1,6,6,67], [3,3,67,1]; padding='same')"}},
      {.name = "separable_conv",
       .sig = "(x: number, depthwise: number, pointwise: number; strides: ints? = none, padding: string = 'valid', dilation: ints? = none) "
              "-> same",
       .doc = "A depthwise convolution, then a product over the channels with a kernel [1, 1, channels * multiplier, filters].",
       .infer = infer_separable,
       .decompose = expand_separable,
       .samples = {"([2,7,3], [3,3,2], [1,6,4])", "([2,6,5,3], [3,2,3,2], [1,1,6,4]; padding='same')",
                   "([1,7,7,2], [3,3,2,1], [1,1,2,5]; strides=[2], padding='same')", "([1,8,8,2], [3,3,2,1], [1,1,2,3]; dilation=[2,2])",
                   "([0,7,7,2], [3,3,2,1], [1,1,2,5])"}},
      {.name = "conv_transpose",
       .sig = "(x: number, w: number; strides: ints? = none, padding: string = 'valid', output_padding: ints? = none, dilation: ints? = "
              "none) -> same",
       .doc = "Keras's transposed convolution: the gradient of a strided convolution with respect to its input. The kernel is [spatial, "
              "filters, "
              "channels].",
       .infer = infer_conv_transpose,
       .decompose = expand_conv_transpose,
       .samples = {"([2,4,3], [3,2,3])", "([2,4,3], [3,2,3]; strides=[2])", "([2,4,3], [3,2,3]; strides=[2], padding='same')",
                   "([2,4,3], [2,2,3]; strides=[3])", "([2,4,3], [3,2,3]; strides=[2], padding='same', output_padding=[0])",
                   "([2,4,3], [4,2,3]; strides=[2], padding='same', output_padding=[1])",
                   "([2,4,3], [3,2,3]; strides=[3], output_padding=[2])", "([1,4,5,2], [3,2,4,2]; strides=[2,1], padding='same')",
                   "([1,4,4,2], [3,3,3,2]; dilation=[2,2], padding='same')", "([1,3,3,3,2], [2,3,2,2,2]; strides=[2], padding='same')",
                   "([0,4,3], [3,2,3]; strides=[2])", "([1,8,8,3], [4,4,9,3]; strides=[2], padding='same')"}},
  };
}

}  // namespace tandem::ops
