// Programs of OpenCL devices and the ordered list they come from: kernels of our own first, generated code last.
#pragma once
#include <CL/cl.h>

#include <memory>
#include <span>
#include <string>

#include "code.hpp"
#include "core.hpp"
#include "device/device.hpp"

namespace tandem::opencl {

class OpenClProgram : public device::Program {
 public:
  virtual void enqueue(const Core& core, cl_command_queue queue, const device::LaunchArgs& args) const = 0;
};

// An entry of the list. `make` returns nothing when it does not take the kernel, and says why if the op is one of its own.
struct KernelEntry {
  const char* name;
  std::shared_ptr<const OpenClProgram> (*make)(const codegen::Kernel& kernel, Core& core, std::string& refusal);
};
std::span<const KernelEntry> kernel_list();  // kernels.cpp
// Whether a row that has only a routine on host memory has a kernel here nevertheless.
bool has_kernel(std::string_view op);

// The entries, one source file each under kernels/.
std::shared_ptr<const OpenClProgram> make_gemm(const codegen::Kernel& kernel, Core& core, std::string& refusal);
std::shared_ptr<const OpenClProgram> make_conv(const codegen::Kernel& kernel, Core& core, std::string& refusal);
std::shared_ptr<const OpenClProgram> make_check(const codegen::Kernel& kernel, Core& core, std::string& refusal);
std::shared_ptr<const OpenClProgram> make_put(const codegen::Kernel& kernel, Core& core, std::string& refusal);
std::shared_ptr<const OpenClProgram> make_order(const codegen::Kernel& kernel, Core& core, std::string& refusal);
std::shared_ptr<const OpenClProgram> make_generated(const codegen::Kernel& kernel, Core& core, std::string& refusal);

// Sets arguments one behind the other and queues the launch, under the code's lock.
class Launch {
 public:
  Launch(const Core& core, const Code& code) : core_(core), code_(code), lock_(code.mutex()) {}
  void memory(const void* address);  // a buffer and an offset
  void number(int64_t value);
  void buffer(cl_mem memory);
  void run(cl_command_queue queue, std::span<const size_t> groups, std::span<const size_t> group_items);

 private:
  void set(size_t bytes, const void* value);
  const Core& core_;
  const Code& code_;
  std::lock_guard<std::mutex> lock_;
  cl_uint next_ = 0;
};

}  // namespace tandem::opencl
