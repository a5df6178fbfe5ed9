#include "engine/residency.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace tandem::engine {
namespace {

// A small tensor frees nothing worth a copy each step.
constexpr size_t kLeastBytes = 4096;

std::string mib(size_t bytes) { return cat((bytes + (size_t{1} << 20) - 1) >> 20, " MiB"); }

}  // namespace

Residency::Residency(const ir::Graph& graph, const std::vector<int32_t>& homes, const std::vector<int32_t>& donations,
                     const Bindings& bindings)
    : donations_(donations) {
  std::vector<int64_t> uses(graph.nodes.size());
  for (const ir::Node& n : graph.nodes)
    for (const ir::Value v : n.inputs) ++uses[static_cast<size_t>(v.node)];
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ir::TensorType& t = graph.type(graph.inputs[i]);
    const size_t bytes = byte_size(bind(t.dims, bindings), t.dtype);
    if (bytes >= kLeastBytes) candidates_.push_back({i, homes[i], bytes, uses[static_cast<size_t>(graph.inputs[i].node)]});
  }
  std::ranges::stable_sort(candidates_, [](const Candidate& a, const Candidate& b) {
    return a.uses != b.uses ? a.uses < b.uses : a.bytes > b.bytes;
  });
}

bool Residency::send(int32_t device, int32_t host, size_t bytes, plan::Request& request) {
  size_t freed = 0;
  for (Candidate& c : candidates_) {
    if (freed >= bytes) break;
    if (c.sent || c.device != device) continue;
    c.sent = true;
    freed += c.bytes;
    request.input_devices[c.input] = host;
    for (size_t k = 0; k < donations_.size(); ++k)
      if (donations_[k] == static_cast<int32_t>(c.input)) request.output_devices[k] = host;
  }
  sent_bytes_ += freed;
  return freed > 0;
}

void refuse(const plan::BudgetReport& r, const std::string& device, const std::string& graph, size_t sent_bytes) {
  std::string largest;
  for (const auto& [label, bytes] : r.largest) largest += cat(largest.empty() ? "" : ", ", label, " (", mib(bytes), ")");
  resource_error(ErrorCode::ResourceExhausted, graph.empty() ? "call" : graph, ": it does not fit into ", mib(r.limit_bytes), " of ", device,
                 ": it needs at least ", mib(r.least_bytes), " (without a limit ", mib(r.unlimited_bytes), ")",
                 r.tightest.empty() ? "" : cat(", which ", r.tightest, " sets"), "\n  largest values: ", largest.empty() ? "none" : largest,
                 "\n  tried: computing again, keeping results on the host, state on the host (", mib(sent_bytes),
                 ")\n  hint: a limit of ", mib(r.least_bytes), " or more, or a smaller batch");
}

}  // namespace tandem::engine
