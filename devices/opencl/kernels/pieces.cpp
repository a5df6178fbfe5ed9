#include "pieces.hpp"

namespace tandem::opencl {

std::string filled(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

std::string_view bits_type(DType t) {
  switch (size_of(t)) {
    case 1: return "uchar";
    case 2: return "ushort";
    case 4: return "uint";
    default: return "ulong";
  }
}

Conversion::Conversion(const codegen::Layout& from, DType to, const Core& core, std::string_view what) {
  if (from.is_dense() && from.dtype == to) {
    is_plain_ = true;
    bytes_ = byte_size(from.shape, from.dtype);
    return;
  }
  std::vector<ir::Scalar> at;
  for (int j = 0; j < from.shape.rank(); ++j) at.push_back(ir::axis(j));
  const ir::Scalar element = ir::load(0, from.dtype, at);
  const ir::Loops loops{.extents = to_dims(from.shape), .results = {from.dtype == to ? element : ir::cast(element, to)}};
  stage_.emplace(codegen::canonical(loops, {}, {&from, 1}, {&to, 1}), core, what);
}

void Conversion::enqueue(const Core& core, cl_command_queue queue, const void* from, void* to) const {
  if (!is_plain_) {
    const void* const operands[] = {from, to};
    return stage_->enqueue(core, queue, operands);
  }
  if (from == to || bytes_ == 0) return;
  const Place a = core.memory->at(from), b = core.memory->at(to);
  check(functions().EnqueueCopyBuffer(queue, a.memory, b.memory, a.offset, b.offset, bytes_, 0, nullptr, nullptr), "copy");
}

DenseOperand::DenseOperand(const codegen::Layout& o, const Core& core, ScratchLayout& scratch, std::string_view what) {
  if (o.is_dense()) return;
  copy_.emplace(o, o.dtype, core, what);
  offset_ = scratch.take(byte_size(o.shape, o.dtype));
}

const void* DenseOperand::enqueue(const Core& core, cl_command_queue queue, const device::LaunchArgs& args, size_t input) const {
  if (!copy_) return args.pointers[input];
  copy_->enqueue(core, queue, args.pointers[input], piece(args, offset_));
  return piece(args, offset_);
}

}  // namespace tandem::opencl
