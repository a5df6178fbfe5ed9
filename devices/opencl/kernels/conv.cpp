// Convolutions, and their kernels' gradients, of floats; 16-bit ones are summed in float32. Both are products of a matrix that is never
// made (implicit GEMM): a row of it is an output position, or a kernel's tap and channel, its depth the other of the two. On GPUs a group
// computes 64 x 64 elements from tiles in local memory; where a gradient has few elements and long sums, these are cut into blocks by the
// sizes alone and summed in their order. On CPUs an item computes 4 x 16 elements in vector registers.
#include <algorithm>

#include "base/text.hpp"
#include "codegen/convolution.hpp"
#include "pieces.hpp"

namespace tandem::opencl {
namespace {

using codegen::Conv;
using codegen::kSpatial;

constexpr int64_t kTile = 64, kDepth = 16;
constexpr int64_t kRows = 4, kColumns = 16;  // of an item on a CPU
constexpr double kTinyWork = 4096;           // below, generated code is as good and may be compiled already
constexpr int64_t kEnoughTiles = 64;         // to keep a GPU busy; with fewer, long sums are cut
constexpr int64_t kBlockDepth = 2048, kMostBlocks = 64;

// An element of x is where a row and a depth meet: along each axis at the sum of both positions, spread, and at the sum of both offsets.
// $T: of sums; $M, $O: of what memory holds of operands and result.
constexpr std::string_view kBegin = R"(#pragma OPENCL FP_CONTRACT OFF
$E__kernel void tandem_kernel(__global const uchar* x_memory, const ulong x_offset, __global const uchar* y_memory, const ulong y_offset,
    __global uchar* out_memory, const ulong out_offset$ARGUMENTS) {
$L  __global const $M* x = (__global const $M*)(x_memory + x_offset);
  __global const $M* y = (__global const $M*)(y_memory + y_offset);
  __global $O* out = (__global $O*)(out_memory + out_offset);
)";

// DECODE_*: positions p0, p1, p2 and an offset of a row or a depth; Y: the offset of what a depth meets in y, without the column.
constexpr std::string_view kGroups = R"(
  const int lane = get_local_id(0), line = get_local_id(1), item = line * 16 + lane;
  const long blocks = (depth_count + block - 1) / block;
  const long group = get_group_id(2) / blocks, slice = get_group_id(2) % blocks;
  const long row0 = get_group_id(1) * 64L, column0 = get_group_id(0) * 64L;
  const long first = slice * block, end = first + block < depth_count ? first + block : depth_count;
  int rp0[4], rp1[4], rp2[4];
  long ro[4];
  for (int i = 0; i < 4; ++i) {
    const long row = row0 + line + 16 * i;
    long p0, p1, p2, offset;
    DECODE_ROW(row)
    rp0[i] = (int)p0;
    rp1[i] = (int)p1;
    rp2[i] = (int)p2;
    ro[i] = row < rows ? offset : NOWHERE;
  }
  $T sums[4][4];
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  for (long depth0 = first; depth0 < end; depth0 += 16) {
    if (item < 16) {
      const long depth = depth0 + item;
      long p0, p1, p2, offset, y_place;
      DECODE_DEPTH(depth)
      dp[0][item] = (int)p0;
      dp[1][item] = (int)p1;
      dp[2][item] = (int)p2;
      dx[item] = depth < end ? offset : NOWHERE;
      dy[item] = y_place;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 4; ++i) {
      const int q0 = rp0[i] + dp[0][lane], q1 = rp1[i] + dp[1][lane], q2 = rp2[i] + dp[2][lane];
      const bool is_there = ro[i] != NOWHERE && dx[lane] != NOWHERE && MEETS(q0, 0) && MEETS(q1, 1) && MEETS(q2, 2);
      xs[lane][line + 16 * i] = is_there ? LOAD(x[ro[i] + dx[lane] + AT(q0, 0) + AT(q1, 1) + AT(q2, 2) + group * x_group]) : 0;
    }
    for (int e = item; e < 64 * 16; e += 256) {
      const int c = e % 64, d = e / 64;
      ys[d][c] = column0 + c < columns && dx[d] != NOWHERE ? LOAD(y[dy[d] + (group * columns + column0 + c) * y_column]) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 0; d < 16; ++d)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sums[i][j] = fma(xs[d][line + 16 * i], ys[d][lane + 16 * j], sums[i][j]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const long r = row0 + line + 16 * i, c = column0 + lane + 16 * j;
      if (r < rows && c < columns) out[(slice * rows + r) * all_columns + group * columns + c] = STORE(sums[i][j]);
    }
}
)";

// Four output positions, all filters' vectors of sixteen: the taps outside, so that what lies beyond an edge is known before the channels.
constexpr std::string_view kForwardVectors = R"(
  const long row0 = get_global_id(1) * 4L, column0 = get_global_id(0) * 16L, group = get_global_id(2);
  int rp0[4], rp1[4], rp2[4];
  long ro[4];
  for (int i = 0; i < 4; ++i) {
    const long row = row0 + i < rows ? row0 + i : rows - 1;
    long p0, p1, p2, offset;
    DECODE_ROW(row)
    rp0[i] = (int)p0;
    rp1[i] = (int)p1;
    rp2[i] = (int)p2;
    ro[i] = offset + group * x_group;
  }
  const int width = columns - column0 < 16 ? (int)(columns - column0) : 16;
  $T16 s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (long k0 = 0; k0 < kernel0; ++k0)
    for (long k1 = 0; k1 < kernel1; ++k1)
      for (long k2 = 0; k2 < kernel2; ++k2) {
        long from[4];
        bool any = false;
        for (int i = 0; i < 4; ++i) {
          const int q0 = rp0[i] + (int)(k0 * dilation0), q1 = rp1[i] + (int)(k1 * dilation1), q2 = rp2[i] + (int)(k2 * dilation2);
          const bool is_there = MEETS(q0, 0) && MEETS(q1, 1) && MEETS(q2, 2);
          from[i] = is_there ? ro[i] + AT(q0, 0) + AT(q1, 1) + AT(q2, 2) : NOWHERE;
          any = any || is_there;
        }
        if (!any) continue;
        __global const $M* at = y + (k0 * y_axis0 + k1 * y_axis1 + k2 * y_axis2 + (group * columns + column0) * y_column);
        for (long c = 0; c < channels; ++c, at += y_channel) {
          $T16 v;
          if (width == 16)
            v = $Y;
          else {
            $T some[16];
            for (int j = 0; j < 16; ++j) some[j] = j < width ? LOAD(at[j * y_column]) : 0;
            v = vload16(0, some);
          }
          const long b = c * x_channel;
          s0 = fma(($T16)(from[0] == NOWHERE ? 0 : LOAD(x[from[0] + b])), v, s0);
          s1 = fma(($T16)(from[1] == NOWHERE ? 0 : LOAD(x[from[1] + b])), v, s1);
          s2 = fma(($T16)(from[2] == NOWHERE ? 0 : LOAD(x[from[2] + b])), v, s2);
          s3 = fma(($T16)(from[3] == NOWHERE ? 0 : LOAD(x[from[3] + b])), v, s3);
        }
      }
$STORE}
)";

