// A forecast as a table that people can read.
#include <cstdarg>
#include <cstdio>

#include "base/text.hpp"
#include "forecast/forecast.hpp"
#include "forecast/words.hpp"

namespace tandem::forecast {
namespace {

constexpr size_t kMostMoves = 12;

[[gnu::format(printf, 1, 2)]] std::string print(const char* format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return text;
}

std::string row(const std::string& what, const std::string& value, const std::string& more = "") {
  std::string line = print("  %-26s %12s  %s", what.c_str(), value.c_str(), more.c_str());
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
}

}  // namespace

std::string text_of(const Forecast& f) {
  const Situation& s = f.planned ? *f.planned : f.unlimited;
  std::string t = cat(f.step, ", batch ", s.batch, ", on ", f.device, " with ", size(f.limit_bytes), "\n");
  for (const std::string& line : assumptions(f)) t += cat("  ", line, "\n");
  t += cat("\n", verdict(f), "\n\n");
  if (f.planned)
    t += row("step", time(s.seconds),
             s.seconds > f.unlimited.seconds * 1.0005 ? cat("without a limit ", time(f.unlimited.seconds), slower(f, s)) : "");
  else
    t += row("step without a limit", time(f.unlimited.seconds));
  t += row("peak of memory", size(s.peak_bytes),
           s.peak_bytes == f.unlimited.peak_bytes ? "" : cat("without a limit ", size(f.unlimited.peak_bytes)));
  for (size_t r = 0; r < kRoles; ++r)
    if (s.parts[r]) t += row(cat("  ", name(static_cast<Role>(r))), size(s.parts[r]));
  if (s.host_bytes) t += row("in the host's memory", size(s.host_bytes));
  t += row("smallest limit that works", size(f.least_bytes), f.tightest.empty() ? "" : cat("set by ", f.tightest));
  if (f.batch_planned || f.batch_refused) {
    t += row("largest batch as it is", cat(f.batch_as_it_is));
    t += row("largest batch planned", cat(f.batch_planned),
             f.batch_planned
                 ? cat(time(f.batch_planned_seconds), " a step", f.batch_refused ? cat("; ", f.batch_refused, " does not fit") : "")
                 : "");
  }
  if (!f.curve.empty()) {
    t += print("\n  %12s %12s %10s  %s\n", "limit", "step", "slower", "what it takes");
    for (const Situation& c : f.curve)
      t += print("  %12s %12s %10s  %s\n", size(c.limit_bytes).c_str(), time(c.seconds).c_str(),
                 percent(c.seconds / f.unlimited.seconds - 1).c_str(), measures(c).c_str());
    t += cat("  ", gain(f), "\n");
  }
  if (f.planned && !s.moves.empty()) {
    t += print("\n  %-12s %10s  %s\n", "what", "bytes", "which, and why");
    for (size_t i = 0; i < s.moves.size() && i < kMostMoves; ++i)
      t += print("  %-12s %10s  %s\n", kind(s.moves[i].kind), size(s.moves[i].bytes).c_str(), why(s.moves[i]).c_str());
    if (s.moves.size() > kMostMoves) t += cat("  … and ", s.moves.size() - kMostMoves, " more\n");
  }
  if (!f.planned && !f.largest.empty()) {
    t += "\n  largest values:\n";
    for (const auto& [label, bytes] : f.largest) t += print("    %-10s %s\n", size(bytes).c_str(), label.c_str());
  }
  return t;
}

}  // namespace tandem::forecast
