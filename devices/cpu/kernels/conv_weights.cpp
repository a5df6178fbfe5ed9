// Gradients of convolutions by their kernels, from the register tiles: the taps of one kernel row with their channels are a tile's rows,
// filters its columns, and the sum runs over output pixels. The sum is cut into parts by the shapes alone and the parts are added in order.
#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "conv_image.hpp"
#include "cpu_program.hpp"
#include "partial_sums.hpp"
#include "scratch.hpp"
#include "tile_table.hpp"
#include "work.hpp"

namespace tandem::cpu {
namespace {

// How the sum is cut is part of what is computed: no cache of this machine may change these. A group is 384 KiB, which stays
// in an L2 of 512 beside what a tile sums; all partial sums are 1 MiB.
constexpr int64_t kGroupFloats = 96 * 1024;     // of image and gradient that one sweep of the tiles works on
constexpr int64_t kPartialFloats = 256 * 1024;  // of all partial sums together
constexpr int64_t kTrimFromChannels = 8;

// Which of the outputs of a phase, by index, a tap meets inside the image.
struct Met {
  int64_t first, end;
  bool operator==(const Met&) const = default;
};
Met met(const Phase& p, const Phase::Tap& tap, int64_t elements) {
  Met m{0, p.count};
  while (m.first < m.end && tap.position + m.first * p.stride < 0) ++m.first;
  while (m.end > m.first && tap.position + (m.end - 1) * p.stride >= elements) --m.end;
  return m;
}

// Taps are summed over the outputs that they meet inside the image; so rows and columns beyond it are not read. With few channels it is
// better to have all taps of a row in one tile, and the columns padded.
bool sums_are_trimmed(const Conv& conv) { return conv.channels >= kTrimFromChannels; }
Phases phases_read(const Conv& conv, const Phases& all) {
  return {all[0], split_at_edges(all[1], conv.axes[1].in), sums_are_trimmed(conv) ? split_at_edges(all[2], conv.axes[2].in) : all[2]};
}

// A unit of the sum is one plane of one image or, when that is too much for the cache, a band of its rows. Small images go in groups.
struct Units {
  int64_t rows, bands, count, group;
};
Units units_of(const Conv& conv, const Phases& phases) {
  const int64_t height = conv.axes[1].out, fitting = rows_in_cache(conv, phases, kGroupFloats);
  Units u{};
  u.rows = parts(height, parts(height, fitting));
  u.bands = parts(height, u.rows);
  u.count = conv.batch * conv.axes[0].out * u.bands;
  const bool alike = u.bands == 1 && conv.axes[0].out == 1;
  u.group = alike ? std::clamp<int64_t>(fitting / height, 1, conv.batch) : 1;
  return u;
}

// The sum in parts as long as their results are small, then rows (by rows of taps) and columns of the result.
struct Cut {
  int64_t parts, groups_per_part;
  int64_t rows = 1, columns = 1;  // how many cuts
  int64_t columns_each;
};
Cut cut(const Conv& conv, const Units& u, int lanes) {
  const auto wanted = std::clamp<int64_t>(static_cast<int64_t>(conv.work() / kSumPartWork), 1, kMostSumParts);
  const int64_t groups = parts(u.count, u.group);
  Cut c{};
  c.parts = std::clamp<int64_t>(kPartialFloats / (conv.taps() * conv.channels * conv.filters), 1, std::min(groups, wanted));
  c.groups_per_part = parts(groups, c.parts);
  c.parts = parts(groups, c.groups_per_part);
  c.rows = c.parts < wanted ? conv.axes[0].kernel * conv.axes[1].kernel : 1;
  const int64_t width = 2 * lanes, most = parts(conv.filters, width);
  c.columns = std::min(most, parts(wanted, c.parts * c.rows));
  c.columns_each = c.columns == 1 ? conv.filters : parts(most, c.columns) * width;
  c.columns = parts(conv.filters, c.columns_each);
  return c;
}

class ConvWeights final : public CpuProgram {
 public:
  ConvWeights(const codegen::Kernel& kernel, const Conv& conv, Toolbox& tools)
      : conv_(conv),
        phases_{phases(conv.axes[0]), phases(conv.axes[1]), phases(conv.axes[2])},
        read_(phases_read(conv, phases_)),
        units_(units_of(conv, read_)),
        pack_(kernel.in[0].dtype, tools.target, Pairs::Never),
        tiles_(pack_.tiles(), Stored::ByColumns),
        cut_(cut(conv, units_, tiles_.set().lanes)),
        x_(image_steps(kernel.in[0])),
        g_own_(image_steps(kernel.in[1])),
        g_(pack_ ? copied_gradient() : g_own_),
        image_(conv, x_, read_, units_.rows, pack_),
        rows_(conv.taps() * conv.channels),
        partial_(kernel, cut_.parts, rows_, conv.filters, tools) {
    make_segments();
    const int64_t gradient_floats = pack_ ? g_.batch : 0;
    scratch_ = WorkerScratch(static_cast<size_t>(units_.group * (image_.copy_floats() + gradient_floats)) * sizeof(float), tools.threads);
  }
  std::string_view kernel_name() const override { return "conv_weights/tiles"; }
  size_t scratch_bytes() const override { return partial_.scratch_bytes() + scratch_.bytes(); }

