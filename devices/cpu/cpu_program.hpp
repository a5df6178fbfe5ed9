// Programs of the CPU device and the ordered list they come from: library kernels first, generated code, host routines last.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "base/thread_pool.hpp"
#include "code_cache.hpp"
#include "device/device.hpp"
#include "target.hpp"

namespace tandem::cpu {

class CpuProgram : public device::Program {
 public:
  virtual void run(const device::LaunchArgs& args, ThreadPool& pool) const = 0;
};

// What making a program may use.
struct Toolbox {
  Target target;
  CodeCache& cache;
  int threads = 1;  // of the pool that programs will run on: so many pieces of scratch memory
};

// An entry of the list. `make` returns nothing when it does not take the kernel, and says why if the op is one of its own.
// `keeps`: which composites it takes whole, at any extents and strides; none when it is not given.
struct KernelEntry {
  const char* name;
  std::shared_ptr<const CpuProgram> (*make)(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
  bool (*keeps)(const ir::OpCall& call) = nullptr;
};
std::span<const KernelEntry> kernel_list();  // kernels.cpp

// The entries, one source file each under kernels/.
std::shared_ptr<const CpuProgram> make_gemm_dots(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
std::shared_ptr<const CpuProgram> make_gemm_tiles(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
std::shared_ptr<const CpuProgram> make_gemm_openblas(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
std::shared_ptr<const CpuProgram> make_conv_winograd(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
std::shared_ptr<const CpuProgram> make_conv_forward(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
std::shared_ptr<const CpuProgram> make_conv_weights_winograd(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
std::shared_ptr<const CpuProgram> make_conv_weights(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
std::shared_ptr<const CpuProgram> make_attention_parts(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
std::shared_ptr<const CpuProgram> make_attention_gradient(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
std::shared_ptr<const CpuProgram> make_lstm(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
std::shared_ptr<const CpuProgram> make_gru(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
std::shared_ptr<const CpuProgram> make_concatenate(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
std::shared_ptr<const CpuProgram> make_lapack(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
std::shared_ptr<const CpuProgram> make_generated(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);
std::shared_ptr<const CpuProgram> make_host_routine(const codegen::Kernel& kernel, Toolbox& tools, std::string& refusal);

// Composites that entries take whole.
bool keeps_attention_parts(const ir::OpCall& call);
bool keeps_attention_gradient(const ir::OpCall& call);
bool keeps_recurrent(const ir::OpCall& call);

// Loads the code generator in the background: for a process that will soon need it.
void prepare_generator(const Target& target);

}  // namespace tandem::cpu