// One tap, four channels, a vector of sixteen filters; x is read once a position.
constexpr std::string_view kWeightVectors = R"(
  const long pieces = (channels + 3) / 4, unit = get_global_id(1), tap = unit / pieces, channel0 = unit % pieces * 4;
  const long column0 = get_global_id(0) * 16L, group = get_global_id(2), row0 = tap * channels + channel0;
  const int width = columns - column0 < 16 ? (int)(columns - column0) : 16;
  const long high = channels - channel0;
  const int k2 = (int)(tap % kernel2 * dilation2) - low2, k1 = (int)(tap / kernel2 % kernel1 * dilation1) - low1,
            k0 = (int)(tap / (kernel2 * kernel1) * dilation0) - low0;
  const long c1 = (high > 1 ? 1 : 0) * x_channel, c2 = (high > 2 ? 2 : 0) * x_channel, c3 = (high > 3 ? 3 : 0) * x_channel;
  $T16 s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (long n = 0; n < batch; ++n)
    for (long o0 = 0; o0 < out0; ++o0)
      for (long o1 = 0; o1 < out1; ++o1) {
        const int q0 = (int)(o0 * stride0) + k0, q1 = (int)(o1 * stride1) + k1;
        if (!(MEETS(q0, 0) && MEETS(q1, 1))) continue;
        __global const $M* from = x + (n * x_batch + AT(q0, 0) + AT(q1, 1) + channel0 * x_channel + group * x_group);
        __global const $M* to = y + (n * y_batch + o0 * y_axis0 + o1 * y_axis1 + (group * columns + column0) * y_column);
        for (long o2 = 0; o2 < out2; ++o2) {
          const int q2 = (int)(o2 * stride2) + k2;
          if (!MEETS(q2, 2)) continue;
          __global const $M* at = to + o2 * y_axis2;
          $T16 v;
          if (width == 16)
            v = $Y;
          else {
            $T some[16];
            for (int j = 0; j < 16; ++j) some[j] = j < width ? LOAD(at[j * y_column]) : 0;
            v = vload16(0, some);
          }
          const long b = AT(q2, 2);
          s0 = fma(($T16)LOAD(from[b]), v, s0);
          s1 = fma(($T16)LOAD(from[b + c1]), v, s1);
          s2 = fma(($T16)LOAD(from[b + c2]), v, s2);
          s3 = fma(($T16)LOAD(from[b + c3]), v, s3);
        }
      }
