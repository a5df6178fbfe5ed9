#include "winograd_grid.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "tile_table.hpp"

namespace tandem::cpu {
namespace {

constexpr int64_t kFewestChannels = 16;  // in and out: with less, transforms cost more than they save
constexpr int64_t kFewestWindows = 32;   // that a transformed kernel is used for
constexpr double kWorthwhile = 1.25;     // times as many multiplications without the transforms

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
  for (size_t i = 0; i < 2; ++i) {
    const ConvAxis& a = conv.axes[i + 1];
    axes_[i] = {.in = a.in, .out = a.out, .low = a.low, .windows = parts(a.out, kOutputs), .period = a.out};
    const bool surrounded = a.low == kTaps - 1 && a.out == a.in + a.low;
    if (!surrounded || a.out % kOutputs == 0 || batch_ < images() * 2) continue;
    axes_[i].images = 2;
    axes_[i].windows = a.out;
  }
}

int64_t WinogradGrid::first_pixel(int64_t row) const {
  const int64_t image = std::min(batch_, row / rows() * images());
  return (image * axes_[0].out + row % rows() * kOutputs) * axes_[1].out;
}

WindowPixels::WindowPixels(const WinogradGrid& grid, Of of, const ImageSteps& steps)
    : size_(of == Of::Inputs ? kWindow : kOutputs),
      batch_(grid.batch_),
      canvas_images_(grid.images()),
      canvas_step_(grid.images() * steps.batch),
      down_(lines(grid.axes_[0], of, steps.axes[1], steps.batch, grid.axes_[1].images)),
      across_(lines(grid.axes_[1], of, steps.axes[2], steps.batch, 1)) {}

// `images`: from one image along this axis to the next.
std::vector<WindowPixels::Line> WindowPixels::lines(const WinogradGrid::Axis& axis, Of of, int64_t step, int64_t image_step,
                                                    int64_t images) const {
  std::vector<Line> all;
  const int64_t count = (axis.windows - 1) * kOutputs + size_;
  for (int64_t i = 0; i < count; ++i) {
    // What lies behind the last image belongs to none.
    const int64_t image = std::min(i / axis.period, axis.images - 1), at = i - image * axis.period - (of == Of::Inputs ? axis.low : 0);
    const bool inside = at >= 0 && at < (of == Of::Inputs ? axis.in : axis.out);
    all.push_back(inside ? Line{image * images, image * images * image_step + at * step} : Line{kNone, 0});
  }
  return all;
}

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
  const double needed = static_cast<double>(conv.batch * meetings(height)) * static_cast<double>(meetings(width));
  if (windows < kFewestWindows || needed < kWorthwhile * static_cast<double>(windows * kPoints))  // also what is empty
    refusal = cat("too little to gain, ", windows, " windows of ", kPoints, " for ", needed, " multiplications");
  return refusal.empty();
}

}  // namespace tandem::cpu
