#include "data/explain.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "base/text.hpp"
#include "data/ahead.hpp"

namespace tandem::data {
namespace {

std::string fixed(double x, int digits) {
  std::ostringstream os;
  os << std::fixed << std::setprecision(digits) << x;
  return os.str();
}

std::string bytes_text(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return cat(fixed(bytes, unit == 0 ? 0 : 1), " ", kUnits[unit]);
}

struct Row {
  std::string cells[8];
};

}  // namespace

std::string explain_stages(Context& context) {
  std::vector<Row> rows{{{"stage", "elements", "us/element", "total ms", "threads", "queue", "bytes", "errors"}}};
  std::string bottleneck = "none";
  double longest = 0, all = 0;
  context.for_each_stage([&](Stage& s) {
    const auto elements = static_cast<double>(s.elements.load());
    const double busy = static_cast<double>(s.busy_ns.load()) / 1e6;
    const int64_t threads = s.parallel.value.load();
    const int64_t visits = s.fill_count.load();
    const double fill = visits ? static_cast<double>(s.fill_sum.load()) / static_cast<double>(visits) : 0;
    Row row;
    row.cells[0] = std::string(static_cast<size_t>(2 * s.depth), ' ') + s.text;
    row.cells[1] = std::to_string(s.elements.load());
    row.cells[2] = elements > 0 && busy > 0 ? fixed(busy * 1e3 / elements, 2) : "-";
    row.cells[3] = fixed(busy, 2);
    row.cells[4] = cat(threads, s.parallel.automatic() ? " (auto)" : "");
    row.cells[5] = s.has_queue ? cat(fixed(fill, 1), " of ", capacity(s), s.capacity.automatic() ? " (auto)" : "") : "-";
    row.cells[6] = bytes_text(static_cast<double>(s.bytes.load()));
    row.cells[7] = std::to_string(s.errors.load());
    rows.push_back(std::move(row));
    const double share = busy / static_cast<double>(threads);
    all += share;
    if (share > longest) {
      longest = share;
      bottleneck = s.text;
    }
  });
  std::array<size_t, 8> widths{};
  for (const Row& r : rows)
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], r.cells[i].size());
  std::string text;
  for (const Row& r : rows) {
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string pad(widths[i] - r.cells[i].size(), ' ');
      text += (i ? "  " : "") + (i ? pad + r.cells[i] : r.cells[i] + pad);
    }
    text += '\n';
  }
  const MemoryUse use = context.budget.use();
  text += cat("kept ahead: ", bytes_text(static_cast<double>(use.bytes)), " now, ", bytes_text(static_cast<double>(use.peak_bytes)),
              " at most, budget ", bytes_text(static_cast<double>(use.budget_bytes)), "\n");
  text += cat("bottleneck: ", bottleneck, all > 0 ? cat(", ", fixed(100 * longest / all, 0), " % of the time of all stages") : "", "\n");
  return text;
}

}  // namespace tandem::data
