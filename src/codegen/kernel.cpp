// From a node to its kernel; long reductions with few results become two stages, so that all threads (and lanes) have work. How they are
// cut depends on the extents alone, never on the machine: the bits stay the same.
#include "codegen/kernel.hpp"

namespace tandem::codegen {
namespace {

using ir::Scalar;

constexpr int64_t kSplitBelowOutputs = 256;  // with more outputs there is enough to do in parallel without splitting
constexpr int64_t kSplitFromElements = 1 << 15;
constexpr int64_t kBlockElements = 1 << 13;
constexpr int64_t kMaxBlocks = 256;

// How many blocks reduce axis 0 is cut into; 1 when it is not worth it.
int64_t block_count(const ir::Loops& loops, const Bindings& bindings) {
  if (!loops.reduction || loops.reduction->extents.empty()) return 1;
  int64_t outputs = 1, inner = 1;
  for (const Dim& d : loops.extents) outputs *= d.eval(bindings);
  const int64_t first = loops.reduction->extents[0].eval(bindings);
  for (size_t i = 1; i < loops.reduction->extents.size(); ++i) inner *= loops.reduction->extents[i].eval(bindings);
  if (outputs == 0 || outputs >= kSplitBelowOutputs || first * inner * outputs < kSplitFromElements) return 1;
  return std::min({first, kMaxBlocks, (first * inner * outputs + kBlockElements - 1) / kBlockElements});
}

// Shifts output axes by one to make room for the block axis in front, and reduce axis 0 to its place within the block.
Scalar blocked(const Scalar& s, int outputs, int64_t block) {
  return ir::rewrite(s, [&](const Scalar& x) -> Scalar {
    if (x->prim != ir::Prim::Axis) return {};
    const Scalar moved = ir::axis(x->index + 1);
    if (x->index != outputs) return moved;
    return ir::axis(0) * ir::constant_int(DType::I64, block) + moved;
  });
}

void split(Kernel& k, const ir::Loops& loops, const Bindings& bindings, int64_t blocks) {
  const ir::Reduction& r = *loops.reduction;
  const int outputs = static_cast<int>(loops.extents.size());
  const int64_t first = r.extents[0].eval(bindings), block = (first + blocks - 1) / blocks;
  blocks = (first + block - 1) / block;

  ir::Loops partial;
  partial.extents = loops.extents;
  partial.extents.insert(partial.extents.begin(), Dim(blocks));
  partial.reduction = r;
  partial.reduction->extents[0] = Dim(block);
  for (Scalar& e : partial.reduction->element) e = blocked(e, outputs, block);
  partial.reduction->limit =
      ir::min(ir::constant_int(DType::I64, block), ir::constant_int(DType::I64, first) - ir::axis(0) * ir::constant_int(DType::I64, block));
  for (size_t c = 0; c < r.element.size(); ++c) partial.results.push_back(ir::acc(static_cast<int>(c), r.element[c].dtype()));

  ir::Loops finish;
  finish.extents = loops.extents;
  finish.reduction = r;
  finish.reduction->extents = {Dim(blocks)};
  finish.results = loops.results;
  Shape partial_shape;
  for (const Dim& d : partial.extents) partial_shape.push_back(d.eval(bindings));
  std::vector<DType> partial_types, out_types;
  for (size_t c = 0; c < r.element.size(); ++c) {
    const DType t = r.element[c].dtype();
    std::vector<Scalar> at{ir::axis(outputs)};
    for (int j = 0; j < outputs; ++j) at.push_back(ir::axis(j));
    finish.reduction->element[c] = ir::load(static_cast<int>(k.in.size() + c), t, std::move(at));
    k.partials.push_back(Operand::dense(t, partial_shape));
    partial_types.push_back(t);
  }
  for (const Operand& o : k.out) out_types.push_back(o.dtype);
  k.stages.push_back(canonical(partial, bindings, k.in, partial_types));
  std::vector<Operand> all = k.in;
  all.insert(all.end(), k.partials.begin(), k.partials.end());
  k.stages.push_back(canonical(finish, bindings, all, out_types));
}

// Kernels see bound extents only (I7): symbols in attributes become numbers.
ir::Attrs bound_attrs(const ir::Attrs& attrs, const Bindings& bindings) {
  ir::Attrs bound = attrs;
  for (const auto& entry : attrs.entries())
    if (const auto* dims = std::get_if<Dims>(&entry.value)) {
      Dims numbers;
      for (const Dim& d : *dims) numbers.emplace_back(d.eval(bindings));
      bound.set(entry.name, std::move(numbers));
    }
  return bound;
}

}  // namespace

size_t Kernel::partial_offset(size_t i) const {
  size_t offset = 0;
  for (size_t j = 0; j < i; ++j) offset += align_up(byte_size(partials[j].shape, partials[j].dtype));
  return offset;
}
size_t Kernel::partial_bytes() const { return partial_offset(partials.size()); }

Kernel make_kernel(const ir::OpDef& op, const ir::Attrs& attrs, std::span<const ir::TensorType> in_types,
                   std::span<const ir::TensorType> out_types, const Bindings& bindings, std::span<const Operand> in) {
  Kernel k;
  k.op = &op;
  k.attrs = bound_attrs(attrs, bindings);
  k.in.assign(in.begin(), in.end());
  for (const ir::TensorType& t : out_types) k.out.push_back(Operand::dense(t.dtype, bind(t.dims, bindings)));
  if (!op.body && !op.loops) return k;
  const ir::Loops loops = ir::loops_of(op, in_types, attrs, out_types);
  if (const int64_t blocks = block_count(loops, bindings); blocks > 1) {
    split(k, loops, bindings, blocks);
  } else {
    std::vector<DType> out;
    for (const Operand& o : k.out) out.push_back(o.dtype);
    k.stages.push_back(canonical(loops, bindings, k.in, out));
  }
  return k;
}

}  // namespace tandem::codegen
