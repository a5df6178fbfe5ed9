// sort, argsort, top_k and searchsorted. Elements are compared as unsigned keys, NaN behind all numbers and both zeros equal, and equal
// ones by their positions, so every way to sort gives the same. On GPUs lines are sorted by bitonic networks (Batcher 1968), in local
// memory as far as they fit; on CPUs an item merges a line.
#include <algorithm>
#include <bit>

#include "base/text.hpp"
#include "ops/host.hpp"
#include "pieces.hpp"

namespace tandem::opencl {
namespace {

constexpr int64_t kBlock = 512;          // elements that a group sorts in local memory
constexpr int64_t kMostItemsOnCpu = 64;  // that take lines in turns, each with scratch memory for one
constexpr int64_t kFewLargest = 64;      // so many are kept in order while an item walks the line

// $U: unsigned, of an element's bytes; $K: of a key.
constexpr std::string_view kKey = R"(
$K key_of(const $U bits) {
$KEY
}
)";

// Element i of a line is at (line / inner * n * inner + line % inner) + i * inner.
constexpr std::string_view kArguments = R"(
__kernel void tandem_kernel(__global const uchar* x_memory, const ulong x_offset, __global uchar* values_memory, const ulong values_offset,
    __global uchar* positions_memory, const ulong positions_offset, __global uchar* keys_memory, const ulong keys_offset,
    __global uchar* spare_memory, const ulong spare_offset, const long lines, const long n, const long inner, const long k,
    const long padded, const long step, const long stage) {
  __global const $U* x = (__global const $U*)(x_memory + x_offset);
  __global $U* values = (__global $U*)(values_memory + values_offset);
  __global int* positions = (__global int*)(positions_memory + positions_offset);
)";

// Result number i of a line, from position p.
constexpr std::string_view kStore = R"(
    const long to = line / inner * k * inner + line % inner + i * inner;
    $STORE
)";

constexpr std::string_view kMerge = R"(
  __global int* a0 = (__global int*)(spare_memory + spare_offset) + get_group_id(0) * 2 * n;
  for (long line = get_group_id(0); line < lines; line += get_num_groups(0)) {
    __global const $U* from = x + (line / inner * n * inner + line % inner);
    __global int* a = a0;
    __global int* b = a0 + n;
    if (k <= $FEW && k * 4 < n) {
      long have = 0;
      for (long i = 0; i < n; ++i) {
        const $K key = key_of(from[i * inner]);
        if (have == k && (k == 0 || !(key < key_of(from[a[k - 1] * inner])))) continue;
        long at = have < k ? have++ : k - 1;
        for (; at > 0 && key < key_of(from[a[at - 1] * inner]); --at) a[at] = a[at - 1];
        a[at] = (int)i;
      }
    } else {
      for (long i = 0; i < n; ++i) {  // runs of 8
        const $K key = key_of(from[i * inner]);
        const long first = i / 8 * 8;
        long at = i;
        for (; at > first && key < key_of(from[a[at - 1] * inner]); --at) a[at] = a[at - 1];
        a[at] = (int)i;
      }
      for (long width = 8; width < n; width *= 2) {
        for (long first = 0; first < n; first += 2 * width) {
          const long middle = first + width < n ? first + width : n, end = middle + width < n ? middle + width : n;
          long l = first, r = middle;
          for (long to = first; to < end; ++to)
            b[to] = r >= end || (l < middle && !(key_of(from[a[r] * inner]) < key_of(from[a[l] * inner]))) ? a[l++] : a[r++];
        }
        __global int* other = a;
        a = b;
        b = other;
      }
    }
    for (long i = 0; i < k; ++i) {
      const int p = a[i];
$RESULT    }
  }
}
)";

// Keys and positions of each line in global memory, filled up to a power of two with what sorts last.
constexpr std::string_view kPairs = R"(
  __global $K* keys = (__global $K*)(keys_memory + keys_offset);
  __global int* places = (__global int*)(spare_memory + spare_offset);
)";
constexpr std::string_view kLess = "(ka < kb || (ka == kb && pa < pb))";

