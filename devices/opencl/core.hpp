// What a device, its streams and its programs share.
#pragma once
#include <CL/cl.h>

#include <memory>
#include <string>

#include "base/blob_cache.hpp"
#include "codegen/c_render.hpp"
#include "context.hpp"
#include "failures.hpp"
#include "loader.hpp"
#include "memory.hpp"

namespace tandem::opencl {

class Codes;

struct Core {
  std::string name;  // "opencl:0"
  cl_device_id device = nullptr;
  std::shared_ptr<Context> shared;  // with other devices
  cl_context context = nullptr;     // its handle
  codegen::GpuTarget target;
  const codegen::CDialect* dialect = nullptr;
  bool has_double = false;
  size_t most_argument_bytes = 1024;
  std::string build_options;
  std::string identity;  // of driver and device: compiled programs of another one are none of ours
  std::unique_ptr<Memory> memory;
  PinnedMemory* pinned = nullptr;  // the context's
  std::unique_ptr<Codes> codes;
  std::shared_ptr<Failures> failures;

  Core();
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
};

}  // namespace tandem::opencl
