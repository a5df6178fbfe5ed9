// A recording in the format that Chrome's tracing and ui.perfetto.dev open: processes are devices, threads are streams and threads,
// counters are memory.
#pragma once
#include "profile/recording.hpp"

namespace tandem::profile {

std::string trace_json(const Recording& recording);
std::string json_quoted(std::string_view text);  // bytes that are no UTF-8 become U+FFFD

}  // namespace tandem::profile
