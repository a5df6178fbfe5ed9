#include "plan/plan.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "device/account.hpp"
#include "plan/limited.hpp"

namespace tandem::plan {
Plan make_plan(Units units, Tables tables, std::span<const KernelFacts> facts, std::span<const DeviceFacts> devices,
               const PlanOptions& options) {
  TANDEM_CHECK(facts.size() == tables.kernels.size(), "facts of ", facts.size(), " kernels for ", tables.kernels.size());
  Plan plan = plan_within(std::move(units), tables.constants, {facts, devices}, options);
  plan.constants = std::move(tables.constants);
  plan.limits = limits_of(devices);
  return plan;
}

std::vector<Limit> limits_of(std::span<const DeviceFacts> devices) {
  std::vector<Limit> limits;
  for (size_t d = 0; d < devices.size(); ++d)
    if (devices[d].limit_bytes > 0) limits.push_back({static_cast<int32_t>(d), devices[d].host_memory, devices[d].limit_bytes});
  return limits;
}

std::span<const Effect> Step::of(Effect::Kind k) const {
  const auto found = std::ranges::equal_range(effects, k, {}, &Effect::kind);
  return {found.begin(), found.end()};
}

size_t Plan::arena_bytes() const {
  size_t bytes = 0;
  for (const Arena& a : arenas) bytes += a.taken_bytes();
  return bytes;
}

size_t Plan::peak_bytes(int32_t device) const {
  size_t bytes = 0;
  const auto add = [&](size_t b) { bytes += device::Account::counted(b); };
  for (size_t i = 0; i < inputs.size(); ++i)
    if (input_devices[i] == device) add(byte_size(inputs[i].shape, inputs[i].dtype));
  for (size_t k = 0; k < outputs.size(); ++k)
    if (output_devices[k] == device && aliases[k].input < 0 && aliases[k].constant < 0 && donated[k] < 0)
      add(byte_size(outputs[k].shape, outputs[k].dtype));
  for (const Constant& c : constants)
    if (c.device == device) add(c.literal.bytes->size());
  for (const Arena& a : arenas)
    if (a.device == device && a.pinned_by < 0) add(a.taken_bytes());
  return bytes;
}

size_t Plan::pinned_bytes() const {
  size_t bytes = 0;
  for (const Arena& a : arenas)
    if (a.pinned_by >= 0) bytes += device::Account::counted(a.taken_bytes());
  return bytes;
}

void keep_largest(std::vector<BudgetReport>& most, const std::vector<BudgetReport>& others) {
  for (const BudgetReport& r : others) {
    const auto same = std::ranges::find(most, r.device, &BudgetReport::device);
    if (same == most.end())
      most.push_back(r);
    else if (same->unlimited_bytes < r.unlimited_bytes)
      *same = r;
  }
}

}  // namespace tandem::plan
