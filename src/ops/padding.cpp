// Padding: with a value, or with the tensor's own elements.
#include <algorithm>
#include <array>

#include "ops/helpers.hpp"
#include "ops/movement.hpp"

namespace tandem::ops {
using namespace ir;
namespace {

using Types = std::vector<TensorType>;

// --- pad: negative amounts cut off, which makes the gradient of a pad a pad ---
Types infer_pad(const OpCall& call) {
  const TensorType& x = call.in[0];
  const Dims &low = dims_attr(call, "low", x.rank()), &high = dims_attr(call, "high", x.rank());
  if (call.in[1].rank() != 0) call.fail("the value must be a scalar, got ", call.in[1]);
  Dims dims;
  for (size_t k = 0; k < x.dims.size(); ++k) {
    dims.push_back(x.dims[k] + low[k] + high[k]);
    if (dims[k].is_const() && dims[k].value() < 0)
      call.fail("axis ", k, " of ", str(x.dims), " cannot lose ", Dim(0) - low[k] - high[k], " elements, it has ", x.dims[k]);
  }
  return {{x.dtype, dims}};
}

bool adds_nothing(const Dim& d) { return d.is_const() && d.value() <= 0; }

Loops pad_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType& x = call.in[0];
  const Dims &low = call.attrs.get<Dims>("low"), &high = call.attrs.get<Dims>("high");
  std::vector<Scalar> index = output_axes(x.rank());
  Scalar valid;
  for (size_t k = 0; k < index.size(); ++k) {
    index[k] = index[k] - extent(low[k]);
    if (!adds_nothing(low[k])) valid = both(valid, index[k] >= 0);
    if (!adds_nothing(high[k])) valid = both(valid, index[k] < extent(x.dims[k]));
  }
  Scalar result = valid ? load_if(0, x.dtype, index, valid, load(1, x.dtype, {})) : load(0, x.dtype, index);
  return map_loops(out[0].dims, result);
}

Dims negated(const Dims& dims) {
  Dims out;
  for (const Dim& d : dims) out.push_back(Dim(0) - d);
  return out;
}

std::vector<Expr> vjp_pad(const GradCall& g) {
  const Dims &low = g.node.attrs.get<Dims>("low"), &high = g.node.attrs.get<Dims>("high");
  Expr grad = g.grad(), x_grad, value_grad;
  if (g.needed[0]) x_grad = grad.op("pad", {grad.number(0)}, {{"low", negated(low)}, {"high", negated(high)}});
  if (g.needed[1]) {
    Expr is_padding = g.in[0].like(0).op("pad", {grad.number(1)}, {{"low", low}, {"high", high}});
    value_grad = (grad * is_padding).sum(all_axes(grad.rank()));
  }
  return {x_grad, value_grad};
}

// --- pad_mode ---
constexpr std::array<std::string_view, 4> kModes = {"reflect", "symmetric", "edge", "wrap"};

Types infer_pad_mode(const OpCall& call) {
  const TensorType& x = call.in[0];
  const Ints &low = call.attrs.get<Ints>("low"), &high = call.attrs.get<Ints>("high");
  const std::string& mode = call.attrs.get<std::string>("mode");
  if (std::find(kModes.begin(), kModes.end(), mode) == kModes.end())
    call.fail("unknown mode '", mode, "'\n  hint: reflect, symmetric, edge or wrap; a constant is padded by pad");
  if (low.size() != x.dims.size() || high.size() != x.dims.size())
    call.fail("low and high have ", low.size(), " and ", high.size(), " entries, ", str(x.dims), " has ", x.rank(), " axes");
  Dims dims;
  for (size_t k = 0; k < x.dims.size(); ++k) {
    if (low[k] < 0 || high[k] < 0)
      call.fail("axis ", k, " would be padded by ", low[k], " and ", high[k], ", amounts must not be negative");
    if (x.dims[k].is(0) && low[k] + high[k] > 0) call.fail("axis ", k, " of ", str(x.dims), " has no elements to pad with");
    dims.push_back(x.dims[k] + Dim(low[k]) + Dim(high[k]));
  }
  return {{x.dtype, dims}};
}

// Where the element for position i (which may lie outside of 0 … n-1) comes from.
Scalar source_index(const Scalar& i, const Dim& size, std::string_view mode) {
  Scalar n = extent(size), last = extent(size - Dim(1));
  if (mode == "edge") return clamp_index(i, index_constant(0), last);
  if (mode == "wrap") return floor_mod(i, n);
  bool reflect = mode == "reflect";  // reflect does not repeat the border: a period has two elements less
  Scalar period = reflect ? max(extent(Dim(2) * size - Dim(2)), 1) : extent(Dim(2) * size);
  Scalar j = floor_mod(i, period);
  return min(j, (reflect ? period : extent(Dim(2) * size - Dim(1))) - j);
}

Loops pad_mode_loops(const OpCall& call, std::span<const TensorType> out) {
  const TensorType& x = call.in[0];
  const Ints &low = call.attrs.get<Ints>("low"), &high = call.attrs.get<Ints>("high");
  std::vector<Scalar> index = output_axes(x.rank());
  for (size_t k = 0; k < index.size(); ++k) {
    if (low[k] == 0 && high[k] == 0) continue;
    index[k] = source_index(index[k] - index_constant(low[k]), x.dims[k], call.attrs.get<std::string>("mode"));
  }
  return map_loops(out[0].dims, load(0, x.dtype, index));
}

// Axis by axis: each element's gradient goes back to where the element came from, which padding the positions themselves tells.
std::vector<Expr> vjp_pad_mode(const GradCall& g) {
  const Ints &low = g.node.attrs.get<Ints>("low"), &high = g.node.attrs.get<Ints>("high");
  Expr grad = g.grad();
  for (size_t k = 0; k < low.size(); ++k) {
    if (low[k] == 0 && high[k] == 0) continue;
    Dims dims = grad.dims();
    dims[k] = g.in[0].dims()[k];
    Expr from = iota(g.builder, {dims[k]}, 0, DType::I32)
                    .op("pad_mode", {{"low", Ints{low[k]}}, {"high", Ints{high[k]}}, {"mode", g.node.attrs.get<std::string>("mode")}});
    grad = add_at(grad, from, dims, static_cast<int>(k));
  }
  return {grad};
}

}  // namespace

