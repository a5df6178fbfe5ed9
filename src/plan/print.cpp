// A plan as text.
#include <cmath>

#include "base/text.hpp"
#include "plan/plan.hpp"

namespace tandem::plan {

std::string Slot::str() const {
  static constexpr const char* kNames[] = {"arena", "input", "output", "constant"};
  const bool is_first_arena = base == Base::Arena && index == 0;
  return cat(kNames[static_cast<int>(base)], is_first_arena ? std::string() : cat(index), "+", offset, ":", bytes);
}

namespace {
// Times in milliseconds. The gap is what nobody knows: whether there is a faster plan of these units.
std::string report_text(const BudgetReport& r) {
  if (!r.fits) return cat(r.limit_bytes, " bytes are too few, at least ", r.least_bytes, " were needed");
  std::string text = cat(r.peak_bytes, " of ", r.limit_bytes, " bytes, ", r.unlimited_bytes, " without it; ", r.seconds * 1e3, " ms, ",
                         r.unlimited_seconds * 1e3, " ms without it");
  if (r.bound_seconds > 0)
    text += cat("; no order, recomputation or copy takes less than ", r.bound_seconds * 1e3, " ms, a gap of ",
                std::round((r.seconds / r.bound_seconds - 1) * 1000) / 10, " %");
  return text;
}
}  // namespace

std::string Plan::str(int indent) const {
  static constexpr const char* kKinds[] = {"launch", "copy", "upload", "download", "branch", "while", "scan"};
  static constexpr const char* kStreams[] = {"", " (upload)", " (download)"};
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string text = cat(margin, "plan: ", steps.size(), " steps");
  for (const Arena& a : arenas)
    text += cat(", arena ", a.bytes, " bytes", a.is_double_buffered ? " twice" : "",
                arenas.size() > 1 ? cat(" on device ", a.device) : std::string());
  text += "\n";
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& s = steps[i];
    text += cat(margin, "  ", i, " ", kKinds[static_cast<int>(s.kind)], " ", s.label);
    if (!s.on_host) text += cat(" on ", s.device, kStreams[static_cast<int>(s.stream)]);
    if (!s.kernel_name.empty()) text += cat(" [", s.kernel_name, "]");
    for (const Effect& r : s.reads()) text += cat(" ", r.slot);
    text += " ->";
    for (const Effect& w : s.writes()) text += cat(" ", w.slot);
    if (const Slot* scratch = s.scratch()) text += cat(" scratch ", *scratch);
    for (const int32_t w : s.waits) text += cat(" after ", w);
    text += "\n";
    for (const auto& body : s.bodies) text += body->str(indent + 4);
  }
  for (const BudgetReport& r : budgets) text += cat(margin, "  within the limit of device ", r.device, ": ", report_text(r), "\n");
  return text;
}

std::string bytes_text(size_t bytes) {
  static constexpr const char* kUnits[] = {" bytes", " KiB", " MiB", " GiB", " TiB"};
  size_t unit = 0;
  double n = static_cast<double>(bytes);
  for (; n >= 1024 && unit + 1 < std::size(kUnits); ++unit) n /= 1024;
  if (unit == 0 || n >= 10) return cat(std::ceil(n), kUnits[unit]);
  return cat(std::ceil(n * 10) / 10, kUnits[unit]);
}

std::string summary(const BudgetReport& r, std::string_view device) {
  std::string text = cat(device, ": ", bytes_text(r.limit_bytes), " of ", bytes_text(r.unlimited_bytes), ":");
  bool any = false;
  const auto add = [&](const auto&... parts) {
    text += cat(any ? ", " : " ", parts...);
    any = true;
  };
  if (r.recomputed) add(r.recomputed, r.recomputed == 1 ? " result computed again" : " results computed again");
  if (r.offloaded_bytes) add(bytes_text(r.offloaded_bytes), " of results wait on the host");
  if (r.state_bytes) add(bytes_text(r.state_bytes), " of state on the host");
  if (r.updates_on_host) add(r.updates_on_host, r.updates_on_host == 1 ? " update computed there" : " updates computed there");
  if (!any) add("another order");
  if (r.unlimited_predicted_seconds > 0) {
    const double percent = (r.predicted_seconds / r.unlimited_predicted_seconds - 1) * 100;
    add("predicted ", percent < 0 ? "" : "+", std::round(percent), " %");
  }
  return text;
}

}  // namespace tandem::plan