$STORE}
)";

// $LAST: rows behind it are none of this item's.
constexpr std::string_view kStore = R"(  $T sums[4 * 16];
  vstore16(s0, 0, sums);
  vstore16(s1, 1, sums);
  vstore16(s2, 2, sums);
  vstore16(s3, 3, sums);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < width; ++j)
      if ($LAST) out[(row0 + i) * all_columns + group * columns + column0 + j] = STORE(sums[i * 16 + j]);
)";

// The numbers of one convolution as arguments, by their names in the texts.
class Numbers {
 public:
  void add(std::string_view name, int64_t value) {
    text_ += cat(", const long ", name);
    values_.push_back(value);
  }
  const std::string& text() const { return text_; }
  void give(Launch& launch) const {
    for (const int64_t v : values_) launch.number(v);
  }

 private:
  std::string text_;
  std::vector<int64_t> values_;
};

class ConvProgram final : public OpenClProgram {
 public:
  ConvProgram(const codegen::Kernel& k, const Core& core, const Conv& conv, const codegen::Layout& product)
      : conv_(conv), inputs_(k.in.size()), is_cpu_(core.target.is_cpu), is_forward_(k.op->name == "general_conv") {
    const DType in = k.in[0].dtype;
    const bool is_double = in == DType::F64;
    channels_ = conv.channels / conv.groups;
    columns_ = conv.filters / conv.groups;
    rows_ = is_forward_ ? conv.batch * conv.outputs() : conv.taps() * channels_;
    depth_ = is_forward_ ? conv.taps() * channels_ : conv.batch * conv.outputs();
    const int64_t tiles = pieces(rows_, kTile) * pieces(columns_, kTile) * conv.groups;
    block_ = depth_;
    if (!is_cpu_ && !is_forward_ && tiles < kEnoughTiles && depth_ >= 2 * kBlockDepth) {
      const int64_t blocks = std::min({depth_ / kBlockDepth, kMostBlocks, pieces(kEnoughTiles * 4, tiles)});
      block_ = pieces(pieces(depth_, blocks), kDepth) * kDepth;
    }
    const int64_t blocks = pieces(depth_, block_);

    // Vectors read neighbouring filters; a kernel that lies otherwise (turned around, for the gradient of the input) is copied first.
    codegen::Layout y = k.in[1];
    if (y.strides[y.strides.size() - 1] != 1 && y.shape[y.shape.size() - 1] > 1) {
      y_.emplace(y, core, scratch_, k.op->name);
      y = codegen::Layout::dense(y.dtype, y.shape);
    }
    name_numbers(k.in[0], y);

    // The product goes to the result, or to scratch memory where an epilogue follows, or where blocks are summed.
    const DType sum = is_double ? DType::F64 : DType::F32, written = blocks > 1 ? sum : product.dtype;
    if (k.epilogue) {
      product_offset_ = scratch_.take(k.partial_bytes());
      end_.emplace(k.stages.back(), core, k.op->name);
    }
    if (blocks > 1) {
      Shape all{blocks};
      for (const int64_t e : product.shape) all.push_back(e);
      blocks_offset_ = scratch_.take(byte_size(all, sum));
      std::vector<ir::Scalar> at{ir::axis(product.shape.rank())};
      for (int j = 0; j < product.shape.rank(); ++j) at.push_back(ir::axis(j));
      const ir::Loops loops{.extents = to_dims(product.shape),
                            .reduction = ir::fold(ir::Fold::Sum, {Dim(blocks)}, ir::load(0, sum, at)),
                            .results = {ir::cast(ir::acc(0, sum), product.dtype)}};
      const codegen::Layout from = codegen::Layout::dense(sum, all);
      sum_.emplace(codegen::canonical(loops, {}, {&from, 1}, {&product.dtype, 1}), core, k.op->name);
    }
    code_ = core.codes->get(core, source(in, written, y, core), k.op->name);
  }
  std::string_view kernel_name() const override {
    if (is_forward_) return is_cpu_ ? "conv/vectors" : "conv/groups";
    return is_cpu_ ? "conv_weights/vectors" : "conv_weights/groups";
  }
  size_t scratch_bytes() const override { return scratch_.bytes(); }

