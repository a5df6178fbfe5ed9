// A kernel on the device `late`: the interpreter.
#pragma once
#include "codegen/interpret_kernel.hpp"
#include "device/device.hpp"

namespace tandem::late {

// The reference's kernel.
class LateProgram final : public device::Program {
 public:
  explicit LateProgram(const codegen::Kernel& k) : kernel_(k) {}
  std::string_view kernel_name() const override { return "interpreted"; }
  size_t scratch_bytes() const override { return kernel_.partial_bytes(); }
  void run(std::span<void* const> pointers, void* scratch) const { codegen::interpret(kernel_, pointers, scratch); }

 private:
  codegen::Kernel kernel_;
};

}  // namespace tandem::late
