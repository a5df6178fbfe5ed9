// Making OpenCL devices, also ones that a test wants in another way than the machine has them.
#pragma once
#include <CL/cl.h>

#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "emulation.hpp"

namespace tandem::opencl {

struct Options {
  std::string name;
  cl_device_id device = nullptr;
  bool emulated = false;             // copies on threads of their own, at a rate
  std::string cores = {};            // of the host that it computes on
  std::vector<int> copy_cores = {};  // where the threads stay that copy; empty: anywhere
  double link_bytes_per_second = 0;
  double speed = 1;             // of an emulated one
  size_t memory_bytes = 0;      // the cap; 0: what the device says it has
  bool group_schedules = true;  // work-groups share rows in local memory, as on a GPU; false: for CPUs
};
std::unique_ptr<device::Device> make_device(const Options& options);

// The GPUs that there are, usable or not.
std::vector<cl_device_id> find_gpus();
// A CPU device that can pose as a GPU: one core of it, that with this number if there is such a one. Null when there is none; `why` says
// what to install.
cl_device_id find_cpu(int core, std::string& why);
// All of its cores, one device each; the whole CPU where it cannot be divided.
const std::vector<cl_device_id>& cpu_cores();

}  // namespace tandem::opencl
