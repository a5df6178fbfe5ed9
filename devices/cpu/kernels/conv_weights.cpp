// Gradients of convolutions by their kernels, from the register tiles: the taps of one kernel row with their channels are a tile's rows,
// filters its columns, and the sum runs over output pixels. The sum is cut into parts by the shapes alone and the parts are added in order.
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

constexpr double kTinyWork = 4096;              // multiplications below which generated code is as good
constexpr double kChunkWork = 400e3;            // multiplications a chunk should have
constexpr int64_t kGroupFloats = 96 * 1024;     // of image and gradient that one sweep of the tiles works on: they stay in the cache
constexpr int64_t kPartialFloats = 256 * 1024;  // of all partial sums together
constexpr int64_t kWantedChunks = 16;
constexpr int64_t kSumRows = 64;  // that a chunk of the last sum has

int64_t parts(int64_t n, int64_t each) { return (n + each - 1) / each; }

class ConvWeights final : public CpuProgram {
 public:
  ConvWeights(const codegen::Kernel& kernel, const Conv& conv, Toolbox& tools)
      : conv_(conv),
        set_(tiles(tools.target.wide)),
        x_(image_steps(kernel.in[0])),
        g_(image_steps(kernel.in[1])),
        inputs_(kernel.in.size()) {
    for (size_t i = 0; i < kSpatial; ++i) phases_[i] = phases(conv.axes[i]);
    rows_ = conv.taps() * conv.channels;
    place_units();
    place_image();
    cut_sum();
    make_segments();
    for (int v = 1; v <= 2; ++v)
      for (int h = 1; h <= set_.most_rows[v]; ++h)
        functions_[static_cast<size_t>(v)][static_cast<size_t>(h)] = set_.get(h, v, Rows::Together);
    if (kernel.end) epilogue_ = Epilogue(kernel, conv.filters, tools);
    scratch_ = WorkerScratch(static_cast<size_t>(copied_ ? group_ * unit_floats_ : 0) * sizeof(float), tools.threads);
  }
  std::string_view kernel_name() const override { return "conv_weights/tiles"; }
  size_t scratch_bytes() const override { return partial_bytes() + scratch_.bytes(); }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    auto* out = static_cast<float*>(args.pointers[inputs_]);
    float* partial = in_place() ? out : static_cast<float*>(args.scratch);
    const int64_t each = row_cuts_ * column_cuts_;
    pool.run(part_count_ * each, [&](int64_t i) { part(args, i / each, i % each / column_cuts_, i % column_cuts_, partial); });
    if (in_place()) return;
    pool.run(parts(rows_, kSumRows), [&](int64_t i) {
      const int64_t row0 = i * kSumRows, row1 = std::min(rows_, row0 + kSumRows);
      float* sum = epilogue_ ? partial : out;
      add_parts(partial, row0 * conv_.filters, row1 * conv_.filters, sum);
      if (epilogue_) epilogue_.run(args, sum + row0 * conv_.filters, row0, row1, 0, conv_.filters);
    });
  }

 private:
  bool in_place() const { return part_count_ == 1 && !epilogue_; }
  int64_t weight_floats() const { return rows_ * conv_.filters; }
  size_t partial_bytes() const {
    return in_place() ? 0 : codegen::align_up(static_cast<size_t>(part_count_ * weight_floats()) * sizeof(float));
  }

  // A unit of the sum is one plane of one image or, when that is too much for the cache, a band of its rows.
  void place_units() {
    const ConvAxis &height = conv_.axes[1], &width = conv_.axes[2];
    const Reach columns = reach(phases_[2], 0, width.out);
    const int64_t input_row = columns.first > columns.last ? 0 : columns.count() * conv_.channels;
    const int64_t row_floats = input_row * parts(height.stride, height.input_dilation) * conv_.axes[0].kernel + width.out * conv_.filters;
    const int64_t fitting = std::max<int64_t>(1, kGroupFloats / std::max<int64_t>(1, row_floats));
    band_rows_ = parts(height.out, parts(height.out, fitting));
    bands_ = parts(height.out, band_rows_);
    units_ = conv_.batch * conv_.axes[0].out * bands_;
    const bool alike = bands_ == 1 && conv_.axes[0].out == 1;
    group_ = alike ? std::clamp<int64_t>(fitting / std::max<int64_t>(1, height.out), 1, conv_.batch) : 1;
  }

  void place_image() {
    columns_ = {0, 0, conv_.axes[2].in};
    bool inside = x_.channel == 1 || conv_.channels == 1;
    for (size_t i = 0; i < kSpatial; ++i) {
      const Reach r = reach(phases_[i], 0, conv_.axes[i].out);
      if (r.first > r.last) continue;  // nothing is read
      inside = inside && r.first >= 0 && r.last < conv_.axes[i].in;
      if (i == 2) columns_ = {r.first, r.count(), conv_.axes[2].in};
    }
    int64_t most_rows = 0;
    for (int64_t row = 0; row < conv_.axes[1].out; row += band_rows_) {
      const Reach r = reach(phases_[1], row, std::min(conv_.axes[1].out, row + band_rows_));
      most_rows = std::max(most_rows, r.first > r.last ? 0 : r.count());
    }
    copied_ = !inside;
    pixel_step_ = copied_ ? conv_.channels : x_.axes[2];
    row_step_ = copied_ ? columns_.count * conv_.channels : x_.axes[1];
    plane_step_ = most_rows * row_step_;
    unit_floats_ = conv_.axes[0].kernel * plane_step_;
    unit_step_ = copied_ ? unit_floats_ : x_.batch;
    if (!copied_) columns_.first = 0;
  }

  // Parts of the sum as long as their results are small, then rows and columns of the result.
  void cut_sum() {
    const auto wanted = std::clamp<int64_t>(static_cast<int64_t>(conv_.work() / kChunkWork), 1, kWantedChunks);
    const int64_t groups = parts(units_, group_);
    part_count_ = std::clamp<int64_t>(kPartialFloats / std::max<int64_t>(1, weight_floats()), 1, std::min(groups, wanted));
    groups_per_part_ = parts(groups, part_count_);
    part_count_ = parts(groups, groups_per_part_);
    if (part_count_ < wanted) row_cuts_ = conv_.axes[0].kernel * conv_.axes[1].kernel;
    const int64_t width = 2 * set_.lanes, most = parts(conv_.filters, width);
    if (part_count_ * row_cuts_ < wanted) column_cuts_ = std::min(most, parts(wanted, part_count_ * row_cuts_));
    columns_each_ = column_cuts_ == 1 ? conv_.filters : parts(most, column_cuts_) * width;
    column_cuts_ = parts(conv_.filters, columns_each_);
  }

  // Which output rows of a phase a tap meets inside the image, and those rows as segments of a tile's sum for a whole group of units.
  struct TapRows {
    int64_t first, end;
    std::vector<Segment> segments;  // from the first row on
  };
  void make_segments() {
    for (const Phase& p : phases_[1]) {
      std::vector<TapRows>& all = tap_rows_.emplace_back();
      for (const Phase::Tap& y : p.taps) {
        TapRows t{0, p.count, {}};
        while (t.first < t.end && y.position + t.first * p.stride < 0) ++t.first;
        while (t.end > t.first && y.position + (t.end - 1) * p.stride >= conv_.axes[1].in) --t.end;
        const int64_t rows = bands_ == 1 ? t.end - t.first : std::min(p.count, band_rows_);
        for (int64_t unit = 0; unit < group_; ++unit)
          for (int64_t r = 0; r < rows; ++r)
            t.segments.push_back({unit * unit_step_ + r * p.stride * row_step_, unit * g_.batch + r * p.step * g_.axes[1]});
        all.push_back(std::move(t));
      }
    }
  }

  // One part of the sum for one cut of the rows (a row of taps, or all) and columns of the result.
  void part(const device::LaunchArgs& args, int64_t index, int64_t row_cut, int64_t column_cut, float* partial) const {
    const int64_t column0 = column_cut * columns_each_, columns = std::min(columns_each_, conv_.filters - column0);
    const int64_t rows = rows_ / row_cuts_, row0 = row_cut * rows;
    float* result = partial + index * weight_floats() + column0;
    for (int64_t r = row0; r < row0 + rows; ++r) std::fill_n(result + r * conv_.filters, columns, 0.0f);
    const int64_t begin = index * groups_per_part_ * group_, end = std::min(units_, begin + groups_per_part_ * group_);
    for (int64_t unit = begin; unit < end; unit += group_)
      add_group(args, unit, std::min(group_, end - unit), row_cuts_ == 1 ? -1 : row_cut, column0, columns, result);
  }

  void add_group(const device::LaunchArgs& args, int64_t unit, int64_t count, int64_t tap_row, int64_t column0, int64_t columns,
                 float* result) const {
    const int64_t image = unit / bands_ / conv_.axes[0].out, depth = unit / bands_ % conv_.axes[0].out;
    const int64_t row0 = unit % bands_ * band_rows_, row1 = std::min(conv_.axes[1].out, row0 + band_rows_);
    const size_t depth_phases = phases_[0].size();
    const Phase& d = phases_[0][static_cast<size_t>(depth) % depth_phases];
    const int64_t plane = depth / static_cast<int64_t>(depth_phases) * d.stride;
    const float* x = static_cast<const float*>(args.pointers[0]) + image * x_.batch;
    const float* g = static_cast<const float*>(args.pointers[1]) + image * g_.batch + depth * g_.axes[0] + column0;
    const Reach rows = reach(phases_[1], row0, row1);
    if (rows.first > rows.last) return;
    int64_t first_row = 0;
    if (copied_) {
      auto* scratch = static_cast<float*>(scratch_.mine(static_cast<char*>(args.scratch) + partial_bytes()));
      for (int64_t u = 0; u < count; ++u)
        for (size_t i = 0; i < d.taps.size(); ++i)
          copy_plane(x + u * x_.batch, d.taps[i].position + plane, rows,
                     scratch + u * unit_floats_ + static_cast<int64_t>(i) * plane_step_);
      x = scratch;
      first_row = rows.first;
    }
    for (size_t i = 0; i < d.taps.size(); ++i) {
      const float* x_plane = x + (copied_ ? static_cast<int64_t>(i) * plane_step_ : (d.taps[i].position + plane) * x_.axes[0]);
      for (size_t h = 0; h < phases_[1].size(); ++h) {
        const Phase& p = phases_[1][h];
        for (size_t tap = 0; tap < p.taps.size(); ++tap) {
          const Phase::Tap& y = p.taps[tap];
          const TapRows& seen = tap_rows_[h][tap];
          const int64_t from = std::max(seen.first, p.index_from(row0)), to = std::min(seen.end, p.index_from(row1));
          if (from >= to) continue;
          const int64_t kernel_row = d.taps[i].kernel * conv_.axes[1].kernel + y.kernel;
          if (tap_row >= 0 && kernel_row != tap_row) continue;
          const float* a = x_plane + (y.position + from * p.stride - first_row) * row_step_;
          const float* b = g + (p.first + from * p.step) * g_.axes[1];
          add_tap_row(a, b, seen.segments.data(), count * (to - from), columns,
                      result + kernel_row * conv_.axes[2].kernel * conv_.channels * conv_.filters);
        }
      }
    }
  }

  void copy_plane(const float* image, int64_t plane, const Reach& rows, float* to) const {
    if (plane < 0 || plane >= conv_.axes[0].in)
      std::fill_n(to, rows.count() * row_step_, 0.0f);
    else
      copy_window(image + plane * x_.axes[0], x_.axes[1], x_.axes[2], x_.channel, conv_.channels,
                  {rows.first, rows.count(), conv_.axes[1].in}, columns_, to);
  }

  // All taps of one row of the kernel. `a` is at input column 0, `b` at output column 0 of the first row.
  void add_tap_row(const float* a, const float* b, const Segment* segments, int64_t count, int64_t columns, float* result) const {
    for (const Phase& w : phases_[2]) {
      Tile t{.a_step = w.stride * pixel_step_,
             .b_step = w.step * g_.axes[2],
             .segments = segments,
             .segment_count = count,
             .length = w.count,
             .c_step = conv_.filters,
             .accumulate = true};
      for (size_t first = 0; first < w.taps.size();) {
        // Taps side by side are rows of one tile.
        size_t next = first + 1;
        while (next < w.taps.size() && pixel_step_ == conv_.channels && w.taps[next].position == w.taps[next - 1].position + 1 &&
               w.taps[next].kernel == w.taps[next - 1].kernel + 1)
          ++next;
        t.a = a + (w.taps[first].position - columns_.first) * pixel_step_;
        t.b = b + w.first * g_.axes[2];
        t.c = result + w.taps[first].kernel * conv_.channels * conv_.filters;
        add_rows(t, static_cast<int64_t>(next - first) * conv_.channels, columns);
        first = next;
      }
    }
  }

  void add_rows(const Tile& start, int64_t rows, int64_t columns) const {
    for (int64_t f = 0; f < columns;) {
      const int vectors = columns - f > set_.lanes ? 2 : 1;
      Tile t = start;
      t.b += f;
      t.c += f;
      t.last = static_cast<int>(std::min<int64_t>(columns - f, vectors * set_.lanes) - (vectors - 1) * set_.lanes);
      const int64_t count = parts(rows, set_.most_rows[vectors]), height = rows / count, taller = rows % count;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t h = height + (i < taller ? 1 : 0);
        functions_[static_cast<size_t>(vectors)][static_cast<size_t>(h)](t);
        t.a += h;
        t.c += h * t.c_step;
      }
      f += vectors * set_.lanes;
    }
  }

  // In the order of the parts; `to` may be the first of them.
  void add_parts(const float* partial, int64_t begin, int64_t end, float* to) const {
    if (to != partial) std::copy(partial + begin, partial + end, to + begin);
    for (int64_t p = 1; p < part_count_; ++p) {
      const float* from = partial + p * weight_floats();
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    }
  }

  Conv conv_;
  const TileSet& set_;
  ImageSteps x_, g_;
  size_t inputs_;
  int64_t rows_ = 0;  // of the result: taps x channels
  std::array<std::vector<Phase>, kSpatial> phases_;
  int64_t band_rows_ = 1, bands_ = 1, units_ = 0, group_ = 1;
  bool copied_ = false;
  Window columns_{};                                                                          // of the image that is read
  int64_t pixel_step_ = 0, row_step_ = 0, plane_step_ = 0, unit_floats_ = 0, unit_step_ = 0;  // of the image as tiles see it
  int64_t part_count_ = 1, groups_per_part_ = 1, row_cuts_ = 1, column_cuts_ = 1, columns_each_ = 0;
  std::vector<std::vector<TapRows>> tap_rows_;               // [phase of the rows][tap]
  std::array<std::array<TileFunction, 17>, 3> functions_{};  // [vectors][rows]
  Epilogue epilogue_;
  WorkerScratch scratch_;
};

}  // namespace

std::shared_ptr<const CpuProgram> make_conv_weights(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  if (kernel.op->name != "conv_kernel_gradient") {
    refusal = "not a kernel's gradient";
    return nullptr;
  }
  const codegen::Operand &g = kernel.in[1], &product = kernel.end ? kernel.end->product : kernel.out[0];
  if (g.dtype != DType::F32) {
    refusal = cat("takes float32, not ", name(g.dtype));
    return nullptr;
  }
  const Conv conv = conv_of(kernel.attrs, kernel.in[0].shape, product.shape, g.shape);
  if (conv.groups != 1) {
    refusal = cat("takes one group, not ", conv.groups);
    return nullptr;
  }
  if (conv.work() < kTinyWork) {  // also what is empty
    refusal = cat("too small, ", conv.work(), " multiplications");
    return nullptr;
  }
  if (conv.filters > 1 && g.strides[g.strides.size() - 1] != 1) {
    refusal = "the gradient's channels do not lie side by side";
    return nullptr;
  }
  return std::make_shared<ConvWeights>(kernel, conv, tools);
}

}  // namespace tandem::cpu