// A group brings $B neighbours into local memory, sorts them in the direction that the network wants there (stage 0), or does the last
// steps of a stage, and brings them back.
constexpr std::string_view kLocal = R"(
  __local $K lk[$B];
  __local int lp[$B];
  const int item = get_local_id(0);
  const long first = get_group_id(0) * (long)$B, line = first / padded, at = first % padded;
  for (int e = item; e < $B; e += $G) {
    if (stage == 0) {
      const long i = at + e;
      lk[e] = i < n ? key_of(x[line / inner * n * inner + line % inner + i * inner]) : ($K)~($K)0;
      lp[e] = (int)i;
    } else {
      lk[e] = keys[first + e];
      lp[e] = places[first + e];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (long size = stage == 0 ? 2 : stage; size <= (stage == 0 ? $B : stage); size *= 2) {
    for (long gap = (size < $B ? size : $B) / 2; gap > 0; gap /= 2) {
      for (int e = item; e < $B / 2; e += $G) {
        const int a = (int)(e / gap * gap * 2 + e % gap), b = a + (int)gap;
        const $K ka = lk[a], kb = lk[b];
        const int pa = lp[a], pb = lp[b];
        const bool up = ((at + a) & size) == 0;
        if ($LESS != up) {
          lk[a] = kb;
          lk[b] = ka;
          lp[a] = pb;
          lp[b] = pa;
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
  for (int e = item; e < $B; e += $G) {
    keys[first + e] = lk[e];
    places[first + e] = lp[e];
  }
}
)";
constexpr std::string_view kGlobal = R"(
  const long e = get_global_id(0), line = e / (padded / 2), within = e % (padded / 2);
  if (line >= lines) return;
  const long a = within / step * step * 2 + within % step, at = line * padded + a;
  const $K ka = keys[at], kb = keys[at + step];
  const int pa = places[at], pb = places[at + step];
  if ($LESS == ((a & stage) == 0)) return;
  keys[at] = kb;
  keys[at + step] = ka;
  places[at] = pb;
  places[at + step] = pa;
}
)";
constexpr std::string_view kGive = R"(
  const long e = get_global_id(0), line = e / k, i = e % k;
  if (line < lines) {
    __global const $U* from = x + (line / inner * n * inner + line % inner);
    const int p = places[line * padded + i];
$RESULT  }
}
)";

constexpr std::string_view kSearch = R"(
__kernel void tandem_kernel(__global const uchar* sorted_memory, const ulong sorted_offset, __global const uchar* values_memory,
    const ulong values_offset, __global uchar* out_memory, const ulong out_offset, const long count, const long a_row, const long n) {
  const long e = get_global_id(0);
  if (e >= count) return;
  __global const $U* row = (__global const $U*)(sorted_memory + sorted_offset) + e / a_row * n;
  const $K key = key_of(((__global const $U*)(values_memory + values_offset))[e]);
  long first = 0, last = n;
  while (first < last) {
    const long middle = first + (last - first) / 2;
    if (key_of(row[middle]) $BEFORE key)
      first = middle + 1;
    else
      last = middle;
  }
  ((__global int*)(out_memory + out_offset))[e] = (int)first;
}
)";

std::string with_keys(std::string text, DType t, bool descending) {
  const size_t bits = size_of(t) * 8;
  const auto number = [](uint64_t v) { return cat(v, "UL"); };
  std::string key;
  if (is_float(t)) {
    const uint64_t sign = uint64_t{1} << (bits - 1), infinity = t == DType::F16    ? 0x7c00
                                                                : t == DType::BF16 ? 0x7f80
                                                                : t == DType::F32  ? 0x7f800000
                                                                                   : 0x7ff0000000000000;
    key = cat("  const $K b = bits, size = b & ($K)", number(sign - 1), ";\n  $K key = b & ($K)", number(sign), " ? ($K)($U)~b : b | ($K)",
              number(sign), ";\n  if (size == 0) key = ($K)", number(sign), ";\n  if (size > ($K)", number(infinity),
              ") key = ($K)($U)~($U)0;\n");
  } else if (is_signed(t)) {
    key = cat("  $K key = ($K)bits ^ ($K)", number(uint64_t{1} << (bits - 1)), ";\n");
  } else {
    key = "  $K key = bits;\n";
  }
  // ~ within the element's bits, so that what fills lines up stays last.
  key += descending ? "  return ($K)($U)~key;" : "  return key;";
  text = filled(cat(kKey, text), "$KEY", key);
  text = filled(text, "$LESS", kLess);
  text = filled(text, "$U", bits_type(t));
  return filled(text, "$K", size_of(t) == 8 ? "ulong" : "uint");
}

