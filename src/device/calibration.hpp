// How fast a device is: measured once on a machine and kept on disk.
#pragma once
#include "device/device.hpp"

namespace tandem::device {

// Small kernels and copies on the device itself, a fraction of a second; the fastest of a few runs counts, since others may be at work.
Rates measure(Device& device);

// What is on disk for a device of this description and driver, else measured and written there. A link is never faster than
// `info().rates` says.
Rates calibrated(Device& device);
Rates measured_again(Device& device);                         // and written
bool read_calibration(const DeviceInfo& info, Rates& rates);  // what is on disk, if anything is

// What tells a device from others that are as fast or not: its part of the keys of what was measured on it.
std::string identity(const DeviceInfo& info);

// As text on disk; nothing when it is not ours.
std::string to_text(const Rates& rates);
bool from_text(std::string_view text, Rates& rates);
std::string to_text(double seconds);
bool from_text(std::string_view text, double& seconds);

}  // namespace tandem::device
