// One stage of a kernel as generated code; also the epilogue of kernels of our own.
#pragma once
#include "opencl_program.hpp"

namespace tandem::opencl {

class GeneratedStage {
 public:
  GeneratedStage(const codegen::LoopKernel& kernel, const Core& core, std::string_view what);
  // operands: inputs, then outputs.
  void enqueue(const Core& core, cl_command_queue queue, std::span<const void* const> operands) const;

 private:
  std::shared_ptr<const Code> code_;
  codegen::GpuSchedule schedule_;
  std::vector<int64_t> params_;
  std::shared_ptr<_cl_mem> params_memory_;  // when they are too many for arguments
};

}  // namespace tandem::opencl