class SortProgram final : public OpenClProgram {
 public:
  SortProgram(const codegen::Kernel& k, const Core& core) : in_(k.in[0], core, scratch_, k.op->name), is_cpu_(core.target.is_cpu) {
    const std::string_view what = k.op->name;
    const DType t = k.in[0].dtype;
    const Shape& x = k.in[0].shape;
    const bool is_top = what == "top_k";
    const ops::Lines lines(x, is_top ? x.rank() - 1 : normalize_axis(k.attrs.get<int64_t>("axis"), x.rank(), what));
    lines_ = lines.count();
    n_ = lines.length;
    inner_ = lines.inner;
    k_ = is_top ? k.out[0].shape.back() : n_;
    if (k_ > n_) user_error("top_k: k is ", k_, ", the last axis of ", x, " has only ", n_, " elements");
    if (n_ > INT32_MAX) user_error(what, ": positions are int32, and ", n_, " elements are more than 2147483647");
    const bool descending = is_top || k.attrs.get<bool>("descending");
    gives_values_ = what != "argsort";
    gives_positions_ = what != "sort";
    const std::string store = cat(gives_values_ ? "values[to] = from[p * inner];" : "", gives_positions_ ? " positions[to] = p;" : "");
    const std::string result = filled(std::string(kStore), "$STORE", store);
    const auto code = [&](std::string_view body) {
      std::string text = with_keys(filled(cat(kArguments, body), "$RESULT", result), t, descending);
      text = filled(text, "$B", cat(kBlock));
      text = filled(text, "$FEW", cat(kFewLargest));
      return core.codes->get(core, filled(text, "$G", cat(block_items(core))), what);
    };
    if (is_cpu_) {
      merge_ = code(kMerge);
      spare_ = scratch_.take(static_cast<size_t>(std::min(lines_, kMostItemsOnCpu) * 2 * n_) * sizeof(int32_t));
      return;
    }
    items_ = block_items(core);
    padded_ = std::max<int64_t>(kBlock, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n_))));
    local_ = code(cat(kPairs, kLocal));
    if (padded_ > kBlock) global_ = code(cat(kPairs, kGlobal));
    give_ = code(cat(kPairs, kGive));
    keys_ = scratch_.take(static_cast<size_t>(lines_ * padded_) * (size_of(t) == 8 ? 8 : 4));
    spare_ = scratch_.take(static_cast<size_t>(lines_ * padded_) * sizeof(int32_t));
  }
  std::string_view kernel_name() const override { return is_cpu_ ? "order/merge" : "order/bitonic"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }

  void enqueue(const Core& core, cl_command_queue queue, const device::LaunchArgs& args) const override {
    if (lines_ == 0 || k_ == 0) return;
    const void* x = in_.enqueue(core, queue, args, 0);
    if (is_cpu_) return launch(core, queue, args, *merge_, x, 0, 0, std::min(lines_, kMostItemsOnCpu), 1);
    const int64_t blocks = lines_ * padded_ / kBlock;
    launch(core, queue, args, *local_, x, 0, 0, blocks, items_);
    for (int64_t stage = 2 * kBlock; stage <= padded_; stage *= 2) {
      for (int64_t step = stage / 2; step >= kBlock; step /= 2)
        launch(core, queue, args, *global_, x, step, stage, lines_ * padded_ / 2 / items_, items_);
      launch(core, queue, args, *local_, x, 0, stage, blocks, items_);
    }
    launch(core, queue, args, *give_, x, 0, 0, (lines_ * k_ + items_ - 1) / items_, items_);
  }

 private:
  static int64_t block_items(const Core& core) {
    return std::min(kBlock / 2, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(core.target.most_group_items))));
  }
  void launch(const Core& core, cl_command_queue queue, const device::LaunchArgs& args, const Code& code, const void* x, int64_t step,
              int64_t stage, int64_t groups, int64_t items) const {
    const void* values = args.pointers[1];
    const void* positions = args.pointers[gives_values_ && gives_positions_ ? 2 : 1];
    Launch launch(core, code);
    launch.memory(x);
    launch.memory(values);
    launch.memory(positions);
    launch.memory(piece(args, keys_));
    launch.memory(piece(args, spare_));
    for (const int64_t v : {lines_, n_, inner_, k_, padded_, step, stage}) launch.number(v);
    const auto all = static_cast<size_t>(groups), each = static_cast<size_t>(items);
    launch.run(queue, {&all, 1}, {&each, 1});
  }

  ScratchLayout scratch_;
  DenseOperand in_;
  bool is_cpu_, gives_values_ = false, gives_positions_ = false;
  int64_t lines_ = 0, n_ = 0, inner_ = 1, k_ = 0, padded_ = 1, items_ = 1;
  size_t keys_ = 0, spare_ = 0;
  std::shared_ptr<const Code> merge_, local_, global_, give_;
};

