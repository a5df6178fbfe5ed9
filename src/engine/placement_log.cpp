#include "engine/placement_log.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "base/text.hpp"
#include "engine/engine.hpp"

namespace tandem::engine {
namespace {
std::atomic<bool> is_on{false};
}

void log_placement(bool on) { is_on = on; }
bool is_logging_placement() { return is_on.load(std::memory_order_relaxed); }

std::string tensorflow_name(const Devices& devices, int32_t device) {
  const std::vector<int32_t> cards = devices.accelerators();
  const auto card = std::ranges::find(cards, device);
  const std::string kind = card == cards.end() ? std::string("CPU:0") : cat("GPU:", card - cards.begin());
  return cat("/job:localhost/replica:0/task:0/device:", kind);
}

void write_placement(const plan::Request& request, const Placed& placed) {
  std::string text;
  for (const ir::Node& n : request.graph.nodes) {
    if (n.op->name == "input" || n.op->name == "constant") continue;
    text += cat(n.op->name, ": (", n.types.empty() ? std::string("no result") : n.types[0].str(),
                "): ", tensorflow_name(*placed.devices, placed.of(n)), "\n");
  }
  std::fputs(text.c_str(), stderr);
}

}  // namespace tandem::engine
