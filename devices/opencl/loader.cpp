#include "loader.hpp"

#include <dlfcn.h>

#include "base/text.hpp"

namespace tandem::opencl {
namespace {

constexpr const char* kLoader = "libOpenCL.so.1";

struct Found {
  Functions functions;
  std::string why;
  Found() {
    void* library = dlopen(kLoader, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      why = cat(kLoader, " was not found; install an OpenCL loader (Debian: ocl-icd-libopencl1) and the driver of the GPU");
      return;
    }
#define X(name)                                                                            \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, "cl" #name)); \
  if (!functions.name && why.empty()) why = cat(kLoader, " has no cl" #name "; OpenCL 1.2 is needed");
    TANDEM_OPENCL_FUNCTIONS(X)
#undef X
  }
};
const Found& found() {
  static const Found& f = *new Found;  // drivers have threads of their own that may still run when the program ends
  return f;
}

}  // namespace

const Functions* find_functions(std::string& why) {
  why = found().why;
  return why.empty() ? &found().functions : nullptr;
}
const Functions& functions() { return found().functions; }

std::string_view error_name(cl_int status) {
  switch (status) {
#define CASE(name) \
  case name: return #name;
    CASE(CL_DEVICE_NOT_FOUND)
    CASE(CL_DEVICE_NOT_AVAILABLE)
    CASE(CL_COMPILER_NOT_AVAILABLE)
    CASE(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    CASE(CL_OUT_OF_RESOURCES)
    CASE(CL_OUT_OF_HOST_MEMORY)
    CASE(CL_BUILD_PROGRAM_FAILURE)
    CASE(CL_MAP_FAILURE)
    CASE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    CASE(CL_DEVICE_PARTITION_FAILED)
    CASE(CL_INVALID_VALUE)
    CASE(CL_INVALID_DEVICE)
    CASE(CL_INVALID_CONTEXT)
    CASE(CL_INVALID_COMMAND_QUEUE)
    CASE(CL_INVALID_MEM_OBJECT)
    CASE(CL_INVALID_BINARY)
    CASE(CL_INVALID_BUILD_OPTIONS)
    CASE(CL_INVALID_PROGRAM)
    CASE(CL_INVALID_PROGRAM_EXECUTABLE)
    CASE(CL_INVALID_KERNEL)
    CASE(CL_INVALID_ARG_INDEX)
    CASE(CL_INVALID_ARG_SIZE)
    CASE(CL_INVALID_KERNEL_ARGS)
    CASE(CL_INVALID_WORK_GROUP_SIZE)
    CASE(CL_INVALID_WORK_ITEM_SIZE)
    CASE(CL_INVALID_EVENT)
    CASE(CL_INVALID_OPERATION)
    CASE(CL_INVALID_BUFFER_SIZE)
    CASE(CL_INVALID_GLOBAL_WORK_SIZE)
#undef CASE
    default: return "an error without a name";
  }
}

void check(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  const bool memory = status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_RESOURCES || status == CL_OUT_OF_HOST_MEMORY;
  resource_error(memory ? ErrorCode::ResourceExhausted : ErrorCode::Unavailable, "opencl: ", what, " failed: ", error_name(status), " (",
                 static_cast<int>(status), ")",
                 memory ? "\n  hint: other programs may use the card's memory; a smaller batch takes less" : "");
}

}  // namespace tandem::opencl
