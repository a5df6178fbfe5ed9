#include <tandem/device.hpp>

#include "device/device.hpp"
#include "frontend/memory.hpp"

namespace tandem {
namespace {

DeviceDescription described(const device::DeviceInfo& info) { return {info.name, info.description, info.memory_bytes, info.executes, ""}; }

}  // namespace

std::vector<DeviceDescription> devices() {
  std::vector<DeviceDescription> all;
  for (const std::string& name : device::names()) {
    try {
      all.push_back(described(device::get(name).info()));
    } catch (const Error& e) {
      all.push_back({.name = name, .problem = e.what()});
    }
  }
  return all;
}

DeviceDescription active_device() { return described(frontend::active_engine().device().info()); }

void release_memory() { frontend::active_engine().trim(); }

}  // namespace tandem