  void run(const device::LaunchArgs& args, ThreadPool& pool) const override {
    const int64_t each = cut_.rows * cut_.columns;
    pool.run(cut_.parts * each, [&](int64_t i) { part(args, i / each, i % each / cut_.columns, i % cut_.columns); });
    partial_.finish(args, pool);
  }

 private:
  // Where the copy of a group's gradients lies that is made when they have 16 bits: rows of whole units, one unit after the other.
  ImageSteps copied_gradient() const {
    const int64_t row = conv_.axes[2].out * conv_.filters;
    return {units_.rows * row, 1, {0, row, conv_.filters}};
  }
  // Copies columns of the gradient's rows [row0, row1) for one unit.
  void copy_gradient(const void* from, int64_t row0, int64_t row1, int64_t columns, float* to) const {
    const int64_t width = conv_.axes[2].out;
    const bool dense = columns == conv_.filters && g_own_.axes[2] == columns;
    for (int64_t row = row0; row < row1; ++row, to += g_.axes[1]) {
      const void* line = pack_.element(from, row * g_own_.axes[1]);
      if (dense)
        pack_.along(line, 1, width * columns, to);
      else
        for (int64_t i = 0; i < width; ++i) pack_.along(pack_.element(line, i * g_own_.axes[2]), 1, columns, to + i * g_.axes[2]);
    }
  }

  // The output rows that a tap meets, as segments of a tile's sum for a whole group of units.
  struct TapRows {
    Met rows;
    std::vector<Segment> segments;  // from the first row on
  };
  void make_segments() {
    const int64_t unit_step = image_.copied() ? image_.copy_floats() : x_.batch;
    for (const Phase& p : phases_[1]) {
      std::vector<TapRows>& all = tap_rows_.emplace_back();
      for (const Phase::Tap& y : p.taps) {
        TapRows t{met(p, y, conv_.axes[1].in), {}};
        const int64_t rows = units_.bands == 1 ? t.rows.end - t.rows.first : std::min(p.count, units_.rows);
        for (int64_t unit = 0; unit < units_.group; ++unit)
          for (int64_t r = 0; r < rows; ++r)
            t.segments.push_back({unit * unit_step + r * p.stride * image_.row_step(), unit * g_.batch + r * p.step * g_.axes[1]});
        all.push_back(std::move(t));
      }
    }
    // Taps along the width that lie side by side and meet the same outputs are rows of one tile.
    for (const Phase& p : phases_[2])
      for (size_t first = 0; first < p.taps.size();) {
        const auto columns = [&](size_t tap) { return sums_are_trimmed(conv_) ? met(p, p.taps[tap], conv_.axes[2].in) : Met{0, p.count}; };
        const auto follows = [&](size_t tap) {
          const Phase::Tap &a = p.taps[tap - 1], &b = p.taps[tap];
          return b.position == a.position + 1 && b.kernel == a.kernel + 1 && image_.pixel_step() == conv_.channels;
        };
        size_t next = first + 1;
        while (next < p.taps.size() && follows(next) && columns(next) == columns(first)) ++next;
        const Met m = columns(first);
        if (m.first < m.end)
          tap_runs_.push_back({.kernel = p.taps[first].kernel,
                               .count = static_cast<int64_t>(next - first),
                               .outputs = m.end - m.first,
                               .a = (p.taps[first].position + m.first * p.stride - image_.first_column()) * image_.pixel_step(),
                               .b = (p.first + m.first * p.step) * g_.axes[2],
                               .a_step = p.stride * image_.pixel_step(),
                               .b_step = p.step * g_.axes[2]});
        first = next;
      }
  }

  // One part of the sum for one cut of the rows (a row of taps, or all) and columns of the result.
  void part(const device::LaunchArgs& args, int64_t index, int64_t row_cut, int64_t column_cut) const {
    const int64_t column0 = column_cut * cut_.columns_each, columns = std::min(cut_.columns_each, conv_.filters - column0);
    const int64_t rows = rows_ / cut_.rows, row0 = row_cut * rows;
    float* result = partial_.part(args, index) + column0;
    for (int64_t r = row0; r < row0 + rows; ++r) std::fill_n(result + r * conv_.filters, columns, 0.0f);
    const int64_t begin = index * cut_.groups_per_part * units_.group,
                  end = std::min(units_.count, begin + cut_.groups_per_part * units_.group);
    for (int64_t unit = begin; unit < end; unit += units_.group)
      add_group(args, unit, std::min(units_.group, end - unit), cut_.rows == 1 ? -1 : row_cut, column0, columns, result);
  }

