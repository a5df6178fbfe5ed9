// Which plan a step gets when it does not fit into a device's memory as it is: of those that compute again, keep results on the host, keep
// state there and update it there, the one that the cost model says is fastest.
#pragma once
#include <tandem/error.hpp>

#include <functional>

#include "engine/engine.hpp"
#include "engine/state_placement.hpp"

namespace tandem::engine {

// A request as units, with the programs of its kernels: many plans are made of it.
struct Lowered {
  plan::Units units;
  plan::Tables tables;  // kernels are only counted any more
  std::vector<plan::KernelFacts> kernels;
  std::vector<std::shared_ptr<const device::Program>> programs;
  bool is_timed = false;
  std::vector<double> seconds;  // Planned::seconds
};
Planned plan_of(const Lowered& lowered, std::span<const plan::DeviceFacts> facts, const plan::PlanOptions& options);

// How a request becomes units, without deciding anything about memory.
struct Planner {
  std::function<Lowered(const plan::Request&)> lower;
  // Where a node of a graph is computed when there is no limit.
  std::function<int32_t(const ir::Graph&, const ir::Node&)> device_of;
};

// The smallest limit that works is in the report.
class DoesNotFit : public ResourceError {
 public:
  DoesNotFit(const std::string& text, plan::BudgetReport r) : ResourceError(text, ErrorCode::ResourceExhausted), report(std::move(r)) {}
  const plan::BudgetReport report;
};

// DoesNotFit when there is none: what the step needs at least, what sets it, what is largest, what was tried.
// `lowered`: the request's units, with times.
Planned planned_within(const plan::Request& request, Lowered lowered, const Devices& devices, std::vector<plan::DeviceFacts> facts,
                       const Planner& planner);

}  // namespace tandem::engine
