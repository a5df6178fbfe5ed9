// Topics switched on by TANDEM_LOG=dispatch,plan,pass; one line each to stderr. Off costs one load.
#pragma once
#include <string_view>

#include "base/text.hpp"

namespace tandem::log {

enum class Topic : unsigned { Dispatch, Plan, Pass, Cache, Compile, Step };
bool enabled(Topic t);
void refresh();  // reads TANDEM_LOG again; UserError lists the topics when one is unknown
void write(Topic t, std::string_view line);

template <class... T> void line(Topic t, const T&... parts) {
  if (enabled(t)) write(t, cat(parts...));
}

}  // namespace tandem::log
