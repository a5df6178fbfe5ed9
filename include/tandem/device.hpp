// The devices of this process. One of them runs everything: the environment variable TANDEM_DEVICE names it, which is read when the first
// tensor is made.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace tandem {

struct DeviceDescription {
  std::string name;         // "cpu", "opencl:0"
  std::string description;  // "2 threads, avx512"
  size_t memory_bytes = 0;  // 0: as much as the host gives
  bool computes = false;    // false: plans and keeps time only
  std::string problem;      // why it cannot be used; empty: it can
};

std::vector<DeviceDescription> devices();  // all that this build has
DeviceDescription active_device();         // the one that runs everything; ResourceError when it cannot be used

// Gives back the memory that is kept for later: spare blocks, plans and compiled graphs. What is in use stays, and
// what is needed again is made again. This happens by itself when memory runs out.
void release_memory();

}  // namespace tandem
