// What each step waits for.
#pragma once
#include "plan/plan.hpp"

namespace tandem::plan {

// Writes Step::waits and Plan::waits_at_end: of two steps in different queues that touch the same bytes, one of them writing, the later
// comes after the earlier. What is waited for already is not waited for again.
void add_waits(Plan& plan);

}  // namespace tandem::plan
