// The devices of this process, by name.
#include <map>
#include <mutex>

#include "base/text.hpp"
#include "device/device.hpp"

namespace tandem::device {

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Factory& f : factories()) all.emplace_back(f.name);
  return all;
}

// Devices are never destroyed: buffers and programs may outlive static destruction. One that cannot be made is tried again at the
// next call, since what it lacked may be there then.
Device& get(std::string_view name) {
  static std::mutex mutex;
  static auto& made = *new std::map<std::string, std::unique_ptr<Device>, std::less<>>;
  std::lock_guard lock(mutex);
  if (auto it = made.find(name); it != made.end()) return *it->second;
  std::string known;
  for (const Factory& f : factories()) {
    if (f.name == name) return *made.emplace(std::string(name), f.make()).first->second;
    known += cat(known.empty() ? "" : ", ", f.name);
  }
  user_error("device: there is no device '", name, "'; there are ", known);
}

}  // namespace tandem::device