  void enqueue(const Core& core, cl_command_queue queue, const device::LaunchArgs& args) const override {
    const void* y = y_ ? y_->enqueue(core, queue, args, 1) : args.pointers[1];
    void* product = end_ ? piece(args, product_offset_) : args.pointers[inputs_];
    void* out = sum_ ? piece(args, blocks_offset_) : product;
    run(core, queue, args.pointers[0], y, out);
    if (sum_) {
      const void* const operands[] = {out, product};
      sum_->enqueue(core, queue, operands);
    }
    if (!end_) return;
    std::vector<const void*> operands(args.pointers.begin(), args.pointers.begin() + static_cast<std::ptrdiff_t>(inputs_));
    operands.push_back(product);
    for (const void* o : args.pointers.subspan(inputs_)) operands.push_back(o);
    end_->enqueue(core, queue, operands);
  }

 private:
  static int64_t pieces(int64_t n, int64_t of) { return (n + of - 1) / of; }

  void name_numbers(const codegen::Layout& x, const codegen::Layout& y) {
    const codegen::ImageSteps xs = codegen::image_steps(x);
    numbers_.add("rows", rows_);
    numbers_.add("columns", columns_);
    numbers_.add("all_columns", conv_.filters);
    numbers_.add("depth_count", depth_);
    numbers_.add("block", block_);
    numbers_.add("batch", conv_.batch);
    numbers_.add("channels", channels_);
    numbers_.add("x_batch", xs.batch);
    numbers_.add("x_channel", xs.channel);
    numbers_.add("x_group", xs.channel * channels_);
    std::array<int64_t, kSpatial> y_axes{};
    if (is_forward_) {
      const codegen::KernelSteps ys = codegen::kernel_steps(y);
      y_axes = ys.axes;
      numbers_.add("y_channel", ys.channel);
      numbers_.add("y_column", ys.filter);
    } else {
      const codegen::ImageSteps ys = codegen::image_steps(y);
      y_axes = ys.axes;
      numbers_.add("y_batch", ys.batch);
      numbers_.add("y_column", ys.channel);
    }
    for (size_t i = 0; i < kSpatial; ++i) {
      const codegen::ConvAxis& a = conv_.axes[i];
      numbers_.add(cat("in", i), a.in);
      numbers_.add(cat("out", i), a.out);
      numbers_.add(cat("kernel", i), a.kernel);
      numbers_.add(cat("stride", i), a.stride);
      numbers_.add(cat("dilation", i), a.dilation);
      numbers_.add(cat("low", i), a.low);
      numbers_.add(cat("x_axis", i), xs.axes[i]);
      numbers_.add(cat("y_axis", i), y_axes[i]);
    }
  }

