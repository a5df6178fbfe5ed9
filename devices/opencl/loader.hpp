// OpenCL's functions, from the loader that is opened when somebody asks; a machine without one has no such devices.
#pragma once
#include <CL/cl.h>

#include <string>

namespace tandem::opencl {

// clName -> functions().Name, with the types of the header.
// clang-format off: it makes stairs of them
#define TANDEM_OPENCL_FUNCTIONS(X) \
  X(GetPlatformIDs) X(GetPlatformInfo) X(GetDeviceIDs) X(GetDeviceInfo) X(CreateSubDevices) X(CreateContext) \
  X(CreateCommandQueue) X(CreateBuffer) X(ReleaseMemObject) X(RetainMemObject) X(SetMemObjectDestructorCallback) \
  X(EnqueueMapBuffer) X(EnqueueUnmapMemObject) X(CreateProgramWithSource) X(CreateProgramWithBinary) X(BuildProgram) \
  X(GetProgramBuildInfo) X(GetProgramInfo) X(ReleaseProgram) X(CreateKernel) X(SetKernelArg) X(ReleaseKernel) \
  X(EnqueueNDRangeKernel) X(EnqueueReadBuffer) X(EnqueueWriteBuffer) X(EnqueueCopyBuffer) X(EnqueueFillBuffer) \
  X(EnqueueMarkerWithWaitList) X(EnqueueBarrierWithWaitList) X(Flush) X(Finish) X(WaitForEvents) X(GetEventInfo) \
  X(SetEventCallback) X(ReleaseEvent) X(CreateUserEvent) X(SetUserEventStatus) X(RetainEvent) X(ReleaseContext) \
  X(ReleaseCommandQueue) X(RetainCommandQueue) X(GetEventProfilingInfo)
// clang-format on

struct Functions {
#define X(name) decltype(&cl##name) name = nullptr;
  TANDEM_OPENCL_FUNCTIONS(X)
#undef X
};

// Null when there is no loader, or one that lacks a function of OpenCL 1.2; `why` says what to do. Looked for once.
const Functions* find_functions(std::string& why);
const Functions& functions();  // for those who were made because there are some

std::string_view error_name(cl_int status);
// ResourceError with the name of the status, unless it is CL_SUCCESS. `what`: "launch", "upload".
void check(cl_int status, const char* what);

}  // namespace tandem::opencl
