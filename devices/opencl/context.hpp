// One context for all devices that can wait for each other's events: those of one driver, and the cores that pose as GPUs.
#pragma once
#include <CL/cl.h>

#include <memory>

#include "memory.hpp"

namespace tandem::opencl {

struct Context {
  cl_context handle = nullptr;
  std::unique_ptr<PinnedMemory> pinned;  // what one device pins, the others reach too

  Context() = default;
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

// The device's; made when one of its devices asks first, and given back when the last one is gone.
std::shared_ptr<Context> context_of(cl_device_id device);

}  // namespace tandem::opencl
