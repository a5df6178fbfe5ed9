// Convolutions with kernels of 3x3 in fewer multiplications (winograd.hpp): the kernel is transformed once, then windows a block at a time:
// transformed, 16 products from the register tiles while they are in the cache, and back.
#include <algorithm>

#include "conv_kernel.hpp"
#include "cpu_program.hpp"
#include "epilogue.hpp"
#include "scratch.hpp"
#include "tile_table.hpp"
#include "winograd_grid.hpp"
#include "work.hpp"

namespace tandem::cpu {
namespace {

// Of a block's windows and results together: 512 KiB, half the L2 of 1 MiB that docs/performance/products.md, "Winograd's transforms", has.
constexpr int64_t kBlockFloats = 128 * 1024;
constexpr int64_t kPanel = 64;               // filters that a block's results have at a time
constexpr int64_t kKernelChunk = 16 * 1024;  // weights that are transformed in a chunk

class ConvWinograd final : public CpuProgram {
 public:
  ConvWinograd(const codegen::Kernel& kernel, const Conv& conv, Toolbox& tools)
      : conv_(conv),
        grid_(conv),
        set_(winograd(tools.target.wide)),
        tiles_(cpu::tiles(tools.target.wide), Stored::ByRows),
        w_(kernel_steps(kernel.in[1])),
        inputs_(grid_, image_steps(kernel.in[0])),
        outputs_(grid_, image_steps(kernel.epilogue ? kernel.epilogue->product : kernel.out[0])),
        zeros_(static_cast<size_t>(conv.channels)),
        result_(kernel.in.size()) {
    const int64_t lanes = tiles_.set().lanes;
    panel_width_ = 2 * lanes;
    channel_step_ = round_up(conv.channels, lanes);
    filter_step_ = round_up(std::min(conv.filters, kPanel), lanes);
    cut();
    if (kernel.epilogue) epilogue_ = CompiledEpilogue(kernel, conv.filters, tools);
    const int64_t staged = epilogue_ ? most_pixels() * conv.filters : 0;
    scratch_ = WorkerScratch(static_cast<size_t>(kPoints * (window_step() + result_step()) + staged) * sizeof(float), tools.threads);
  }
  std::string_view kernel_name() const override { return "conv/winograd"; }
  size_t scratch_bytes() const override { return copied_bytes() + weight_bytes() + scratch_.bytes(); }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    const float* weights = transform_kernel(args, pool);
    const int64_t rows = grid_.canvases() * grid_.rows();
    pool.run(parts(rows, chunk_rows_), [&](int64_t i) { chunk(args, weights, i * chunk_rows_, std::min(rows, (i + 1) * chunk_rows_)); });
  }

 private:
  // A chunk has rows of windows that give a range of output pixels; it goes through them in blocks that fit into the cache.
  void cut() {
    const int64_t fitting = kBlockFloats / (kPoints * (channel_step_ + filter_step_));
    const int64_t wanted = std::clamp(parts(grid_.windows(), kWantedChunks), kFewestWindows, std::max(fitting, kFewestWindows));
    const int64_t unit = grid_.images() > 1 ? grid_.rows() : 1;  // rows that belong together
    chunk_rows_ = std::max<int64_t>(1, wanted / (unit * grid_.columns())) * unit;
    const int64_t windows = chunk_rows_ * grid_.columns();
    block_ = parts(windows, parts(windows, wanted));
  }
  int64_t most_pixels() const {
    int64_t most = 0;
    const int64_t rows = grid_.canvases() * grid_.rows();
    for (int64_t row = 0; row < rows; row += chunk_rows_)
      most = std::max(most, grid_.first_pixel(std::min(rows, row + chunk_rows_)) - grid_.first_pixel(row));
    return most;
  }

  int64_t window_step() const { return block_ * channel_step_ + kPointShift; }  // between points
  int64_t result_step() const { return block_ * filter_step_ + kPointShift; }
  // Transformed kernels lie in panels as wide as a tile, so that a tile reads them one line after the other.
  int64_t weight_step() const { return conv_.channels * round_up(conv_.filters, panel_width_) + kPointShift; }
  size_t weight_bytes() const { return codegen::align_up(static_cast<size_t>(kPoints * weight_step()) * sizeof(float)); }
  bool copied_kernel() const { return w_.filter != 1; }
  size_t copied_bytes() const {
    return copied_kernel() ? codegen::align_up(static_cast<size_t>(conv_.taps() * conv_.channels * conv_.filters) * sizeof(float)) : 0;
  }

