// Products of matrices of floats; 16-bit ones are summed in float32. On GPUs, a group computes 64 x 64 elements from tiles in local memory;
// on CPUs, an item computes 64 x 32 of them, 4 x 32 at a time in vector registers. Each element is summed from the first product to the
// last with fused multiply-adds, so both give the same bits, whatever the sizes.
#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "codegen/c_values.hpp"
#include "codegen/product.hpp"
#include "pieces.hpp"

namespace tandem::opencl {
namespace {

using codegen::Product;

constexpr size_t kBatchAxes = 4;
constexpr size_t kTile = 64, kDepth = 16, kTileItems = 16;  // items along each edge of a tile
constexpr size_t kRows = 64, kColumns = 32;                 // of an item on a CPU
constexpr double kTinyWork = 4096;                          // below, generated code is as good and may be compiled already

// $T: the type of sums; $M, $O: of what memory holds of the operands and of the result, which LOAD and STORE lead from and to sums. Both
// kernels begin with the matrices of this number of the batch.
constexpr std::string_view kBegin = R"(#pragma OPENCL FP_CONTRACT OFF
$E__kernel void tandem_kernel(__global const uchar* x_memory, const ulong x_offset, __global const uchar* y_memory, const ulong y_offset,
    __global uchar* out_memory, const ulong out_offset, const long m, const long n, const long k, const long x_row, const long x_column,
    const long y_row, const long y_column, const long e1, const long e2, const long e3, const long xb0, const long xb1, const long xb2,
    const long xb3, const long yb0, const long yb1, const long yb2, const long yb3) {
$L  const long batch = get_group_id(2);
  const long b3 = batch % e3, b2 = batch / e3 % e2, b1 = batch / (e3 * e2) % e1, b0 = batch / (e3 * e2 * e1);
  __global const $M* x = (__global const $M*)(x_memory + x_offset) + (b0 * xb0 + b1 * xb1 + b2 * xb2 + b3 * xb3);
  __global const $M* y = (__global const $M*)(y_memory + y_offset) + (b0 * yb0 + b1 * yb1 + b2 * yb2 + b3 * yb3);
  __global $O* out = (__global $O*)(out_memory + out_offset) + batch * m * n;
)";

// $A, $B: which edge of a tile neighbouring items load along, 1 where that is the depth.
constexpr std::string_view kGroups = R"(
  const int column = get_local_id(0), row = get_local_id(1), item = row * 16 + column;
  const long row0 = get_group_id(1) * 64L, column0 = get_group_id(0) * 64L;
  $T sums[4][4];
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  for (long depth = 0; depth < k; depth += 16) {
    for (int e = item; e < 64 * 16; e += 256) {
      const int d = $A ? e % 16 : e / 64, r = $A ? e / 16 : e % 64;
      xs[d][r] = row0 + r < m && depth + d < k ? LOAD(x[(row0 + r) * x_row + (depth + d) * x_column]) : 0;
    }
    for (int e = item; e < 64 * 16; e += 256) {
      const int d = $B ? e % 16 : e / 64, c = $B ? e / 16 : e % 64;
      ys[d][c] = column0 + c < n && depth + d < k ? LOAD(y[(depth + d) * y_row + (column0 + c) * y_column]) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int deep = k - depth < 16 ? (int)(k - depth) : 16;
    for (int d = 0; d < deep; ++d)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sums[i][j] = fma(xs[d][row + 16 * i], ys[d][column + 16 * j], sums[i][j]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const long r = row0 + row + 16 * i, c = column0 + column + 16 * j;
      if (r < m && c < n) out[r * n + c] = STORE(sums[i][j]);
    }
}
)";

// A strip of 32 columns and 64 rows, 256 products deep at a time: these of y, and of x where its rows do not lie one element after the
// other, are put side by side first, and 4 x 32 sums stay in registers meanwhile. $R: rows of x are such; $V: takes four rows at once,
// where columns of it are.
constexpr std::string_view kVectors = R"(
  const long row0 = get_group_id(1) * 64L, column0 = get_group_id(0) * 32L;
  const int rows = (int)min(64L, m - row0), columns = (int)min(32L, n - column0);
  $T sums[64 * 32], ys[256 * 32];
  $T xs[$R ? 1 : 260 * 64];  // 260: not every row in the same lines of a cache
  for (int i = 0; i < (rows + 3) / 4 * 4 * 32; ++i) sums[i] = 0;
  for (long depth = 0; depth < k; depth += 256) {
    const int deep = (int)min(256L, k - depth);
    for (int d = 0; d < deep; ++d) {
      __global const $M* at = y + (depth + d) * y_row + column0 * y_column;
      for (int j = 0; j < columns; ++j) ys[d * 32 + j] = LOAD(at[j * y_column]);
      for (int j = columns; j < 32; ++j) ys[d * 32 + j] = 0;
    }
    if (!$R)
      for (int d = 0; d < deep; ++d) {
        __global const $M* at = x + row0 * x_row + (depth + d) * x_column;
        int r = 0;
        $V
        for (; r < rows; ++r) xs[(r / 4 * 260 + d) * 4 + r % 4] = LOAD(at[r * x_row]);
        for (; r % 4 != 0; ++r) xs[(r / 4 * 260 + d) * 4 + r % 4] = 0;
      }
    for (int r = 0; r < rows; r += 4) {
      // Rows behind the last one are that one again, and nobody reads their sums.
      __global const $M *x0 = x + (row0 + r) * x_row + depth * x_column, *x1 = r + 1 < rows ? x0 + x_row : x0;
      __global const $M *x2 = r + 2 < rows ? x1 + x_row : x1, *x3 = r + 3 < rows ? x2 + x_row : x2;
      const $T* packed = xs + ($R ? 0 : r * 260);
      $T* sum = sums + r * 32;
      $T16 a0 = vload16(0, sum), b0_ = vload16(1, sum), a1 = vload16(2, sum), b1_ = vload16(3, sum);
      $T16 a2 = vload16(4, sum), b2_ = vload16(5, sum), a3 = vload16(6, sum), b3_ = vload16(7, sum);
      for (int d = 0; d < deep; ++d) {
        const $T16 v = vload16(2 * d, ys), w = vload16(2 * d + 1, ys);
        const $T16 f0 = ($T16)($R ? LOAD(x0[d]) : packed[4 * d]), f1 = ($T16)($R ? LOAD(x1[d]) : packed[4 * d + 1]);
        const $T16 f2 = ($T16)($R ? LOAD(x2[d]) : packed[4 * d + 2]), f3 = ($T16)($R ? LOAD(x3[d]) : packed[4 * d + 3]);
        a0 = fma(f0, v, a0);
        b0_ = fma(f0, w, b0_);
        a1 = fma(f1, v, a1);
        b1_ = fma(f1, w, b1_);
        a2 = fma(f2, v, a2);
        b2_ = fma(f2, w, b2_);
        a3 = fma(f3, v, a3);
        b3_ = fma(f3, w, b3_);
      }
      vstore16(a0, 0, sum);
      vstore16(b0_, 1, sum);
      vstore16(a1, 2, sum);
      vstore16(b1_, 3, sum);
      vstore16(a2, 4, sum);
      vstore16(b2_, 5, sum);
      vstore16(a3, 6, sum);
      vstore16(b3_, 7, sum);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int j = 0; j < columns; ++j) out[(row0 + r) * n + column0 + j] = STORE(sums[r * 32 + j]);
}
)";

std::string source_of(const Product& p, DType in, DType out, const Core& core) {
  const bool is_cpu = core.target.is_cpu, is_double = in == DType::F64;
  const auto is_small = [](DType t) { return t == DType::F16 || t == DType::BF16; };
  codegen::CHelpers helpers(*core.dialect);
  const std::string load = is_small(in) ? helpers.from_bits(in) : "", store = is_small(out) ? helpers.to_bits(out) : "";
  std::string text = cat(kBegin, is_cpu ? kVectors : kGroups);
  text = filled(text, "$E",
                cat(is_double ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" : "", helpers.text(), "#define LOAD(v) ", load,
                    "(v)\n#define STORE(v) ", store, "(v)\n"));
  text = filled(text, "$L", is_cpu ? "" : "  __local $T xs[16][65], ys[16][65];\n");  // 65: a column is not in one bank
  text = filled(text, "$A", p.x.column_step == 1 ? "1" : "0");
  text = filled(text, "$B", p.y.row_step == 1 ? "1" : "0");
  text = filled(text, "$R", p.x.column_step == 1 ? "1" : "0");
  text = filled(text, "$V",
                p.x.row_step == 1 && !is_small(in) ? "for (; r + 4 <= rows; r += 4) vstore4(vload4(0, at + r), r / 4 * 260 + d, xs);" : "");
  text = filled(text, "$M", codegen::CValues::memory_type(*core.dialect, in));
  text = filled(text, "$O", codegen::CValues::memory_type(*core.dialect, out));
  return filled(text, "$T", is_double ? "double" : "float");
}

class GemmProgram final : public OpenClProgram {
 public:
  GemmProgram(const codegen::Kernel& kernel, const Core& core, const Product& p, DType in, DType out)
      : p_(p), inputs_(kernel.in.size()), is_cpu_(core.target.is_cpu) {
    code_ = core.codes->get(core, source_of(p, in, out, core), kernel.op->name);
    if (!kernel.epilogue) return;
    scratch_bytes_ = kernel.partial_bytes();
    end_.emplace(kernel.stages.back(), core, kernel.op->name);
  }
  std::string_view kernel_name() const override { return is_cpu_ ? "gemm/vectors" : "gemm/groups"; }
  size_t scratch_bytes() const override { return scratch_bytes_; }