  // Positions of outputs (with their image), and of taps (with their channel).
  std::string decoding() const {
    const std::string_view outputs =
        "const long o2 = (v) % out2, o1 = (v) / out2 % out1, o0 = (v) / (out2 * out1) % out0, n = (v) / (out2 * out1 * out0); "
        "p0 = o0 * stride0 - low0; p1 = o1 * stride1 - low1; p2 = o2 * stride2 - low2; offset = n * x_batch; ";
    const std::string_view taps =
        "const long c = (v) % channels, t = (v) / channels, k2 = t % kernel2, k1 = t / kernel2 % kernel1, k0 = t / (kernel2 * kernel1); "
        "p0 = k0 * dilation0; p1 = k1 * dilation1; p2 = k2 * dilation2; offset = c * x_channel; ";
    const std::string_view y = is_forward_ ? "y_place = k0 * y_axis0 + k1 * y_axis1 + k2 * y_axis2 + c * y_channel; "
                                           : "y_place = n * y_batch + o0 * y_axis0 + o1 * y_axis1 + o2 * y_axis2; ";
    std::string text = cat("#define DECODE_ROW(v) { ", is_forward_ ? outputs : taps, "}\n#define DECODE_DEPTH(v) { ",
                           is_forward_ ? taps : outputs, y, "}\n");
    const bool is_spread = std::ranges::any_of(conv_.axes, [](const codegen::ConvAxis& a) { return a.input_dilation > 1; });
    if (!is_spread) return cat(text, "#define MEETS(q, i) ((q) >= 0 && (q) < in##i)\n#define AT(q, i) ((q) * x_axis##i)\n");
    for (size_t i = 0; i < kSpatial; ++i) text += cat("#define SPREAD", i, " ", conv_.axes[i].input_dilation, "\n");
    return cat(text,
               "#define MEETS(q, i) ((q) >= 0 && (q) % SPREAD##i == 0 && (q) / SPREAD##i < in##i)\n#define AT(q, i) ((q) / SPREAD##i * "
               "x_axis##i)\n");
  }

  std::string source(DType in, DType out, const codegen::Layout& y, const Core& core) const {
    const auto is_small = [](DType t) { return t == DType::F16 || t == DType::BF16; };
    const bool is_double = in == DType::F64;
    codegen::CHelpers helpers(*core.dialect);
    const std::string load = is_small(in) ? helpers.from_bits(in) : "", store = is_small(out) ? helpers.to_bits(out) : "";
    std::string text = cat(kBegin, !is_cpu_ ? kGroups : is_forward_ ? kForwardVectors : kWeightVectors);
    text = filled(text, "$STORE", kStore);
    text = filled(text, "$LAST", is_forward_ ? "row0 + i < rows" : "i < high");
    text = filled(text, "$E",
                  cat(is_double ? core.dialect->double_preamble : std::string_view(), helpers.text(),
                      "#define NOWHERE ((long)1 << 63)\n#define LOAD(v) ", load, "(v)\n#define STORE(v) ", store, "(v)\n", decoding()));
    text = filled(text, "$ARGUMENTS", numbers_.text());
    text = filled(text, "$L",
                  is_cpu_ ? "" : "  __local $T xs[16][65], ys[16][65];\n  __local int dp[3][16];\n  __local long dx[16], dy[16];\n");
    std::string row = "vload16(0, at)";
    if (is_small(in) || y.strides[y.strides.size() - 1] != 1) {
      row = "($T16)(LOAD(at[0])";
      for (int64_t i = 1; i < kColumns; ++i) row += cat(", LOAD(at[", i, " * y_column])");
      row += ")";
    }
    text = filled(text, "$Y", row);
    text = filled(text, "$M", codegen::CValues::memory_type(*core.dialect, in));
    text = filled(text, "$O", codegen::CValues::memory_type(*core.dialect, out));
    return filled(text, "$T", is_double ? "double" : "float");
  }

