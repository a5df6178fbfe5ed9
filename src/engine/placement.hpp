// Which device each node of a graph runs on: what was asked for, what a device cannot do, and for the rest what costs least.
#pragma once
#include <tandem/precision.hpp>

#include "engine/devices.hpp"
#include "ir/graph.hpp"
#include "plan/lower.hpp"

namespace tandem::engine {

enum class Why : uint8_t { Only, Asked, Cannot, Preferred, Cost, Moved };
std::string_view words(Why why);  // "asked for", for people

// A graph after its passes, with a device for each node.
struct Placed {
  ir::Graph graph;
  const Devices* devices = nullptr;  // the list that it was placed on
  std::vector<int32_t> of_nodes;     // empty: all on device 0
  std::vector<Why> why;              // one a node, or empty
  std::vector<int32_t> homes;        // one an input: where state is to live from now on, kAny: it stays. Empty: all stay
  int32_t of(const ir::Node& n) const { return of_nodes.empty() ? 0 : of_nodes[static_cast<size_t>(&n - graph.nodes.data())]; }
};

// A graph as it was traced, and what a call of it is known to be.
struct ToPlace {
  const ir::Graph& graph;
  Precision precision = Precision::Float32;
  std::span<const int32_t> donations = {};
  std::vector<bool> is_state = {};  // one an input, or empty: it may move for good
  bool soft = true;                 // what the wished device cannot do is the CPU's; else a UserError
  // Where cost decides: the first call's.
  Bindings bindings = {};
  std::vector<codegen::Layout> inputs = {};
  std::vector<int32_t> homes = {};  // of the inputs
};

// Whether a device can do a node, with everything in its bodies.
bool can(const device::Device& device, const ir::Graph& g, const ir::Node& n);

// Whether the call's operands decide.
inline bool needs_call(const Devices& devices) { return devices.count() > 1 && devices.preferred < 0; }
Placed place(const ToPlace& wanted, const Devices& devices);

// A request for a plan of a placed graph.
plan::Request request_of(const Placed& placed, const ToPlace& wanted);

// How long a kernel takes: as rates say, which compiles nothing, or timed on its device where that can be (device/kernel_times.hpp).
enum class KernelSeconds : uint8_t { ByRates, Timed };
double timed_seconds(const Devices& devices, const plan::Tables::Entry& entry, const std::shared_ptr<const device::Program>& program);

// What one run costs, unit by unit, with no two at the same time.
struct Estimate {
  struct Row {
    int32_t node = -1;
    int32_t device = 0;
    plan::Kind kind = plan::Kind::Launch;
    Why why = Why::Only;
    std::string label;
    Location location;
    double seconds = 0;
    size_t moved_bytes = 0;  // between devices
  };
  std::vector<Row> rows;
  double seconds = 0;      // their sum
  double run_seconds = 0;  // of explain(): of a run of the plan that was made last, with what overlaps (plan/simulate.hpp)
};
Estimate estimate(const plan::Request& request, const Devices& devices, const Placed* placed = nullptr,  // which knows why
                  KernelSeconds kernel_seconds = KernelSeconds::ByRates);

}  // namespace tandem::engine
