// How a canonical kernel is spread over the items and groups of a GPU. What is chosen depends on the kernel, its extents and the device's
// kind alone, so that results have the same bits in each run.
#pragma once
#include <cstdint>

#include "codegen/kernel.hpp"

namespace tandem::codegen {

// What schedules and renderers ask of a device.
struct GpuTarget {
  // Items of a group are turns of a loop on one core, as in OpenCL for CPUs: then an item does a whole row, and nothing is shared.
  bool is_cpu = false;
  int64_t most_group_items = 256;
  int64_t local_bytes = 32 << 10;
};

enum class GpuForm : uint8_t {
  Item,   // one item an output element, or a row: a loop over what is reduced
  Group,  // one group an output element, or a row: its items share the work and join their states as a tree
};

struct GpuSchedule {
  GpuForm form = GpuForm::Item;
  int64_t units = 0;  // items or groups that have something to do
  int64_t group_items = 1;
  int64_t groups() const { return form == GpuForm::Group ? units : (units + group_items - 1) / group_items; }
};

GpuSchedule gpu_schedule(const LoopKernel& kernel, const GpuTarget& target);

}  // namespace tandem::codegen
