#include "profile/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/text.hpp"
#include "profile/page.hpp"

namespace tandem::profile {
namespace {

struct Scale {
  double of = 1;
  const char* name = "";
};
// The largest unit that a value has at least one of.
Scale scale_of(double value, Unit unit) {
  static constexpr std::array<Scale, 4> kTime{{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}};
  static constexpr std::array<Scale, 5> kBytes{{{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "bytes"}}};
  static constexpr std::array<Scale, 5> kRate{{{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "KB/s"}, {1, "B/s"}}};
  static constexpr std::array<Scale, 4> kFlops{{{1e12, "TFLOP/s"}, {1e9, "GFLOP/s"}, {1e6, "MFLOP/s"}, {1, "FLOP/s"}}};
  const auto largest = [&](const auto& scales) {
    for (const Scale& s : scales)
      if (std::abs(value) >= s.of * 0.9995) return s;
    return value == 0 && unit == Unit::Seconds ? Scale{1, "s"} : scales.back();
  };
  switch (unit) {
    case Unit::Number: break;
    case Unit::Seconds: return largest(kTime);
    case Unit::Bytes: return largest(kBytes);
    case Unit::BytesPerSecond: return largest(kRate);
    case Unit::FlopsPerSecond: return largest(kFlops);
    case Unit::Share: return {0.01, "%"};
  }
  return {};
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}
// Coordinates: a hundredth of a pixel, or exact enough to be looked at from near.
std::string px(double v) { return fixed(v, 1); }
std::string fine(double v) {
  std::string text = fixed(v, 5);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string colour(int c) {
  if (c == kRed) return "red";
  return c < 0 ? "grey" : cat("c", c % kColours);
}

// 1, 2 or 5 times a power of ten, or a power of two for bytes: so that there are `most` at the most.
double tick_step(double range, int most, Unit unit) {
  const double least = range / most;
  if (!(least > 0)) return 1;
  if (unit == Unit::Bytes) return std::max(1.0, std::exp2(std::ceil(std::log2(least))));
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double f : {1.0, 2.0, 5.0})
    if (power * f >= least * 0.999) return power * f;
  return power * 10;
}

int digits_for(double step) { return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9); }

std::string tick_text(double value, double step, double largest, Unit unit) {
  const Scale s = scale_of(largest, unit);
  return cat(fixed(value / s.of, digits_for(step / s.of)), *s.name ? " " : "", s.name);
}

class Range {  // of an axis, in pixels
 public:
  Range(double from, double to, double at, double length, bool log) : from_(from), to_(to), at_(at), length_(length), log_(log) {}
  double operator()(double v) const { return at_ + length_ * (at(v) - at(from_)) / (at(to_) - at(from_)); }
  double from() const { return from_; }
  double to() const { return to_; }
  std::vector<double> ticks(int most, Unit unit, double& step) const {
    std::vector<double> all;
    if (log_) {
      for (double p = std::pow(10, std::ceil(std::log10(from_) - 1e-9)); p <= to_ * 1.0001; p *= 10) all.push_back(p);
      step = all.empty() ? 1 : all.front();
      return all;
    }
    step = tick_step(to_ - from_, most, unit);
    for (int64_t i = std::llround(std::ceil(from_ / step - 1e-6)); static_cast<double>(i) * step <= to_ + 1e-6 * step; ++i)
      all.push_back(static_cast<double>(i) * step);
    return all;
  }

