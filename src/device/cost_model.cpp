// How long a device takes, by what a kernel costs and by the device's rates.
#include <algorithm>

#include "device/calibration.hpp"

namespace tandem::device {

double seconds(const codegen::Cost& cost, size_t launches, const Rates& rates) {
  double longer = 0;
  if (rates.flops_per_second > 0) longer = cost.flops / rates.flops_per_second;
  if (rates.bytes_per_second > 0) longer = std::max(longer, cost.bytes / rates.bytes_per_second);
  return longer + static_cast<double>(launches) * rates.launch_seconds;
}

double Device::seconds(const codegen::Kernel& kernel) const {
  return device::seconds(codegen::cost_of(kernel), std::max<size_t>(kernel.stages.size(), 1), rates());
}

const Rates& Device::rates() const {
  std::call_once(rates_known_, [&] {
    const Rates& said = info().rates;
    const bool says_all = said.flops_per_second > 0 && said.bytes_per_second > 0;
    rates_ = says_all ? said : calibrated(const_cast<Device&>(*this));
    if (said.link_bytes_per_second > 0) rates_.link_bytes_per_second = said.link_bytes_per_second;  // one that is emulated
  });
  return rates_;
}

void Device::set_rates(const Rates& rates) {
  std::call_once(rates_known_, [] {});
  rates_ = rates;
}

}  // namespace tandem::device
