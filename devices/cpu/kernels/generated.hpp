// Generated code of one canonical stage, and how a launch of it is cut into chunks.
#pragma once
#include <vector>

#include "cpu_program.hpp"
#include "schedule.hpp"

namespace tandem::cpu {

struct Stage {
  KernelFunction function = nullptr;
  std::vector<int64_t> params;
  Schedule schedule;
  std::shared_ptr<const Code> code;  // that `function` is in
};
Stage compile_stage(const codegen::LoopKernel& loops, Toolbox& tools);
void run_stage(const Stage& stage, void* const* pointers, ThreadPool& pool);

}  // namespace tandem::cpu