 private:
  double at(double v) const { return log_ ? std::log10(std::max(v, 1e-300)) : v; }
  double from_, to_, at_, length_;
  bool log_;
};

// What an axis has to show.
std::pair<double, double> extent(const Axis& axis, double least, double most, bool from_zero) {
  if (!(least <= most)) least = 0, most = 1;
  if (axis.log) {
    least = std::max(least, most * 1e-12);
    if (!(least > 0)) least = 1e-3, most = 1;
  } else if (from_zero && least > 0) {
    least = 0;
  }
  double from = axis.from.value_or(least), to = axis.to.value_or(most);
  if (!(to > from)) to = from + (from != 0 ? std::abs(from) : 1);
  return {from, to};
}

std::string line(std::string_view kind, double x1, double y1, double x2, double y2) {
  return cat("<line class=\"", kind, "\" x1=\"", px(x1), "\" y1=\"", px(y1), "\" x2=\"", px(x2), "\" y2=\"", px(y2), "\"/>");
}
std::string text(double x, double y, std::string_view what, std::string_view kind = "", std::string_view anchor = "start") {
  return cat("<text x=\"", px(x), "\" y=\"", px(y), "\" class=\"", kind, "\" text-anchor=\"", anchor, "\">", escaped(what), "</text>");
}

// Letters of many bytes count once.
size_t letters(std::string_view s) {
  return static_cast<size_t>(std::ranges::count_if(s, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}
double width_of(std::string_view s) { return 6.6 * static_cast<double>(letters(s)); }
std::string shortened(std::string_view s, size_t most) {
  if (letters(s) <= most) return std::string(s);
  size_t end = 0;
  for (size_t n = 0; end < s.size() && n + 1 < most; ++n) do
      ++end;
    while (end < s.size() && (static_cast<unsigned char>(s[end]) & 0xc0) == 0x80);
  return cat(s.substr(0, end), "…");
}

std::string legend(const std::vector<std::pair<std::string, int>>& entries, double x, double y, double right) {
  std::string out;
  const double left = x;
  for (const auto& [name, c] : entries) {
    const double w = 20 + width_of(name);
    if (x + w > right && x > left) x = left, y += 18;
    out += cat("<rect class=\"", colour(c), "\" x=\"", px(x), "\" y=\"", px(y - 9), "\" width=\"11\" height=\"11\" rx=\"2\"/>",
               text(x + 16, y, name));
    x += w + 14;
  }
  return out;
}
int legend_lines(const std::vector<std::pair<std::string, int>>& entries, double left, double right) {
  int lines = 1;
  double x = left;
  for (const auto& [name, c] : entries) {
    const double w = 20 + width_of(name);
    if (x + w > right && x > left) x = left, ++lines;
    x += w + 14;
  }
  return entries.empty() ? 0 : lines;
}

std::string path_of(const Series& s, const Range& x, const Range& y, double floor) {
  std::string d;
  double before = 0;
  for (const auto& [px_, py_] : s.points) {
    if (!std::isfinite(px_) || !std::isfinite(py_)) continue;
    const double h = x(px_), v = y(py_);
    if (d.empty())
      d = cat(s.style == Style::Area ? cat("M", px(h), " ", px(floor), "L") : "M", px(h), " ", px(v));
    else if (s.style == Style::Line)
      d += cat("L", px(h), " ", px(v));
    else
      d += cat("L", px(h), " ", px(before), "L", px(h), " ", px(v));
    before = v;
  }
  if (d.empty()) return d;
  if (s.style == Style::Area) d += cat("L", px(x(s.points.back().first)), " ", px(floor), "Z");
  return cat("<path class=\"", s.style == Style::Area ? "area " : "line ", colour(s.colour), "\" style=\"",
             s.style == Style::Area ? "" : "fill:none", "\" d=\"", d, "\"/>");
}

std::string opening(int width, int height, std::string_view more_class = "", std::string_view more = "") {
  return cat("<svg class=\"drawing", more_class, "\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, " ", height,
             "\" width=\"", width, "\" height=\"", height, "\"", more, " role=\"img\">\n");
}

}  // namespace

std::string amount(double value, Unit unit) {
  if (!std::isfinite(value)) return "-";
  const Scale s = scale_of(value, unit);
  const double v = value / s.of;
  const bool whole = (unit == Unit::Bytes && s.of == 1) || (unit == Unit::Number && v == std::floor(v));
  const int digits = whole || std::abs(v) >= 99.95 ? 0 : std::abs(v) >= 9.995 ? 1 : 2;
  std::string number = fixed(v, digits);
  if (digits > 0) {
    while (number.back() == '0') number.pop_back();
    if (number.back() == '.') number.pop_back();
  }
  return cat(number, *s.name ? " " : "", s.name);
}

std::string svg(const Chart& chart) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  double left_x = kInf, right_x = -kInf, low = kInf, high = -kInf;
  bool filled = false;
  std::vector<std::pair<std::string, int>> names;
  for (const Series& s : chart.series) {
    filled |= s.style == Style::Area;
    if (!s.name.empty()) names.emplace_back(s.name, s.colour);
    for (const auto& [x, y] : s.points) {
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      left_x = std::min(left_x, x), right_x = std::max(right_x, x);
      low = std::min(low, y), high = std::max(high, y);
    }
  }
  for (const Mark& m : chart.across) low = std::min(low, m.at), high = std::max(high, m.at);
  for (const Mark& m : chart.upright) left_x = std::min(left_x, m.at), right_x = std::max(right_x, m.at);
  const auto [x0, x1] = extent(chart.x, left_x, right_x, false);
  auto [y0, y1] = extent(chart.y, low, high, filled || low < 0.6 * high);
  if (!chart.y.to && !chart.y.log) y1 += 0.06 * (y1 - y0);

  const double left = 78, right = chart.width - 16, top = 12;
  const int lines = legend_lines(names, left, right);
  const double bottom = chart.height - 40 - 18 * lines;
  const Range x(x0, x1, left, right - left, chart.x.log), y(y0, y1, bottom, top - bottom, chart.y.log);
  std::string out = opening(chart.width, chart.height);
  double step = 1;
  for (const double t : y.ticks(5, chart.y.unit, step)) {
    out += line("grid", left, y(t), right, y(t));
    out += text(left - 8, y(t) + 4, chart.y.log ? amount(t, chart.y.unit) : tick_text(t, step, y1, chart.y.unit), "faint", "end");
  }
  for (const double t : x.ticks(8, chart.x.unit, step)) {
    out += line("grid", x(t), bottom, x(t), bottom + 4);
    out += text(x(t), bottom + 17, chart.x.log ? amount(t, chart.x.unit) : tick_text(t, step, x1, chart.x.unit), "faint", "middle");
  }
  out += line("grid", left, bottom, right, bottom);
  for (const Series& s : chart.series) out += path_of(s, x, y, bottom);
  for (const Mark& m : chart.across)
    out += cat(line(cat("mark ", colour(m.colour)), left, y(m.at), right, y(m.at)), text(right - 4, y(m.at) - 4, m.name, "", "end"));
  for (const Mark& m : chart.upright) {
    const bool near_end = x(m.at) + width_of(m.name) + 8 > right;
    out += cat(line(cat("mark ", colour(m.colour)), x(m.at), top, x(m.at), bottom),
               text(x(m.at) + (near_end ? -5 : 5), top + 10, m.name, "", near_end ? "end" : "start"));
  }
  out += text((left + right) / 2, bottom + 33, chart.x.name, "faint", "middle");
  if (!chart.y.name.empty())
    out += cat("<text class=\"faint\" text-anchor=\"middle\" transform=\"translate(13 ", px((top + bottom) / 2), ") rotate(-90)\">",
               escaped(chart.y.name), "</text>");
  out += legend(names, left, bottom + 52, right);
  return out + "</svg>\n";
}

std::string svg(const Timeline& timeline) {
  constexpr double kRow = 18, kGap = 5, kGroup = 24;
  double begin = timeline.begin, end = timeline.end;
  if (!(end > begin)) end = begin + 1e-6;
  double widest = 60;
  for (const Lane& l : timeline.lanes) widest = std::max(widest, std::max(width_of(l.name) + 14, width_of(l.group)));
  const double left = std::min(widest + 12, 220.0), plot = timeline.width - left - 10;
  const auto x = [&](double t) { return (t - begin) / (end - begin) * plot; };

  std::string names, stripes, blocks, labels;
  double y = timeline.markers.empty() ? 4 : 18;
  const double top = y;
  std::string group;
  for (const Lane& lane : timeline.lanes) {
    if (lane.group != group) {
      group = lane.group;
      names += text(2, y + 16, group, "faint");
      y += kGroup;
    }
    std::vector<double> free_from;  // by row of the lane
    std::string drawn;
    for (const Block& b : lane.blocks) {
      if (b.end < begin || b.begin > end) continue;
      auto row = static_cast<size_t>(std::ranges::find_if(free_from, [&](double t) { return t <= b.begin; }) - free_from.begin());
      if (row == free_from.size()) free_from.push_back(0);
      free_from[row] = b.end;
      const double at = y + static_cast<double>(row) * (kRow + 1), from = x(std::max(b.begin, begin)), to = x(std::min(b.end, end));
      drawn +=
          cat("<rect class=\"", colour(b.colour), "\" x=\"", fine(from), "\" y=\"", px(at), "\" width=\"", fine(to - from), "\" height=\"",
              px(kRow), "\"><title>", escaped(b.label), b.title.empty() ? "" : "\n", escaped(b.title), "</title></rect>\n");
      if (const double room = to - from; room > 28 && !b.label.empty())
        labels += text(from + 4, at + kRow - 5, shortened(b.label, static_cast<size_t>((room - 8) / 6.2)), "in");
    }
    const double height = static_cast<double>(std::max<size_t>(1, free_from.size())) * (kRow + 1) - 1;
    names += text(14, y + 13, shortened(lane.name, static_cast<size_t>((left - 20) / 6.2)));
    stripes += cat("<rect class=\"stripe\" x=\"0\" y=\"", px(y - 1), "\" width=\"", px(plot), "\" height=\"", px(height + 2), "\"/>");
    blocks += drawn;
    y += height + kGap;
  }
  const double floor = y + 2;
  const int lines = legend_lines(timeline.legend, left, timeline.width - 10);
  const int height = static_cast<int>(floor + 26 + 18 * lines);

  std::string out = opening(timeline.width, height, " timeline",
                            cat(" data-begin=\"", fixed(begin, 9), "\" data-end=\"", fixed(end, 9), "\" data-plot=\"", px(plot),
                                "\" data-left=\"", px(left), "\" data-floor=\"", px(floor), "\" data-width=\"", timeline.width, "\""));
  out += "<g class=\"ticks\">";
  const Range range(begin, end, left, plot, false);
  double step = 1;
  for (const double t : range.ticks(9, Unit::Seconds, step)) {
    out += line("grid", range(t), 0, range(t), floor);
    out += text(range(t), floor + 16, tick_text(t, step, std::max(std::abs(begin), end), Unit::Seconds), "faint", "middle");
  }
  out += cat("</g>", names, "\n<svg x=\"", px(left), "\" y=\"0\" width=\"", px(plot), "\" height=\"", px(floor), "\"><g>", stripes,
             "</g><g class=\"marks\">");
  double last = -1e9;
  for (const Mark& m : timeline.markers) {
    const double at = x(m.at);
    if (at < 0 || at > plot) continue;
    const bool named = at - last > width_of(m.name) + 8;
    if (named) last = at;
    out += cat("<g data-x=\"", fine(at), "\" transform=\"translate(", fine(at), ")\">",
               line(cat("upright ", colour(m.colour)), 0, top - 4, 0, floor), named ? text(3, 12, m.name, "faint") : "", "<title>",
               escaped(m.name), "</title></g>");
  }
  out += cat("</g><g class=\"blocks\">", blocks, "</g><g class=\"labels\">", labels, "</g></svg>\n");
  out += legend(timeline.legend, left, floor + 38, timeline.width - 10);
  return out + "</svg>\n";
}

}  // namespace tandem::profile
