// The devices of an engine, by number, and which of them has what nobody asked a device for.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "engine/memory.hpp"

namespace tandem::engine {

inline constexpr int32_t kAny = -1;  // no device was asked for

// A list never changes. Where more devices are found a longer one takes its place, in which those that were known keep their numbers.
struct Devices {
  std::vector<Memory*> memories;         // one a device
  std::vector<Memory*> pinned;           // host memory that a device's copies reach; null for a device whose memory is the host's
  int32_t host = 0;                      // the first whose memory is the host's: pipelines run there, and what others cannot do
  int32_t preferred = 0;                 // has what nobody asked a device for; kAny: where it costs least
  bool finds_least = true;               // a refusal says the smallest limit that works, for which plans are made
  int64_t plan_effort = -1;              // steps of search for a plan within a limit; below 0: what TANDEM_PLAN_EFFORT says
  bool times_kernels = true;             // false: those that were not timed yet are guessed, since the devices have other work
  std::function<bool()> is_enough = {};  // asked now and then by such a search (plan::PlanOptions)

  size_t count() const { return memories.size(); }
  device::Device& at(size_t i) const { return memories[i]->device(); }
  device::Device& at(int32_t i) const { return at(static_cast<size_t>(i)); }
  bool has_host_memory(int32_t i) const { return at(i).info().host_memory; }
  int32_t number_of(const device::Buffer& buffer) const;  // UserError when it is on none of them
  int32_t find(const device::Device& device) const;       // kAny: it is none of them
  // Where something new lies that a thread makes with this wish.
  int32_t for_new(int32_t wish) const { return wish >= 0 ? wish : preferred >= 0 ? preferred : host; }
  std::vector<int32_t> accelerators() const;  // those that compute in memory of their own
  std::string names() const;                  // "cpu, gpu:0"
};

}  // namespace tandem::engine
