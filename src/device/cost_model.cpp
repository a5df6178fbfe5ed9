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

double copy_seconds(double bytes, const Rates& rates) {
  const double fixed = rates.copy_seconds > 0 ? rates.copy_seconds : rates.launch_seconds;
  return fixed + (rates.link_bytes_per_second > 0 ? bytes / rates.link_bytes_per_second : 0);
}

double move_seconds(double bytes, const Rates& rates) { return seconds({.flops = 0, .bytes = 2 * bytes}, 1, rates); }

double Device::seconds(const codegen::Kernel& kernel) const {
  return device::seconds(codegen::cost_of(kernel), std::max<size_t>(kernel.stages.size(), 1), rates());
}

const Rates& Device::rates() const {
  std::call_once(rates_once_, [&] {
    rates_ = says_its_rates() ? info().rates : calibrated(const_cast<Device&>(*this));
    are_rates_known_ = true;
  });
  return rates_;
}

Rates Device::known_rates() const {
  if (are_rates_known_) return rates_;
  Rates kept;
  return !says_its_rates() && read_calibration(info(), kept) ? kept : info().rates;
}

bool Device::is_measured() const { return info().executes && !says_its_rates() && !are_rates_set_; }

void Device::set_rates(const Rates& rates) {
  std::call_once(rates_once_, [] {});
  rates_ = rates;
  are_rates_known_ = are_rates_set_ = true;
}

}  // namespace tandem::device
