// check_range and check_classes: numbers that must lie in a range before others use them.
#include <algorithm>

#include "base/text.hpp"
#include "index_check.hpp"
#include "ops/classes.hpp"

namespace tandem::opencl {
namespace {

constexpr size_t kMostCheckingItems = 256;

constexpr std::string_view kIndices = R"(#pragma OPENCL FP_CONTRACT OFF
__kernel void tandem_kernel(__global const uchar* in_memory, const ulong in_offset, __global uchar* out_memory, const ulong out_offset,
    __global long* record, const long me, const long tuples$SIZES) {
  __global const $I* in = (__global const $I*)(in_memory + in_offset);
  __global $O* out = (__global $O*)(out_memory + out_offset);
  const long count = tuples * $D;
  const int item = get_local_id(0);
  long bad = count;
  for (long n = item; n < tuples; n += $G) {
    long row = 0;
    bool is_good = true;
$TUPLE  }
$RECORD}
)";

constexpr std::string_view kClasses = R"(#pragma OPENCL FP_CONTRACT OFF
$E__kernel void tandem_kernel(__global const uchar* in_memory, const ulong in_offset, __global uchar* out_memory, const ulong out_offset,
    __global long* record, const long me, const long count, const long classes) {
  __global const $B* in = (__global const $B*)(in_memory + in_offset);
  __global $B* out = (__global $B*)(out_memory + out_offset);
  const int item = get_local_id(0);
  long bad = count;
  for (long n = item; n < count; n += $G) {
    const $B bits = in[n];
    const $T v = $LOAD(bits);
    if (!($GOOD) && n < bad) bad = n;
    out[n] = bits;
  }
$RECORD}
)";

