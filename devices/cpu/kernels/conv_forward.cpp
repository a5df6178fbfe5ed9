// Convolutions of float32 images from the register tiles: pixels of an output row are a tile's rows, filters its columns, and the sum
// runs over taps and channels where they lie. Only what padding touches is copied; no matrix of patches is ever made.
#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "conv_geometry.hpp"
#include "cpu_program.hpp"
#include "epilogue.hpp"
#include "image_copy.hpp"
#include "scratch.hpp"
#include "tile.hpp"

namespace tandem::cpu {
namespace {

constexpr double kTinyWork = 4096;           // multiplications below which generated code is as good
constexpr double kChunkWork = 400e3;         // multiplications a chunk should have
constexpr int64_t kBandFloats = 128 * 1024;  // of a band's input and output together: half a second-level cache
constexpr int64_t kWantedChunks = 16;

int64_t parts(int64_t n, int64_t each) { return (n + each - 1) / each; }

// One combination of phases along the three axes. Its taps as segments of a tile's sum: offsets into the (copied) image from the
// element that the first tap of the first output reads, and into the weights.
struct PhaseTaps {
  const Phase *height, *width;
  std::vector<Segment> segments;
  size_t planes;   // taps along the depth
  int64_t length;  // of each segment: channels, times the taps that lie side by side
};

class ConvForward final : public CpuProgram {
 public:
  ConvForward(const codegen::Kernel& kernel, const Conv& conv, Toolbox& tools)
      : conv_(conv),
        set_(tiles(tools.target.wide)),
        x_(image_steps(kernel.in[0])),
        w_(kernel_steps(kernel.in[1])),
        inputs_(kernel.in.size()) {
    for (size_t i = 0; i < kSpatial; ++i) phases_[i] = phases(conv.axes[i]);
    place_bands();
    place_weights();
    place_image();
    make_taps();
    for (int v = 1; v <= 2; ++v)
      for (int h = 1; h <= set_.most_rows[v]; ++h) functions_[static_cast<size_t>(v)][static_cast<size_t>(h)] = set_.get(h, v, Rows::Apart);
    if (kernel.end) {
      epilogue_ = Epilogue(kernel, conv.filters, tools);
      block_floats_ = band_rows_ * conv.axes[2].out * conv.filters;
    }
    scratch_ = WorkerScratch(static_cast<size_t>(image_floats_ + block_floats_) * sizeof(float), tools.threads);
  }
  std::string_view kernel_name() const override { return "conv/tiles"; }
  size_t scratch_bytes() const override { return weight_bytes() + scratch_.bytes(); }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    const auto* weights = static_cast<const float*>(args.pointers[1]);
    if (packed_weights_) {
      pack_weights(weights, static_cast<float*>(args.scratch), pool);
      weights = static_cast<const float*>(args.scratch);
    }
    const int64_t all = conv_.batch * conv_.axes[0].out * bands_;
    pool.run(parts(all, bands_per_chunk_), [&](int64_t chunk) {
      for (int64_t i = chunk * bands_per_chunk_; i < std::min(all, (chunk + 1) * bands_per_chunk_); ++i)
        band(args, weights, i / bands_ / conv_.axes[0].out, i / bands_ % conv_.axes[0].out, i % bands_ * band_rows_);
    });
  }

 private:
  size_t weight_bytes() const {
    return packed_weights_ ? codegen::align_up(static_cast<size_t>(conv_.taps() * conv_.channels * weight_step_) * sizeof(float)) : 0;
  }

