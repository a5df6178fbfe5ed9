#include "forecast/words.hpp"

#include <cmath>
#include <cstdio>

#include "base/text.hpp"
#include "profile/chart.hpp"

namespace tandem::forecast {

std::string size(size_t bytes) { return profile::amount(static_cast<double>(bytes), profile::Unit::Bytes); }
std::string time(double seconds) { return profile::amount(seconds, profile::Unit::Seconds); }
std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, std::abs(share) < 0.0995 ? "%+.1f %%" : "%+.0f %%", 100 * share);
  return text;
}

std::string slower(const Forecast& f, const Situation& s) {
  const double share = f.unlimited.seconds > 0 ? s.seconds / f.unlimited.seconds - 1 : 0;
  return share < 0.0005 ? "" : cat(" (", percent(share), ")");
}

std::string measures(const Situation& s) {
  std::string text;
  const auto add = [&](const std::string& part) { text += cat(text.empty() ? "" : ", ", part); };
  if (s.recomputed) add(cat(s.recomputed, " computed again (", time(s.recomputed_seconds), ")"));
  if (s.offloaded) add(cat(size(s.offloaded_bytes), " of results to the host and back"));
  if (s.state_on_host) add(cat(size(s.state_on_host_bytes), " of state on the host"));
  return text.empty() ? "everything is kept" : text;
}

std::string verdict(const Forecast& f) {
  if (!f.planned)
    return cat("does not fit: it needs at least ", size(f.least_bytes),
               f.batch_planned ? cat(", or a batch of ", f.batch_planned, " or less") : "");
  const Situation& s = *f.planned;
  if (f.unlimited.peak_bytes <= f.limit_bytes) return cat("fits as it is: ", size(f.limit_bytes - s.peak_bytes), " stay free");
  return cat("fits: ", measures(s), "; the results are the same bit for bit");
}

std::string gain(const Forecast& f) {
  if (f.curve.size() < 2) return "";
  const Situation &first = f.curve.front(), &last = f.curve.back();
  const double gib = static_cast<double>(last.limit_bytes - first.limit_bytes) / 0x1p30;
  const Situation* from = &first;  // where the limit stands on the curve
  for (const Situation& s : f.curve)
    if (s.limit_bytes <= f.limit_bytes) from = &s;
  if (f.limit_bytes >= last.limit_bytes || gib <= 0) return cat("more than ", size(last.limit_bytes), " buys nothing for this batch");
  const double more = static_cast<double>(last.limit_bytes - from->limit_bytes) / 0x1p30;
  return cat("from ", size(from->limit_bytes), " on, a gigabyte more buys ", time((from->seconds - last.seconds) / std::max(more, 1e-9)),
             " a step on average, until ", size(last.limit_bytes));
}

const char* kind(Move::Kind k) {
  switch (k) {
    case Move::Kind::Recomputed: return "again";
    case Move::Kind::Offloaded: return "offloaded";
    case Move::Kind::StateOnHost: return "on the host";
    case Move::Kind::ToHost: return "to the host";
  }
  return "";
}

std::string why(const Move& m) {
  const std::string at = m.line.empty() ? "" : cat(" at ", m.line.substr(m.line.rfind('/') + 1));
  switch (m.kind) {
    case Move::Kind::Recomputed:
      return cat(m.what, at, ": computing it again takes ", time(m.seconds),
                 m.instead > 0 ? cat(", copying it there and back ", time(m.instead)) : "");
    case Move::Kind::Offloaded:
      return cat(m.what, at, ": its copies take ", time(m.seconds), " beside computing",
                 m.instead > 0 ? cat("; its kernel alone takes ", time(m.instead)) : "");
    case Move::Kind::ToHost: return cat(m.what, at, ": the host updates what waits there with it; the copy takes ", time(m.seconds));
    case Move::Kind::StateOnHost: return cat(m.what, m.seconds > 0 ? cat(": used little for its size; its copies take ", time(m.seconds), " a step") : ": used and updated there");
  }
  return "";
}

std::vector<std::string> assumptions(const Forecast& f) {
  std::vector<std::string> lines;
  if (!f.card.empty()) {
    const device::Card& c = device::card(f.card);
    lines.push_back(cat(c.name, ": ", c.memory_gib, " GB, ", c.gigabytes_per_second, " GB/s, ", c.teraflops, " TFLOP/s, ", c.link, " (",
                        c.source, "); of these, kernels are reckoned to reach ", 100 * device::kReachedArithmetic,
                        " % of the arithmetic and ", 100 * device::kReachedMemory, " % of the bandwidth, copies ",
                        100 * device::kReachedLink, " % of the link"));
  } else if (!f.description.empty()) {
    lines.push_back(f.description);
  }
  for (const std::string& n : f.notes) lines.push_back(n);
  return lines;
}

}  // namespace tandem::forecast
