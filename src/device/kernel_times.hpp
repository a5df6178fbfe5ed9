// How long kernels take on a device that computes: each is timed there once, and is known from then on, in memory and on disk. So the same
// program is planned the same way again (I6).
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "codegen/kernel.hpp"
#include "device/buffer.hpp"
#include "device/stream.hpp"

namespace tandem::device {

class KernelTimes {
 public:
  // Memory of the device, or nothing when there is no room. An empty function: nothing is to be timed now.
  using Allocate = std::function<BufferRef(size_t bytes)>;

  // Seconds of a launch behind others, with operands of zeros. Nothing when it cannot be timed: where there is no room for its operands,
  // where it refuses zeros, and of routines of the host, which may do anything.
  std::optional<double> of(Device& device, const codegen::Kernel& kernel, const std::shared_ptr<const Program>& program,
                           const Allocate& allocate);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, double> known_;
};

// Timed where the device's rates are measured, else as the cost model says (Device::seconds).
double kernel_seconds(Device& device, const codegen::Kernel& kernel, const std::shared_ptr<const Program>& program,
                      const KernelTimes::Allocate& allocate);

}  // namespace tandem::device
