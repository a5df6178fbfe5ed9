// A device that computes nothing and keeps time by a cost model: a machine that is not there.
#pragma once
#include <memory>

#include "device/device.hpp"

namespace tandem::null {

// What the machine would have. Memory traffic and arithmetic overlap; launches follow each other.
struct Model {
  size_t memory_bytes = size_t{16} << 30;
  device::Rates rates = {.flops_per_second = 10e12, .bytes_per_second = 500e9, .link_bytes_per_second = 12e9, .launch_seconds = 5e-6};
};

std::unique_ptr<device::Device> make_device(const Model& model);

}  // namespace tandem::null
