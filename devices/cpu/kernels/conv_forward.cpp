// Convolutions from the register tiles, of float32 or of 16-bit floats with a float32 result: pixels of an output row are a tile's rows,
// filters its columns, and the sum runs over taps and channels where they lie. Only what padding touches is copied; no matrix of patches is
// ever made.
#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "conv_image.hpp"
#include "conv_kernel.hpp"
#include "cpu_program.hpp"
#include "epilogue.hpp"
#include "scratch.hpp"
#include "tile_table.hpp"
#include "work.hpp"

namespace tandem::cpu {
namespace {

// Of a band's input and output together: 512 KiB, half an L2 of 1 MiB. Where L2 is smaller, a part comes from L3.
constexpr int64_t kBandFloats = 128 * 1024;
constexpr int64_t kNarrow = 6;           // pixels: less are too few for the rows of a tile
constexpr size_t kMostSegments = 16384;  // of all phases; large kernels would have too many at the edges

// One combination of phases along the three axes. Its taps as segments of a tile's sum: offsets into the (copied) image from the
// element that the first tap of the first output reads, and into the weights.
struct PhaseTaps {
  const Phase *height, *width;
  std::vector<Segment> segments;
  int64_t length;  // of each segment: units of the channels, times the taps that lie side by side
};

// Outputs at the edges of the image become phases of their own, which leave out the taps beyond it. Then nothing has to be padded. Along
// the depth, and where too little would be left between the edges, padding it is.
Phases phases_of(const Conv& conv) {
  Phases p{phases(conv.axes[0]), phases(conv.axes[1]), phases(conv.axes[2])};
  const std::vector<Phase> rows = split_at_edges(p[1], conv.axes[1].in), columns = split_at_edges(p[2], conv.axes[2].in);
  if (static_cast<size_t>(conv.taps()) * rows.size() * columns.size() > kMostSegments) return p;
  p[1] = rows;
  const bool wide = std::ranges::any_of(columns, [](const Phase& c) { return c.count >= kNarrow; });
  if (wide) p[2] = columns;
  return p;
}

// Whole planes as long as they fit into the cache and there are enough of them, else bands of their rows.
struct Bands {
  int64_t rows, count, per_chunk;
};
Bands cut(const Conv& conv, const Phases& phases) {
  const int64_t height = conv.axes[1].out, planes = conv.batch * conv.axes[0].out;
  const double row_work = conv.work() / static_cast<double>(planes * height);
  const auto worthwhile = static_cast<int64_t>(static_cast<double>(height) * row_work / kChunkWork);
  const int64_t wanted = std::clamp<int64_t>(std::min(worthwhile, parts(kWantedChunks, planes)), 1, height);
  Bands b{};
  b.rows = parts(height, std::max(wanted, parts(height, rows_in_cache(conv, phases, kBandFloats))));
  b.count = parts(height, b.rows);
  b.per_chunk = std::max<int64_t>(1, static_cast<int64_t>(kChunkWork / (row_work * static_cast<double>(b.rows))));
  return b;
}

class ConvForward final : public CpuProgram {
 public:
  ConvForward(const codegen::Kernel& kernel, const Conv& conv, Toolbox& tools)
      : conv_(conv),
        phases_(phases_of(conv)),
        bands_(cut(conv, phases_)),
        pack_(kernel.in[0].dtype, tools.target, conv.channels % 2 == 0 ? Pairs::Allowed : Pairs::Never),
        units_(pack_.units(conv.channels)),
        tiles_(pack_.tiles(), Stored::ByRows),
        x_(image_steps(kernel.in[0])),
        w_(kernel_steps(kernel.in[1])),
        image_(conv, x_, phases_, bands_.rows, pack_),
        inputs_(kernel.in.size()) {
    place_weights();
    for (const Phase& d : phases_[0])
      for (const Phase& h : phases_[1])
        for (const Phase& w : phases_[2]) taps_.push_back(taps_of(d, h, w));
    if (kernel.epilogue) epilogue_ = CompiledEpilogue(kernel, conv.filters, tools);
    const int64_t block = epilogue_ ? bands_.rows * conv.axes[2].out * conv.filters : 0;
    scratch_ = WorkerScratch(static_cast<size_t>(image_.copy_floats() + block) * sizeof(float), tools.threads);
  }
  std::string_view kernel_name() const override { return "conv/tiles"; }
  size_t scratch_bytes() const override { return weight_bytes() + scratch_.bytes(); }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    const auto* weights = static_cast<const float*>(packed_weights_ ? args.scratch : args.pointers[1]);
    if (packed_weights_) pack_weights(args.pointers[1], static_cast<float*>(args.scratch), pool);
    const int64_t all = conv_.batch * conv_.axes[0].out * bands_.count;
    pool.run(parts(all, bands_.per_chunk), [&](int64_t chunk) {
      for (int64_t i = chunk * bands_.per_chunk; i < std::min(all, (chunk + 1) * bands_.per_chunk); ++i) {
        const int64_t plane = i / bands_.count;
        band(args, weights, plane / conv_.axes[0].out, plane % conv_.axes[0].out, i % bands_.count * bands_.rows);
      }
    });
  }