class IndexProgram final : public OpenClProgram {
 public:
  IndexProgram(const codegen::Kernel& k, const Core& core, const std::vector<int64_t>& sizes)
      : in_(k.in[0], core, scratch_, k.op->name),
        check_(k.in[0].dtype, element_count(k.in[0].shape) / static_cast<int64_t>(sizes.size()), sizes, IndexCheck::Gives::Indices, core,
               k.op->name,
               [op = k.attrs.get<std::string>("op"), axis = k.attrs.get<int64_t>("axis"), sizes, shape = k.in[0].shape](int64_t position,
                                                                                                                        int64_t index) {
                 const int64_t which = position % static_cast<int64_t>(sizes.size());
                 ops::index_out_of_range(op, index, axis + which, sizes[static_cast<size_t>(which)], shape, position);
               }) {}
  std::string_view kernel_name() const override { return "check/indices"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  void enqueue(const Core& core, cl_command_queue queue, const device::LaunchArgs& args) const override {
    check_.enqueue(core, queue, in_.enqueue(core, queue, args, 0), args.pointers[1]);
  }

 private:
  ScratchLayout scratch_;
  DenseOperand in_;
  IndexCheck check_;
};

class ClassProgram final : public OpenClProgram {
 public:
  ClassProgram(const codegen::Kernel& k, const Core& core)
      : in_(k.in[0], core, scratch_, k.op->name),
        count_(element_count(k.in[0].shape)),
        classes_(k.attrs.get<Dims>("classes")[0].value()),
        group_items_(checking_items(core)) {
    const DType t = k.in[0].dtype;
    codegen::CHelpers helpers(*core.dialect);
    const bool is_small = t == DType::F16 || t == DType::BF16;
    const std::string load = is_small ? helpers.from_bits(t) : "";
    std::string value(core.dialect->types[static_cast<size_t>(t)]), good, from_bits = load;
    if (is_float(t)) {
      if (!is_small) from_bits = cat("as_", value);
      good = cat("v >= 0 && v < (", value, ")classes && v == floor(v)");
    } else {
      from_bits = cat("(", value, ")");
      good = cat("(ulong)", is_signed(t) ? "(long)" : "", "v < (ulong)classes");
    }
    for (const int64_t c : k.attrs.get<std::vector<int64_t>>("ignored"))
      good += is_float(t) ? cat(" || v == (", value, ")(", c, "L)") : cat(" || (long)v == ", c, "L");
    std::string text = filled(std::string(kClasses), "$RECORD", recording(group_items_, "(long)in[bad]"));
    text = filled(text, "$E", cat(t == DType::F64 ? core.dialect->double_preamble : std::string_view(), helpers.text()));
    text = filled(text, "$GOOD", good);
    text = filled(text, "$LOAD", from_bits);
    text = filled(text, "$B", bits_type(t));
    text = filled(text, "$T", value);
    text = filled(text, "$G", cat(group_items_));
    code_ = core.codes->get(core, text, k.op->name);
    complaint_ = std::make_shared<Complaint>(
        [op = k.attrs.get<std::string>("op"), shape = k.in[0].shape, t, classes = classes_](int64_t position, int64_t bits) {
          user_error(op, ": the target at ", ops::position_of(shape, position), " is ", ops::label_text(&bits, t, 0), ", there are ",
                     classes, " classes, 0 to ", classes - 1);
        });
  }
  std::string_view kernel_name() const override { return "check/classes"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  void enqueue(const Core& core, cl_command_queue queue, const device::LaunchArgs& args) const override {
    if (count_ == 0) return;
    const void* in = in_.enqueue(core, queue, args, 0);
    Launch launch(core, *code_);
    launch.memory(in);
    launch.memory(args.pointers[1]);
    launch.buffer(core.failures->memory());
    launch.number(core.failures->expect(complaint_));
    launch.number(count_);
    launch.number(classes_);
    const size_t one = 1;
    launch.run(queue, {&one, 1}, {&group_items_, 1});
  }

 private:
  ScratchLayout scratch_;
  DenseOperand in_;
  int64_t count_, classes_;
  size_t group_items_;
  std::shared_ptr<const Code> code_;
  std::shared_ptr<const Complaint> complaint_;
};

}  // namespace

size_t checking_items(const Core& core) {
  return core.target.is_cpu ? 1 : std::min(kMostCheckingItems, static_cast<size_t>(core.target.most_group_items));
}

std::string recording(size_t items, std::string_view element) {
  std::string text;
  if (items > 1)
    text = cat("  __local long least[", items,
               "];\n  least[item] = bad;\n  barrier(CLK_LOCAL_MEM_FENCE);\n  if (item == 0)\n    for (int i = 1; i < ", items,
               "; ++i) bad = least[i] < bad ? least[i] : bad;\n");
  return cat(text, "  if (item == 0 && bad < count && record[0] == 0) {\n    record[1] = bad;\n    record[2] = ", element,
             ";\n    record[0] = me;\n  }\n");
}

IndexCheck::IndexCheck(DType indices, int64_t tuples, std::vector<int64_t> sizes, Gives gives, const Core& core, std::string_view what,
                       Complaint complaint)
    : sizes_(std::move(sizes)),
      tuples_(tuples),
      group_items_(checking_items(core)),
      complaint_(std::make_shared<Complaint>(std::move(complaint))) {
  const size_t depth = sizes_.size();
  std::string size_arguments, tuple;
  for (size_t k = 0; k < depth; ++k) {
    size_arguments += cat(", const long s", k);
    tuple += cat("    {\n      const long v = in[n * ", depth, " + ", k, "], i = v < 0 ? v + s", k,
                 " : v;\n      const bool fits = i >= 0 && i < s", k, ";\n      if (!fits && n * ", depth, " + ", k, " < bad) bad = n * ",
                 depth, " + ", k, ";\n");
    if (gives == Gives::Rows)
      tuple += cat("      is_good = is_good && fits;\n      row = row * s", k, " + i;\n");
    else
      tuple += cat("      out[n * ", depth, " + ", k, "] = fits ? i : ", gives == Gives::Places ? "-1" : "0", ";\n");
    tuple += "    }\n";
  }
  if (gives == Gives::Rows) tuple += "    out[n] = is_good ? row : -1;\n";
  const std::string_view type = codegen::CValues::memory_type(*core.dialect, indices);
  std::string text = filled(std::string(kIndices), "$RECORD", recording(group_items_, "in[bad]"));
  text = filled(text, "$SIZES", size_arguments);
  text = filled(text, "$TUPLE", tuple);
  text = filled(text, "$D", cat(depth));
  text = filled(text, "$G", cat(group_items_));
  text = filled(text, "$I", type);
  text = filled(text, "$O", gives == Gives::Indices ? type : std::string_view("long"));
  code_ = core.codes->get(core, text, what);
}

void IndexCheck::enqueue(const Core& core, cl_command_queue queue, const void* indices, const void* out) const {
  if (tuples_ == 0) return;
  Launch launch(core, *code_);
  launch.memory(sizes_.empty() ? out : indices);  // tuples of nothing have no memory
  launch.memory(out);
  launch.buffer(core.failures->memory());
  launch.number(core.failures->expect(complaint_));
  launch.number(tuples_);
  for (const int64_t s : sizes_) launch.number(s);
  const size_t one = 1;
  launch.run(queue, {&one, 1}, {&group_items_, 1});
}

std::shared_ptr<const OpenClProgram> make_check(const codegen::Kernel& kernel, Core& core, std::string& refusal) {
  if (kernel.op->name == "check_classes") {
    if (kernel.in[0].dtype == DType::F64 && !core.has_double) {
      refusal = "the device has no double (cl_khr_fp64)";
      return nullptr;
    }
    return std::make_shared<ClassProgram>(kernel, core);
  }
  if (kernel.op->name != "check_range") return nullptr;
  std::vector<int64_t> sizes;
  for (const Dim& d : kernel.attrs.get<Dims>("limit")) sizes.push_back(d.value());
  if (sizes.empty()) {  // tuples of nothing
    refusal = "no axis is indexed";
    return nullptr;
  }
  return std::make_shared<IndexProgram>(kernel, core, sizes);
}

}  // namespace tandem::opencl
