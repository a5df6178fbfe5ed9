// How fast devices are, as the cost model wants to know it: what a device says of itself, or what was measured once and is kept on disk.
#pragma once
#include "device/device.hpp"

namespace tandem::engine {

// Takes some tens of milliseconds the first time on a machine.
device::Rates rates_of(device::Device& device);
// From now on these are a device's rates, whatever was measured; for devices that are planned for, and tests.
void set_rates(const device::Device& device, const device::Rates& rates);

}  // namespace tandem::engine
