// From a node to its kernel; long reductions with few results become two stages, so that all threads (and lanes) have work. How they are
// cut depends on the extents alone, never on the machine: the bits stay the same.
#include "codegen/kernel.hpp"

#include "ir/compose.hpp"

namespace tandem::codegen {
namespace {

using ir::Scalar;

// Part of what a reduction computes (I10): no machine may change them. No measurement of them is kept.
constexpr int64_t kSplitBelowOutputs = 256;  // with more outputs there is enough to do in parallel without splitting
constexpr int64_t kSplitFromElements = 1 << 15;
constexpr int64_t kBlockElements = 1 << 13;
constexpr int64_t kMaxBlocks = 256;  // partial results, which one thread adds

// How many blocks reduce axis 0 is cut into; 1 when it is not worth it.
int64_t block_count(const ir::Loops& loops, const Bindings& bindings) {
  if (!loops.reduction || loops.reduction->extents.empty() || loops.scan_axis >= 0) return 1;
  int64_t outputs = 1, inner = 1;
  for (const Dim& d : loops.extents) outputs *= d.eval(bindings);
  const int64_t first = loops.reduction->extents[0].eval(bindings);
  for (size_t i = 1; i < loops.reduction->extents.size(); ++i) inner *= loops.reduction->extents[i].eval(bindings);
  if (outputs == 0 || outputs >= kSplitBelowOutputs || first * inner * outputs < kSplitFromElements) return 1;
  return std::min({first, kMaxBlocks, (first * inner * outputs + kBlockElements - 1) / kBlockElements});
}

// Shifts output axes by one to make room for the block axis in front, and reduce axis 0 to its place within the block.
std::vector<Scalar> blocked(const std::vector<Scalar>& elements, int outputs, int64_t block) {
  return ir::rewrite(elements, [&](const Scalar& x) -> Scalar {
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
  partial.reduction->element = blocked(r.element, outputs, block);
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
    k.partials.push_back(Layout::dense(t, partial_shape));
    partial_types.push_back(t);
  }
  for (const Layout& o : k.out) out_types.push_back(o.dtype);
  k.stages.push_back(canonical(partial, bindings, k.in, partial_types));
  std::vector<Layout> all = k.in;
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

// One an input: whether every load of it is the output's own element, in memory that lies as the output does.
std::vector<bool> own_elements(const ir::Loops& loops, const Bindings& bindings, std::span<const Layout> in) {
  std::vector<bool> own(in.size(), true);
  const Dims space = to_dims(bind(loops.extents, bindings));
  const auto refuse = [&](std::span<const Scalar> roots) {
    for (const Scalar& s : ir::post_order(roots))
      if (s->prim == ir::Prim::Load && static_cast<size_t>(s->index) < own.size()) own[static_cast<size_t>(s->index)] = false;
  };
  const auto look = [&](std::span<const Scalar> roots) {
    for (const Scalar& s : ir::post_order(roots)) {
      if (s->prim != ir::Prim::Load || static_cast<size_t>(s->index) >= own.size()) continue;
      const Layout& o = in[static_cast<size_t>(s->index)];
      const auto index = std::span(s->in).first(s->in.size() - (s->guarded ? 2 : 0));
      if (!o.is_dense() || !ir::is_own_element(index, to_dims(o.shape), space)) own[static_cast<size_t>(s->index)] = false;
    }
  };
  if (loops.reduction) refuse(loops.reduction->element);
  if (loops.scan_axis >= 0) refuse(loops.results);
  for (const ir::Reduction& r : loops.row_reductions) look(r.element);
  look(loops.results);
  return own;
}

// One stage, or two.
void add_stages(Kernel& k, const ir::Loops& loops, const Bindings& bindings) {
  k.replaceable = own_elements(loops, bindings, k.in);
  if (const int64_t blocks = block_count(loops, bindings); blocks > 1) return split(k, loops, bindings, blocks);
  std::vector<DType> out;
  for (const Layout& o : k.out) out.push_back(o.dtype);
  k.stages.push_back(canonical(loops, bindings, k.in, out));
}

ir::Loops bound_loops(ir::Loops l, const Bindings& bindings) {
  for (Dim& d : l.extents) d = Dim(d.eval(bindings));
  l.results = ir::rewrite(l.results, [&](const Scalar& x) -> Scalar {
    return x->prim == ir::Prim::Extent ? ir::constant_int(DType::I64, x->dim.eval(bindings)) : Scalar();
  });
  return l;
}

// A product with its epilogue: stage 0 is the product, stage 1 the epilogue.
void add_product(Kernel& k, const ir::Graph& body, const Bindings& bindings) {
  const ir::Node& product = body.nodes[static_cast<size_t>(ir::product_node(body))];
  k.op = product.op;
  k.attrs = bound_attrs(product.attrs, bindings);
  std::vector<ir::TensorType> in_types;
  for (size_t i = 0; i < product.inputs.size(); ++i) {
    TANDEM_CHECK(product.inputs[i] == body.inputs[i], "the operands of a fused product are not the body's first inputs");
    in_types.push_back(body.type(product.inputs[i]));
  }
  const DType t = product.types[0].dtype;
  k.epilogue = Epilogue{bound_loops(ir::compose(body, ir::Form::Epilogue), bindings), product.inputs.size(),
                        Layout::dense(t, bind(product.types[0].dims, bindings))};
  k.partials.push_back(k.epilogue->product);
  k.stages.push_back(canonical(ir::loops_of(*product.op, in_types, product.attrs, product.types), bindings, k.in, {&t, 1}));
  std::vector<Layout> all = k.in;
  all.push_back(k.epilogue->product);
  std::vector<DType> out;
  for (const Layout& o : k.out) out.push_back(o.dtype);
  k.stages.push_back(canonical(k.epilogue->loops, {}, all, out));
  k.replaceable = own_elements(k.epilogue->loops, {}, k.in);
  std::fill_n(k.replaceable.begin(), k.epilogue->op_inputs, false);
}

}  // namespace

size_t Kernel::partial_offset(size_t i) const {
  size_t offset = 0;
  for (size_t j = 0; j < i; ++j) offset += align_up(byte_size(partials[j].shape, partials[j].dtype));
  return offset;
}
size_t Kernel::partial_bytes() const { return partial_offset(partials.size()); }

Kernel make_kernel(const ir::OpDef& op, const ir::Attrs& attrs, std::span<const ir::TensorType> in_types,
                   std::span<const ir::TensorType> out_types, const Bindings& bindings, std::span<const Layout> in) {
  Kernel k;
  k.op = &op;
  k.in.assign(in.begin(), in.end());
  for (const ir::TensorType& t : out_types) k.out.push_back(Layout::dense(t.dtype, bind(t.dims, bindings)));
  if (op.name == "fused") {
    const ir::Graph& body = *attrs.get<ir::Graphs>("body").at(0);
    const ir::Form form = ir::parse_form(attrs.get<std::string>("form"));
    if (form == ir::Form::Epilogue)
      add_product(k, body, bindings);
    else
      add_stages(k, ir::compose(body, form), bindings);
    return k;
  }
  k.attrs = bound_attrs(attrs, bindings);
  k.replaceable.assign(in.size(), false);
  if (op.body || op.loops) add_stages(k, ir::loops_of(op, in_types, attrs, out_types), bindings);
  return k;
}

}  // namespace tandem::codegen
