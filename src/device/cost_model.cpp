#include <algorithm>

#include "device/device.hpp"

namespace tandem::device {

double seconds(const codegen::Cost& cost, size_t launches, const Rates& rates) {
  double longer = 0;
  if (rates.flops_per_second > 0) longer = cost.flops / rates.flops_per_second;
  if (rates.bytes_per_second > 0) longer = std::max(longer, cost.bytes / rates.bytes_per_second);
  return longer + static_cast<double>(launches) * rates.launch_seconds;
}

double Device::seconds(const codegen::Kernel& kernel) const {
  return device::seconds(codegen::cost_of(kernel), std::max<size_t>(kernel.stages.size(), 1), info().rates);
}

}  // namespace tandem::device
