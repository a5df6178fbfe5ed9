// Where a plan takes most of a device's memory: which step runs there, and what is alive.
#pragma once
#include "plan/plan.hpp"

namespace tandem::plan {

// Writes BudgetReport::tightest, tightest_location and largest, for report.device.
void name_tightest(const Plan& plan, BudgetReport& report);

}  // namespace tandem::plan