  const float* transform_kernel(const device::LaunchArgs& args, ThreadPool& pool) const {
    const auto* kernel = static_cast<const float*>(args.pointers[1]);
    KernelSteps steps = w_;
    if (copied_kernel()) {
      auto* copy = static_cast<float*>(args.scratch);
      const float* own = kernel;
      pool.run(kTaps, [&](int64_t i) {
        for (int64_t tap = i * kTaps; tap < (i + 1) * kTaps; ++tap)
          copy_tap(tiles_.set(), own + i * w_.axes[1] + tap % kTaps * w_.axes[2], w_, conv_.channels, conv_.filters,
                   copy + tap * conv_.channels * conv_.filters);
      });
      kernel = copy;
      steps = {conv_.filters, 1, {0, kTaps * conv_.channels * conv_.filters, conv_.channels * conv_.filters}};
    }
    auto* to = reinterpret_cast<float*>(static_cast<char*>(args.scratch) + copied_bytes());
    const int64_t each = std::max<int64_t>(1, kKernelChunk / conv_.filters);
    pool.run(parts(conv_.channels, each), [&](int64_t i) {
      for (int64_t c = i * each; c < std::min(conv_.channels, (i + 1) * each); ++c)
        for (int64_t f = 0; f < conv_.filters; f += panel_width_) {
          const float* taps[kTaps * kTaps];
          for (int64_t t = 0; t < kTaps * kTaps; ++t)
            taps[t] = kernel + t / kTaps * steps.axes[1] + t % kTaps * steps.axes[2] + c * steps.channel + f;
          set_.kernel(taps, std::min(panel_width_, conv_.filters - f), to + f * conv_.channels + c * panel_width_, weight_step());
        }
    });
    return to;
  }

  void chunk(const device::LaunchArgs& args, const float* weights, int64_t row0, int64_t row1) const {
    auto* points = static_cast<float*>(scratch_.mine(static_cast<char*>(args.scratch) + copied_bytes() + weight_bytes()));
    const int64_t pixel0 = grid_.first_pixel(row0), pixel1 = grid_.first_pixel(row1);
    float* out = static_cast<float*>(args.pointers[result_]);
    float* staged = points + kPoints * (window_step() + result_step());
    if (epilogue_) out = staged - pixel0 * conv_.filters;  // where the first image's would be
    for_even_parts((row1 - row0) * grid_.columns(), block_, [&](int64_t first, int64_t count) {
      block(static_cast<const float*>(args.pointers[0]), weights, row0 * grid_.columns() + first, count, points, out);
    });
    if (epilogue_) epilogue_.run(args, staged, pixel0, pixel1, 0, conv_.filters);
  }

  void block(const float* x, const float* weights, int64_t first, int64_t count, float* windows, float* out) const {
    WinogradGrid::Window w = grid_.window(first);
    for (int64_t i = 0; i < count; ++i, grid_.advance(w)) {
      const float* pixels[kPoints];
      inputs_.find(x, w, zeros_.data(), pixels);
      set_.window(pixels, conv_.channels, windows + i * channel_step_, window_step());
    }
    float* results = windows + kPoints * window_step();
    for (int64_t f = 0; f < conv_.filters; f += kPanel) {
      const int64_t filters = std::min(kPanel, conv_.filters - f);
      for (int64_t p = 0; p < kPoints; ++p)
        tiles_.cover({.a = windows + p * window_step(),
                      .b = weights + p * weight_step() + f * conv_.channels,
                      .a_step = channel_step_,
                      .b_step = panel_width_,
                      .length = conv_.channels,
                      .c = results + p * result_step(),
                      .c_step = filter_step_,
                      .accumulate = false},
                     count, filters, channel_step_, conv_.channels, 2);
      w = grid_.window(first);
      for (int64_t i = 0; i < count; ++i, grid_.advance(w)) {
        float* pixels[kOutputs * kOutputs];
        outputs_.find<float>(out, w, nullptr, pixels);
        for (float*& p : pixels) p = p ? p + f : nullptr;
        set_.outputs(results + i * filter_step_, result_step(), filters, pixels);
      }
    }
  }

  Conv conv_;
  WinogradGrid grid_;
  const WinogradSet& set_;
  TileTable tiles_;
  KernelSteps w_;
  WindowInputs inputs_;
  WindowOutputs outputs_;
  std::vector<float> zeros_;  // a pixel outside of an image
  size_t result_;
  int64_t panel_width_, channel_step_, filter_step_;  // the latter: from window to window
  int64_t chunk_rows_ = 0, block_ = 0;
  CompiledEpilogue epilogue_;
  WorkerScratch scratch_;
};

}  // namespace

std::shared_ptr<const CpuProgram> make_conv_winograd(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  if (kernel.op->name != "general_conv") return nullptr;
  const codegen::Layout &x = kernel.in[0], &product = kernel.epilogue ? kernel.epilogue->product : kernel.out[0];
  const Conv conv = conv_of(kernel.attrs, x.shape, kernel.in[1].shape, product.shape);
  if (!winograd_takes(conv, x.dtype, product.dtype, refusal)) return nullptr;
  if (x.strides[x.strides.size() - 1] != 1) {
    refusal = "the image's channels do not lie side by side";
    return nullptr;
  }
  return std::make_shared<ConvWinograd>(kernel, conv, tools);
}

}  // namespace tandem::cpu