 private:
  size_t weight_bytes() const {
    return packed_weights_ ? codegen::align_up(static_cast<size_t>(conv_.taps() * units_ * weight_step_) * sizeof(float)) : 0;
  }

  // Read where they are if they are float32 and filters lie side by side, else packed as [taps, channels, filters].
  void place_weights() {
    packed_weights_ = pack_ || (w_.filter != 1 && conv_.filters > 1);
    weight_step_ = packed_weights_ ? conv_.filters : w_.channel;
    for (size_t i = kSpatial; i-- > 0;) {
      if (packed_weights_)
        tap_step_[i] = i + 1 == kSpatial ? units_ * conv_.filters : tap_step_[i + 1] * conv_.axes[i + 1].kernel;
      else
        tap_step_[i] = w_.axes[i];
    }
  }

  PhaseTaps taps_of(const Phase& d, const Phase& h, const Phase& w) const {
    PhaseTaps p{&h, &w, {}, units_};
    // Taps along the width become one long segment where both operands go on without a gap.
    bool joined = image_.pixel_step() == units_ && tap_step_[2] == units_ * weight_step_;
    for (size_t i = 0; i + 1 < w.taps.size(); ++i)
      joined = joined && w.taps[i + 1].position == w.taps[i].position + 1 && w.taps[i + 1].kernel == w.taps[i].kernel + 1;
    if (joined) p.length = units_ * static_cast<int64_t>(w.taps.size());
    for (size_t i = 0; i < d.taps.size(); ++i)
      for (const Phase::Tap& y : h.taps)
        for (const Phase::Tap& x : w.taps) {
          p.segments.push_back(
              {image_.plane_step(i, d) + y.position * image_.row_step() + (x.position - image_.first_column()) * image_.pixel_step(),
               d.taps[i].kernel * tap_step_[0] + y.kernel * tap_step_[1] + x.kernel * tap_step_[2]});
          if (joined) break;
        }
    return p;
  }

  void pack_weights(const void* w, float* to, ThreadPool& pool) const {
    const auto& a = conv_.axes;
    pool.run(conv_.taps(), [&](int64_t tap) {
      const int64_t x = tap % a[2].kernel, y = tap / a[2].kernel % a[1].kernel, z = tap / a[2].kernel / a[1].kernel;
      const void* start = pack_.element(w, z * w_.axes[0] + y * w_.axes[1] + x * w_.axes[2]);
      float* out = to + tap * units_ * conv_.filters;
      if (pack_) return pack_.block(start, w_.channel, w_.filter, conv_.filters, conv_.channels, out, conv_.filters);
      copy_tap(tiles_.set(), static_cast<const float*>(start), w_, conv_.channels, conv_.filters, out);
    });
  }

