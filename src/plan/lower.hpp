// From a graph to units: which kernel each node is, which values are only other ways to walk through memory, and what has to be copied
// because it lies otherwise than its reader wants it, or in another device's memory.
#pragma once
#include <functional>

#include "plan/units.hpp"

namespace tandem::plan {

struct Request {
  const ir::Graph& graph;  // expanded: no decompositions left but those that the devices keep
  Bindings bindings;
  std::vector<codegen::Layout> inputs = {};  // bound layouts; empty: all dense
  std::vector<int32_t> donations = {};       // one an output: the input it may overwrite, or -1. Empty: none
  bool outputs_own_memory = false;           // bodies: every output is written to its own block, none is an alias
  // Devices by number; empty: all 0. A value that is used on another device than it is on crosses once, through the host's memory.
  std::function<int32_t(const ir::Node&)> device_of = {};
  std::vector<int32_t> input_devices = {}, output_devices = {};  // an output's may be -1: where it is made
  std::vector<bool> host_memory = {};   // one a device: whether the host and its kernels reach its memory. Empty: one device
  std::vector<bool> fresh_inputs = {};  // one an input: whether each run has another one, as of a batch. Empty: none
};

Units lower(const Request& request, Tables& tables);

}  // namespace tandem::plan
