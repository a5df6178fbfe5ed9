// scatter and put_along_axis: elements set, added … at places that are data. Updates meet a place in their own order, whatever the number
// of items: an item has places of its own and walks all updates, so the bits are the CPU's.
#include <algorithm>
#include <bit>

#include "base/text.hpp"
#include "index_check.hpp"
#include "ops/host.hpp"

namespace tandem::opencl {
namespace {

constexpr int64_t kEnoughItems = 1 << 13;  // on a GPU; then each line is one item's
constexpr int64_t kMostParts = 256;        // that share the places of one line
constexpr size_t kGroup = 64;
constexpr int64_t kColumns = 256;  // of a slice, that an item on a CPU takes at once

// Both rows are lines of places, [outer, to, inner], and of updates, [outer, from, inner]; a scatter has one place for all lines of an
// update. `places`: which one, -1 for none.
constexpr std::string_view kBegin = R"(#pragma OPENCL FP_CONTRACT OFF
$E__kernel void tandem_kernel(__global const uchar* places_memory, const ulong places_offset, __global const uchar* updates_memory,
    const ulong updates_offset, __global uchar* out_memory, const ulong out_offset, const long outer, const long from, const long to,
    const long inner, const long parts) {
  __global const long* places = (__global const long*)(places_memory + places_offset);
  __global const $M* updates = (__global const $M*)(updates_memory + updates_offset);
  __global $T* out = (__global $T*)(out_memory + out_offset);
)";
constexpr std::string_view kGroups = R"(
  const long line = get_global_id(0), part = get_global_id(1);
  if (line >= outer * inner) return;
  const long o = line / inner, i = line % inner;
  for (long j = 0; j < from; ++j) {
    const long place = places[$AT];
    if (place < 0 || (place & (parts - 1)) != part) continue;
    const $T a = out[(o * to + place) * inner + i], b = LOAD(updates[(o * from + j) * inner + i]);
    out[(o * to + place) * inner + i] = $C;
  }
}
)";
constexpr std::string_view kSlices = R"(
  const long first = get_global_id(0) * (long)$COLUMNS, last = first + $COLUMNS < inner ? first + $COLUMNS : inner;
  for (long j = 0; j < from; ++j) {
    const long place = places[j];
    if (place < 0) continue;
    for (long i = first; i < last; ++i) {
      const $T a = out[place * inner + i], b = LOAD(updates[j * inner + i]);
      out[place * inner + i] = $C;
    }
  }
}
)";

std::string combination(std::string_view mode, DType t) {
  const std::string type(codegen::opencl_dialect(true).types[static_cast<size_t>(t)]);
  if (mode == "set") return "b";
  if (mode == "max") return "a != a ? a : b > a || b != b ? b : a";
  if (mode == "min") return "a != a ? a : b < a || b != b ? b : a";
  const bool is_sum = mode == "add";
  if (t == DType::Bool) return is_sum ? "a || b" : "a && b";
  if (is_float(t)) return is_sum ? "a + b" : "a * b";
  return cat("(", type, ")((ulong)a ", is_sum ? "+" : "*", " (ulong)b)");  // wraps
}

