// Devices as people call them.
#pragma once
#include <cstdint>
#include <string_view>

namespace tandem::frontend {

// Its number in the engine: the engine's own name ("opencl:0"), or a kind and a number as TensorFlow writes them ("/GPU:1", "cpu:0",
// "/job:localhost/replica:0/task:0/device:GPU:0"). -1 for an empty name. A GPU that is not there is the first one there is, or the CPU,
// while soft placement is on; else, and for what is no name at all, a UserError says which there are. Looks for GPUs when one is named.
int32_t device_number(std::string_view name);

}  // namespace tandem::frontend
