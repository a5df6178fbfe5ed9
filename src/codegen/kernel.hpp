// Kernel: one launch with every extent bound, which is what a device is asked to make a Program of.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/builder.hpp"
#include "ir/loops.hpp"
#include "ir/op.hpp"

namespace tandem::codegen {

// How one operand lies in memory. Outputs are always dense.
struct Layout {
  DType dtype = DType::F32;
  Shape shape;
  Strides strides;  // in elements
  static Layout dense(DType t, const Shape& s) { return {t, s, contiguous_strides(s)}; }
  bool is_dense() const { return is_contiguous(shape, strides); }
};

// Loops from which everything that varies between launches has moved into parameters, so that one piece of code serves all sizes:
//   - output and reduce axes of extent 1 are gone, neighbours that lie contiguously in every load are one axis;
//   - every Load has one index: the element offset from the operand's start;
//   - every extent, stride and offset other than 0, 1 and -1 is a parameter: an Extent leaf whose `index` is its place in `params`.
struct LoopKernel {
  ir::Loops loops;                      // extents are parameters as well
  std::vector<int64_t> extents;         // the bound values of loops.extents
  std::vector<int64_t> reduce_extents;  // … of loops.reduction->extents
  std::vector<int64_t> params;
  std::vector<DType> inputs, outputs;  // types of the memory behind each
  std::string key;                     // equal keys: the same code with other parameters
};

// The epilogue of a product: what happens to each element of op's result before it is written. A library's kernel may run it
// block by block, while the block is still in the cache.
struct Epilogue {
  ir::Loops loops;   // over the product's own space, no reduction; inputs are the kernel's, then the product
  size_t op_inputs;  // so many of the kernel's inputs are the op's own operands, the others are only read here
  Layout product;    // what the op itself gives, dense
};

// A stage reads the kernel's inputs, then all partial buffers; it writes either the partial buffers or the kernel's outputs.
struct Kernel {
  const ir::OpDef* op = nullptr;
  ir::Attrs attrs;
  std::vector<Layout> in, out;
  std::optional<Epilogue> epilogue;  // then stage 0 gives the product as a partial, and stage 1 is the epilogue
  std::vector<LoopKernel>
      stages;  // none for `evaluate` rows and kept composites; two when there is an epilogue, or a long reduction is split into blocks
  std::vector<Layout> partials;  // what stage 0 hands to stage 1
  // One an input: whether an output of as many bytes may take its place, because each element is read only where it is written.
  std::vector<bool> replaceable;
  size_t partial_bytes() const;  // each partial starts at a multiple of kAlignment
  size_t partial_offset(size_t i) const;
};
inline constexpr size_t kAlignment = 64;
inline size_t align_up(size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

// The kernel of one node, which may be a fused body. Types are bound by `bindings`; `in` says how inputs lie.
Kernel make_kernel(const ir::OpDef& op, const ir::Attrs& attrs, std::span<const ir::TensorType> in_types,
                   std::span<const ir::TensorType> out_types, const Bindings& bindings, std::span<const Layout> in);

// The canonical form of loops over operands that lie as given. Output axes become one where they can, and one of a single element
// vanishes; all but `kept_axis`.
LoopKernel canonical(const ir::Loops& loops, const Bindings& bindings, std::span<const Layout> in, std::span<const DType> out,
                     int kept_axis = -1);

// By how many elements an index moves when one axis advances by one; nothing when that is not the same number everywhere or not known
// before the launch. How the index moves along other axes does not matter.
std::optional<int64_t> step_along(const ir::Scalar& index, int axis);

// The position p that elements are computed by p >> 2 of, if it moves by one along the axis: where p is a multiple of four, an element and
// the next three share what is made of that (the four words of a random number generator). Empty when there is none, or more than one.
ir::Scalar shared_by_four(std::span<const ir::Scalar> elements, int axis);

}  // namespace tandem::codegen
