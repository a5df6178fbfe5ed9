// Products of matrices of floats; 16-bit ones are summed in float32. On GPUs, a group computes 64 x 64 elements from tiles in local memory;
// on CPUs, an item computes 4 x 16 of them in vector registers. Each element is summed from the first product to the last with fused
// multiply-adds, so both give the same bits, whatever the sizes.
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
constexpr size_t kRows = 4, kColumns = 16;                  // of an item on a CPU
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

// $Y: sixteen neighbours of a row of y.
constexpr std::string_view kVectors = R"(
  const long row0 = get_global_id(1) * 4L, column0 = get_global_id(0) * 16L;
  if (row0 + 4 <= m && column0 + 16 <= n) {
    __global const $M* x0 = x + row0 * x_row;
    __global const $M* y0 = y + column0 * y_column;
    $T16 s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (long d = 0; d < k; ++d) {
      __global const $M* at = y0 + d * y_row;
      const $T16 v = $Y;
      __global const $M* from = x0 + d * x_column;
      s0 = fma(($T16)LOAD(from[0]), v, s0);
      s1 = fma(($T16)LOAD(from[x_row]), v, s1);
      s2 = fma(($T16)LOAD(from[2 * x_row]), v, s2);
      s3 = fma(($T16)LOAD(from[3 * x_row]), v, s3);
    }
    $T sums[4 * 16];
    vstore16(s0, 0, sums);
    vstore16(s1, 1, sums);
    vstore16(s2, 2, sums);
    vstore16(s3, 3, sums);
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 16; ++j) out[(row0 + i) * n + column0 + j] = STORE(sums[i * 16 + j]);
  } else {
    for (long r = row0; r < row0 + 4 && r < m; ++r)
      for (long c = column0; c < column0 + 16 && c < n; ++c) {
        $T sum = 0;
        for (long d = 0; d < k; ++d) sum = fma(LOAD(x[r * x_row + d * x_column]), LOAD(y[d * y_row + c * y_column]), sum);
        out[r * n + c] = STORE(sum);
      }
  }
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
  std::string row = "vload16(0, at)";
  if (p.y.column_step != 1 || is_small(in)) {
    row = "($T16)(LOAD(at[0])";
    for (size_t i = 1; i < kColumns; ++i) row += cat(", LOAD(at[", i, " * y_column])");
    row += ")";
  }
  text = filled(text, "$Y", row);
  text = filled(text, "$M", codegen::CValues::memory_type(*core.dialect, in));
  text = filled(text, "$O", codegen::CValues::memory_type(*core.dialect, out));
  return filled(text, "$T", is_double ? "double" : "float");
}

class GemmProgram final : public OpenClProgram {
 public:
  GemmProgram(const codegen::Kernel& kernel, const Core& core, const Product& p, DType in, DType out)
      : p_(p), inputs_(kernel.in.size()), is_cpu_(core.target.is_cpu) {
    code_ = core.codes->get(core, source_of(p, in, out, core), kernel.op->name);
    if (!kernel.end) return;
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
  const codegen::Operand& out = kernel.end ? kernel.end->product : kernel.out[0];
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
