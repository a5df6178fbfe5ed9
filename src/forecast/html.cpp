// A forecast as one page: the memory over the time of a step, the curve of limits, the tables.
#include <algorithm>

#include "base/text.hpp"
#include "forecast/words.hpp"
#include "profile/chart.hpp"
#include "profile/page.hpp"

namespace tandem::forecast {
namespace {

using profile::Align;
using profile::Unit;

constexpr size_t kMostBlocks = 4000;  // of one drawing

// What is alive, by role, one above the other: the sum of all is the top line.
std::string memory_chart(const Situation& s, const Situation& unlimited, size_t limit) {
  profile::Chart chart;
  chart.x = {.name = "time of a step", .unit = Unit::Seconds, .from = 0.0, .to = s.seconds};
  chart.y = {.name = "memory of the device", .unit = Unit::Bytes, .from = 0.0};
  chart.height = 320;
  for (size_t top = kRoles; top-- > 0;) {  // the highest first, so that lower ones are drawn over it
    const auto of_role = [&](const Moment& m) { return m.parts[top]; };
    if (std::ranges::none_of(s.moments, [&](const Moment& m) { return of_role(m) > 0; })) continue;
    profile::Series series{.name = name(static_cast<Role>(top)), .style = profile::Style::Area, .colour = static_cast<int>(top)};
    for (const Moment& m : s.moments) {
      if (m.lane == Moment::Lane::Host && m.end <= m.begin) continue;
      size_t bytes = 0;
      for (size_t r = 0; r <= top; ++r) bytes += m.parts[r];
      series.points.emplace_back(m.begin, static_cast<double>(bytes));
    }
    std::ranges::stable_sort(series.points, {}, &std::pair<double, double>::first);
    if (!series.points.empty()) series.points.emplace_back(s.seconds, series.points.back().second);
    chart.series.push_back(std::move(series));
  }
  if (limit && static_cast<double>(limit) < 3.0 * static_cast<double>(std::max(s.peak_bytes, unlimited.peak_bytes)))
    chart.across.push_back({static_cast<double>(limit), "limit"});
  if (unlimited.peak_bytes > s.peak_bytes)
    chart.across.push_back({static_cast<double>(unlimited.peak_bytes), "peak without a limit", profile::kGrey});
  return profile::svg(chart);
}

std::string time_line(const Situation& s) {
  static constexpr const char* kLanes[] = {"computes", "to the device", "to the host", "the host computes"};
  static constexpr int kColours[] = {0, 1, 4, 5};
  profile::Timeline line;
  line.end = s.seconds;
  line.lanes.resize(4);
  for (size_t l = 0; l < 4; ++l) line.lanes[l].name = kLanes[l];
  std::vector<const Moment*> shown;  // the longest, when there are too many
  for (const Moment& m : s.moments)
    if (m.end > m.begin) shown.push_back(&m);
  if (shown.size() > kMostBlocks) {
    std::ranges::stable_sort(shown, std::greater{}, [](const Moment* m) { return m->end - m->begin; });
    shown.resize(kMostBlocks);
    std::ranges::stable_sort(shown, {}, [](const Moment* m) { return m->begin; });
  }
  for (const Moment* m : shown) {
    const auto lane = static_cast<size_t>(m->lane);
    line.lanes[lane].blocks.push_back(
        {m->begin, m->end, m->label,
         cat(m->label, "\n", time(m->end - m->begin), m->is_again ? "\ncomputed again" : "", "\n", size(sum(m->parts)), " in use"),
         m->is_again && m->lane == Moment::Lane::Compute ? 2 : kColours[lane]});
  }
  std::erase_if(line.lanes, [](const profile::Lane& l) { return l.blocks.empty(); });
  line.legend = {{"computes", 0}, {"computes again", 2}, {"copies to the device", 1}, {"copies to the host", 4}, {"the host computes", 5}};
  return profile::svg(line);
}

std::string curve_chart(const Forecast& f) {
  profile::Chart chart;
  chart.x = {.name = "limit", .unit = Unit::Bytes};
  chart.y = {.name = "time of a step", .unit = Unit::Seconds, .from = 0.0};
  profile::Series series{.name = "predicted", .style = profile::Style::Line, .colour = 0};
  for (const Situation& s : f.curve) series.points.emplace_back(static_cast<double>(s.limit_bytes), s.seconds);
  chart.series.push_back(std::move(series));
  const double most = static_cast<double>(f.curve.back().limit_bytes);
  if (static_cast<double>(f.limit_bytes) <= 1.2 * most) chart.upright.push_back({static_cast<double>(f.limit_bytes), "the limit"});
  return profile::svg(chart);
}

}  // namespace

std::string html_of(const Forecast& f) {
  const Situation& s = f.planned ? *f.planned : f.unlimited;
  std::string subtitle = cat("batch ", s.batch, " on ", f.device, " with ", size(f.limit_bytes));
  for (const std::string& line : assumptions(f)) subtitle += "\n" + line;
  profile::Page page(cat("A training step of ", f.step), subtitle);
  page.card(f.planned ? profile::Tone::Good : profile::Tone::Warning, f.planned ? "It fits" : "It does not fit", verdict(f));
  std::vector<profile::Figure> figures = {
      {time(s.seconds), "a step", f.planned ? cat("without a limit ", time(f.unlimited.seconds)) : "without a limit"},
      {size(s.peak_bytes), "peak of memory", cat("without a limit ", size(f.unlimited.peak_bytes))},
      {size(f.least_bytes), "smallest limit that works", f.tightest}};
  if (f.batch_planned) figures.push_back({cat(f.batch_planned), "largest batch", cat("as it is ", f.batch_as_it_is)});
  if (s.host_bytes) figures.push_back({size(s.host_bytes), "of the host's memory", ""});
  page.figures(figures);

  page.heading(f.planned ? "Memory over a step" : "Memory over a step, without a limit");
  page.svg(memory_chart(s, f.unlimited, f.limit_bytes));
  page.svg(time_line(s));
  profile::Table parts{.columns = {{"what"}, {"at the peak", Align::Right}, {"share", Align::Bar}, {"without a limit", Align::Right}}};
  for (size_t r = 0; r < kRoles; ++r)
    if (s.parts[r] || f.unlimited.parts[r])
      parts.rows.push_back({name(static_cast<Role>(r)), size(s.parts[r]),
                            cat(static_cast<double>(s.parts[r]) / static_cast<double>(std::max<size_t>(s.peak_bytes, 1))),
                            size(f.unlimited.parts[r])});
  page.table(parts);

  if (f.curve.size() > 1) {
    page.heading("What more memory buys");
    page.svg(curve_chart(f));
    page.paragraph(gain(f));
    profile::Table curve{.columns = {{"limit", Align::Right}, {"step", Align::Right}, {"slower", Align::Right}, {"what it takes"}}};
    for (const Situation& c : f.curve)
      curve.rows.push_back({size(c.limit_bytes), time(c.seconds), percent(c.seconds / f.unlimited.seconds - 1), measures(c)});
    page.table(curve);
  }
  if (f.planned && !s.moves.empty()) {
    page.heading("What goes where, and why");
    profile::Table moves{.columns = {{"what"}, {"bytes", Align::Right}, {"which, and why"}}};
    for (const Move& m : s.moves) moves.rows.push_back({kind(m.kind), size(m.bytes), why(m)});
    page.table(moves);
  }
  if (!f.planned) {
    page.heading("Why it does not fit");
    page.preformatted(f.refusal);
  }
  return page.html();
}

}  // namespace tandem::forecast
