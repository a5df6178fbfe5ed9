// Where a step's state is and where its updates run: on the device, or on the host when the device has no room for it.
#pragma once
#include "plan/plan.hpp"

namespace tandem::engine {

// How state that is on the host is worked with.
enum class Updates : uint8_t {
  OnDevice,  // it is brought for its use and goes back
  OnHost,    // what is exact is computed there: gradients come, weights go. The same bits (transform/cut.hpp)
};

// Which of a step's inputs are on the host, what of the graph is computed there.
struct Placement {
  ir::Graph graph;  // products whose ends are updates may have been cut
  std::vector<int32_t> input_devices, output_devices;
  std::vector<bool> on_host;  // by node
  size_t sent_bytes = 0;      // of inputs that are on the host instead of where they belong, counted as accounts do
  size_t sent = 0;            // how many
};

// Of one step and one device.
class StatePlacement {
 public:
  // `homes`: the device that each input belongs to. `can`: whether the device computes a node of a graph at all.
  using CanFn = std::function<bool(const ir::Graph&, const ir::Node&)>;
  StatePlacement(const plan::Request& request, int32_t device, int32_t host, CanFn can);

  size_t state_bytes() const { return state_bytes_; }  // of what could be on the host
  // With at least so many bytes of state on the host: first what frees most for what has to be copied, such as what an optimizer keeps.
  Placement place(size_t bytes, Updates updates) const;

 private:
  // Inputs that one node overwrites, or one that nobody does.
  struct Group {
    std::vector<size_t> inputs;
    size_t bytes = 0;
    double worth = 0;  // bytes freed for each that is copied in a run
  };
  void find_groups();
  bool is_moved_with(const ir::Graph& g, int32_t node, const std::vector<bool>& on_host,
                     const std::vector<std::vector<int32_t>>& users) const;
  void choose_nodes(Placement& p, const std::vector<bool>& is_sent) const;
  size_t bytes_of(const ir::Graph& g, ir::Value v) const;

  const plan::Request& request_;
  const int32_t device_, host_;
  const CanFn can_;
  std::vector<Group> groups_, singles_;  // in the order in which they go; singles_: one input each, for updates on the device
  size_t state_bytes_ = 0;
};

}  // namespace tandem::engine
