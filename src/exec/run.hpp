// Follows a plan. No policy: everything was decided before.
#pragma once
#include "device/device.hpp"
#include "plan/plan.hpp"

namespace tandem::exec {

// What the numbers of a plan stand for.
struct Machine {
  std::span<device::Device* const> devices;
  std::span<const std::shared_ptr<const device::Program>> programs;  // by kernel
  std::span<void* const> constants;
};

// The memory of one run: one pointer each, at the first byte (outputs that are aliases are not touched and may be null; an arena of no
// bytes may be). Arenas are aligned to codegen::kAlignment.
struct Places {
  void* const* inputs;
  void* const* outputs;
  void* const* arenas;
};

// The events of a plan. They are used again by the next run, and by one run at a time.
class Events {
 public:
  Events(const plan::Plan& plan, std::span<device::Device* const> devices);
  device::Event& of(size_t step) { return *events_[step]; }
  // So that what the host has staged for copies stays little: until the device has begun the run before the last one.
  void wait_for_earlier();
  // A run begins and ends on the compute streams: copies wait for what was there before, and what comes there later waits for them. Only
  // prefetches come before it begins; they write to memory that the run before does not use.
  void begin(std::span<device::Device* const> devices);
  void end(std::span<device::Device* const> devices);

 private:
  struct Streams {
    std::unique_ptr<device::Event> starts[2];  // of every other run; null: no copies of the device in this plan
    std::vector<std::pair<device::StreamKind, std::unique_ptr<device::Event>>> copies;
  };
  std::vector<std::unique_ptr<device::Event>> events_;  // by step; null: nobody waits for it
  std::vector<Streams> streams_;                        // by device
  size_t turn_ = 0;
};

// When it returns, what the plan does has been given to the streams, in the order of each device's compute stream: what follows there comes
// after all of it. Results in the host's memory are there. Errors keep their kind and get the step's location appended; before one is
// thrown, all streams have done what they were given.
// `reached`: how many steps had been begun.
void run(const plan::Plan& plan, const Machine& machine, const Places& places, Events& events, size_t& reached);

}  // namespace tandem::exec