  void run(const Core& core, cl_command_queue queue, const void* x, const void* y, const void* out) const {
    Launch launch(core, *code_);
    for (const void* o : {x, y, out}) launch.memory(o);
    numbers_.give(launch);
    const auto size = [](int64_t n) { return static_cast<size_t>(n); };
    if (!is_cpu_) {
      const std::array<size_t, 3> groups{size(pieces(columns_, kTile)), size(pieces(rows_, kTile)),
                                         size(conv_.groups * pieces(depth_, block_))},
          items{16, 16, 1};
      return launch.run(queue, groups, items);
    }
    const int64_t units = is_forward_ ? pieces(rows_, kRows) : conv_.taps() * pieces(channels_, kRows);
    const std::array<size_t, 3> groups{size(pieces(columns_, kColumns)), size(units), size(conv_.groups)}, items{1, 1, 1};
    launch.run(queue, groups, items);
  }

  const Conv conv_;
  size_t inputs_;
  bool is_cpu_, is_forward_;
  int64_t channels_ = 0, columns_ = 0, rows_ = 0, depth_ = 0, block_ = 0;
  ScratchLayout scratch_;
  std::optional<DenseOperand> y_;
  size_t product_offset_ = 0, blocks_offset_ = 0;
  Numbers numbers_;
  std::shared_ptr<const Code> code_;
  std::optional<GeneratedStage> sum_, end_;
};

}  // namespace

std::shared_ptr<const OpenClProgram> make_conv(const codegen::Kernel& kernel, Core& core, std::string& refusal) {
  const bool is_forward = kernel.op->name == "general_conv";
  if (!is_forward && kernel.op->name != "conv_kernel_gradient") return nullptr;
  const DType t = kernel.in[0].dtype;
  const codegen::Layout& product = kernel.epilogue ? kernel.epilogue->product : kernel.out[0];
  if (!is_float(t) || kernel.in[1].dtype != t || (product.dtype != t && product.dtype != DType::F32)) {
    refusal = cat(name(t), " x ", name(kernel.in[1].dtype), " to ", name(product.dtype),
                  ": operands must be floats of one type, and so must the result, or float32");
    return nullptr;
  }
  if (t == DType::F64 && !core.has_double) {
    refusal = "the device has no double (cl_khr_fp64)";
    return nullptr;
  }
  const Shape &image = kernel.in[0].shape, &other = kernel.in[1].shape;
  if (image.rank() - 2 > kSpatial) {
    refusal = cat(image.rank() - 2, " spatial axes, more than ", kSpatial);
    return nullptr;
  }
  const Conv conv = is_forward ? codegen::conv_of(kernel.attrs, image, other, product.shape)
                               : codegen::conv_of(kernel.attrs, image, product.shape, other);
  const int64_t each = conv.groups > 0 ? conv.channels / conv.groups : 0;
  if (conv.work() < kTinyWork || conv.batch * conv.outputs() >= INT32_MAX) {
    refusal = cat(conv.work(), " multiplications: too few, or positions do not fit in 32 bits");
    return nullptr;
  }
  if (conv.groups > 1 && (each < kRows || conv.filters / conv.groups < kRows)) {
    refusal = cat("groups of ", each, " channels: each output is summed directly from loops");
    return nullptr;
  }
  const int64_t items = 256, local = 2 * kDepth * (kTile + 1) * static_cast<int64_t>(std::max(size_of(t), sizeof(float))) + 28 * kDepth;
  if (!core.target.is_cpu && (core.target.most_group_items < items || core.target.local_bytes < local)) {
    refusal = cat("groups of ", items, " items with ", local, " bytes of local memory; the device has ", core.target.most_group_items,
                  " and ", core.target.local_bytes);
    return nullptr;
  }
  return std::make_shared<ConvProgram>(kernel, core, conv, product);
}

}  // namespace tandem::opencl
