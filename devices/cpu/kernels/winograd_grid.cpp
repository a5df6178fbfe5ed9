#include "winograd_grid.hpp"

#include <algorithm>
#include <span>

#include "base/text.hpp"
#include "tile_table.hpp"

namespace tandem::cpu {
namespace {

constexpr int64_t kFewestChannels = 16;  // in and out: with less, transforms cost more than they save
constexpr double kTransform = 4;         // multiplications that transforming one number costs as much as, measured

// Along one axis: how often a tap meets an element.
int64_t meetings(const ConvAxis& a) {
  int64_t n = 0;
  for (int64_t k = 0; k < a.kernel; ++k) n += std::max<int64_t>(0, std::min(a.out, a.in + a.low - k) - std::max<int64_t>(0, a.low - k));
  return n;
}

bool fits(const ConvAxis& a) { return a.kernel == kTaps && a.stride == 1 && a.dilation == 1 && a.input_dilation == 1; }
bool absent(const ConvAxis& a) { return a.in == 1 && a.out == 1 && a.kernel == 1 && a.low == 0; }

}  // namespace

WinogradGrid::WinogradGrid(const Conv& conv) : batch_(conv.batch) {
  const auto axis = [](const ConvAxis& a, int64_t images) {
    return Axis{.in = a.in, .out = a.out, .low = a.low, .images = images, .windows = parts(images * a.out, kOutputs)};
  };
  const auto most_images = [](const ConvAxis& a) { return a.low == kTaps - 1 && a.out == a.in + a.low && a.out % kOutputs ? 2 : 1; };
  const ConvAxis &height = conv.axes[1], &width = conv.axes[2];
  WinogradGrid best = *this;
  for (int64_t down = 1; down <= most_images(height); ++down)
    for (int64_t across = 1; across <= most_images(width); ++across) {  // in a batch that four do not divide, less may be better
      axes_ = {axis(height, down), axis(width, across)};
      if (down * across == 1 || windows() < best.windows()) best = *this;
    }
  *this = best;
}

int64_t WinogradGrid::first_pixel(int64_t row) const {
  const int64_t image = std::min(batch_, row / rows() * images());
  return (image * axes_[0].out + row % rows() * kOutputs) * axes_[1].out;
}

template <int64_t Size>
WindowPixels<Size>::WindowPixels(const WinogradGrid& grid, const ImageSteps& steps)
    : batch_(grid.batch_),
      canvas_images_(grid.images()),
      canvas_step_(grid.images() * steps.batch),
      down_step_(steps.axes[1]),
      across_step_(steps.axes[2]),
      down_(lines(grid.axes_[0], steps.axes[1], steps.batch, grid.axes_[1].images)),
      across_(lines(grid.axes_[1], steps.axes[2], steps.batch, 1)) {}

// `images`: how many further in the batch the next image along this axis is.
template <int64_t Size>
auto WindowPixels<Size>::lines(const WinogradGrid::Axis& axis, int64_t step, int64_t image_step, int64_t images) -> std::vector<Line> {
  constexpr bool kInputs = Size == kWindow;
  std::vector<Line> all;
  const int64_t count = (axis.windows - 1) * kOutputs + Size;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t image = std::min(i / axis.out, axis.images - 1), at = i - image * axis.out - (kInputs ? axis.low : 0);
    const bool inside = at >= 0 && at < (kInputs ? axis.in : axis.out);
    all.push_back(inside ? Line{image * images, image * images * image_step + at * step} : Line{kNone, 0});
  }
  for (size_t i = 0; i + Size <= all.size(); ++i) {
    const auto own = std::span(all).subspan(i, Size);
    all[i].whole = std::ranges::all_of(own, [&](const Line& l) { return l.image != kNone && l.image == own[0].image; });
  }
  return all;
}

template class WindowPixels<kWindow>;
template class WindowPixels<kOutputs>;

bool winograd_takes(const Conv& conv, DType operands, DType result, std::string& refusal) {
  const ConvAxis &height = conv.axes[1], &width = conv.axes[2];
  if (operands != DType::F32 || result != DType::F32)
    refusal = cat("takes float32, not ", name(operands), " to ", name(result));
  else if (conv.groups != 1)
    refusal = cat("takes one group, not ", conv.groups);
  else if (!absent(conv.axes[0]) || !fits(height) || !fits(width))
    refusal = "takes kernels of 3x3 in steps of 1";
  else if (conv.channels < kFewestChannels || conv.filters < kFewestChannels)
    refusal = cat("too few channels, ", conv.channels, " to ", conv.filters, "; it takes ", kFewestChannels, " and more");
  if (!refusal.empty()) return false;
  const int64_t windows = WinogradGrid(conv).windows();
  const double direct = static_cast<double>(conv.batch) * static_cast<double>(meetings(height)) * static_cast<double>(meetings(width));
  const double transforms = kTransform / static_cast<double>(conv.channels) + kTransform / static_cast<double>(conv.filters);
  const double ours = static_cast<double>(windows * kPoints) * (1 + transforms);
  if (windows < kFewestWindows || direct < ours)  // also what is empty
    refusal =
        cat("too little to gain, ", windows, " windows that cost ", ours, " multiplications a channel and filter instead of ", direct);
  return refusal.empty();
}

}  // namespace tandem::cpu
