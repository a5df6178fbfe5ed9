#include "epilogue.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tandem::cpu {

static constexpr size_t kFetchFromBytes = size_t{8} << 20;  // less is in a cache already

CompiledEpilogue::CompiledEpilogue(const codegen::Kernel& kernel, int64_t row_step, Toolbox& tools)
    : inputs_(kernel.in.size()), outputs_(kernel.out.size()), row_step_(row_step) {
  if (!kernel.epilogue) return;
  codegen::Layout product = kernel.epilogue->product;
  columns_ = product.shape.back();
  for (size_t i = kernel.epilogue->op_inputs; i < inputs_; ++i)
    if (kernel.replaceable[i]) streams_.push_back({i, size_of(kernel.in[i].dtype)});
  for (size_t o = 0; o < outputs_; ++o) streams_.push_back({inputs_ + o, size_of(kernel.out[o].dtype)});
  if (byte_size(product.shape, product.dtype) * streams_.size() < kFetchFromBytes) streams_.clear();
  element_bytes_ = size_of(product.dtype);
  // As if the whole product lay at this step; a block's place in it gives its addresses.
  int64_t step = row_step;
  for (size_t j = product.shape.size() - 1; j-- > 0; step *= product.shape[j]) product.strides[j] = step;
  std::vector<codegen::Layout> in = kernel.in;
  in.push_back(product);
  std::vector<DType> out;
  for (const codegen::Layout& o : kernel.out) out.push_back(o.dtype);
  const size_t rank = in.back().shape.size();
  const bool thin = columns_ == 1 && rank > 1 && kernel.epilogue->loops.row_reductions.empty();
  if (thin) line_ = in.back().shape[rank - 2];
  stage_ = compile_stage(codegen::canonical(kernel.epilogue->loops, {}, in, out, static_cast<int>(rank) - (thin ? 2 : 1)), tools);
}

void CompiledEpilogue::add_to(const device::LaunchArgs& args, int64_t row, int64_t rows, int64_t column, int64_t columns,
                              Prefetch& prefetch) const {
  for (const Stream& s : streams_) {
    const bool in_place = s.pointer >= inputs_ && std::ranges::any_of(streams_, [&](const Stream& other) {
                            return other.pointer < inputs_ && args.pointers[other.pointer] == args.pointers[s.pointer];
                          });
    if (in_place || prefetch.full()) continue;  // fetched as an input
    const auto bytes = static_cast<int64_t>(s.element_bytes), step = columns_ * bytes;
    const char* at = static_cast<const char*>(args.pointers[s.pointer]) + row * step + column * bytes;
    prefetch.add({.row = at, .row_step = step, .row_bytes = columns * bytes, .rows = rows});
  }
}

void CompiledEpilogue::run(const device::LaunchArgs& args, const void* block, int64_t row0, int64_t row1, int64_t column0,
                           int64_t column1) const {
  // The address that element (0, 0) would have. Never read there, so it is a number and no pointer.
  const auto start = reinterpret_cast<uintptr_t>(block) - static_cast<uintptr_t>(row0 * row_step_ + column0) * element_bytes_;
  std::array<void*, 32> few;
  std::vector<void*> many;
  void** pointers = few.data();
  if (inputs_ + 1 + outputs_ > few.size()) {
    many.resize(inputs_ + 1 + outputs_);
    pointers = many.data();
  }
  std::ranges::copy(args.pointers.first(inputs_), pointers);
  pointers[inputs_] = reinterpret_cast<void*>(start);
  std::ranges::copy(args.pointers.subspan(inputs_, outputs_), pointers + inputs_ + 1);
  const int64_t* params = stage_.params.data();
  if (line_ == 0) return stage_.function(pointers, params, row0, row1, column0, column1);
  for (int64_t line = row0 / line_; line * line_ < row1; ++line) {
    const int64_t first = line * line_;
    stage_.function(pointers, params, line, line + 1, std::max<int64_t>(row0 - first, 0), std::min(row1 - first, line_));
  }
}

}  // namespace tandem::cpu