class PutProgram final : public OpenClProgram {
 public:
  PutProgram(const codegen::Kernel& k, const Core& core)
      : inputs_{k.in[0], k.in[1], k.in[2]}, is_cpu_(core.target.is_cpu), is_scatter_(k.op->name == "scatter") {
    const DType t = k.in[0].dtype;
    const bool is_small = t == DType::F16 || t == DType::BF16;
    wide_ = is_small ? DType::F32 : t;  // long sums round once
    sizes(k);
    const std::string_view what = k.op->name;
    indices_.emplace(k.in[1], core, scratch_, what);
    updates_.emplace(k.in[2], core, scratch_, what);
    is_replaceable_ = k.op->has(ir::kOverwrites) && k.in[0].is_dense() && !is_small;
    begin_.emplace(k.in[0], wide_, core, what);
    if (is_small) {
      sums_offset_ = scratch_.take(static_cast<size_t>(element_count(k.in[0].shape)) * size_of(wide_));
      end_.emplace(codegen::Layout::dense(wide_, k.in[0].shape), t, core, what);
    }
    places_offset_ = scratch_.take(static_cast<size_t>(is_scatter_ ? from_ : outer_ * from_ * inner_) * sizeof(int64_t));
    make_check(k, core);

    codegen::CHelpers helpers(*core.dialect);
    const std::string load = is_small ? helpers.from_bits(t) : "";
    is_slices_ = is_cpu_ && is_scatter_;
    std::string text = cat(kBegin, is_slices_ ? kSlices : kGroups);
    text = filled(
        text, "$E",
        cat(t == DType::F64 ? core.dialect->double_preamble : std::string_view(), helpers.text(), "#define LOAD(v) ", load, "(v)\n"));
    text = filled(text, "$COLUMNS", cat(kColumns));
    text = filled(text, "$AT", is_scatter_ ? "j" : "(o * from + j) * inner + i");
    text = filled(text, "$C", combination(k.attrs.get<std::string>("mode"), wide_));
    text = filled(text, "$M", codegen::CValues::memory_type(*core.dialect, t));
    text = filled(text, "$T", core.dialect->types[static_cast<size_t>(wide_)]);
    code_ = core.codes->get(core, text, what);
  }
  std::string_view kernel_name() const override { return is_slices_ ? "put/slices" : "put/places"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  bool is_replaceable(size_t input) const override { return input == 0 && is_replaceable_; }

  void enqueue(const Core& core, cl_command_queue queue, const device::LaunchArgs& args) const override {
    void* out = args.pointers[inputs_.size()];
    if (element_count(inputs_[0].shape) == 0) return check_only(core, queue, args);
    void* sums = end_ ? piece(args, sums_offset_) : out;
    begin_->enqueue(core, queue, args.pointers[0], sums);
    put(core, queue, args, sums);
    if (end_) end_->enqueue(core, queue, sums, out);
  }

 private:
  void sizes(const codegen::Kernel& k) {
    const Shape &x = k.in[0].shape, &indices = k.in[1].shape;
    if (is_scatter_) {
      depth_ = indices.back();
      from_ = 1;
      for (size_t i = 0; i + 1 < indices.size(); ++i) from_ *= indices[i];
      to_ = 1;
      for (size_t i = 0; i < x.size(); ++i) (static_cast<int64_t>(i) < depth_ ? to_ : inner_) *= x[i];
      return;
    }
    const int axis = normalize_axis(k.attrs.get<int64_t>("axis"), x.rank(), k.op->name);
    const ops::Lines to(x, axis), from(indices, axis);
    outer_ = from.outer;
    inner_ = from.inner;
    from_ = from.length;
    to_ = to.length;
  }

  void make_check(const codegen::Kernel& k, const Core& core) {
    const std::string name(k.op->name);
    const Shape &x = k.in[0].shape, &indices = k.in[1].shape;
    if (is_scatter_) {
      std::vector<int64_t> limits;
      Shape tuples;
      for (int64_t i = 0; i < depth_; ++i) limits.push_back(x[static_cast<size_t>(i)]);
      for (size_t i = 0; i + 1 < indices.size(); ++i) tuples.push_back(indices[i]);
      check_.emplace(k.in[1].dtype, from_, limits, IndexCheck::Gives::Rows, core, name,
                     [=, depth = depth_](int64_t position, int64_t index) {
                       const int64_t axis = position % depth;
                       ops::index_out_of_range(name, index, axis, limits[static_cast<size_t>(axis)], tuples, position / depth);
                     });
      return;
    }
    const int axis = normalize_axis(k.attrs.get<int64_t>("axis"), x.rank(), k.op->name);
    check_.emplace(k.in[1].dtype, element_count(indices), std::vector<int64_t>{to_}, IndexCheck::Gives::Places, core, name,
                   [name, axis, size = to_, indices](int64_t position, int64_t index) {
                     ops::index_out_of_range(name, index, axis, size, indices, position);
                   });
  }

  void check_only(const Core& core, cl_command_queue queue, const device::LaunchArgs& args) const {
    if (element_count(inputs_[1].shape) == 0) return;
    check_->enqueue(core, queue, indices_->enqueue(core, queue, args, 1), piece(args, places_offset_));
  }

  void put(const Core& core, cl_command_queue queue, const device::LaunchArgs& args, const void* sums) const {
    if (element_count(inputs_[2].shape) == 0) return check_only(core, queue, args);
    const void* places = piece(args, places_offset_);
    check_->enqueue(core, queue, depth_ == 0 ? places : indices_->enqueue(core, queue, args, 1), places);
    const void* updates = updates_->enqueue(core, queue, args, 2);
    const int64_t lines = outer_ * inner_;
    // A power of two: the parts of a line.
    int64_t parts = 1;
    if (!is_cpu_)
      while (parts < kMostParts && parts < to_ && lines * parts < kEnoughItems) parts *= 2;
    Launch launch(core, *code_);
    launch.memory(places);
    launch.memory(updates);
    launch.memory(sums);
    for (const int64_t v : {outer_, from_, to_, inner_, parts}) launch.number(v);
    if (is_slices_) {
      const size_t groups = static_cast<size_t>((inner_ + kColumns - 1) / kColumns), items = 1;
      return launch.run(queue, {&groups, 1}, {&items, 1});
    }
    const size_t across = std::min(is_cpu_ ? size_t{1} : kGroup, std::bit_ceil(static_cast<size_t>(lines)));
    const size_t along = std::min(is_cpu_ ? size_t{1} : kGroup / across, static_cast<size_t>(parts));
    const std::array<size_t, 2> groups{(static_cast<size_t>(lines) + across - 1) / across, static_cast<size_t>(parts) / along},
        items{across, along};
    launch.run(queue, groups, items);
  }

  std::array<codegen::Layout, 3> inputs_;
  bool is_cpu_, is_scatter_, is_slices_ = false, is_replaceable_ = false;
  DType wide_ = DType::F32;
  int64_t outer_ = 1, from_ = 1, to_ = 1, inner_ = 1, depth_ = 1;
  ScratchLayout scratch_;
  std::optional<DenseOperand> indices_, updates_;
  std::optional<Conversion> begin_, end_;
  size_t sums_offset_ = 0, places_offset_ = 0;
  std::optional<IndexCheck> check_;
  std::shared_ptr<const Code> code_;
};

}  // namespace

std::shared_ptr<const OpenClProgram> make_put(const codegen::Kernel& kernel, Core& core, std::string& refusal) {
  if (kernel.op->name != "scatter" && kernel.op->name != "put_along_axis") return nullptr;
  if (kernel.in[0].dtype == DType::F64 && !core.has_double) {
    refusal = "the device has no double (cl_khr_fp64)";
    return nullptr;
  }
  return std::make_shared<PutProgram>(kernel, core);
}

}  // namespace tandem::opencl
