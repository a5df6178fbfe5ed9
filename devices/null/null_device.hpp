// A device that computes nothing and keeps time by a cost model: a machine that is not there.
#pragma once
#include <memory>

#include "device/cards.hpp"
#include "device/device.hpp"

namespace tandem::null {

// What the machine would have. Memory traffic and arithmetic overlap; launches follow each other.
struct Model {
  std::string name = "null";
  bool host_memory = false;  // true: it stands for the host beside a card
  size_t memory_bytes = size_t{16} << 30;
  device::Rates rates = {.flops_per_second = 10e12, .bytes_per_second = 500e9, .link_bytes_per_second = 12e9, .launch_seconds = 5e-6};
};

Model host_model();  // a host beside a card
Model model_of(const device::Card& card);
std::unique_ptr<device::Device> make_device(const Model& model);

}  // namespace tandem::null
