// A matrix as a sum of parts: each part is a whole matrix [rows, columns], computed apart from the others, and they are added in order. An
// epilogue sees the sum.
#pragma once
#include "cpu_program.hpp"
#include "epilogue.hpp"

namespace tandem::cpu {

class PartialSums {
 public:
  PartialSums(const codegen::Kernel& kernel, int64_t parts, int64_t rows, int64_t columns, Toolbox& tools);

  size_t scratch_bytes() const;
  // Where a part is to be written; `scratch` begins with so many bytes for this.
  float* part(const device::LaunchArgs& args, int64_t index) const;
  void finish(const device::LaunchArgs& args, ThreadPool& pool) const;

 private:
  bool in_place() const { return parts_ == 1 && !epilogue_; }
  float* result(const device::LaunchArgs& args) const { return static_cast<float*>(args.pointers[inputs_]); }
  void add(const float* partial, int64_t begin, int64_t end, float* to) const;

  int64_t parts_, rows_, columns_;
  size_t inputs_;
  CompiledEpilogue epilogue_;
};

}  // namespace tandem::cpu
