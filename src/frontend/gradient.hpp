// From recorded calls to gradients: the calls become a graph, its gradient is appended, and what of that is needed becomes a graph of its
// own that takes the recorded tensors as inputs. Outside of traces that graph is compiled and kept, and found again for the same calls.
#pragma once
#include <span>
#include <vector>

#include <tandem/tensor.hpp>

#include "frontend/tape_impl.hpp"

namespace tandem::frontend {

struct GradientRequest {
  std::span<const TapeEntry> entries;  // as recorded; only those between sources and targets are used
  std::span<const Tensor> targets;
  std::span<const Tensor> target_gradients;  // none, or one a target, which may be undefined
  std::span<const Tensor> sources;
  std::span<const size_t> groups;  // how many of the sources in a row are added up to one result
  Location location;
};

// One tensor for each group, undefined where nothing is connected. It is computed at once or becomes part of the present trace, and the
// tapes that record hear of it.
std::vector<Tensor> run_gradient(const GradientRequest& request);

// Gradients of what the present trace has computed already, without a tape: its graph has all of it. One tensor for each source, undefined
// where nothing is connected; `stops` count as constants. UserError: there is no trace, a tape records, or a target comes from outside of
// the branch or loop that asks.
std::vector<Tensor> traced_gradients(std::span<const Tensor> targets, std::span<const Tensor> target_gradients,
                                     std::span<const Tensor> sources, std::span<const Tensor> stops, Location where);

// The same for a graph on these tensors.
std::vector<Tensor> run_graph(const ir::GraphRef& graph, std::span<const Tensor> inputs, Location where);

}  // namespace tandem::frontend