  void enqueue(const Core& core, cl_command_queue queue, const device::LaunchArgs& args) const override {
    product(core, queue, args.pointers[static_cast<size_t>(p_.x_input)], args.pointers[static_cast<size_t>(p_.y_input)],
            end_ ? args.scratch : args.pointers[inputs_]);
    if (!end_) return;
    std::vector<const void*> operands(args.pointers.begin(), args.pointers.begin() + static_cast<std::ptrdiff_t>(inputs_));
    operands.push_back(args.scratch);
    for (const void* o : args.pointers.subspan(inputs_)) operands.push_back(o);
    end_->enqueue(core, queue, operands);
  }

 private:
  void product(const Core& core, cl_command_queue queue, const void* x, const void* y, const void* out) const {
    std::array<int64_t, kBatchAxes> extents{1, 1, 1, 1}, x_steps{}, y_steps{};
    const size_t first = kBatchAxes - p_.batch.size();
    for (size_t i = 0; i < p_.batch.size(); ++i) {
      extents[first + i] = p_.batch[i];
      x_steps[first + i] = p_.x.batch_steps[i];
      y_steps[first + i] = p_.y.batch_steps[i];
    }
    Launch launch(core, *code_);
    for (const void* o : {x, y, out}) launch.memory(o);
    for (const int64_t v :
         {p_.m, p_.n, p_.k, p_.x.row_step, p_.x.column_step, p_.y.row_step, p_.y.column_step, extents[1], extents[2], extents[3]})
      launch.number(v);
    for (const int64_t v : x_steps) launch.number(v);
    for (const int64_t v : y_steps) launch.number(v);
    const size_t width = is_cpu_ ? kColumns : kTile, height = is_cpu_ ? kRows : kTile, edge = is_cpu_ ? 1 : kTileItems;
    const auto pieces = [](int64_t n, size_t of) { return (static_cast<size_t>(n) + of - 1) / of; };
    const std::array<size_t, 3> groups{pieces(p_.n, width), pieces(p_.m, height), static_cast<size_t>(p_.batches)}, items{edge, edge, 1};
    launch.run(queue, groups, items);
  }

