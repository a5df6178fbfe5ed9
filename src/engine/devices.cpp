#include "engine/devices.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace tandem::engine {

int32_t Devices::find(const device::Device& device) const {
  for (size_t d = 0; d < count(); ++d)
    if (&at(d) == &device) return static_cast<int32_t>(d);
  return kAny;
}

int32_t Devices::number_of(const device::Buffer& buffer) const {
  if (count() == 1) return 0;  // the host's memory is one, whoever gave it
  const int32_t found = find(buffer.home());
  if (found >= 0) return found;
  user_error("call: a tensor is on device ", buffer.home().info().name, ", the engine's devices are ", names());
}

std::vector<int32_t> Devices::accelerators() const {
  std::vector<int32_t> all;
  for (size_t d = 0; d < count(); ++d)
    if (!at(d).info().host_memory && at(d).info().executes) all.push_back(static_cast<int32_t>(d));
  return all;
}

std::string Devices::names() const {
  std::string text;
  for (size_t d = 0; d < count(); ++d) text += cat(text.empty() ? "" : ", ", at(d).info().name);
  return text;
}

}  // namespace tandem::engine