class SearchProgram final : public OpenClProgram {
 public:
  SearchProgram(const codegen::Kernel& k, const Core& core)
      : sorted_(k.in[0], core, scratch_, k.op->name), values_(k.in[1], core, scratch_, k.op->name), count_(element_count(k.in[1].shape)) {
    const Shape &sorted = k.in[0].shape, &values = k.in[1].shape;
    n_ = sorted.back();
    if (n_ > INT32_MAX) user_error(k.op->name, ": positions are int32, and ", n_, " elements are more than 2147483647");
    a_row_ = std::max<int64_t>(1, sorted.rank() == 1 ? count_ : values.back());
    items_ = core.target.is_cpu ? 16 : std::min<int64_t>(256, core.target.most_group_items);
    const std::string text = filled(std::string(kSearch), "$BEFORE", k.attrs.get<bool>("right") ? "<=" : "<");
    code_ = core.codes->get(core, with_keys(text, k.in[0].dtype, false), k.op->name);
  }
  std::string_view kernel_name() const override { return "order/search"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  void enqueue(const Core& core, cl_command_queue queue, const device::LaunchArgs& args) const override {
    if (count_ == 0) return;
    const void* values = values_.enqueue(core, queue, args, 1);
    const void* sorted = n_ == 0 ? values : sorted_.enqueue(core, queue, args, 0);  // nothing has no memory
    Launch launch(core, *code_);
    for (const void* p : {sorted, values, static_cast<const void*>(args.pointers[2])}) launch.memory(p);
    for (const int64_t v : {count_, a_row_, n_}) launch.number(v);
    const auto groups = static_cast<size_t>((count_ + items_ - 1) / items_), items = static_cast<size_t>(items_);
    launch.run(queue, {&groups, 1}, {&items, 1});
  }

 private:
  ScratchLayout scratch_;
  DenseOperand sorted_, values_;
  int64_t count_, a_row_ = 1, n_ = 0, items_ = 1;
  std::shared_ptr<const Code> code_;
};

}  // namespace

std::shared_ptr<const OpenClProgram> make_order(const codegen::Kernel& kernel, Core& core, std::string& refusal) {
  const std::string_view op = kernel.op->name;
  if (op == "searchsorted") return std::make_shared<SearchProgram>(kernel, core);
  if (op != "sort" && op != "argsort" && op != "top_k") return nullptr;
  const int64_t bytes = kBlock * 12;
  if (!core.target.is_cpu && core.target.local_bytes < bytes) {
    refusal = cat("groups need ", bytes, " bytes of local memory, the device has ", core.target.local_bytes);
    return nullptr;
  }
  return std::make_shared<SortProgram>(kernel, core);
}

}  // namespace tandem::opencl