Rows padding_rows() {
  return {
      {.name = "pad",
       .sig = "(x: any, value: any; low: shape, high: shape) -> same",
       .doc = "Adds so many elements of a value before (low) and behind (high) each axis; negative numbers take elements away.",
       .infer = infer_pad,
       .loops = pad_loops,
       .vjp = vjp_pad,
       .samples = {"([2,3], []; low=[1,0], high=[0,2])", "([], []; low=[], high=[])", "([0,3], []; low=[1,1], high=[1,0])",
                   "([4,5], []; low=[-1,2], high=[1,-3])", "([70]:float32, []:float32; low=[3], high=[5])",
                   "([2,1,2,1,2]:float32, []:float32; low=[0,1,0,2,0], high=[1,0,0,1,0])"}},
      {.name = "pad_mode",
       .sig = "(x: own; low: ints, high: ints, mode: string) -> same",
       .doc = "Adds elements before and behind each axis: mirrored without (reflect) or with the border (symmetric), the border itself "
              "(edge), "
              "or from the other end (wrap).",
       .infer = infer_pad_mode,
       .loops = pad_mode_loops,
       .vjp = vjp_pad_mode,
       .samples = {"([2,4]; low=[1,2], high=[0,3], mode='reflect')", "([2,4]; low=[1,2], high=[3,9], mode='symmetric')",
                   "([2,4]; low=[1,0], high=[0,3], mode='edge')", "([2,4]; low=[5,0], high=[0,3], mode='wrap')",
                   "([3]; low=[7], high=[5], mode='reflect')", "([1]; low=[2], high=[1], mode='reflect')",
                   "([]; low=[], high=[], mode='edge')", "([0,3]; low=[0,1], high=[0,1], mode='edge')",
                   "([70]:float32; low=[3], high=[5], mode='reflect')"}},
  };
}

}  // namespace tandem::ops
