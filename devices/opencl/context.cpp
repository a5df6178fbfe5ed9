#include "context.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "loader.hpp"
#include "opencl_device.hpp"

namespace tandem::opencl {
namespace {

struct Family {
  std::vector<cl_device_id> devices;
  std::weak_ptr<Context> context;
};

// Those that share a context. With the lock.
Family& family_of(cl_device_id device) {
  static auto& all = *new std::vector<Family>;
  const auto is_in = [&](const Family& f) { return std::ranges::find(f.devices, device) != f.devices.end(); };
  if (const auto known = std::ranges::find_if(all, is_in); known != all.end()) return *known;
  Family made;
  if (const std::vector<cl_device_id>& cores = cpu_cores(); std::ranges::find(cores, device) != cores.end()) {
    made.devices = cores;
  } else {
    const auto platform_of = [](cl_device_id d) {
      cl_platform_id platform = nullptr;
      functions().GetDeviceInfo(d, CL_DEVICE_PLATFORM, sizeof platform, &platform, nullptr);
      return platform;
    };
    for (cl_device_id d : find_gpus())
      if (platform_of(d) == platform_of(device)) made.devices.push_back(d);
    if (std::ranges::find(made.devices, device) == made.devices.end()) made.devices = {device};
  }
  return all.emplace_back(std::move(made));
}

}  // namespace

Context::~Context() {
  pinned.reset();
  if (handle) functions().ReleaseContext(handle);
}

std::shared_ptr<Context> context_of(cl_device_id device) {
  static std::mutex& mutex = *new std::mutex;
  std::lock_guard lock(mutex);
  Family& family = family_of(device);
  if (std::shared_ptr<Context> there = family.context.lock()) return there;
  auto made = std::make_shared<Context>();
  cl_int status = CL_SUCCESS;
  made->handle =
      functions().CreateContext(nullptr, static_cast<cl_uint>(family.devices.size()), family.devices.data(), nullptr, nullptr, &status);
  check(status, "making a context");
  made->pinned = std::make_unique<PinnedMemory>(made->handle, family.devices.front());
  family.context = made;
  return made;
}

}  // namespace tandem::opencl