  // Output rows from row0 on, of one plane of one image.
  void band(const device::LaunchArgs& args, const float* weights, int64_t image, int64_t depth, int64_t row0) const {
    const int64_t row1 = std::min(conv_.axes[1].out, row0 + bands_.rows), width = conv_.axes[2].out;
    const int64_t first_pixel = ((image * conv_.axes[0].out + depth) * conv_.axes[1].out + row0) * width;
    const auto depth_phases = static_cast<int64_t>(phases_[0].size());
    const auto phase = static_cast<size_t>(depth % depth_phases);
    const Phase& d = phases_[0][phase];
    auto* scratch = static_cast<float*>(scratch_.mine(static_cast<char*>(args.scratch) + weight_bytes()));
    const float* x = image_.start(pack_.element(args.pointers[0], image * x_.batch), d, depth / depth_phases * d.stride,
                                  reach(phases_[1], row0, row1), scratch);
    float* out = epilogue_ ? scratch + image_.copy_floats() : static_cast<float*>(args.pointers[inputs_]) + first_pixel * conv_.filters;
    const size_t plane_phases = phases_[1].size() * phases_[2].size();
    for (size_t i = 0; i < plane_phases; ++i) phase_of_band(taps_[phase * plane_phases + i], x, weights, row0, row1, out);
    if (epilogue_) epilogue_.run(args, out, first_pixel, first_pixel + (row1 - row0) * width, 0, conv_.filters);
  }

  // The rows [row0, row1) of one combination of phases: a rectangle of outputs with equal taps.
  void phase_of_band(const PhaseTaps& p, const float* x, const float* weights, int64_t row0, int64_t row1, float* out) const {
    const Phase &h = *p.height, &w = *p.width;
    const int64_t from = h.index_from(row0), count = std::min(h.count, h.index_from(row1)) - from;
    if (count <= 0) return;
    // How outputs follow each other down and across: in the image, in the result.
    const int64_t down = h.stride * image_.row_step(), across = w.stride * image_.pixel_step();
    const int64_t down_out = h.step * conv_.axes[2].out * conv_.filters, across_out = w.step * conv_.filters;
    x += from * down;
    out += ((h.first + from * h.step - row0) * conv_.axes[2].out + w.first) * conv_.filters;
    const bool tall = w.count < kNarrow && count > w.count;  // edges: a tile's rows go down
    const int64_t lines = tall ? w.count : count, length = tall ? count : w.count;
    Tile t{.a_step = tall ? down : across,
           .b_step = weight_step_,
           .segments = p.segments.data(),
           .segment_count = static_cast<int64_t>(p.segments.size()),
           .length = p.length,
           .c_step = tall ? down_out : across_out,
           .accumulate = false};
    for (int64_t f = 0; f < conv_.filters;) {
      const int vectors = tiles_.vectors(conv_.filters - f, 2);
      t.b = weights + f;
      t.last = tiles_.last(conv_.filters - f, vectors);
      for (int64_t line = 0; line < lines; ++line) {
        t.a = x + line * (tall ? across : down);
        t.c = out + line * (tall ? across_out : down_out) + f;
        tiles_.down(t, length, vectors, t.a_step);
      }
      f += vectors * tiles_.set().lanes;
    }
  }

  Conv conv_;
  Phases phases_;
  Bands bands_;
  HalfPack pack_;
  int64_t units_;  // of the channels of a pixel or a tap
  TileTable tiles_;
  ImageSteps x_;
  KernelSteps w_;
  ConvImage image_;
  size_t inputs_;
  bool packed_weights_ = false;
  int64_t weight_step_ = 0;                   // between the channels of the weights
  std::array<int64_t, kSpatial> tap_step_{};  // between their taps
  std::vector<PhaseTaps> taps_;               // for each phase of depth, height and width
  CompiledEpilogue epilogue_;
  WorkerScratch scratch_;
};

}  // namespace

std::shared_ptr<const CpuProgram> make_conv_forward(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  if (kernel.op->name != "general_conv") return nullptr;
  const codegen::Layout& product = kernel.epilogue ? kernel.epilogue->product : kernel.out[0];
  const Conv conv = conv_of(kernel.attrs, kernel.in[0].shape, kernel.in[1].shape, product.shape);
  if (!tiles_take(conv, kernel.in[0].dtype, product.dtype, refusal)) return nullptr;
  return std::make_shared<ConvForward>(kernel, conv, tools);
}

}  // namespace tandem::cpu