  Product p_;
  size_t inputs_, scratch_bytes_ = 0;
  bool is_cpu_;
  std::shared_ptr<const Code> code_;
  std::optional<GeneratedStage> end_;
};

}  // namespace

std::shared_ptr<const OpenClProgram> make_gemm(const codegen::Kernel& kernel, Core& core, std::string& refusal) {
  if (kernel.op->name != "matmul") return nullptr;
  const DType t = kernel.in[0].dtype;
  const codegen::Layout& out = kernel.epilogue ? kernel.epilogue->product : kernel.out[0];
  if (!is_float(t) || kernel.in[1].dtype != t || (out.dtype != t && out.dtype != DType::F32)) {
    refusal = cat(name(t), " x ", name(kernel.in[1].dtype), " to ", name(out.dtype),
                  ": operands must be floats of one type, and so must the result, or float32");
    return nullptr;
  }
  if (t == DType::F64 && !core.has_double) {
    refusal = "the device has no double (cl_khr_fp64)";
    return nullptr;
  }
  const Product p = codegen::take_apart(kernel);
  if (p.m == 0 || p.n == 0 || p.batches == 0 || p.work() < kTinyWork || p.m == 1 || p.n == 1) {
    refusal = cat("[", p.m, ",", p.k, "] x [", p.k, ",", p.n, "] is too small, or a vector's");
    return nullptr;
  }
  if (p.batch.size() > kBatchAxes) {
    refusal = cat(p.batch.size(), " batch axes, more than ", kBatchAxes);
    return nullptr;
  }
  const auto local = static_cast<int64_t>(2 * kDepth * (kTile + 1) * std::max(size_of(t), sizeof(float))),
             items = static_cast<int64_t>(kTileItems * kTileItems);
  if (!core.target.is_cpu && (core.target.most_group_items < items || core.target.local_bytes < local)) {
    refusal = cat("groups of ", items, " items with ", local, " bytes of local memory; the device has ", core.target.most_group_items,
                  " and ", core.target.local_bytes);
    return nullptr;
  }
  return std::make_shared<GemmProgram>(kernel, core, p, t, out.dtype);
}

}  // namespace tandem::opencl
