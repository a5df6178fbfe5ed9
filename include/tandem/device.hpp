// The devices of this process, and where things run. What nobody asked a device for runs on the one that TANDEM_DEVICE names, or where it
// costs least (docs/devices.md).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tandem/function.hpp>

namespace tandem {

struct DeviceDescription {
  std::string name;         // "cpu", "opencl:0"
  std::string description;  // "2 threads, avx512"
  size_t memory_bytes = 0;  // 0: as much as the host gives
  bool computes = false;    // false: plans and keeps time only
  std::string problem;      // why it cannot be used; empty: it can
  bool is_host = false;     // its memory is the host's
  bool is_ordinary = true;  // false: for tests and oracles, used only when it is named
};

std::vector<DeviceDescription> devices();  // all that this build has; loads drivers
DeviceDescription active_device();         // the default one, or the CPU where the cost decides

// What has no wish runs there; an empty name leaves it to the placement. UserError names the devices there are.
void set_default_device(std::string_view name);
std::string default_device();  // empty: the placement decides

// What this thread does while it lives asks for that device: ops, what a function traces, variables. "gpu:1", "cpu:0", and names such as
// TensorFlow's "/GPU:0" and "/job:localhost/replica:0/task:0/device:GPU:0". An empty name takes outer wishes back.
class DeviceScope {
 public:
  explicit DeviceScope(std::string_view name);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int32_t outer_;
};
std::string current_device();  // that the innermost scope asks for; empty: none

// Where that goes which has no wish and no default device. Cost: each graph where the cost model says that it takes least time, the CPU
// included. Tensorflow: the first GPU, for all that it can do. TANDEM_PLACEMENT chooses before the program does.
enum class Placement : uint8_t { Cost, Tensorflow };
void set_placement(Placement placement);
// On (as it begins): what the device that was asked for cannot do is the CPU's, and a GPU that is not there is the first there is. Off:
// both are UserErrors.
void set_soft_placement(bool on);
bool soft_placement();
void set_placement_log(bool on);  // prints which device each op runs on, when it is compiled

// How the devices are shared out is said before the first tensor is made, or a question asked that needs them: afterwards each of these is
// a UserError with ErrorCode::FailedPrecondition, unless it changes nothing. A device is named as in DeviceScope, and nothing is opened.
bool has_started();
std::vector<std::string> physical_devices();  // the names that a program may use without asking for more: "cpu", "gpu:0"
// The device becomes as many as there are limits, in bytes, 0 for none: "cpu:0" and "cpu:1" of "cpu", with an equal part of its cores each,
// "gpu:0:0" and "gpu:0:1" of "gpu:0". With one limit it stays one.
void set_logical_devices(std::string_view device, std::span<const size_t> limits_bytes);
std::vector<size_t> logical_devices(std::string_view device);    // the limits that were set; empty: none were
void set_visible_devices(std::span<const std::string> devices);  // no other is used; the CPU always is
void set_threads(int threads);                                   // that compute on the CPU; 0: one for each of its cores
void set_pipeline_threads(int threads);  // at most, for the autotuned stages of an input pipeline together; 0: as many as its cores

struct MemoryInfo {
  size_t current = 0, peak = 0;  // bytes
  size_t limit = 0;              // 0: none
};
MemoryInfo memory_info(std::string_view device);
MemoryInfo pinned_memory_info(std::string_view device);  // of the host, that the device's copies reach
void reset_peak(std::string_view device);
void set_memory_limit(std::string_view device, size_t bytes);  // 0: none. Plans that are made from now on stay within it

// Where each step of a function ran when it was called last, why, and what the cost model says of it.
struct PlacementRow {
  std::string op;      // "matmul float32[32,10]", "upload float32[32,10]"
  std::string device;  // "gpu:0"
  std::string why;     // "asked for", "costs least", "the other device cannot"
  double seconds = 0;
  size_t moved_bytes = 0;  // between devices
  std::string where;       // the user's line
};
std::vector<PlacementRow> explain(const FlatCallable& function);

// Gives back the memory that is kept for later: spare blocks, plans and compiled graphs. What is in use stays, and
// what is needed again is made again. This happens by itself when memory runs out.
void release_memory();

}  // namespace tandem