  // Whole images as long as they fit into the cache and there are enough of them, else bands of rows.
  void place_bands() {
    const ConvAxis &height = conv_.axes[1], &width = conv_.axes[2];
    const int64_t planes = conv_.batch * conv_.axes[0].out;
    const Reach columns = reach(phases_[2], 0, width.out);
    const int64_t input_row = std::max<int64_t>(0, columns.first > columns.last ? 0 : columns.count()) * conv_.channels;
    const int64_t row_floats = input_row * parts(height.stride, height.input_dilation) * conv_.axes[0].kernel + width.out * conv_.filters;
    const int64_t fitting = std::max<int64_t>(1, kBandFloats / std::max<int64_t>(1, row_floats));
    int64_t bands = parts(height.out, fitting);
    const double row_work = conv_.work() / static_cast<double>(planes * height.out);
    const auto worthwhile = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(height.out) * row_work / kChunkWork));
    bands = std::max(bands, std::min({worthwhile, parts(kWantedChunks, planes), height.out}));
    band_rows_ = parts(height.out, bands);
    bands_ = parts(height.out, band_rows_);
    const double band_work = row_work * static_cast<double>(band_rows_);
    bands_per_chunk_ = std::max<int64_t>(1, static_cast<int64_t>(kChunkWork / band_work));
  }

  // Read where they are if filters lie side by side, else packed as [taps, channels, filters].
  void place_weights() {
    packed_weights_ = w_.filter != 1 && conv_.filters > 1;
    weight_step_ = packed_weights_ ? conv_.filters : w_.channel;
    for (size_t i = kSpatial; i-- > 0;) {
      if (packed_weights_)
        tap_step_[i] = i + 1 == kSpatial ? conv_.channels * conv_.filters : tap_step_[i + 1] * conv_.axes[i + 1].kernel;
      else
        tap_step_[i] = w_.axes[i];
    }
  }

  // The image is read where it is if no output goes beyond it and its channels lie side by side.
  void place_image() {
    columns_ = {0, 0, conv_.axes[2].in};
    bool inside = x_.channel == 1 || conv_.channels == 1;
    int64_t most_rows = 0;
    for (size_t i = 0; i < kSpatial; ++i) {
      const Reach r = reach(phases_[i], 0, conv_.axes[i].out);
      if (r.first > r.last) continue;  // nothing is read
      inside = inside && r.first >= 0 && r.last < conv_.axes[i].in;
      if (i == 2) columns_ = {r.first, r.count(), conv_.axes[2].in};
    }
    for (int64_t row = 0; row < conv_.axes[1].out; row += band_rows_) {
      const Reach r = reach(phases_[1], row, std::min(conv_.axes[1].out, row + band_rows_));
      most_rows = std::max(most_rows, r.first > r.last ? 0 : r.count());
    }
    copied_ = !inside;
    if (copied_) {
      pixel_step_ = conv_.channels;
      row_step_ = columns_.count * conv_.channels;
      plane_step_ = most_rows * row_step_;
      image_floats_ = conv_.axes[0].kernel * plane_step_;
    } else {
      pixel_step_ = x_.axes[2];
      row_step_ = x_.axes[1];
      columns_.first = 0;
    }
  }

  void make_taps() {
    for (const Phase& d : phases_[0])
      for (const Phase& h : phases_[1])
        for (const Phase& w : phases_[2]) taps_.push_back(taps_of(d, h, w));
  }
  PhaseTaps taps_of(const Phase& d, const Phase& h, const Phase& w) const {
    PhaseTaps p{&h, &w, {}, d.taps.size(), conv_.channels};
    // Taps along the width become one long segment where both operands go on without a gap.
    bool joined = pixel_step_ == conv_.channels && tap_step_[2] == conv_.channels * weight_step_;
    for (size_t i = 0; i + 1 < w.taps.size(); ++i)
      joined = joined && w.taps[i + 1].position == w.taps[i].position + 1 && w.taps[i + 1].kernel == w.taps[i].kernel + 1;
    if (joined) p.length = conv_.channels * static_cast<int64_t>(w.taps.size());
    for (size_t i = 0; i < d.taps.size(); ++i)
      for (const Phase::Tap& y : h.taps)
        for (const Phase::Tap& x : w.taps) {
          // Copied planes are those of the taps; else they lie where the depth says.
          const int64_t plane = copied_ ? static_cast<int64_t>(i) * plane_step_ : d.taps[i].position * x_.axes[0];
          p.segments.push_back({plane + y.position * row_step_ + (x.position - columns_.first) * pixel_step_,
                                d.taps[i].kernel * tap_step_[0] + y.kernel * tap_step_[1] + x.kernel * tap_step_[2]});
          if (joined) break;
        }
    return p;
  }

  void pack_weights(const float* w, float* to, ThreadPool& pool) const {
    const auto& a = conv_.axes;
    pool.run(conv_.taps(), [&](int64_t tap) {
      const int64_t x = tap % a[2].kernel, y = tap / a[2].kernel % a[1].kernel, z = tap / a[2].kernel / a[1].kernel;
      const float* from = w + z * w_.axes[0] + y * w_.axes[1] + x * w_.axes[2];
      float* out = to + tap * conv_.channels * conv_.filters;
      if (w_.channel == 1) return set_.transpose(from, w_.filter, conv_.filters, conv_.channels, out, conv_.filters);
      for (int64_t c = 0; c < conv_.channels; ++c)
        for (int64_t f = 0; f < conv_.filters; ++f) out[c * conv_.filters + f] = from[c * w_.channel + f * w_.filter];
    });
  }

  // Output rows [row0, row0 + band_rows) of one plane of one image.
  void band(const device::LaunchArgs& args, const float* weights, int64_t image, int64_t depth, int64_t row0) const {
    const int64_t row1 = std::min(conv_.axes[1].out, row0 + band_rows_), width = conv_.axes[2].out;
    const int64_t first_pixel = ((image * conv_.axes[0].out + depth) * conv_.axes[1].out + row0) * width;
    const size_t depth_phases = phases_[0].size();
    const Phase& d = phases_[0][static_cast<size_t>(depth) % depth_phases];
    const int64_t plane = depth / static_cast<int64_t>(depth_phases) * d.stride;
    const float* x = static_cast<const float*>(args.pointers[0]) + image * x_.batch;
    auto* scratch = reinterpret_cast<float*>(static_cast<char*>(scratch_.mine(static_cast<char*>(args.scratch) + weight_bytes())));
    const Reach rows = reach(phases_[1], row0, row1);
    int64_t first_row = 0;
    if (copied_ && rows.first <= rows.last) {
      first_row = rows.first;
      for (size_t i = 0; i < d.taps.size(); ++i)
        copy_plane(x, d.taps[i].position + plane, rows, scratch + static_cast<int64_t>(i) * plane_step_);
      x = scratch;
    } else {
      x += plane * x_.axes[0];
    }
    float* out = epilogue_ ? scratch + image_floats_ : static_cast<float*>(args.pointers[inputs_]) + first_pixel * conv_.filters;
    const size_t plane_phases = phases_[1].size() * phases_[2].size();
    for (size_t i = 0; i < plane_phases; ++i)
      phase_of_band(taps_[static_cast<size_t>(depth) % depth_phases * plane_phases + i], x - first_row * row_step_, weights, row0, row1,
                    out);
    if (epilogue_) epilogue_.run(args, out, first_pixel, first_pixel + (row1 - row0) * width, 0, conv_.filters);
  }

  void copy_plane(const float* image, int64_t plane, const Reach& rows, float* to) const {
    const Window window{rows.first, rows.count(), conv_.axes[1].in};
    if (plane < 0 || plane >= conv_.axes[0].in)
      std::fill_n(to, rows.count() * row_step_, 0.0f);
    else
      copy_window(image + plane * x_.axes[0], x_.axes[1], x_.axes[2], x_.channel, conv_.channels, window, columns_, to);
  }

  // Taps above or below the image multiply zeros; they are left out where they lie together, which is when there is one plane.
  void choose_segments(const PhaseTaps& p, int64_t row, Tile& t) const {
    const std::vector<Phase::Tap>& taps = p.height->taps;
    if (p.planes != 1 || taps.empty()) return;
    const int64_t each = static_cast<int64_t>(p.segments.size() / taps.size()), at = row * p.height->stride;
    size_t first = 0, last = taps.size();
    while (first < last && taps[first].position + at < 0) ++first;
    while (last > first && taps[last - 1].position + at >= conv_.axes[1].in) --last;
    t.segments = p.segments.data() + static_cast<int64_t>(first) * each;
    t.segment_count = static_cast<int64_t>(last - first) * each;
  }

  void phase_of_band(const PhaseTaps& p, const float* x, const float* weights, int64_t row0, int64_t row1, float* out) const {
    const int64_t width = conv_.axes[2].out;
    const int64_t from = p.height->index_from(row0), to = std::min(p.height->count, p.height->index_from(row1));
    const Phase& w = *p.width;
    Tile t{.a_step = w.stride * pixel_step_,
           .b_step = weight_step_,
           .segments = p.segments.data(),
           .segment_count = static_cast<int64_t>(p.segments.size()),
           .length = p.length,
           .c_step = w.step * conv_.filters,
           .accumulate = false};
    for (int64_t f = 0; f < conv_.filters;) {
      const int vectors = conv_.filters - f > set_.lanes ? 2 : 1;
      t.b = weights + f;
      t.last = static_cast<int>(std::min<int64_t>(conv_.filters - f, vectors * set_.lanes) - (vectors - 1) * set_.lanes);
      const auto& functions = functions_[static_cast<size_t>(vectors)];
      const int64_t count = parts(w.count, set_.most_rows[vectors]), height = w.count / count, taller = w.count % count;
      for (int64_t row = from; row < to; ++row) {
        const int64_t out_row = p.height->first + row * p.height->step - row0;
        t.a = x + row * p.height->stride * row_step_;
        choose_segments(p, row, t);
        t.c = out + (out_row * width + w.first) * conv_.filters + f;
        for (int64_t i = 0; i < count; ++i) {
          const int64_t h = height + (i < taller ? 1 : 0);
          functions[static_cast<size_t>(h)](t);
          t.a += h * t.a_step;
          t.c += h * t.c_step;
        }
      }
      f += vectors * set_.lanes;
    }
  }

  Conv conv_;
  const TileSet& set_;
  ImageSteps x_;
  KernelSteps w_;
  size_t inputs_;
  std::array<std::vector<Phase>, kSpatial> phases_;
  int64_t band_rows_ = 1, bands_ = 1, bands_per_chunk_ = 1;
  bool packed_weights_ = false, copied_ = false;
  int64_t weight_step_ = 0;
  std::array<int64_t, kSpatial> tap_step_{};                 // of the weights
  Window columns_{};                                         // of the image that is read
  int64_t pixel_step_ = 0, row_step_ = 0, plane_step_ = 0;   // of the image as tiles see it
  std::vector<PhaseTaps> taps_;                              // depth, height, width phases
  std::array<std::array<TileFunction, 17>, 3> functions_{};  // [vectors][rows]
  int64_t image_floats_ = 0, block_floats_ = 0;
  Epilogue epilogue_;
  WorkerScratch scratch_;
};

}  // namespace

std::shared_ptr<const CpuProgram> make_conv_forward(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  if (kernel.op->name != "general_conv") {
    refusal = "not a convolution";
    return nullptr;
  }
  const codegen::Operand& product = kernel.end ? kernel.end->product : kernel.out[0];
  if (kernel.in[0].dtype != DType::F32) {
    refusal = cat("takes float32, not ", name(kernel.in[0].dtype));
    return nullptr;
  }
  const Conv conv = conv_of(kernel.attrs, kernel.in[0].shape, kernel.in[1].shape, product.shape);
  if (conv.groups != 1) {
    refusal = cat("takes one group, not ", conv.groups);
    return nullptr;
  }
  if (conv.work() < kTinyWork) {  // also what is empty
    refusal = cat("too small, ", conv.work(), " multiplications");
    return nullptr;
  }
  return std::make_shared<ConvForward>(kernel, conv, tools);
}

}  // namespace tandem::cpu
