// Tries a device out: a small kernel from memory to memory.
#pragma once
#include <string>
#include <string_view>

namespace tandem::cli {

// Empty when the device can be made, compiles a kernel and computes what it should; else the reason, in one line.
std::string why_not(std::string_view device_name);

}  // namespace tandem::cli
