// Gradients of convolutions by their kernels of 3x3 in fewer multiplications (winograd.hpp): windows of the image and of the gradient are
// transformed a block at a time, and 16 products sum over them; what a part of the sum gives is transformed back at its end. Parts follow
// from the shapes alone and are added in order.
#include <algorithm>

#include "cpu_program.hpp"
#include "partial_sums.hpp"
#include "scratch.hpp"
#include "tile_table.hpp"
#include "winograd_grid.hpp"
#include "work.hpp"

namespace tandem::cpu {
namespace {

constexpr int64_t kBlockFloats = 96 * 1024;     // of a block's windows: with the sums they stay in the L2 cache
constexpr int64_t kCut = 64;                    // channels and filters that are summed at a time
constexpr int64_t kPartialFloats = 320 * 1024;  // of all partial sums together: 8 of 64 channels and filters

class ConvWeightsWinograd final : public CpuProgram {
 public:
  ConvWeightsWinograd(const codegen::Kernel& kernel, const Conv& conv, Toolbox& tools)
      : conv_(conv),
        grid_(conv),
        set_(winograd(tools.target.wide)),
        tiles_(cpu::tiles(tools.target.wide), Stored::ByColumns),
        x_(grid_, image_steps(kernel.in[0])),
        g_(grid_, image_steps(kernel.in[1])),
        zeros_(static_cast<size_t>(std::max(conv.channels, conv.filters))),
        row_cuts_(parts(conv.channels, kCut)),
        column_cuts_(parts(conv.filters, kCut)),
        part_windows_(windows_of_part()),
        parts_(parts(grid_.windows(), part_windows_)),
        partial_(kernel, parts_, conv.taps() * conv.channels, conv.filters, tools) {
    const int64_t lanes = tiles_.set().lanes;
    channel_step_ = round_up(std::min(conv.channels, kCut), lanes);
    filter_step_ = round_up(std::min(conv.filters, kCut), lanes);
    block_ = std::clamp<int64_t>(kBlockFloats / (kPoints * (channel_step_ + filter_step_)), 1, part_windows_);
    scratch_ = WorkerScratch(static_cast<size_t>(kPoints * (x_step() + g_step() + sum_step())) * sizeof(float), tools.threads);
  }
  std::string_view kernel_name() const override { return "conv_weights/winograd"; }
  size_t scratch_bytes() const override { return partial_.scratch_bytes() + scratch_.bytes(); }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    const int64_t each = row_cuts_ * column_cuts_;
    pool.run(parts_ * each, [&](int64_t i) { part(args, i / each, i % each / column_cuts_, i % column_cuts_); });
    partial_.finish(args, pool);
  }

 private:
  int64_t windows_of_part() const {
    const int64_t most = std::clamp<int64_t>(kPartialFloats / (conv_.taps() * conv_.channels * conv_.filters), 1, kMostSumParts);
    return std::max(parts(grid_.windows(), most), kFewestWindows);
  }
  // Between points.
  int64_t x_step() const { return block_ * channel_step_ + kPointShift; }
  int64_t g_step() const { return block_ * filter_step_ + kPointShift; }
  int64_t sum_step() const { return std::min(conv_.channels, kCut) * filter_step_ + kPointShift; }

  // One part of the sum, for one cut of the channels and of the filters.
  void part(const device::LaunchArgs& args, int64_t index, int64_t row_cut, int64_t column_cut) const {
    const int64_t channel0 = row_cut * kCut, channels = std::min(kCut, conv_.channels - channel0);
    const int64_t filter0 = column_cut * kCut, filters = std::min(kCut, conv_.filters - filter0);
    const auto* x = static_cast<const float*>(args.pointers[0]) + channel0;
    const auto* g = static_cast<const float*>(args.pointers[1]) + filter0;
    auto* x_points = static_cast<float*>(scratch_.mine(static_cast<char*>(args.scratch) + partial_.scratch_bytes()));
    float *g_points = x_points + kPoints * x_step(), *sums = g_points + kPoints * g_step();
    const int64_t begin = index * part_windows_, end = std::min(grid_.windows(), begin + part_windows_);
    for_even_parts(end - begin, block_, [&](int64_t first, int64_t count) {
      WinogradGrid::Window w = grid_.window(begin + first);
      for (int64_t i = 0; i < count; ++i, grid_.advance(w)) {
        const float *inputs[kPoints], *outputs[kOutputs * kOutputs];
        x_.find(x, w, zeros_.data(), inputs);
        set_.window(inputs, channels, x_points + i * channel_step_, x_step());
        g_.find(g, w, zeros_.data(), outputs);
        set_.gradient(outputs, filters, g_points + i * filter_step_, g_step());
      }
      for (int64_t p = 0; p < kPoints; ++p)
        tiles_.cover({.a = x_points + p * x_step(),
                      .b = g_points + p * g_step(),
                      .a_step = channel_step_,
                      .b_step = filter_step_,
                      .length = count,
                      .c = sums + p * sum_step(),
                      .c_step = filter_step_,
                      .accumulate = first > 0},
                     channels, filters, 1, 1, 2);
    });
    float* result = partial_.part(args, index) + channel0 * conv_.filters + filter0;
    for (int64_t c = 0; c < channels; ++c, result += conv_.filters) {
      float* taps[kTaps * kTaps];
      for (int64_t t = 0; t < kTaps * kTaps; ++t) taps[t] = result + t * conv_.channels * conv_.filters;
      set_.kernel_gradient(sums + c * filter_step_, sum_step(), filters, taps);
    }
  }

  Conv conv_;
  WinogradGrid grid_;
  const WinogradSet& set_;
  TileTable tiles_;
  WindowInputs x_;
  WindowOutputs g_;
  std::vector<float> zeros_;  // a pixel outside of an image
  int64_t row_cuts_, column_cuts_, part_windows_, parts_;
  PartialSums partial_;
  int64_t channel_step_, filter_step_;  // from window to window
  int64_t block_;
  WorkerScratch scratch_;
};

}  // namespace

std::shared_ptr<const CpuProgram> make_conv_weights_winograd(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  if (kernel.op->name != "conv_kernel_gradient") return nullptr;
  const codegen::Layout &x = kernel.in[0], &g = kernel.in[1], &product = kernel.epilogue ? kernel.epilogue->product : kernel.out[0];
  const Conv conv = conv_of(kernel.attrs, x.shape, product.shape, g.shape);
  if (!winograd_takes(conv, g.dtype, product.dtype, refusal)) return nullptr;
  if (x.strides[x.strides.size() - 1] != 1 || g.strides[g.strides.size() - 1] != 1) {
    refusal = "channels of the image or of the gradient do not lie side by side";
    return nullptr;
  }
  return std::make_shared<ConvWeightsWinograd>(kernel, conv, tools);
}

}  // namespace tandem::cpu
