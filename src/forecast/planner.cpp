#include "forecast/planner.hpp"

#include <numeric>

#include "base/text.hpp"
#include "engine/within_budget.hpp"
#include "ops/table.hpp"
#include "passes/pipeline.hpp"

namespace tandem::forecast {
namespace {

// The account's limit for as long as a plan is made.
class LimitScope {
 public:
  LimitScope(device::Account& account, size_t bytes) : account_(account), before_(account.limit()) { account_.set_limit(bytes); }
  ~LimitScope() { account_.set_limit(before_); }
  LimitScope(const LimitScope&) = delete;
  LimitScope& operator=(const LimitScope&) = delete;

 private:
  device::Account& account_;
  const size_t before_;
};

}  // namespace

size_t sum(const Parts& parts) { return std::accumulate(parts.begin(), parts.end(), size_t{0}); }

Planner::Planner(TrainingStep step, device::Device& device)
    : step_(std::move(step)), device_(device), host_(device::make("null:host")), memory_(device, [] {}), host_memory_(*host_, [] {}) {
  if (device.info().host_memory)
    user_error("plan: device ", device.info().name, " uses the host's memory, for which steps are not planned\n  hint: a GPU, or --card");
  graph_ = passes::run_pipeline(ops::table(), step_.graph, [this](const ir::OpCall& call) { return device_.keeps(call); }, step_.precision);
  devices_.memories = {&memory_, &host_memory_};
  devices_.pinned = {nullptr, nullptr};
  devices_.host = 1;
}

plan::Request Planner::request(int64_t batch) const {
  plan::Request r{graph_};
  if (!step_.batch_symbol.empty()) r.bindings.emplace(step_.batch_symbol, batch);
  r.donations = step_.donations;
  // A batch comes out of the host's memory, everything else is on the device.
  for (const TrainingStep::Input& input : step_.inputs) {
    r.input_devices.push_back(input.role == Role::Batch ? 1 : 0);
    r.fresh_inputs.push_back(input.role == Role::Batch);
  }
  for (const ir::Value v : graph_.inputs) {
    const ir::TensorType& t = graph_.type(v);
    r.inputs.push_back(codegen::Layout::dense(t.dtype, tandem::bind(t.dims, r.bindings)));
  }
  return r;
}

std::optional<Situation> Planner::plan(int64_t batch, size_t limit_bytes, int64_t effort, Least least) {
  if (step_.batch_symbol.empty() && batch != step_.batch)
    user_error("plan: the step was traced for a batch of ", step_.batch, ", not for ", batch,
               "\n  hint: something in the model wants the batch as a number");
  const LimitScope limit(device_.memory(), limit_bytes);
  devices_.plan_effort = effort;
  devices_.finds_least = least == Least::Found;
  try {
    const engine::Planned made = engine::planned(request(batch), devices_);
    Situation s = looked_at(made, step_, devices_);
    s.batch = batch;
    s.limit_bytes = limit_bytes;
    return s;
  } catch (const engine::DoesNotFit& e) {
    refusal_ = {e.what(), e.report.least_bytes, e.report.tightest, e.report.largest};
    return std::nullopt;
  }
}

}  // namespace tandem::forecast