  void add_group(const device::LaunchArgs& args, int64_t unit, int64_t count, int64_t tap_row, int64_t column0, int64_t columns,
                 float* result) const {
    const int64_t image = unit / units_.bands / conv_.axes[0].out, depth = unit / units_.bands % conv_.axes[0].out;
    const int64_t row0 = unit % units_.bands * units_.rows, row1 = std::min(conv_.axes[1].out, row0 + units_.rows);
    const size_t depth_phases = phases_[0].size();
    const Phase& d = phases_[0][static_cast<size_t>(depth) % depth_phases];
    const int64_t plane = depth / static_cast<int64_t>(depth_phases) * d.stride;
    const void* images = pack_.element(args.pointers[0], image * x_.batch);
    const void* gradients = pack_.element(args.pointers[1], image * g_own_.batch + depth * g_own_.axes[0] + column0);
    const Reach rows = reach(read_[1], row0, row1);
    auto* copies = static_cast<float*>(scratch_.mine(static_cast<char*>(args.scratch) + partial_.scratch_bytes()));
    const float* x = nullptr;
    for (int64_t u = count; u-- > 0;)  // the first is the one to go on from
      x = image_.start(pack_.element(images, u * x_.batch), d, plane, rows, copies + u * image_.copy_floats());
    const auto* g = static_cast<const float*>(gradients);
    if (pack_) {
      float* copy = copies + units_.group * image_.copy_floats();
      for (int64_t u = 0; u < count; ++u)
        copy_gradient(pack_.element(gradients, u * g_own_.batch), row0, row1, columns, copy + u * g_.batch);
      g = copy - row0 * g_.axes[1];
    }
    for (size_t i = 0; i < d.taps.size(); ++i) {
      const float* x_plane = x + image_.plane_step(i, d);
      for (size_t h = 0; h < phases_[1].size(); ++h) {
        const Phase& p = phases_[1][h];
        for (size_t tap = 0; tap < p.taps.size(); ++tap) {
          const Phase::Tap& y = p.taps[tap];
          const TapRows& seen = tap_rows_[h][tap];
          const int64_t from = std::max(seen.rows.first, p.index_from(row0)), to = std::min(seen.rows.end, p.index_from(row1));
          if (from >= to) continue;
          const int64_t kernel_row = d.taps[i].kernel * conv_.axes[1].kernel + y.kernel;
          if (tap_row >= 0 && kernel_row != tap_row) continue;
          const float* a = x_plane + (y.position + from * p.stride) * image_.row_step();
          const float* b = g + (p.first + from * p.step) * g_.axes[1];
          add_tap_row(a, b, seen.segments.data(), count * (to - from), columns,
                      result + kernel_row * conv_.axes[2].kernel * conv_.channels * conv_.filters);
        }
      }
    }
  }

  // All taps of one row of the kernel. `a` is at the start of an image row, `b` of a gradient's.
  void add_tap_row(const float* a, const float* b, const Segment* segments, int64_t count, int64_t columns, float* result) const {
    for (const TapRun& run : tap_runs_)
      tiles_.cover({.a = a + run.a,
                    .b = b + run.b,
                    .a_step = run.a_step,
                    .b_step = run.b_step,
                    .segments = segments,
                    .segment_count = count,
                    .length = run.outputs,
                    .c = result + run.kernel * conv_.channels * conv_.filters,
                    .c_step = conv_.filters,
                    .accumulate = true},
                   run.count * conv_.channels, columns, 1, 1, 2);
  }

  Conv conv_;
  Phases phases_, read_;
  Units units_;
  HalfPack pack_;
  TileTable tiles_;
  Cut cut_;
  ImageSteps x_, g_own_, g_;  // g_: where the tiles read it
  ConvImage image_;
  int64_t rows_;  // of the result: taps x channels
  PartialSums partial_;
  // Taps along the width as a tile's rows, and the outputs along the width that they are summed over.
  struct TapRun {
    int64_t kernel, count, outputs;
    int64_t a, b, a_step, b_step;
  };
  std::vector<TapRun> tap_runs_;
  std::vector<std::vector<TapRows>> tap_rows_;  // [phase of the rows][tap]
  WorkerScratch scratch_;
};

}  // namespace

std::shared_ptr<const CpuProgram> make_conv_weights(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal) {
  if (kernel.op->name != "conv_kernel_gradient") return nullptr;
  const codegen::Layout &g = kernel.in[1], &product = kernel.epilogue ? kernel.epilogue->product : kernel.out[0];
  const Conv conv = conv_of(kernel.attrs, kernel.in[0].shape, product.shape, g.shape);
  if (!tiles_take(conv, g.dtype, product.dtype, refusal)) return nullptr;
  if (conv.filters > 1 && g.strides[g.strides.size() - 1] != 1) {
    refusal = "the gradient's channels do not lie side by side";
    return nullptr;
  }
  return std::make_shared<ConvWeights>(kernel, conv, tools);
}

}  // namespace tandem::cpu
